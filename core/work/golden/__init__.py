"""Golden sets: what is judged, plan, build, landing and words."""
