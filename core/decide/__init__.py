"""Decide what to ship: pure functions over the stack table."""
