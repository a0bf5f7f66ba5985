"""The command line, `python -m core …`; one file per command."""
