"""Questions: a set of them made from documents alone, by rules or by a model, or taken from a log."""
