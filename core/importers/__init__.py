"""Foreign formats in, batches of records out; one file per format."""
