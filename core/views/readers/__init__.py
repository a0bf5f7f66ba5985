"""Page Readers: what the passages are worth to the answer."""
