"""The own format."""
