"""How well retrieval measures foretell the grade of the answer."""
