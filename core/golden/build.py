"""Builds a golden set in its folder: begins it, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl

from core.golden.job import GoldenJob
from core.golden.ordering import Ordering, items_of, order_rows
from core.golden.spec import AUTO, NONE, GoldenSpec
from core.golden.stages import Judging, Search, judgements, label_mix, missing, pool_of, pruned
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import ARTIFACTS
from core.pipeline.evaluate.identity import billed, billed_by
from core.pipeline.evaluate.launch import Launcher
from core.pipeline.evaluate.turn import Order, Result, Site, Turn, take
from core.records import Batch, GoldenSet
from core.tables import frame

BUILD = Launcher("golden", ("golden", "build", "--yes"), ("golden", "resume"), GoldenSpec)
Land = Callable[[Batch], str]
"""Takes a finished golden set and returns the id it has in the store: the next version where it is new."""


def run_job(job: GoldenJob, *, sink: Callable[[Batch], None], land: Land, site: Site) -> Result:
    """Build a golden set, or what is left of it; result and errors as of `turn.take`.

    Args:
        sink: Receives what must be there before (the collection).
        site: Where, and who is told.
    """
    search, models = job.search, job.spec.models
    order = Order(
        work_id=job.build_id,
        name=job.spec.name,
        collection_id=job.collection_id,
        spec=job.spec.model_dump(mode="json", exclude_none=True),
        manifest=job.manifest(),
        models=models,
        book=search.book,
        budget_usd=search.budget_usd,
        billed=[
            *(billed(search) if job.stacks else ()),
            *(each for name in job.models for each in billed_by("chat", name, models)),
        ],
    )

    def build(turn: Turn) -> str:
        sink(job.setup)
        landed = land(_built(job, site.shared, turn))
        turn.tracker.tell(facts={**turn.tracker.status.facts, "golden_set_id": landed})
        return landed

    return take(order, build, site)


def _built(job: GoldenJob, shared: Path, turn: Turn) -> Batch:
    """Go through all stages."""
    golden, search = job.spec.golden, None
    if job.stacks:
        corpora = {corpus.hash: corpus for corpus in job.search.corpora.values()}
        builder = Builder(Artifacts(shared / ARTIFACTS), turn.models, corpora, turn.budget.begin_stage)
        search = Search(job, builder, turn)
    units = {"judge": len(golden.judge.models), "refine": int(bool(job.refiner))}
    turn.tracker.expect({"build": 0 if search is None else len(search), **units})
    pool = pool_of(job, [] if search is None else search.run())
    wanted = missing(job, pool)
    turn.log.write("pool", passages=pool.rows.height, to_judge=wanted.height)
    acts = Judging(job, turn).run(wanted)
    graded = judgements(job, pool, acts)
    orders, refined = (
        _refined(job, turn, pruned(pool, graded, golden.prune.keep)) if job.refiner else (None, {})
    )
    made = {
        "label_mix": label_mix(graded),
        "judged": acts.height,
        "ungraded": acts["grade"].null_count(),
        "usd_judged": None if acts["usd"].null_count() else acts["usd"].sum(),
        "copies": pool.rows.height - pool.distinct.height,
        "textless": pool.textless,
        "rewrites": {
            query: text
            for query, text in (search.rewrites if search else {}).items()
            if text != job.questions[query]
        },
        **({"refined": refined} if refined else {}),
    }
    passages = f"Pool of {pool.rows.height:,} passages for {len(job.questions):,} questions."
    kept = job.held.frames.get("gradings", acts.clear()).lazy().select(acts.columns).collect()
    frames = {"judgements": graded, "gradings": pl.concat([kept, acts]), "orders": orders}
    return _batch(job, passages, made, frames)


def _refined(job: GoldenJob, turn: Turn, kept: pl.DataFrame) -> tuple[pl.DataFrame | None, dict[str, Any]]:
    """Put every question's best passages in order, if that pays; and how it came about."""
    refine, every = job.spec.golden.refine, items_of(job, kept)
    ordering = Ordering(job, turn)
    turn.tracker.begin("refine", f"refine: {job.refiner}")
    turn.budget.begin_stage(f"refine {job.refiner}")
    told: dict[str, Any] = {}
    method = refine.method
    if method == AUTO:
        foreseen = ordering.foreseen(every, refine.settings(method))
        method = foreseen.recommended
        told = {"noise": _finite(asdict(foreseen.noise)), "ways": foreseen.ways.to_dicts()}
    told["method"], orders = method, None
    if method != NONE:
        settings = refine.settings(method)
        states = ordering.all(every, settings)
        told |= {
            "settings": settings.as_json(),
            "turns": sum(each.turns for each in states),
            "skipped": sum(each.skips for each in states),
            "contradictions": sum(len(each.contradictions) for each in states),
            "questions": {
                items.query_id: {"turns": each.turns, "stopped": each.stopped}
                for items, each in zip(every, states, strict=True)
            },
        }
        orders = order_rows(every, states)
    turn.tracker.end()
    return orders, told


def _batch(
    job: GoldenJob, notes: str, made: Mapping[str, Any], frames: Mapping[str, pl.DataFrame | None]
) -> Batch:
    """The finished golden set under the id of its first version."""
    judge, held = job.spec.golden.judge, job.held.golden_sets
    judges = (*judge.models, *(each.judge or each.golden_set_id for each in held))
    record = GoldenSet(
        golden_set_id=job.golden_set_id,
        collection_id=job.collection_id,
        name=job.spec.name,
        judge=", ".join(dict.fromkeys(judges)),
        notes=notes,
        parents=tuple(each.golden_set_id for each in held),
        manifest={
            **job.manifest(),
            "policy": judge.policy if len(judge.models) > 1 else "one judge",
            **made,
        },
    )
    own = pl.lit(job.golden_set_id).alias("golden_set_id")
    rows = {
        table: frame(table, some.with_columns(own).to_dict())
        for table, some in frames.items()
        if some is not None and some.height
    }
    return Batch(golden_sets=(record,), frames=rows)


def _finite(told: dict[str, Any]) -> dict[str, Any]:
    """What JSON can say: null for what is not known."""
    return {key: None if isinstance(value, float) and isnan(value) else value for key, value in told.items()}
