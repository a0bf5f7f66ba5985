"""Pairs of stacks that differ in exactly one thing, and the effect of that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import polars as pl

from core.analysis.paired import Scored, scored, tested, with_verdict
from core.analysis.workspace.scope import Quality, Scope
from core.axes import KEYS, AxisSpec
from core.records import JsonMap, canonical_json
from core.stats.significance import Setup
from core.store import Snapshot

PAIRS = pl.Schema(dict.fromkeys(("axis", "change", "before", "after", "run_before", "run_after"), pl.String))
"""Columns of `changes`."""
_Stack = tuple[str, str, JsonMap]
_OPAQUE = "name"  # How a stack known only by name differs from others is unknown
_OFF = ("none", "without", "default", "full", "all", "flat", "cosine")


@dataclass(frozen=True, slots=True)
class ChangedAxis:
    """One thing that can change: its name, the specification keys that it sets, its value in words.

    If `whole`, it is either present or absent: the mode must differ too.
    """

    name: str
    keys: tuple[str, ...]
    say: Callable[[AxisSpec], str]
    whole: bool = False


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        parts = dict(value)
        head = [str(parts.pop("method"))] if "method" in parts else []
        return ", ".join(head + [f"{name} {_value(part)}" for name, part in sorted(parts.items())])
    if isinstance(value, list):
        return "/".join(_value(part) for part in value)
    return str(value)


def _plain(key: str, name: str = "", usual: str = "none") -> ChangedAxis:
    return ChangedAxis(name or key.replace("_", " "), (key,), lambda spec: _value(spec.get(key, usual)))


def _index(spec: AxisSpec) -> str:
    params = spec.get("index_params")
    return str(spec.get("index", "flat")) + (f" ({_value(params)})" if params else "")


def _embedder(spec: AxisSpec) -> str:
    width = f" {spec['dim']} d" if spec.get("dim") else ""
    return f"{spec.get('embedder', 'none')}{width}"


AXES = (
    *(_plain(name, key.name, key.usual) for name, key in KEYS.items() if key.alone),
    ChangedAxis("index", ("index", "index_params"), _index),
    ChangedAxis("dimension", ("dim",), lambda spec: f"{spec['dim']} d" if spec.get("dim") else "full"),
    ChangedAxis("candidate depth", ("candidates",), lambda spec: f"K = {spec.get('candidates', 'none')}"),
    ChangedAxis("embedder", ("embedder", "dim"), _embedder),
    ChangedAxis(
        "BM25 leg",
        ("mode", "sparse", "bm25", "fusion"),
        lambda spec: "without BM25" if spec.get("mode") == "dense" else "with BM25",
        whole=True,
    ),
    ChangedAxis(
        "dense leg",
        ("mode", "embedder", "dim", "index", "index_params", "metric", "fusion"),
        lambda spec: "without embedder" if spec.get("mode") == "sparse" else f"with {_embedder(spec)}",
        whole=True,
    ),
)
"""Axes that can change, the narrower first: a pair counts for the first axis that explains it."""


def changes(runs: pl.DataFrame) -> pl.DataFrame:
    """Find the pairs of stacks that differ in exactly one thing.

    If a stack was run several times, its latest run counts. The value that switches something
    off, or the smaller number, comes first.

    Args:
        runs: Runs of one collection with run_id, name, spec (JSON) and created_at.

    Returns:
        `PAIRS`: axis ("index"), change ("flat → int8"), before and after (names) and their run ids; by axis
        in the order of `AXES`, then change, then name.
    """
    latest = runs.sort("created_at", "run_id").unique("spec", keep="last", maintain_order=True).sort("name")
    stacks = [
        (run_id, name, json.loads(spec))
        for run_id, name, spec in latest.select("run_id", "name", "spec").iter_rows()
    ]
    known = {key for axis in AXES for key in axis.keys} | {_OPAQUE}
    others = sorted({key for _, _, spec in stacks for key in spec} - known)
    seen: set[frozenset[str]] = set()
    rows: list[tuple[str, ...]] = []
    for axis in (*AXES, *map(_plain, others)):
        rows += sorted(_pairs(axis, stacks, seen), key=lambda row: (_natural(row[1]), row[2], row[3]))
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def _pairs(
    axis: ChangedAxis, stacks: Iterable[_Stack], seen: set[frozenset[str]]
) -> Iterable[tuple[str, ...]]:
    alike: dict[str, list[tuple[str, _Stack]]] = {}
    for stack in stacks:
        rest = {key: value for key, value in stack[2].items() if key not in axis.keys}
        alike.setdefault(canonical_json(rest), []).append((axis.say(stack[2]), stack))
    for group in alike.values():
        for (first, one), (second, other) in combinations(sorted(group, key=lambda row: _natural(row[0])), 2):
            modes = one[2].get("mode"), other[2].get("mode")
            runs = frozenset((one[0], other[0]))
            if first != second and runs not in seen and not (axis.whole and modes[0] == modes[1]):
                seen.add(runs)
                yield (axis.name, f"{first} → {second}", one[1], other[1], one[0], other[0])


@lru_cache(maxsize=4096)
def _natural(words: str) -> tuple[bool, tuple[tuple[int, float, str], ...]]:
    """Return a sort key for values: "off" first, then numbers by size."""
    parts = []
    for part in words.replace("=", " ").split():
        try:
            parts.append((0, float(part), ""))
        except ValueError:
            parts.append((1, 0.0, part))
    return not words.startswith(_OFF), tuple(parts)


def kinds(pairs: pl.DataFrame) -> list[str]:
    """Return the changes that a list offers, such as ``index: flat → int8``, in the order of `changes`."""
    said = pairs.select(pl.format("{}: {}", "axis", "change").alias("kind"))["kind"]
    return said.unique(maintain_order=True).to_list()


def of_kind(pairs: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return the pairs of one change."""
    return pairs.filter(pl.format("{}: {}", "axis", "change") == kind)


def effects(
    snapshot: Snapshot, scope: Scope, quality: Quality, pairs: pl.DataFrame, setup: Setup
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare every pair of a change, and average the change over its pairs.

    Args:
        pairs: Rows of `changes`, of one change.

    Returns:
        A row per pair: before, after, run_before, run_after and the columns of
        `core.analysis.paired.differences` from n on, with all pairs as one family; and one row of these
        columns for the average over the pairs. Its sample is still the queries, so its interval shows how far
        the change carries over to other queries with these stacks, not to other stacks.
    """
    names = dict(pairs.select("run_before", "before").iter_rows())
    names |= dict(pairs.select("run_after", "after").iter_rows())
    return effects_of(scored(snapshot, scope, quality, names), pairs, setup)


def effects_of(stacks: Scored, pairs: pl.DataFrame, setup: Setup) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `effects` for scored stacks."""
    places = {run_id: place for place, run_id in enumerate(stacks.run_ids)}
    first, second = ([places[run] for run in pairs[name]] for name in ("run_before", "run_after"))
    # A query without a value in one stack is left out, so that both sides average the same stacks.
    means = np.stack([stacks.values[rows].mean(axis=0) for rows in (first, second)])
    single, whole = (
        with_verdict(
            tested(values, rows, setup, (stacks.alike, stacks.query_ids)).drop("first", "second"),
            higher_is_better=setup.higher_is_better,
        )
        for values, rows in ((stacks.values, (first, second)), (means, ([0], [1])))
    )
    return pairs.select("before", "after", "run_before", "run_after").hstack(single), whole
