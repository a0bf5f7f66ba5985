"""One file, or one folder, per foreign format."""
