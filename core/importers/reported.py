"""Stacks that come as figures only: a run for each, in the collection that it was measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any

from core.errors import InputError
from core.importers.base import Import, Options, frames_of
from core.importers.read.text import quoted, shown
from core.importers.runs import imported_run, run_labels, slug
from core.records import Collection, JsonMap, Run

MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "ndcg": "nDCG", "map": "AP", "ap": "AP", "mrr": "RR", "rr": "RR", "recall": "R", "r": "R",
        "precision": "P", "p": "P", "hit_rate": "Success", "success": "Success",
    }
)  # fmt: skip
"""What tools call the classical measures → the product's name; their definitions are the tools'."""
ONE_ANSWER = 1
"""The cutoff of measures of an answer: one answer is looked at for each question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One result over all queries: a measure, its cutoff and stage, and the number of queries if known."""

    measure: str
    value: float
    k: int | None = None
    stage: str | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One stack as a tool reported it."""

    label: str  # what people read
    stem: str  # told apart by it where labels are equal
    digest: str  # hash of the content it came from
    decided: JsonMap  # what tells it from others of the same content; part of its identity
    spec: JsonMap  # axes of the stack
    figures: tuple[Figure, ...]  # its results
    collection: str = ""  # name of what it was measured on; empty = the collection of the options
    manifest: JsonMap = field(default_factory=dict)  # kept as it is, for example the tool's configuration
    environment: JsonMap = field(default_factory=dict)  # where it ran


def reported_runs(found: Sequence[Reported], options: Options, *, importer: str, source: str) -> Import:
    """Make runs with aggregates."""
    own: dict[str, list[Reported]] = {}
    for each in found:
        own.setdefault(each.collection, []).append(each)
    names = {name: _collection_id(name, options, several=len(own) > 1) for name in own}
    runs: list[Run] = []
    rows: list[dict[str, Any]] = []
    for name, group in own.items():
        labels = run_labels([(each.label, each.stem) for each in group], options)
        there = replace(options, collection_id=names[name])
        for each, label in zip(group, labels, strict=True):
            _check(each)
            run = _run(each, label, there, importer)
            runs.append(run)
            rows += [
                {
                    "run_id": run.run_id, "measure": figure.measure, "k": figure.k, "stage": figure.stage,
                    "value": figure.value, "n": figure.n, "source": "imported",
                }
                for figure in each.figures
            ]  # fmt: skip
    collections = tuple(
        Collection(collection_id=chosen, name=shown(name or chosen, 200), source=source)
        for name, chosen in names.items()
        if chosen not in options.known_collections
    )
    return Import(collections=collections, runs=tuple(runs), frames=frames_of(aggregates=rows))


def _check(each: Reported) -> None:
    keys = [(figure.measure, figure.k, figure.stage) for figure in each.figures]
    if len(set(keys)) < len(keys):
        raise InputError(f"A figure of {quoted(each.label)} stands twice.")
    wrong = next((figure for figure in each.figures if not isfinite(figure.value)), None)
    if wrong:
        raise InputError(f"The {shown(wrong.measure)} of {quoted(each.label)} is too large a number.")


def _collection_id(own: str, options: Options, *, several: bool) -> str:
    given = options.collection_id or "imported"
    if not own or (options.collection_given and not several):
        return given
    return f"{given}-{slug(own)}" if options.collection_given else slug(own)


def _run(each: Reported, label: str, options: Options, importer: str) -> Run:
    run = imported_run(
        options, label, each.digest, importer=importer, decided=dict(each.decided), spec=dict(each.spec)
    )
    return replace(run, manifest={**each.manifest, **run.manifest}, environment=dict(each.environment))
