"""What is done to a query before it is searched."""
