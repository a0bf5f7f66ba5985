"""Evaluations of stacks: what the form writes, the plan, the way into a store, and how it ended."""
