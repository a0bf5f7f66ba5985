"""Which run represents the recorded stack today, and whether it is the newest that there is of the stack."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterator

import polars as pl

from core.analysis.workspace.resolve import NO_INCUMBENT
from core.analysis.workspace.view import View
from core.axes import stack_key
from core.importers.read.text import shown
from core.pipeline.own.config import OWN
from core.records import JsonMap
from core.report.data import revision_made
from core.report.gate_results import Given
from core.report.recorded import Recorded
from core.report.staying import Finding, stays
from core.store import Snapshot
from core.work.imports.versions import is_later_version


def today(was: Recorded, asked: View) -> int | None:
    """Return the chosen stack's row: its newest run, given results first, and on ties the recorded run.

    The newest version of a custom pipeline, or of an imported stack, represents it: the question is whether
    that version may ship.
    """
    table = asked.table
    own, given = pl.col("run_id") == was.chosen.run_id, pl.col("run_id").is_in(was.given)
    rows = (
        table.with_row_index("row")
        .filter(own | _same(was, table) | versions(was, asked))
        .sort(given, "created_at", own, descending=True, nulls_last=True)
    )
    return None if rows.is_empty() else int(rows["row"][0])


def running_again(was: Recorded, snapshot: Snapshot) -> str:
    """Return the newest run of the stack that the record says runs, given results first, or "none"."""
    collection, recorded = was.question.collection, was.question.incumbent
    own = snapshot.with_deleted().runs().filter(run_id=recorded)
    if own.is_empty() or collection not in snapshot.collections()["collection_id"]:
        return NO_INCUMBENT
    spec, runs = json.loads(own["spec"][0]), snapshot.runs(collection)
    mine = pl.col("run_id") == recorded
    rows = runs.filter(mine | _alike(spec, runs) | _later(spec, was, runs, snapshot)).sort(
        pl.col("run_id").is_in(was.given), "added_revision", mine, descending=True, nulls_last=True
    )
    return NO_INCUMBENT if rows.is_empty() else str(rows["run_id"][0])


def _same(was: Recorded, table: pl.DataFrame) -> pl.Series:
    """Return which stacks are the recorded one, ignoring keys that nothing reads [n]."""
    return (table["stack_id"] == was.stack.stack_id) | _alike(was.stack.spec, table)


def _alike(spec: JsonMap, runs: pl.DataFrame) -> pl.Series:
    """Return which runs are of a stack, ignoring keys that nothing reads [n]."""
    key = stack_key(spec)
    return pl.Series([stack_key(json.loads(other)) == key for other in runs["spec"]], dtype=pl.Boolean)


def versions(was: Recorded, asked: View) -> pl.Series:
    """Return which stacks of a view are later versions of the chosen one [n]."""
    return _later(was.stack.spec, was, asked.table, asked.snapshot)


def _later(spec: JsonMap, was: Recorded, runs: pl.DataFrame, snapshot: Snapshot) -> pl.Series:
    """Return which runs are of later versions of a stack of the record [n].

    Versions of a custom pipeline differ in nothing but their version; those of an imported stack that is
    known only by name are called ``name (2)``, which the store derived from an existing name. In another
    store than the record's, such as one that CI makes anew, all versions that the record lacks came later.
    """
    if spec.get("mode") == OWN:
        chosen = _unversioned(spec)
        return pl.Series([_unversioned(json.loads(one)) == chosen for one in runs["spec"]], dtype=pl.Boolean)
    if set(spec) != {"name"} or was.revision is None:
        return pl.Series([False] * runs.height, dtype=pl.Boolean)
    named = [str(json.loads(one).get("name", "")) for one in runs["spec"]]
    later = pl.Series([is_later_version(name, str(spec["name"])) for name in named], dtype=pl.Boolean)
    if not _of_this_store(was, snapshot):
        return later & ~runs["run_id"].is_in(list(was.compared))
    return later & (runs["added_revision"] > was.revision)


def _of_this_store(was: Recorded, snapshot: Snapshot) -> bool:
    """Return whether the record was made of this store, whose revisions are before or after it then."""
    made = was.data.get("revision_made")
    if made is None:
        return was.revision is not None and snapshot.revision >= was.revision
    return bool(made == revision_made(snapshot, was.revision))


def version(row: int, was: Recorded, asked: View) -> str:
    """Name the version of the chosen stack that represents it today, or return "" if it is unchanged."""
    return "" if _same(was, asked.table)[row] else str(asked.table["name"][row])


def _unversioned(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key != "version"}


def elsewhere(was: Recorded, asked: View, given: Given | None) -> Iterator[Finding]:
    """Yield a finding if what came is not what is judged: none of it, or nothing of the recorded stack.

    Args:
        given: The results that the gate was given; None = what is stored is judged.
    """
    reason = None if given is None else _missed(was, asked, given)
    where = "" if given is None else f"results in {given.into}"
    if reason is None and (newer := _newer_apart(was, asked)):
        reason, where = "newer results of this stack do not compare with the rest", newer
    if reason is not None:
        yield "elsewhere", was.chosen.stack, where, reason


def _missed(was: Recorded, asked: View, given: Given) -> str | None:
    """Say which of the given results are not judged although they should be, or return None."""
    if not given.counts_in(asked):
        return f"nothing of the results counts in {asked.scope.collection_id}, which is judged"
    golden = asked.scope.golden_set_id
    if golden in given.named and golden not in given.golden_sets:
        return f"judgements of {golden} came, but they are another version of it"
    row = asked.running_row if stays(was.data) else today(was, asked)
    if row is not None and asked.table["run_id"][row] in given.runs:
        return None
    runs = asked.snapshot.runs(asked.scope.collection_id)
    came = {*given.named, *runs.filter(pl.col("run_id").is_in(given.runs))["label"]}
    return _named(came, _names(was, runs), was.others)


def _named(came: Collection[str], names: Collection[str], others: Collection[str]) -> str | None:
    """Say which of the names that came mean the recorded stack, or return None.

    Args:
        names: Those of the recorded stack.
        others: Those of other stacks in the record, which mean nothing else.
    """
    for name in sorted({*came} - {*others}):
        if name in names:
            return "results of this stack came, but they do not compare with the rest"
        if any(_plain(name).startswith(f"{_plain(own)} · ") for own in names):
            return f"several results of this stack came: {shown(name)}"
        if _plain(name) in map(_plain, names):
            return f"results of {shown(name)} came, which is written otherwise"
    return None


def _names(was: Recorded, runs: pl.DataFrame) -> set[str]:
    """Return the names of the recorded stack, and of the one that runs if the record says to stay with it."""
    said = stays(was.data) or {}
    own = runs.filter(pl.col("run_id").is_in([was.chosen.run_id, was.question.incumbent if said else None]))[
        "label"
    ]
    return {was.chosen.stack, *own, *([str(said["incumbent"])] if said else [])}


def _newer_apart(was: Recorded, asked: View) -> str:
    """Name the newest version of an imported stack if it is later than the judged one and not compared."""
    row = today(was, asked)
    if row is None or was.stack.spec.get("mode") == OWN:
        return ""
    runs = asked.snapshot.runs(asked.scope.collection_id).with_row_index()
    judged = runs.filter(run_id=asked.table["run_id"][row])["added_revision"].max()
    later = _later(was.stack.spec, was, runs, asked.snapshot) & (runs["added_revision"] > judged)
    apart = runs.filter(later).filter(~pl.col("run_id").is_in(asked.table["run_id"].to_list()))
    return "" if apart.is_empty() else str(apart.sort("added_revision")["label"][-1])


def _plain(name: str) -> str:
    """Return a name without what a reader overlooks: case, spaces, and forms of the same letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
