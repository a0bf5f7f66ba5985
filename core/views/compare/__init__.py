"""Page Compare: two stacks side by side."""
