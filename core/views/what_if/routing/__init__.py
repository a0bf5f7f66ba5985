"""Section Routing of page What if."""
