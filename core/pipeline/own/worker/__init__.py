"""The file that runs in a custom pipeline's interpreter, where nothing else of this package exists."""
