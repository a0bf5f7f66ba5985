"""A workspace: its contents, what is comparable, and the stack table that pages decide on."""
