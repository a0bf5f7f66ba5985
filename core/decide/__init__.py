"""What to ship: pure functions over the stack table."""
