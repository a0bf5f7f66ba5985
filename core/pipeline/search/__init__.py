"""Searches over stacks: proposals of what to evaluate next, and a race that drops beaten stacks."""
