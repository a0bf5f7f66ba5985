"""Readers on stored runs: job, plan, run, storing results and words."""
