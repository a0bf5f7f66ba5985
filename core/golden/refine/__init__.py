"""Listwise refinement (stage S6): a judge orders passages, five at a time, until the Top-20 are stable."""
