"""RAGGED."""
