"""Custom pipelines as stacks: a Python function in its own interpreter, or an HTTP endpoint."""
