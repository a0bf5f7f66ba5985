"""The making of the demo in data/demo: its passages from docstrings, and the pools that were judged."""
