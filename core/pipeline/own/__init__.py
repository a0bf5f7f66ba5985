"""Pipelines of one's own as stacks: a Python function in its own interpreter, or an HTTP endpoint."""
