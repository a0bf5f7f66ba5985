"""Rankings of passages: what a search returns, and what is done with it."""
