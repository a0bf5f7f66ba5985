"""Reading untrusted files, within limits."""
