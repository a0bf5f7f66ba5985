"""Page K curves: measures against the cutoff."""
