"""Embedders: text in, vectors out."""
