"""Prices, cost, latency, frontier, rules, headroom and intervals: pure functions over arrays and tables."""
