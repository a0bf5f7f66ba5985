"""The file that runs in the interpreter of a custom pipeline; nothing of this package is there."""
