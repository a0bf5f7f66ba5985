"""An index must find what comparing every vector finds, and nothing that its asker may not see."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.arrays import Ints
from core.extras import obstacle
from core.filters import fields_of, parse
from core.pipeline.index import METRICS, DatabaseIndex, DatabasePlace, make_index
from core.pipeline.index.outside import KIND
from core.pipeline.index.saved import about_folder
from core.pipeline.index.scope import scopes_of
from core.pipeline.ranking import Hits

_PASSAGES, _DIM, _ASKED, _DEPTH = 200, 16, 20, 10
_FEWEST = 0.9  # share of the exact neighbours that an index has to find
_FIELD, _GROUPS = "group", 4


def index_faults(name: str, kind: type[DatabaseIndex]) -> Iterator[str]:
    """Try an index on a temporary folder; one that needs a server or a missing package is not tried."""
    engine = kind.engine
    if engine.name != name:
        yield f"Its engine is called {engine.name}, its entry point {name}: a saved index would not be found."
    if not engine.folder or obstacle(engine.package, engine.requirements, engine.title) is not None:
        return
    random = np.random.default_rng(7)
    vectors, asked = random.standard_normal((2, _PASSAGES, _DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    fields = fields_of([{_FIELD: f"group {at % _GROUPS}"} for at in range(_PASSAGES)])
    (scope,) = scopes_of(fields, [parse({_FIELD: "group 1"})])
    for metric in METRICS:
        flat = make_index("flat", vectors, metric).search_batch(asked[:_ASKED], _DEPTH)
        try:
            with tempfile.TemporaryDirectory() as folder:
                place, saved = DatabasePlace(Path(folder), "tried", fields=fields), Path(folder) / "saved"
                index = kind.build(place, vectors, metric, engine.read({"url_env": "", "exact": "yes"}))
                found = index.search_batch(asked[:_ASKED], _DEPTH)
                yield from _unlike(metric, index, flat, found)
                if kind.selects and scope is not None:
                    seen = [index.search(each, _DEPTH, scope=scope) for each in asked[:_ASKED]]
                    if not all(scope.allowed[each].all() for each in _passages(seen)):
                        yield f"By {metric} it shows passages that a filter forbids."
                index.save(saved)
                again = kind.load(saved, about_folder(saved, KIND)).search_batch(asked[:_ASKED], _DEPTH)
                if any(
                    not np.array_equal(*each) for each in zip(_passages(again), _passages(found), strict=True)
                ):
                    yield f"By {metric} it finds others when it is opened again."
                index.drop()
        except Exception as error:
            yield f"By {metric} it raises {type(error).__name__}: {error}"


def _unlike(metric: str, index: DatabaseIndex, flat: list[Hits], found: list[Hits]) -> Iterator[str]:
    if (len(index), index.dim) != (_PASSAGES, _DIM):
        yield f"It states {len(index)} vectors of {index.dim} dimensions; it was given {_PASSAGES} of {_DIM}."
    shares = [
        len(set(mine.passages.tolist()) & set(exact.passages.tolist())) / _DEPTH
        for mine, exact in zip(found, flat, strict=True)
    ]
    if np.mean(shares) < _FEWEST:
        yield f"By {metric} it finds {np.mean(shares):.0%} of the nearest."
        return
    worst = max(
        float(np.abs(mine.scores - exact.scores).max(initial=0))
        for mine, exact in zip(found, flat, strict=True)
        if np.array_equal(mine.passages, exact.passages)
    )
    if worst > 0.01:
        yield f"By {metric} its scores are off by up to {worst:.3g}."


def _passages(found: list[Hits]) -> list[Ints]:
    return [each.passages for each in found]
