"""Building golden sets: what the form and the command show, and how a finished one lands in the store."""
