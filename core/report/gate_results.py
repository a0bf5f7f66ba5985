"""The results that a gate is given, which are imported first and expected in the workspace that it judges.

New results replace existing ones of the same name, so that the recorded stack is judged by its newest
numbers. If none of them is in that workspace, the gate fails, because it would judge old results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from core.analysis.workspace.view import View
from core.errors import InputError
from core.importers.read.text import shown
from core.store import Store
from core.work.imports.imports import knowing, read_into, store_import


@dataclass(frozen=True)
class Given:
    """Imported results, with the names that they have in the store."""

    into: str  # the workspace that was named for them
    sentence: str  # what was imported, or that all of it existed before
    runs: frozenset[str] = frozenset()  # ids
    golden_sets: frozenset[str] = frozenset()  # ids
    collections: frozenset[str] = frozenset()  # ids of those whose queries or passages were imported
    named: frozenset[str] = frozenset()  # names of runs and golden sets in the files

    def counts_in(self, asked: View) -> bool:
        """Return whether any of the results counts in a workspace: its judgements, its texts, or a run.

        A run that ranks no judged query scores 0 on all of them, which says nothing about it.
        """
        snapshot, place = asked.snapshot, asked.scope
        texts = set(snapshot.collections()["collection_id"]) & {place.collection_id}
        if texts & self.collections or {place.golden_set_id} & self.golden_sets:
            return True
        came = snapshot.runs(place.collection_id).filter(pl.col("run_id").is_in(self.runs))
        if place.golden_set_id is None or not came["has_rankings"].all():
            return not came.is_empty()
        queries = snapshot.existing("judgements", [place.golden_set_id], "query_id")
        return bool(snapshot.existing("rankings", came["run_id"].to_list(), "query_id", queries, most=1))


def given(
    store: Store,
    paths: Sequence[Path],
    into: str | None,
    of: str,
    on_wait: Callable[[float], None] | None = None,
) -> Given | None:
    """Import the results that a gate is given, all of them or nothing; None if it is given none.

    Nothing is imported into a workspace that is not judged.

    Args:
        paths: Files and folders.
        into: The workspace that they belong to.
        of: The workspace that the record is of, which is judged.

    Raises:
        InputError: If one of the two is missing, or like `core.work.imports.imports.store_import`.
    """
    if not paths and not into:
        return None
    if not into:
        raise InputError(
            "Results were given, but no workspace for them.",
            where="--into",
            do="Name the one that the record is of.",
        )
    if not paths:
        raise InputError(
            f"No results were given for {shown(into)}.",
            where="--results",
            do="Name their files, or leave out --into to judge what is stored.",
        )
    if into != of:
        said = f"Nothing was imported: the record is of workspace {shown(of)}, not of {shown(into)} (--into)."
        return Given(into, said)
    snapshot = store.read()
    if into in snapshot.collections(removed=True)["collection_id"]:
        raise InputError(
            f"The workspace {shown(into)} was deleted, and results would bring back all that was in it.",
            where="--into",
            do="Restore it first, or name another.",
        )
    imported = read_into(paths, knowing(snapshot, collection_id=into), snapshot)
    note = shown(", ".join(path.name for path in paths), 200)
    done = store_import(store, imported, note, on_wait, choice="replace")
    texts = {"queries", "passages", "chunks"} & imported.frames.keys()
    return Given(
        into,
        done.said,
        frozenset(run.run_id for run in done.made.runs),
        frozenset(golden.golden_set_id for golden in done.made.golden_sets),
        frozenset(each.part_of or each.collection_id for each in done.made.collections if texts),
        frozenset(run.label for run in imported.runs)
        | frozenset(golden.golden_set_id for golden in imported.golden_sets),
    )
