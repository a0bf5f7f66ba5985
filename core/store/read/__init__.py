"""What a snapshot of the store reads: tables, graded rankings, codes of ids."""
