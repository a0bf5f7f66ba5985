"""Builds a golden set in its folder: begins it, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl

from core.files import write_json
from core.golden.job import GoldenJob
from core.golden.ordering import Ordering, items_of, order_rows
from core.golden.pool import Pool
from core.golden.spec import AUTO, NONE
from core.golden.stages import Judging, Search, Turn, judgements, label_mix, missing, pool_of, pruned
from core.jobs import State, Tracker, Watch
from core.pipeline.evaluate.budget import Budget, Receipts, Spent
from core.pipeline.evaluate.build import Artifacts, Builder
from core.pipeline.evaluate.folder import ARTIFACTS, Folder, Log, Progress, Status, folder_of
from core.pipeline.evaluate.identity import billed
from core.pipeline.evaluate.models import Models
from core.pipeline.evaluate.run import REPLIES, ending, stoppable
from core.providers.calls import Journal, Keys
from core.providers.chat import make_chat
from core.records import Batch, GoldenSet
from core.tables import frame

BUILDS = "golden"
"""Folder of all builds, beside that of evaluations."""
REFINED = "refined"
Land = Callable[[Batch], str]
"""Takes a finished golden set and returns the id it has in the store: the next version where it is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a build.

    Attributes:
        folder: Where it is.
        status: How far it came, and why it ended.
        golden_set_id: The golden set in the store; empty when it was stopped before.
        spent: What it has paid for, resumed turns included.
    """

    folder: Folder
    status: Status
    golden_set_id: str = ""
    spent: tuple[Spent, ...] = ()


def run_job(
    job: GoldenJob,
    *,
    sink: Callable[[Batch], None],
    land: Land,
    work: Path,
    shared: Path,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    keys: Keys | None = None,
) -> Outcome:
    """Build a golden set, or what is left of it.

    Args:
        job: What is asked for.
        sink: Receives what must be there before (the collection).
        land: Takes the finished golden set.
        work: The folder of all builds.
        shared: The folder of all evaluations, whose indexes and vectors are used again.
        progress: Told about every unit of work.
        cancelled: Whether to stop; asked several times a second.
        keys: Where keys of providers are looked up.

    Returns:
        What became of it; its state is `FINISHED` or `CANCELLED`.

    Raises:
        BudgetError: If going on could cost more than allowed; what was judged is kept.
        InputError: If another process builds it, or something in it cannot be used.
        ClqError: If a provider fails; what was judged is kept, and running again goes on.
    """
    folder = folder_of(work, job.spec.name, job.build_id)
    with folder.held(f"The golden set {folder.path.name} is being built already."):
        session = _Session(job, folder, shared, land)
        try:
            return session.run(sink, progress, cancelled, keys)
        finally:
            session.close()


class _Session:
    """One process's turn at a build, its folder locked."""

    def __init__(self, job: GoldenJob, folder: Folder, shared: Path, land: Land) -> None:
        self._job, self._folder, self._shared, self._land = job, folder, shared, land
        self._receipts = Receipts(folder.receipts)
        self._log = Log(folder.log)
        self._journals = [
            Journal(path, self._receipts.sent_again) for path in (shared / REPLIES, folder.journal)
        ]

    def close(self) -> None:
        """Release the files."""
        for journal in self._journals:
            journal.close()
        self._receipts.close()

    def run(
        self,
        sink: Callable[[Batch], None],
        progress: Progress | None,
        cancelled: Callable[[], bool],
        keys: Keys | None,
    ) -> Outcome:
        """Do what is left; see `run_job`."""
        job, folder, search = self._job, self._folder, self._job.search
        budget = Budget(search.book, search.budget_usd, self._receipts)
        budget.require_prices(_billed(job))
        tracker = self._tracker(progress)
        write_json(folder.spec, job.spec.model_dump(mode="json", exclude_none=True))
        write_json(folder.manifest, job.manifest())
        self._log.write("begin", questions=len(job.questions))
        shared, own = self._journals
        models = Models(search.models, shared=shared, own=own, meter=budget, keys=keys)
        landed = ""
        with ending(tracker, self._log, models), Watch(cancelled, folder.stop, models.interrupt) as watch:
            sink(job.setup)
            with stoppable(watch):
                landed = self._land(self._whole(Turn(models, budget, tracker, watch)))
        state = State.FINISHED if landed else State.CANCELLED
        self._log.write("end", state=state, usd=budget.usd, golden_set=landed)
        facts = {**tracker.status.facts, "golden_set_id": landed}
        status = tracker.close(state, runs_done=int(bool(landed)), facts=facts)
        return Outcome(
            folder=folder, status=status, golden_set_id=landed, spent=tuple(self._receipts.spent())
        )

    def _tracker(self, progress: Progress | None) -> Tracker[Status]:
        status = Status(
            evaluation_id=self._job.build_id,
            name=self._job.spec.name,
            collection_id=self._job.collection_id,
            usd_limit=self._job.search.budget_usd,
            runs_total=1,
        )
        return Tracker(status, path=self._folder.status_file, told=progress, facts=self._receipts.told)

    def _whole(self, turn: Turn) -> Batch:
        """All stages."""
        job, golden = self._job, self._job.spec.golden
        corpora = {corpus.hash: corpus for corpus in job.search.corpora.values()}
        builder = Builder(Artifacts(self._shared / ARTIFACTS), turn.models, corpora, turn.budget.begin_stage)
        search = Search(job, builder, turn) if job.searched else None
        units = {"judge": len(golden.judge.models), "refine": int(bool(job.refiner))}
        turn.tracker.expect({"build": 0 if search is None else len(search), **units})
        pool = pool_of(job, [] if search is None else search.run())
        wanted = missing(job, pool)
        self._log.write("pool", passages=pool.rows.height, to_judge=wanted.height)
        acts = Judging(job, turn).run(wanted)
        rewrites = {} if search is None else search.rewrites
        made = Made(pool, acts, judgements(job, pool, acts), rewrites)
        return golden_batch(job, self._refined(turn, made) if job.refiner else made)

    def _refined(self, turn: Turn, made: Made) -> Made:
        """The same with the order of every question's best passages, and how it came about."""
        job, refine = self._job, self._job.spec.golden.refine
        every = items_of(job, pruned(made.pool, made.graded, job.spec.golden.prune.keep))
        ordering = Ordering(job, turn.models.chat(job.refiner), self._folder.path / REFINED, turn.watch.check)
        turn.tracker.begin("refine", f"refine: {job.refiner}")
        turn.budget.begin_stage(f"refine {job.refiner}")
        told: dict[str, Any] = {}
        method = refine.method
        if method == AUTO:
            foreseen = ordering.foreseen(every, refine.settings(method), job.search.book)
            method = foreseen.recommended
            told = {"noise": _finite(asdict(foreseen.noise)), "ways": foreseen.frame().to_dicts()}
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
