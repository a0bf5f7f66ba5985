"""Reading files that nobody vouches for, within limits."""
