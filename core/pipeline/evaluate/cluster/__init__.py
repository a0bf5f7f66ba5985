"""Evaluations on several machines: Ray runs, moves and repeats tasks; the accounts stay in one place."""
