"""Names in embedders: spelled otherwise, left out, or told apart."""
