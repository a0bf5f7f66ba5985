"""Builds a golden set in its folder: begins it, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl

from core.golden.job import GoldenJob, Pool
from core.golden.ordering import Ordering, items_of, order_rows
from core.golden.spec import AUTO, NONE, GoldenSpec
from core.golden.stages import Judging, Search, judgements, label_mix, missing, pool_of, pruned
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import ARTIFACTS
from core.pipeline.evaluate.identity import billed
from core.pipeline.evaluate.launch import Launcher
from core.pipeline.evaluate.turn import Order, Result, Site, Turn, take
from core.providers.chat import make_chat
from core.records import Batch, GoldenSet
from core.tables import frame

BUILD = Launcher("golden", ("golden", "build", "--yes"), ("golden", "resume"), GoldenSpec)
REFINED = "refined"
Land = Callable[[Batch], str]
"""Takes a finished golden set and returns the id it has in the store: the next version where it is new."""


def run_job(job: GoldenJob, *, sink: Callable[[Batch], None], land: Land, site: Site) -> Result:
    """Build a golden set, or what is left of it; result and errors as of `turn.take`.

    Args:
        sink: Receives what must be there before (the collection).
        site: Where, and who is told.
    """
    search = job.search
    order = Order(
        work_id=job.build_id,
        name=job.spec.name,
        collection_id=job.collection_id,
        spec=job.spec.model_dump(mode="json", exclude_none=True),
        manifest=job.manifest(),
        models=search.models,
        book=search.book,
        budget_usd=search.budget_usd,
        billed=_billed(job),
    )

    def build(turn: Turn) -> str:
        sink(job.setup)
        landed = land(_Build(job, site.shared, turn).whole())
        turn.tracker.tell(facts={**turn.tracker.status.facts, "golden_set_id": landed})
        return landed

    return take(order, build, site)


class _Build:
    """One process's turn at a build."""

    def __init__(self, job: GoldenJob, shared: Path, turn: Turn) -> None:
        self._job, self._shared, self._turn = job, shared, turn

    def whole(self) -> Batch:
        """All stages."""
        job, golden, turn = self._job, self._job.spec.golden, self._turn
        corpora = {corpus.hash: corpus for corpus in job.search.corpora.values()}
        builder = Builder(Artifacts(self._shared / ARTIFACTS), turn.models, corpora, turn.budget.begin_stage)
        search = Search(job, builder, turn) if job.searched else None
        units = {"judge": len(golden.judge.models), "refine": int(bool(job.refiner))}
        turn.tracker.expect({"build": 0 if search is None else len(search), **units})
        pool = pool_of(job, [] if search is None else search.run())
        wanted = missing(job, pool)
        turn.log.write("pool", passages=pool.rows.height, to_judge=wanted.height)
        acts = Judging(job, turn).run(wanted)
        rewrites = {} if search is None else search.rewrites
        made = Made(pool, acts, judgements(job, pool, acts), rewrites)
        return golden_batch(job, self._refined(made) if job.refiner else made)

    def _refined(self, made: Made) -> Made:
        """The same with the order of every question's best passages, and how it came about."""
        job, refine, turn = self._job, self._job.spec.golden.refine, self._turn
        every = items_of(job, pruned(made.pool, made.graded, job.spec.golden.prune.keep))
        ordering = Ordering(job, turn.models.chat(job.refiner), turn.folder.path / REFINED, turn.watch.check)
        turn.tracker.begin("refine", f"refine: {job.refiner}")
        turn.budget.begin_stage(f"refine {job.refiner}")
        told: dict[str, Any] = {}
        method = refine.method
        if method == AUTO:
            foreseen = ordering.foreseen(every, refine.settings(method), job.search.book)
            method = foreseen.recommended
            told = {"noise": _finite(asdict(foreseen.noise)), "ways": foreseen.ways.to_dicts()}
        if method == NONE:
            turn.tracker.end()
            return replace(made, refined={"method": method, **told})
        settings = refine.settings(method)
        states = ordering.all(
            every, settings, lambda done: turn.tracker.within(done, len(every), "questions")
        )
        turn.tracker.end()
        told |= {
            "method": method,
            "settings": settings.as_json(),
            "turns": sum(each.turns for each in states),
            "skipped": sum(each.skips for each in states),
            "contradictions": sum(len(each.contradictions) for each in states),
            "questions": {
                items.query_id: {"turns": each.turns, "stopped": each.stopped}
                for items, each in zip(every, states, strict=True)
            },
        }
        return replace(made, orders=order_rows(every, states), refined=told)


@dataclass(frozen=True, slots=True)
class Made:
    """What the stages made."""

    pool: Pool
    acts: pl.DataFrame  # every act of judging
    graded: pl.DataFrame  # a grade per question and passage
    rewrites: Mapping[str, str]  # what was searched for each question
    orders: pl.DataFrame | None = None
    refined: Mapping[str, Any] | None = None


def golden_batch(job: GoldenJob, made: Made) -> Batch:
    """The finished golden set under the id of its first version."""
    golden, held, pool = job.spec.golden, job.held.golden_sets, made.pool
    judges = (*golden.judge.models, *(each.judge or each.golden_set_id for each in held))
    record = GoldenSet(
        golden_set_id=job.golden_set_id,
        collection_id=job.collection_id,
        name=job.spec.name,
        judge=", ".join(dict.fromkeys(judges)),
        notes=f"Pool of {pool.rows.height:,} passages for {len(job.questions):,} questions.",
        parents=tuple(each.golden_set_id for each in held),
        manifest={
            **job.manifest(),
            "policy": golden.judge.policy if len(golden.judge.models) > 1 else "one judge",
            "label_mix": label_mix(made.graded),
            "judged": made.acts.height,
            "ungraded": made.acts["grade"].null_count(),
            "usd_judged": None if made.acts["usd"].null_count() else made.acts["usd"].sum(),
            "copies": pool.rows.height - pool.distinct.height,
            "textless": pool.textless,
            "rewrites": {
                query: text for query, text in made.rewrites.items() if text != job.questions[query]
            },
            **({} if made.refined is None else {"refined": dict(made.refined)}),
        },
    )
    kept = job.held.frames.get("gradings")
    before = made.acts.clear() if kept is None else kept.lazy().collect().drop("golden_set_id")
    frames = {"judgements": made.graded, "gradings": pl.concat([before, made.acts]), "orders": made.orders}
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


def _billed(job: GoldenJob) -> list[tuple[str, str]]:
    """Item and unit of everything that is paid for."""
    pairs = billed(replace(job.search, stacks=[each.stack for each in job.searched])) if job.searched else []
    for name in job.models:
        chat = make_chat(name, models=job.spec.models, ready=False)
        pairs += [] if chat.local else [(each.item, each.unit) for each in chat.expected(1, 1)]
    return list(dict.fromkeys(pairs))
