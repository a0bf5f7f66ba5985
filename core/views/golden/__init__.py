"""Page Golden sets: how sound the judgements are."""
