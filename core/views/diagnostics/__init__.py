"""What page Diagnostics shows: data, words and charts."""
