from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.workspace.query_sets import among, query_sets, together
from core.analysis.workspace.scope import Ids, Scope
from core.analysis.workspace.stacks import runs_in
from core.store import Snapshot, Store
from tests.metrics import oracle
from tests.stores import Lab
from tests.views.made import AT_10, DEMO, LAB, PAPER, table

ALL = [f"q{number}" for number in range(1, 31)]
GRADES = {query: {f"p-{query}": 5, f"x-{query}": 2} for query in ALL}


def ranked(queries: Sequence[str], good: int = 1) -> dict[str, list[str]]:
    """Rankings whose every `good`-th query has the right passage first."""
    return {
        query: [f"p-{query}", f"x-{query}"] if place % good == 0 else [f"x-{query}"]
        for place, query in enumerate(queries)
    }


def lab(tmp_path: Path, **runs: Mapping[str, Sequence[str]]) -> Snapshot:
    made = Lab().judge(GRADES)
    for run_id, final in runs.items():
        made.run(run_id, final=final)
    return made.write(tmp_path / "store").read()


CASES = {
    # runs, what is shared, who is apart
    "the same queries": ({"a": ALL, "b": ALL}, ALL, []),
    "a part of them, the same": ({"a": ALL[:5], "b": ALL[:5]}, ALL[:5], []),
    "nothing found for a tenth": ({"a": ALL, "b": ALL[:27]}, ALL, []),
    "asked fewer": ({"a": ALL, "b": ALL[:26]}, ALL, ["b"]),
    "they overlap": ({"a": ALL[:20], "b": ALL[8:]}, ALL[8:], ["a"]),
    "one was asked far fewer": ({"a": ALL, "b": ALL, "c": ALL[:9]}, ALL, ["c"]),
    "nothing in common": ({"a": ALL[:15], "b": ALL[15:], "c": ALL[15:]}, ALL[15:], ["a"]),
    "most runs decide": ({"a": ALL[:8], "b": ALL[:8], "c": ALL[22:]}, ALL[:8], ["c"]),
    "nothing else is lost": ({"a": ALL[:3], "b": ALL[:3], "c": ALL}, ALL[:3], []),
    "each finds nothing for another": ({"a": ALL[1:], "b": ALL[:-1], "c": [*ALL[:9], *ALL[10:]]}, ALL, []),
}


@pytest.mark.parametrize(("runs", "shared", "apart"), CASES.values(), ids=CASES)
def test_what_runs_were_asked(
    tmp_path: Path, runs: dict[str, list[str]], shared: list[str], apart: list[str]
):
    snapshot = lab(tmp_path, **{name: ranked(queries) for name, queries in runs.items()})
    found = query_sets(snapshot, LAB, AT_10)
    sizes = [len(queries) for queries in runs.values()]
    assert (found.judged, found.fewest, found.most) == (30, min(sizes), max(sizes))
    assert (set(found.shared.ids), found.lacked.ids) == (set(shared), ())
    assert set(found.every.ids) == set.intersection(*(set(queries) for queries in runs.values()))
    assert found.apart == {name: len(runs[name]) for name in apart}
    assert found.differ == (len({tuple(queries) for queries in runs.values()}) > 1)
    assert found.unasked == 30 - len({query for queries in runs.values() for query in queries})
    assert among(snapshot, replace(LAB, shared=found.shared, apart=Ids.of(apart))) == set(shared)


@pytest.mark.slow
def test_shared_queries_score_as_if_the_others_were_not_there(tmp_path: Path):
    a, b = ranked(ALL, 2), ranked(ALL[6:20], 3)
    snapshot = lab(tmp_path, a=a, b=b)
    every = dict(table(snapshot, LAB).select("run_id", "quality").iter_rows())
    rows = table(snapshot, replace(LAB, shared=Ids.of(ALL[6:20])))
    assert rows["n"].to_list() == [14, 14]
    for run_id, final in (("a", a), ("b", b)):
        naive = [oracle.value("RA-nWG", final[query], GRADES[query], 10) for query in ALL[6:20]]
        assert dict(rows.select("run_id", "quality").iter_rows())[run_id] == pytest.approx(np.mean(naive))
    assert every["b"] < every["a"], "over all queries what was not asked counts as 0"
    assert table(snapshot, LAB)["n"].to_list() == [30, 30]


def test_a_query_that_took_time_was_asked(tmp_path: Path):
    made = (
        Lab()
        .judge(GRADES)
        .run("a", final=ranked(ALL))
        .run("b", final=ranked(ALL[:20]), ms={"sparse": [1.0] * 30})
    )
    found = query_sets(made.write(tmp_path / "store").read(), LAB, AT_10)
    assert not found.differ
    assert len(found.shared.ids) == 30


def test_one_run_that_was_not_asked_all(tmp_path: Path):
    snapshot = lab(tmp_path, a=ranked(ALL[:12]))
    found = query_sets(snapshot, LAB, AT_10)
    assert (found.differ, found.judged, len(found.shared.ids), found.unasked) == (False, 30, 12, 18)
    assert table(snapshot, LAB)["n"].to_list() == [30]
    assert table(snapshot, replace(LAB, shared=found.shared)).select("n", "quality").row(0) == (12, 1.0)


def test_a_run_that_was_left_out_is_in_no_table(tmp_path: Path):
    snapshot = lab(tmp_path, a=ranked(ALL), b=ranked(ALL[:3]))
    scope = replace(LAB, apart=Ids.of(["b"]))
    assert runs_in(snapshot, scope)["run_id"].to_list() == ["a"]
    assert not query_sets(snapshot, scope, AT_10).differ


@pytest.mark.parametrize("scope", [DEMO, PAPER, Scope("lab"), LAB])
def test_nothing_to_say_where_nothing_differs(demo_store: Path, tmp_path: Path, scope: Scope):
    store = (
        Lab().judge(GRADES).run("a", final=ranked(ALL)).write(tmp_path / "store")
        if "lab" in scope.collection_id
        else Store.open(demo_store)
    )
    found = query_sets(store.read(), scope, AT_10)
    assert not found.differ
    assert not found.apart
    assert among(store.read(), scope) is None


@given(st.lists(st.integers(1, 2**14 - 1), min_size=1, max_size=9))
def test_what_stays_together(drawn: list[int]):
    has = np.array([[bool(bits >> place & 1) for place in range(14)] for bits in drawn])
    common, base, apart = together(has, has)
    kept = has[~apart]
    assert len(kept)
    assert (common == (base & kept.all(axis=0))).all()
    assert not (base & (has.mean(axis=0) < 0.5)).any(), "what few have does not count"
    if not apart.all() and (base & ~kept).sum():
        assert (base & ~kept).sum(axis=1).max() <= 0.1 * base.sum() + (base & ~common).sum()
    lacking = (base & ~has).sum(axis=1)
    assert not apart[lacking == 0].any()
    assert apart[(common & ~has).sum(axis=1) > 0.1 * base.sum()].all()


@pytest.mark.parametrize(
    ("missing", "shared", "apart"),
    [
        ({}, 10, ""),
        ({"b": 1}, 9, ""),
        ({"b": 2}, 10, "b"),
        ({"a": 1, "b": 1, "c": 1}, 7, ""),
        ({"a": 5, "b": 5}, 10, "ab"),
        ({"a": 5, "b": 5, "c": 5}, 5, ""),
    ],
)
def test_an_empty_cell_is_missing(missing: dict[str, int], shared: int, apart: str):
    has = np.ones((4, 10), dtype=bool)
    for place, name in enumerate("abcd"):
        lost = missing.get(name, 0)
        start = place if lost == 1 else 0
        has[place, start : start + lost] = False
    common, _, out = together(has, has)
    assert (int(common.sum()), "".join(np.array([*"abcd"])[out])) == (shared, apart)


def test_runs_of_perturbed_queries_are_shown_where_they_are_chosen(tmp_path: Path):
    made = Lab().judge(GRADES)
    for run_id, spec in {
        "clean": {"mode": "sparse"},
        "noisy": {"mode": "sparse", "perturb": {"noise": 4}},
    }.items():
        made.run(run_id, final=ranked(ALL), spec=spec)
    snapshot = made.write(tmp_path / "store").read()
    assert runs_in(snapshot, LAB)["run_id"].to_list() == ["clean"]
    assert runs_in(snapshot, replace(LAB, run_ids=("noisy",)))["run_id"].to_list() == ["noisy"]
