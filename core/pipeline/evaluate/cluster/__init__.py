"""Evaluations on several machines: Ray starts, moves and repeats tasks; the accounts stay in one place."""
