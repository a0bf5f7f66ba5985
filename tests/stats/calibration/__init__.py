"""Each stated chance and level, pinned at fewer trials than docs/statistics.md has."""
