"""Stacks that really run: index, search, fuse, time, and hand batches of records to a sink."""
