"""Page Headroom: is retrieval or ordering the limit."""
