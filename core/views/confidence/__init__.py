"""Page Confidence: would the choice hold."""
