"""Readers: what the passages are worth to the answer, by how many of them are sent."""
