"""A move from the stack that runs today: what it needs and costs, and when it has paid for itself."""
