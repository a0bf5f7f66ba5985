"""Page Add results: files into the store."""
