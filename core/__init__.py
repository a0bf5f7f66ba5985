"""CLQ Explorer: cost, latency and quality of retrieval stacks."""

__version__ = "0.1.0"
