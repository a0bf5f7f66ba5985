"""ann-benchmarks."""
