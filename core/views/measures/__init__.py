"""Page Measures: every measure, and which foretells the answers."""
