"""Tables with rows of rankings, judgements, answers or one row per stack."""
