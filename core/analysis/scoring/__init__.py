"""Scores of runs as tables: of the store, of files, and of both with their intervals."""
