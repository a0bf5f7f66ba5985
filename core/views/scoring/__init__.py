"""Scores as a table, for the command line and what lists several measures."""
