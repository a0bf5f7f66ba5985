"""Replayed weights of the criteria that a reranker rated passages on."""
