"""Commands that answer: decide, record, score, cost, prices."""
