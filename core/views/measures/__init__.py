"""Page Measures: every measure, and which predicts the answers."""
