"""Intervals, paired tests, correlation, agreement of judges: pure functions over numbers."""
