"""Page Decision: what to ship within the limits."""
