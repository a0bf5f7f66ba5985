"""Page Latency: where time is spent."""
