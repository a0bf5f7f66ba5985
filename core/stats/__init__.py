"""Intervals, paired tests, correlation and agreement of judges, as pure functions over numbers."""
