"""Grades in, numbers out: NumPy only, one file per family of measures."""
