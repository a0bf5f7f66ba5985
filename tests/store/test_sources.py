"""Sources beside grades: from the store to Novelty-RA-nWG, against the naive oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from core.metrics import Extra, Measure, score
from core.records import Batch
from core.store import Store
from core.store.read import graded
from core.tables import frame
from tests.metrics import oracle
from tests.store import material
from tests.store.material import CORPUS, GOLD, run

SOURCE = {"p1": "book", "p2": "book", "p3": "paper", "p4": None, "p5": "paper", "p6": None}
JUDGED = {"q1": {"p1": 5, "p2": 4, "p3": 4, "gone": 3}, "q2": {"p4": 5, "p5": 2, "p6": 5}}
RANKED = {
    "a": {"q1": ["p2", "p1", "p3", "gone"], "q2": ["p4", "p6"]},
    "b": {"q1": ["gone", "p5", "p3"], "q2": ["p5", "p3", "p4", "new"], "q3": ["p1"]},
}


@pytest.fixture
def shelved(store: Store) -> Store:
    """Passages with sources; runs in parts of their own; one of them also has a pool."""
    passages = {"passage_id": list(SOURCE), "text": list(SOURCE), "source": list(SOURCE.values())}
    rankings = [material.rankings(name, ranked) for name, ranked in RANKED.items()]
    pool = material.rankings("a", {"q1": ["p3", "p2", "p1"]}, stage="pool")
    with store.write("import") as writer:
        writer.add(
            Batch(
                collections=(CORPUS,),
                golden_sets=(GOLD,),
                runs=(run("a"), run("b")),
                frames={
                    "passages": frame("passages", {"collection_id": ["corpus"] * len(SOURCE), **passages}),
                    "judgements": material.judgements(JUDGED),
                    "rankings": pl.concat([rankings[0], pool]),
                },
            )
        )
    with store.write("import") as writer:
        writer.add(Batch(frames={"rankings": rankings[1]}))
    graded.forget()
    return store


@pytest.mark.parametrize("name", ["Novelty-RA-nWG", "alpha-nDCG", "NRBP", "Source-Recall"])
def test_measures_of_sources_from_the_store_equal_the_oracle(shelved: Store, name: str) -> None:
    snapshot, measure = shelved.read(), Measure(name)
    found = snapshot.graded(["b", "a"], "gold")
    with_sources = snapshot.sources(["b", "a"], "gold", depth=found.grades.shape[2])
    extra = Extra(
        sources=with_sources.codes, source_grades=with_sources.best, facets=with_sources.facets,
        depths=with_sources.depths,
    )  # fmt: skip
    made = score(measure, found.grades, found.pool_counts, extra=extra)
    for row, run_id in enumerate(found.run_ids):
        for column, query in enumerate(found.query_ids):
            expect = [
                oracle.value(measure.name, RANKED[run_id].get(query, []), JUDGED[query], k, source=SOURCE)
                for k in range(1, found.grades.shape[2] + 1)
            ]
            np.testing.assert_allclose(made[row, column], np.array(expect, dtype=float), rtol=0, atol=1e-12)


def test_codes_are_equal_where_sources_are(shelved: Store) -> None:
    codes = shelved.read().sources(["a", "b"], "gold", depth=4).codes
    assert codes.shape == (2, 2, 4)
    (first, second), (third, _) = codes
    assert first[0] == first[1]
    assert len({*first[[0, 2, 3]], *second[:2]}) == 5
    assert third[1] == third[2] == first[2]
    assert (second[2:] == -1).all()


def test_stages_depths_and_what_is_kept(shelved: Store) -> None:
    snapshot = shelved.read()
    pool = snapshot.sources(["a"], "gold", stage="pool", depth=2)
    assert pool.codes.shape == (1, 2, 2)
    assert (pool.codes[0, 1] == -1).all()
    assert snapshot.sources(["a"], "gold", stage="pool", depth=2) is pool


def test_without_passages_every_passage_is_its_own_source(filled: Store) -> None:
    other = replace(CORPUS, collection_id="bare")
    golden = replace(GOLD, golden_set_id="bare-gold", collection_id="bare")
    judged = material.judgements({"q": {"x": 5, "y": 5}}, "bare-gold")
    with filled.write("import") as writer:
        writer.add(
            Batch(
                collections=(other,),
                golden_sets=(golden,),
                runs=(run("c", collection_id="bare"),),
                frames={"judgements": judged, "rankings": material.rankings("c", {"q": ["y", "z", "x"]})},
            )
        )
    found = filled.read().sources(["c"], "bare-gold", depth=3)
    assert len(set(found.codes.ravel())) == 3
    assert found.facets[0, 1 << 4] == 2
