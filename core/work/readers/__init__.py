"""Readers on stored runs: what is answered, plan, run, landing and words."""
