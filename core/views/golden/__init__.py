"""Page Golden sets: whether the judgements are sound."""
