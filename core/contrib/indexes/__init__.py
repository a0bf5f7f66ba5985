"""Indexes in databases, each behind its own client."""
