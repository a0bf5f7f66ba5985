"""Evidence of a workspace: what measures need besides grades, read only where a measure needs it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.per_query import query_table
from core.analysis.scoring.table import score_table
from core.analysis.workspace.choices import choices
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.scores import at_cutoff, evidence, mean
from core.answers import parted
from core.errors import InputError
from core.metrics import REGISTRY, Measure
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import frame
from tests.metrics import oracle
from tests.stores import Lab
from tests.views.made import LAB, table

JUDGED = {"q1": {"a": 5, "b": 4, "c": 4}, "q2": {"a": 3, "d": 5}}
FINAL = {"q1": ["b", "x", "a", "c"], "q2": ["d"]}
POOL = {"q1": ["c", "b", "a", "x"], "q2": ["d", "a"]}
SOURCE = {"a": "book", "b": "book", "c": "paper", "d": None, "x": "paper"}
ANSWERS = [
    ("one", "q1", 4, 3.0, "1-5"),
    ("one", "q1", 3, 5.0, "1-5"),
    ("one", "q2", 1, 0.25, "0-1"),
    ("one", "q2", 2, None, "0-1"),
    ("one", "q2", 7, 1.0, "0-1"),
    ("two", "q2", 1, 1.0, "stars"),
    ("two", "unjudged", 1, 1.0, "0-1"),
]


def written(path: Path, *, sources: bool = True, answers: bool = True) -> Snapshot:
    """Run "one" has a pool, run "two" has none."""
    lab = Lab().judge(JUDGED).run("one", final=FINAL, candidates=POOL).run("two", final={"q1": ["a"]})
    store = lab.write(path)
    frames = {}
    if sources:
        rows = {"collection_id": ["lab"] * 5, "passage_id": list(SOURCE), "text": list(SOURCE)}
        frames["passages"] = frame("passages", rows | {"source": list(SOURCE.values())})
    if answers:
        names = ("run_id", "query_id", "k", "grade", "scale")
        rows = pl.DataFrame(ANSWERS, schema=names, orient="row")
        frames |= parted(rows.with_columns(text=pl.lit("…")))
    with store.write("more") as writer:
        writer.add(Batch(frames=frames))
    return store.read()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return written(tmp_path_factory.mktemp("snapshot") / "s")


@pytest.mark.parametrize(
    "name", ["Novelty-RA-nWG", "PROC[Novelty-RA-nWG]", "%PROC-per-query[Novelty-RA-nWG]", "nDCG", "RA-nWG"]
)
def test_from_the_store_every_measure_equals_the_oracle(snapshot: Snapshot, name: str):
    for k in (1, 2, 3, 6):
        measure = Measure(name, k)
        found = evidence(snapshot, ["two", "one"], "gold", [measure])
        values = at_cutoff(found, measure)
        rankings = {"one": (FINAL, POOL), "two": ({"q1": ["a"]}, {"q1": ["a"]})}
        for row, run_id in enumerate(found.run_ids):
            final, pool = rankings[run_id]
            for column, query in enumerate(found.query_ids):
                expect = oracle.value(
                    name.replace("-per-query", ""),
                    final.get(query, []),
                    JUDGED[query],
                    k,
                    pool=pool.get(query, []),
                    source=SOURCE,
                )
                got = values[row, column]
                assert math.isnan(got) if expect is None else got == pytest.approx(expect, abs=1e-12)


def test_answers_count_where_everything_good_is_found(snapshot: Snapshot):
    """q1 is a hit from K = 4 on, where grade 3 of 1-5 is half correct; q2 from K = 1 on."""
    expected = {1: [math.nan, 0.25], 3: [math.nan, math.nan], 4: [0.5, math.nan], 7: [math.nan, 1.0]}
    for k, values in expected.items():
        measure = Measure("Acc|Hit", k)
        found = evidence(snapshot, ["one", "two"], "gold", [measure])
        np.testing.assert_array_equal(at_cutoff(found, measure), [values, [math.nan, math.nan]])
    assert mean(at_cutoff(evidence(snapshot, ["one"], "gold", [measure]), measure))[1].tolist() == [1]


def test_only_what_is_needed_is_read(snapshot: Snapshot):
    plain = evidence(snapshot, ["one"], "gold", [Measure("RA-nWG", 3), Measure("PROC[RA-nWG]", 3), None])
    assert plain.extra.sources is None
    assert plain.extra.answers is None
    assert evidence(snapshot, ["one"], "gold") is plain
    sourced = evidence(snapshot, ["one"], "gold", [Measure("Novelty-RA-nWG", 3)])
    assert sourced.extra.sources is not None
    assert sourced.extra.pool_sources is None


def test_candidates_are_those_of_the_pool_or_of_the_ranking(snapshot: Snapshot):
    found = evidence(snapshot, ["one", "two"], "gold")
    assert found.candidates.tolist() == [
        [[0, 0, 0, 2, 1], [0, 0, 1, 0, 1]],
        [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]],
    ]
    assert found.candidates is found.candidates


def test_a_cutoff_is_needed(snapshot: Snapshot):
    with pytest.raises(InputError, match="RA-nWG@10"):
        at_cutoff(evidence(snapshot, ["one"], "gold"), Measure("RA-nWG"))


@pytest.mark.slow
def test_measures_are_offered_where_what_they_need_is_there(tmp_path: Path):
    shelves = {
        "both": (True, True),
        "sources": (True, False),
        "answers": (False, True),
        "none": (False, False),
    }
    for name, (sources, answers) in shelves.items():
        offered = choices(written(tmp_path / name, sources=sources, answers=answers), LAB).measures
        assert ("Novelty-RA-nWG" in offered) == sources
        assert ("Acc|Hit" in offered) == answers
        assert not {"PROC[nDCG]", "%PROC[RA-nWG]"} & set(offered)
        assert {"nDCG", "AP", "F", "RBP", "T", "T_u", "Harm"} <= set(offered)


@pytest.mark.parametrize(
    "bare", ["Novelty-RA-nWG", "Acc|Hit", "nDCG(gain=exp)", "RA-nWG(alpha=0.5)", "F(alpha=0.3)"]
)
def test_every_table_takes_every_measure(snapshot: Snapshot, bare: str):
    quality = Quality(bare, 4)
    stacks = table(snapshot, LAB, quality)
    one = stacks.filter(run_id="one")["quality"].item()
    queries = query_table(snapshot, LAB, quality, "one")
    scored = score_table(snapshot, snapshot.runs("lab"), "gold", [Measure.parse(bare).at(4)])
    assert queries["score"].mean() == pytest.approx(one)
    assert scored.filter(run="one")["value"].item() == pytest.approx(one)


def test_binary_judgements_gain_what_was_given(tmp_path: Path):
    """nDCG of grades 0→1, 1→5 is that of 0 and 1, as in trec_eval, not of 1 and 5."""
    store = Lab().judge({"q": {"a": 5, "b": 1}}).run("r", final={"q": ["b", "a"]}).write(tmp_path / "s")
    golden = replace(Lab().judge({})._golden[0], golden_set_id="binary", mapping="binary: 0→1, 1→5")
    rows = {"golden_set_id": ["binary"] * 2, "query_id": ["q"] * 2, "passage_id": ["a", "b"], "grade": [5, 1]}
    with store.write("more") as writer:
        writer.add(
            Batch(golden_sets=(golden,), frames={"judgements": frame("judgements", rows | {"raw": [1, 0]})})
        )
    measure = Measure("nDCG", 2)
    values = [at_cutoff(evidence(store.read(), ["r"], name), measure)[0, 0] for name in ("gold", "binary")]
    assert values == pytest.approx([(1 + 5 / math.log2(3)) / (5 + 1 / math.log2(3)), 1 / math.log2(3)])


def test_every_measure_with_a_ceiling_is_computed_beside_it(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    runs = snapshot.runs("python-docs").head(3)
    names = [name for name, info in REGISTRY.items() if not info.needs - {"pool"}]
    made = score_table(snapshot, runs, "python-docs-graded", [Measure(name, 10) for name in names])
    actual = {
        row["measure"]: row["value"] for row in made.filter(pl.col("run") == runs["run_id"][0]).to_dicts()
    }
    for name in names:
        if f"PROC[{name}]" in names:
            assert actual[f"{name}@10"] <= actual[f"PROC[{name}]@10"] + 1e-12


SUPPORT = {"a": (0, 1), "b": (0, 2), "c": (1, 2), "d": (3,), "e": (0,)}
NDEVAL = [  # pyndeval 0.0.8 of these two rankings
    ("alpha-nDCG@5", (0.7442151130661531, 0.8672827440820763)),
    ("NRBP@5", (0.369140625, 0.5625)),
]


@pytest.mark.parametrize(("name", "expect"), NDEVAL)
@pytest.mark.parametrize("sources", [True, False])
def test_from_the_store_nuggets_are_facets_as_ndeval_reads_them(
    tmp_path: Path, name: str, expect: tuple[float, float], *, sources: bool
):
    judged = {"q1": dict.fromkeys("abcde", 5), "q2": {"a": 5}}
    lab = Lab().judge(judged).run("one", final={"q1": list("eaxdc"), "q2": ["a"]}, candidates=POOL)
    store = lab.run("two", final={"q1": list("cba"), "q2": ["a"]}).write(tmp_path / "s")
    rows = [(number, passage) for passage, told in SUPPORT.items() for number in told]
    nuggets = pl.DataFrame(rows, schema=["nugget", "passage_id"], orient="row").with_columns(
        golden_set_id=pl.lit("gold"), query_id=pl.lit("q1"), text=pl.lit("…"), vital=True, support=1.0
    )
    partly = nuggets.head(1).with_columns(nugget=pl.lit(5, pl.Int64), support=0.5)
    frames = {"nuggets": frame("nuggets", pl.concat([nuggets, partly]).to_dict(as_series=False))}
    if sources:
        named = {"collection_id": ["lab"] * 5, "passage_id": list(SOURCE), "text": list(SOURCE)}
        frames["passages"] = frame("passages", named | {"source": list(SOURCE.values())})
    with store.write("more") as writer:
        writer.add(Batch(frames=frames))
    snapshot, measure = store.read(), Measure.parse(name)
    found = evidence(snapshot, ["one", "two"], "gold", [measure, Measure(f"PROC[{measure.name}]", 5)])
    np.testing.assert_allclose(at_cutoff(found, measure)[:, 0], expect, rtol=0, atol=1e-12)
    assert np.isnan(at_cutoff(found, measure)[:, 1]).all(), "a question without nuggets"
    ceiling = at_cutoff(found, Measure(f"PROC[{measure.name}]", 5))[0, 0]
    known = {passage: SUPPORT.get(passage, ()) for passage in POOL["q1"]}
    best = oracle.told_greedy(POOL["q1"], 5, oracle.DEFAULTS | {"alpha": 0.5}, known)
    assert ceiling == pytest.approx(
        oracle.of_nuggets(
            measure.name, best, 5, oracle.DEFAULTS | {"alpha": 0.5}, dict(reversed(SUPPORT.items()))
        )
    )
    assert measure.name in choices(snapshot, LAB).measures
