"""The command line, `python -m core …`; one file per command, or per group of small ones."""
