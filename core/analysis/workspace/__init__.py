"""A workspace: what it holds, what compares, and the stack table that pages decide on."""
