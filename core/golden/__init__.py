"""Golden sets: how they are built from questions and texts, judged, pruned and refined."""
