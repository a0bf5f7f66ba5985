"""Fusions replayed from stored rankings: what other weights, constants and depths would give, for nothing.

The best of many settings looks better than it is on the questions that chose it. So its gain is measured on
questions that did not choose it; the gain in sample stands beside and is not the promise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.moves.cost import config_of
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import Evidence, at_cutoff, evidence, furthest
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.axes import KEYS, SAID_REST, AxisSpec, drops, qualities
from core.decide.held_out import FOLDS, best_row, held_out
from core.decide.switching import Gain, gains
from core.metrics import Measure
from core.pipeline.index.kinds import steady
from core.pipeline.ranking.replay import Legs, fused, grid
from core.records import canonical_json
from core.stats.intervals import Labels

REPEATS = 10
"""Splits into folds that the gain is averaged over."""
MOST = 8
"""Pairs of legs that are replayed, those of the best legs first."""
_SPARSE, _DENSE = ("sparse", "bm25"), ("embedder", "dim", "index", "index_params", "metric")
_OWN = {"mode", "name", "candidates", "fusion", *_SPARSE, *_DENSE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The best fusion of two stored legs, against the stack that runs today."""

    spec: AxisSpec
    name: str
    cost: float | None  # of the same legs as measured, as fusing them otherwise costs no more; None = unknown
    tried: int  # settings that it was chosen from
    in_sample: float  # gain on the questions that chose it
    gain: Gain  # on questions that did not choose it
    short: int  # questions of which fewer passages of the dense leg are stored than the fusion merges

    @property
    def unlisted(self) -> str | None:
        """The embedder, if no catalogue has it: a run has to be told where it is."""
        name = str(self.spec["embedder"])
        return name if config_of(name) is None else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: an entry of `replayed` of `switch --format json`."""
        return {
            "name": self.name,
            "difference": self.gain.difference,
            "low": _finite(self.gain.low),
            "high": _finite(self.gain.high),
            "in_sample": self.in_sample,
            "n": self.gain.n,
            "tried": self.tried,
            "short": self.short,
            "unlisted": self.unlisted,
            "spec": dict(self.spec),
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def replays(view: View) -> tuple[Replay, ...]:
    """Return the best fusion of each pair of stored legs, those with the highest gain first.

    It is empty if no stack is marked as running today, if nothing is judged, or if the quality needs more
    than final rankings and judgements.
    """
    pairs = list(_pairs(view))[:MOST]
    measure, golden = view.quality.measure, view.scope.golden_set_id
    if view.incumbent is None or measure is None or measure.k is None or golden is None:
        return ()
    if not pairs or not measure.info.needs <= {"answers"}:
        return ()
    runs = list(dict.fromkeys([view.incumbent, *(leg["run_id"] for pair in pairs for leg in pair)]))
    graded = evidence(view.snapshot, runs, golden, [measure], only=among(view.snapshot, view.scope))
    world = _World(
        view, measure, measure.k, graded, groups(view.snapshot, view.scope).labels(graded.query_ids)
    )
    today = at_cutoff(graded, measure)[graded.run_ids.index(view.incumbent)]
    tried = [_tried(world, *pair) for pair in pairs]
    return _against(world, today, [one for one in tried if one is not None])


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    view: View
    measure: Measure
    k: int
    graded: Evidence
    clusters: Labels | None

    @property
    def sign(self) -> float:
        return 1.0 if self.view.quality.higher_is_better else -1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """All replayed fusions of a pair of legs."""

    legs: tuple[dict[str, Any], dict[str, Any]]
    fusions: Sequence[Mapping[str, Any]]
    values: Floats  # [fusions, queries]
    stored: Floats  # [queries], passages of the dense leg, of those that its corpus has


def _pairs(view: View) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the sparse and dense stacks that differ in nothing but their search, the best first."""
    legs = _legs(view)
    found = [
        (sparse, dense)
        for sparse in legs["sparse"]
        for dense in legs["dense"]
        if _rest(sparse["spec"]) == _rest(dense["spec"])
    ]
    sign = 1.0 if view.quality.higher_is_better else -1.0
    yield from sorted(found, key=lambda pair: -sign * sum(leg["quality"] for leg in pair))


def _legs(view: View) -> dict[str, list[dict[str, Any]]]:
    """Return the stacks that search once and whose ranking is whole, by the run that stored it deepest.

    A stack that was measured on several machines, or at several K that nothing reads, is one leg.
    """
    rows = view.table.filter("has_rankings", pl.col("quality").is_not_null())
    deepest = furthest(view.snapshot, rows["run_id"].to_list(), view.scope.golden_set_id)
    runs = view.snapshot.runs(view.scope.collection_id).select("run_id", "spec", "manifest")
    stored = {run_id: (json.loads(spec), json.loads(manifest)) for run_id, spec, manifest in runs.iter_rows()}
    found: dict[str, dict[str, dict[str, Any]]] = {"sparse": {}, "dense": {}}
    deep = [(row, deepest.get(row["run_id"], row["run_id"])) for row in rows.iter_rows(named=True)]
    for row, run_id in sorted(deep, key=lambda each: each[0]["run_id"] != each[1]):  # under its own name
        spec, manifest = stored[run_id]
        whole = spec.get("reranker") == "none" and not drops(spec)
        if whole and spec.get("mode") in found and spec.get("candidates") and spec.keys() <= KEYS.keys():
            corpus = (manifest.get("corpus") or {}).get("indexed")
            leg = {**row, "run_id": run_id, "spec": spec, "corpus": corpus}
            found[spec["mode"]].setdefault(canonical_json({**spec, "name": None}), leg)
    return {mode: list(legs.values()) for mode, legs in found.items()}


def _rest(spec: AxisSpec) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _OWN}


def _tried(world: _World, sparse: dict[str, Any], dense: dict[str, Any]) -> _Tried | None:
    """Replay every fusion of two legs; None if they have no question in common."""
    legs, grades = _joined(world, [sparse["run_id"], dense["run_id"]])
    if not legs.ranks.size:
        return None
    graded, k = world.graded, world.k
    depth = min(int(leg["spec"]["candidates"]) for leg in (sparse, dense))
    searched, options = int(dense["spec"]["candidates"]), dense["spec"].get("index_params", {})
    whole = not steady(str(dense["spec"]["index"]), options, searched)
    if whole and searched > depth:
        return None
    fusions = grid(depth, scored=legs.scored, whole=whole)
    empty = np.full((len(grades), 1), -1, dtype=np.int8)
    padded = np.concatenate([grades, empty], axis=1)  # column −1 = an empty slot
    kept = np.stack([np.take_along_axis(padded, fused(legs, fusion, k), axis=1) for fusion in fusions])
    room = np.full((*kept.shape[:2], k), -1, dtype=np.int8)
    room[..., : kept.shape[2]] = kept
    counts = graded.counts_of(graded.run_ids.index(sparse["run_id"]))
    values = graded.rescored(world.measure, room, np.broadcast_to(counts, (len(fusions), *counts.shape)))
    if np.isnan(values).all():
        return None
    count = np.isfinite(legs.ranks[1]).sum(axis=1).astype(np.float64)
    stored = np.where(count >= (dense["corpus"] or np.inf), np.inf, count)
    return _Tried((sparse, dense), fusions, values, stored)


def _joined(world: _World, run_ids: list[str]) -> tuple[Legs, np.ndarray]:
    """Return both legs' rankings side by side, and the grades of their passages [queries, passages]."""
    graded = world.graded
    rows = world.view.snapshot.rankings(run_ids, stage="final")
    rows = rows.filter(pl.col("query_id").is_in(list(graded.query_ids)))
    place = {query_id: at for at, query_id in enumerate(graded.query_ids)}
    column = (pl.col("passage_id").rank("dense").over("query_id") - 1).cast(pl.Int64)
    rows = rows.with_columns(
        column=column,
        query=pl.col("query_id").replace_strict(place, return_dtype=pl.Int64),
        leg=pl.col("run_id").replace_strict(dict(zip(run_ids, (0, 1), strict=True)), return_dtype=pl.Int64),
    )
    width = 0 if rows.is_empty() else int(rows["column"].to_numpy().max()) + 1
    shape = (len(run_ids), len(graded.query_ids), width)
    ranks, scores = np.full(shape, np.inf), np.full(shape, np.nan)
    at = tuple(rows[name].to_numpy() for name in ("leg", "query", "column"))
    ranks[at], scores[at] = rows["rank"].to_numpy(), rows["score"].to_numpy()
    grades = np.full(shape[1:], -1, dtype=np.int8)
    run = np.array([graded.run_ids.index(run_id) for run_id in run_ids])[at[0]]
    grades[at[1:]] = graded.grades[run, at[1], rows["rank"].to_numpy() - 1]
    return Legs(ranks, scores), grades


def _against(world: _World, today: Floats, tried: Sequence[_Tried]) -> tuple[Replay, ...]:
    """Compare the best fusion of each pair with the stack that runs today, as one family."""
    sign, terms, delta = world.sign, world.view.terms, world.view.constraints.delta
    asked = ~np.isnan(today)
    clusters = None if world.clusters is None else world.clusters[asked]
    fitted = [held_out(one.values[:, asked], 0, sign, clusters, repeats=REPEATS) for one in tried]
    merits = sign * np.stack([today[asked], *fitted])
    found = gains(merits, 0, terms.margin, delta, clusters)
    made, measured = [], [_alike(json.loads(spec)) for spec in world.view.table["spec"]]
    for row, one in enumerate(tried, start=1):
        if row not in found or int(asked.sum()) < FOLDS:
            continue
        best = best_row(one.values[:, asked], 0, sign)
        spec = _spec(one, one.fusions[best])
        if _alike(spec) in measured:
            continue
        made.append(
            Replay(
                spec=spec,
                name=_name(one, spec["fusion"], world.view.table["name"]),
                cost=_measured_cost(world.view, spec),
                tried=len(one.fusions),
                in_sample=float(np.nanmean(sign * (one.values[best] - today)[asked])),
                gain=found[row],
                short=int((one.stored[asked] < one.fusions[best]["depth"]).sum()),
            )
        )
    return tuple(sorted(made, key=lambda replay: -replay.gain.difference))


def _spec(one: _Tried, fusion: Mapping[str, Any]) -> AxisSpec:
    """Return the specification of a fused stack, with the keys of both legs."""
    sparse, dense = (leg["spec"] for leg in one.legs)
    candidates = min(sparse["candidates"], dense["candidates"])
    keys = {key: value for key, value in {**sparse, **dense}.items() if key != "name"}
    return {**keys, "mode": "hybrid", "candidates": candidates, "fusion": dict(fusion)}


def _name(one: _Tried, fusion: Mapping[str, Any], measured: Collection[str]) -> str:
    """Return the names of both legs and the fusion, with all of its settings only if a stack has the name."""
    sparse, dense = (str(leg["name"]) for leg in one.legs)
    whole = " · ".join([f"{sparse.split(' · ')[0]} ⊕ {dense}", *qualities({"fusion": fusion})])
    short = re.sub(SAID_REST, r"\1", whole)
    return whole if short in measured else short


def _alike(spec: AxisSpec) -> dict[str, Any]:
    """Return a specification without its name and its K, which nothing reads in a fusion."""
    return {**spec, "candidates": None, "name": None}


def _measured_cost(view: View, spec: AxisSpec) -> float | None:
    """Return the cost of a measured fusion of the same legs; None if there is none."""
    own = {**_alike(spec), "fusion": None}
    for text, cost in view.table.select("spec", "cost").iter_rows():
        if {**_alike(json.loads(text)), "fusion": None} == own:
            return None if cost is None else float(cost)
    return None
