"""Chat models: what they are, how they are asked, and how their answers are read."""
