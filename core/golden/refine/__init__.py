"""Listwise refinement (stage S6): passages put in order by a judge, five at a time, until 20 rest."""
