"""Maintainers' tools, run by hand; not part of the product."""
