"""Page Readers: the value of the passages to the answer."""
