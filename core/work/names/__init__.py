"""Diagnoses of names: specification, plan, run, storing results and words."""
