"""Golden sets: built from questions and texts, judged, pruned, refined."""
