"""Commands that bring, list, hand out and keep results."""
