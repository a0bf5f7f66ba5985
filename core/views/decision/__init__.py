"""Page Decision: which stack to ship within the limits."""
