"""Page Library: the contents of the store."""
