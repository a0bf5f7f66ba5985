"""Diagnoses of names: specification, plan, run, landing and words."""
