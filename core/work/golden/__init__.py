"""Golden sets: job, plan, build, storing results and words."""
