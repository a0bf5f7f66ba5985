"""Page Queries: single queries and their passages."""
