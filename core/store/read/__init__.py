"""Reading a snapshot of the store: tables, graded rankings, codes of ids."""
