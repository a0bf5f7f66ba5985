"""The file that runs in the interpreter of a pipeline of one's own; nothing of this package is there."""
