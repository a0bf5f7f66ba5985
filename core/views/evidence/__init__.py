"""How far the judgements carry: grade mix, holes, bias of the pool, duplicates and conflicts."""
