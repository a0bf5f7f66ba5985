"""Changes of a query before it is searched."""
