"""Optuna and syftr."""
