"""Stacks that really run: they index, search, fuse, time, and hand batches of records to a sink."""
