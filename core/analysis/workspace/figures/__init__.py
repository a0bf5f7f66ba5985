"""What the stack table shows of each run: latency, cost, and what stands beside the quality."""
