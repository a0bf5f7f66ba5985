"""How the demo in data/demo was made: its passages from docstrings, the pools that were judged."""
