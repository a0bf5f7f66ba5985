"""Cheap or expensive by query: rules and their replay."""
