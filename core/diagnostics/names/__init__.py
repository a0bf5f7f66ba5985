"""Names in embedders: respelled, removed, or told apart."""
