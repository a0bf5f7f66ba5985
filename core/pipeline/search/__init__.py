"""Searches over stacks: what to evaluate next, and a race that drops what others beat."""
