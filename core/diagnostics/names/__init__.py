"""Diagnosis of names in embedders: respelled, removed, or told apart."""
