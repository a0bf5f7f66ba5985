"""Which of many names in a store are versions of a name that comes, against a rule that reads them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from core.importers import Import
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot, Store
from core.tables import Frame, frame
from core.work.imports.versions import settle

BASES = ("a", "a.b", "a (2)", "(2)", "a\nb", "é-2")
LABELS = tuple(map("".join, product(BASES, ("", " (2)", " (10)", " (2) (3)", " (x)", "(2)"))))
IDS = tuple(map("".join, product(BASES, ("", "-2", "-10", "-2-3", "-x", "2"))))
RUNS = tuple(
    Run(
        run_id=f"r-{place}",
        collection_id="c",
        stack=Stack({"name": label}),
        label=label,
        origin=Origin.IMPORT,
    )
    for place, label in enumerate(LABELS)
)


def judged(names: Sequence[str], grade: int) -> tuple[tuple[GoldenSet, ...], dict[str, Frame]]:
    """Golden sets that judge one passage each."""
    rows = [
        {"golden_set_id": name, "query_id": "q", "passage_id": "p", "grade": grade, "raw": grade}
        for name in names
    ]
    sets = tuple(GoldenSet(golden_set_id=name, collection_id="c", name=name, mapping="") for name in names)
    return sets, {"judgements": frame("judgements", rows)}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = Store(Path(tmp_path_factory.mktemp("named")) / "store")
    sets, frames = judged(IDS, 5)
    with store.write("test") as writer:
        collections = (Collection(collection_id="c", name="c"),)
        writer.add(Batch(collections=collections, golden_sets=sets, runs=RUNS, frames=frames))
    return store.read()


@pytest.mark.parametrize("label", LABELS)
def test_a_run_of_other_content_rivals_the_versions_of_its_label(snapshot: Snapshot, label: str) -> None:
    fresh = replace(RUNS[0], run_id="r-new", stack=Stack({"name": label}), label=label)
    pattern = re.compile(re.escape(label) + r"( \(\d+\))?")
    rivals = {run.run_id for run in RUNS if pattern.fullmatch(run.label)}
    (change,) = settle(snapshot, Import(runs=(fresh,))).changes
    assert set(change.known) == rivals
    chosen = settle(snapshot, Import(runs=(fresh,)), "new").made.runs[0].label
    assert pattern.fullmatch(chosen)
    assert chosen not in LABELS


@pytest.mark.parametrize("name", IDS)
def test_a_golden_set_of_other_content_is_told_from_the_versions_of_its_id(
    snapshot: Snapshot, name: str
) -> None:
    sets, frames = judged([name], 4)
    made = Import(golden_sets=sets, frames=frames)
    pattern = re.compile(re.escape(name) + r"(?:-(\d+))?")
    (change,) = settle(snapshot, made).changes
    assert set(change.known) == {each for each in IDS if pattern.fullmatch(each)}
    chosen = settle(snapshot, made, "new").made.golden_sets[0].golden_set_id
    assert pattern.fullmatch(chosen)
    assert chosen not in IDS
    sets, frames = judged([name], 5)
    assert not settle(snapshot, Import(golden_sets=sets, frames=frames)).changes
