"""Page Confidence: whether the choice would hold."""
