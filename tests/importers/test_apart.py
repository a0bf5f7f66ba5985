"""Several test collections offered together: each run goes where its judgements are."""

from __future__ import annotations

import random

import pytest

from core.analysis.workspace.choices import workspaces
from core.importers import Options, load
from core.store import Store
from core.work.imports.imports import store_import
from tests.importers.helpers import read, refusal, rows, up, zipped


def _judged(
    seed: int, prefix: str = "", queries: range = range(1, 31), docs: int = 400
) -> dict[str, list[str]]:
    source = random.Random(seed)  # noqa: S311
    return {str(query): [f"{prefix}{doc}" for doc in source.sample(range(1, docs), 6)] for query in queries}


def _qrels(judged: dict[str, list[str]]) -> str:
    return "".join(
        f"{query} 0 {doc} {n % 2}\n" for query, some in judged.items() for n, doc in enumerate(some)
    )


def _run(judged: dict[str, list[str]], tag: str, prefix: str = "", docs: int = 400) -> str:
    """Every second judged passage among the first, then others by chance, 50 deep."""
    source = random.Random(tag)  # noqa: S311
    lines = []
    for query, some in judged.items():
        others = [f"{prefix}{doc}" for doc in source.sample(range(1, docs), 60)]
        ranked = dict.fromkeys([*some[::2], *others])
        lines += [f"{query} Q0 {doc} {n} {1 / n} {tag}" for n, doc in enumerate([*ranked][:50], 1)]
    return "\n".join(lines) + "\n"


A, B = _judged(1), _judged(2)  # both number queries and passages from 1
DOCS, PASSAGES = _judged(3, "D"), _judged(4, "P")
CASES = {
    "numbers in both": {"qrels.a": _qrels(A), "qrels.b": _qrels(B), "a1": _run(A, "a1"), "a2": _run(A, "a2"),
                        "b1": _run(B, "b1")},
    "documents and passages": {"qrels.a": _qrels(DOCS), "qrels.b": _qrels(PASSAGES),
                               "a1": _run(DOCS, "a1", "D"), "a2": _run(DOCS, "a2", "D"),
                               "b1": _run(PASSAGES, "b1", "P")},
}  # fmt: skip


@pytest.mark.parametrize("files", CASES.values(), ids=CASES)
@pytest.mark.parametrize("given", [None, "mine"])
def test_each_run_goes_to_the_collection_that_judges_it(files, given):
    made = read(up("both.zip", zipped(files)), collection_id=given)
    names = {name: f"{given}-qrels.{name}" if given else f"qrels.{name}" for name in "ab"}
    assert [each.collection_id for each in made.collections] == [*names.values()]
    assert {each.label: each.collection_id for each in made.runs} == {
        "a1": names["a"], "a2": names["a"], "b1": names["b"]
    }  # fmt: skip
    ids = {each.golden_set_id: each.collection_id for each in made.golden_sets}
    ends = {name: f"{name}-qrels.{letter}" if given else f"{name}-qrels" for letter, name in names.items()}
    assert ids == {end: name for name, end in ends.items()}
    assert set(rows(made, "judgements")["golden_set_id"]) == {*ends.values()}
    assert "2 test collections" in made.notes[0]


@pytest.mark.slow
def test_they_come_into_a_store_apart_and_once(tmp_path):
    store, files = Store.open(tmp_path / "store"), [up("both.zip", zipped(CASES["numbers in both"]))]
    assert store_import(store, load(files), "files").fresh
    assert {name: len(sets) for name, sets in workspaces(store.read()).items()} == {
        "qrels.a": 1, "qrels.b": 1
    }  # fmt: skip
    known = frozenset(store.read().collections()["collection_id"])
    assert not store_import(store, load(files, Options(known_collections=known)), "files").fresh


EARLY, LATE = _judged(1, queries=range(1, 16)), _judged(5, queries=range(16, 31))
TOGETHER = {
    "two judges": {"qrels.a": _qrels(A), "qrels.b": _qrels(A), "a1": _run(A, "a1"), "a2": _run(A, "a2")},
    "runs of one": {"qrels.a": _qrels(A), "qrels.b": _qrels(B), "a1": _run(A, "a1"), "a2": _run(A, "a2")},
    "one run in two": {"qrels.a": _qrels(EARLY), "qrels.b": _qrels(LATE), "a1": _run(EARLY | LATE, "a1"),
                       "a2": _run(EARLY, "a2"), "a3": _run(LATE, "a3")},
    "one golden set": {"qrels.a": _qrels(A), "a1": _run(A, "a1"), "b1": _run(B, "b1")},
}  # fmt: skip


@pytest.mark.parametrize("files", TOGETHER.values(), ids=TOGETHER)
def test_what_hangs_together_stays_together(files):
    made = read(up("one.zip", zipped(files)))
    assert [each.collection_id for each in made.collections] == ["qrels.a"]


def test_a_collection_that_is_there_takes_everything():
    files = up("both.zip", zipped(CASES["numbers in both"]))
    made = read(files, collection_id="held", known_collections=frozenset({"held"}))
    assert {each.collection_id for each in made.runs} == {"held"}


def test_a_run_that_fits_none_of_several_is_refused():
    stray = {"stray": _run(_judged(9, "X"), "stray", "X")}
    said = refusal(up("both.zip", zipped(CASES["documents and passages"] | stray)))
    assert "2 test collections" in said
    assert "'stray'" in said
    assert "--skip" in said


def test_a_run_without_a_judged_passage_goes_where_its_queries_are():
    later = _judged(6, queries=range(101, 131))
    files = {"qrels.a": _qrels(A), "qrels.b": _qrels(later), "a1": _run(A, "a1"), "b1": _run(later, "b1")}
    files["b2"] = _run(_judged(7, "X", queries=range(101, 131)), "b2", "X")
    made = read(up("both.zip", zipped(files)))
    assert {each.label: each.collection_id for each in made.runs}["b2"] == "qrels.b"
