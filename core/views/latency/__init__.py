"""Page Latency: where the time goes."""
