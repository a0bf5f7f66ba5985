"""Data, words and charts of page Diagnostics."""
