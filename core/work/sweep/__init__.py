"""Evaluations of stacks: the form's specification, the plan, storing results, and how it ended."""
