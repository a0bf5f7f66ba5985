"""Page Library: what the store holds."""
