"""Formats of single studies and benchmarks."""
