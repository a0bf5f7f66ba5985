"""Indexes in databases, each with its own client."""
