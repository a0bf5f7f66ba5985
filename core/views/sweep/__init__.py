"""Plans and evaluations as tables and words."""
