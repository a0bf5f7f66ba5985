"""The chosen stack's export: the command that writes it as something runnable, or why there is none."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.workspace.view import View
from core.decide.rules import Decision
from core.paths import PROGRAM
from core.pipeline.own.config import OWN
from core.pipeline.shippable import FLAT, KINDS, missing
from core.store import Snapshot
from core.views.decision import words
from core.views.words.advice import second_row

PARTS = "This prints its parts and settings, to rebuild it."
WRITTEN = "It cannot be written as a folder that runs: {}."


@dataclass(frozen=True)
class Shipping:
    """How a stack is exported."""

    # Writes it as the first of `kinds`; without kinds, prints its components; None = it already runs
    command: str | None
    kinds: tuple[str, ...]  # the formats it can be written in
    sentence: str


def is_own(spec: str) -> bool:
    """Return whether a stack's specification (JSON) is a custom pipeline's."""
    return bool(json.loads(spec).get("mode") == OWN)


def shipping(snapshot: Snapshot, row: Mapping[str, Any]) -> Shipping:
    """Return how the stack of a run is exported; takes a row of the stack table."""
    spec = json.loads(row["spec"])
    if is_own(row["spec"]):
        place = spec.get("call") or spec.get("url")
        settings = f" with {row['params']}" if row.get("params") else ""
        return Shipping(None, (), f"It is your own pipeline and runs already: {place}{settings}.")
    lacking = {kind: missing(spec, kind) for kind in KINDS}
    kinds = tuple(kind for kind, parts in lacking.items() if not parts)
    held = dict(snapshot.collections().select("collection_id", "passages").iter_rows())
    if row["chunking"] is not None:
        why = "it searches chunks of documents"
    elif not kinds:
        why = f"no adapter carries out {', '.join(next(iter(lacking.values())))}"
    elif not held.get(row["collection_id"]):
        why = "the store has no passages of its collection"
    else:
        command = shlex.join(["export", "stack", row["run_id"], "--as", kinds[0]])
        others = f"; --as {', '.join(kinds[1:])} writes it for these" if kinds[1:] else ""
        sentence = f"As a folder that runs without this program{others}."
        return Shipping(f"{PROGRAM} {command}", kinds, sentence)
    return Shipping(None, (), WRITTEN.format(why))


def all_handed(view: View, table: pl.DataFrame, decision: Decision) -> dict[str, Shipping]:
    """Return how each stack that the heading names is exported, by its name; see `handed`."""
    rows = [decision.chosen or 0, *([] if (second := second_row(view)) is None else [second])]
    return {str(table["name"][row]): handed(view, table, replace(decision, chosen=row)) for row in rows}


def handed(view: View, table: pl.DataFrame, decision: Decision) -> Shipping:
    """Return how the chosen stack is exported, or an equivalent one, or which kinds could be.

    Stacks that tie with it come first, then its twin with an index that searches every vector.
    """
    chosen = decision.chosen or 0
    how = shipping(view.snapshot, table.row(chosen, named=True))
    if how.command or is_own(table["spec"][chosen]):
        return how
    twins = [place for place in _twins(table, chosen) if decision.feasible[place]]
    for place in dict.fromkeys([*decision.ties, *twins]):
        row = table.row(place, named=True)
        other = shipping(view.snapshot, row)
        if other.command:
            which = "ties with it" if place in decision.ties else "searches every vector instead"
            numbers = words.numbers(row, view.quality, view.latency)
            return replace(other, sentence=f"{row['name']}, which {which}, runs by itself: {numbers}.")
    told = f"{PROGRAM} {shlex.join(['manifest', 'show', str(table['run_id'][chosen])])}"
    return Shipping(told, (), f"{PARTS} {how.sentence}")


def _twins(table: pl.DataFrame, chosen: int) -> list[int]:
    """Return rows of stacks that differ from one only in their index, which is exact."""
    specs = [json.loads(spec) for spec in table["spec"]]
    wanted = {**specs[chosen], "index": FLAT}
    same = table["chunking"].eq_missing(table["chunking"][chosen])
    return [place for place, spec in enumerate(specs) if spec == wanted and same[place]]
