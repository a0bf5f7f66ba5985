"""Builds a golden set in its folder: starts it, or resumes it.

In S6 a judge orders every question's best passages, five at a time, with a checkpoint each. Where two stacks
are named, it grades one question after the other until they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from core.analysis.deciding import Apart, Standing
from core.errors import InputError
from core.files import read_json, write_json
from core.golden.book import Item
from core.golden.pool import Pool
from core.golden.refine.base import Refinement, RefineSettings
from core.golden.refine.methods import refinement, restore
from core.golden.refine.predict import Prediction, noise_of, predict, usd_per_call
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.identity import billed, billed_by
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, work_through
from core.providers.chat.ask import ChatTask, ask
from core.records import Batch, GoldenSet, JsonMap, canonical_json, short_hash
from core.tables import TABLES, frame
from core.work.golden.job import GoldenJob
from core.work.golden.nuggets import NuggetFinding
from core.work.golden.spec import AUTO, NONE
from core.work.golden.stages import (
    ACTS,
    ORDER,
    TRIES,
    JudgingStage,
    SearchStage,
    judgements,
    label_mix,
    missing,
    ordering,
    pool_of,
    pruned,
)

StoreResults = Callable[[Batch], str]
"""Stores a finished golden set and returns its id in the store: the next version if it is new."""
REFINED = "refined"  # Folder of the checkpoints within a build's folder
ORDERS = {name: dtype for name, dtype in TABLES["orders"].items() if name != "golden_set_id"}
_BATCHES, _REPEATS = 12, 3
"""Number of batches that measure a judge's noise, from different questions, and of repeats of each."""
_EVERY = 10  # Turns between two checkpoints; answers are also in the journal, so that none is paid for twice


@dataclass(frozen=True, slots=True, eq=False)
class Deciding:
    """What the grades of a build decide so far between the two stacks of its contest."""

    job: GoldenJob
    pool: Pool
    apart: Apart

    def enough(self, acts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether no further question is needed; `acts` are whole questions as drawn."""
        graded = pl.DataFrame(list(acts), schema=ACTS, orient="row")
        return self.standing(graded, ahead=False).answer is not None

    def standing(self, acts: pl.DataFrame, *, ahead: bool = True) -> Standing:
        """Return the state of the contest; a passage that got no grade in a judged question is not useful."""
        graded = judgements(self.job, self.pool, acts).select("query_id", "passage_id", "grade")
        drawn = self.apart.drawn
        asked = drawn.join(graded, on=("query_id", "passage_id"), how="left", maintain_order="left")
        empty = {*drawn["query_id"]} - {
            *self.pool.rows["query_id"]
        }  # an asker may see none of these passages
        tried = {*acts["query_id"], *empty}
        items = [
            Item(
                place, query, passage, grade=grade,
                at=None if grade is None and query not in tried else "",
            )
            for place, (query, passage, grade) in enumerate(asked.iter_rows())
        ]  # fmt: skip
        return self.apart.standing(items, ahead=ahead)


def run_job(
    job: GoldenJob, *, sink: Callable[[Batch], None], store_results: StoreResults, site: Site
) -> Result:
    """Build a golden set, or resume it; result and errors as in `session.work_through`.

    Args:
        sink: Receives prerequisites (the collection).
        site: Where it runs, and who gets progress reports.
    """
    search, models = job.search, job.spec.models
    order = WorkOrder(
        work_id=job.build_id,
        name=job.spec.name,
        collection_id=job.collection_id,
        spec=job.spec.plain(),
        manifest=job.manifest(),
        models=models,
        book=search.book,
        budget_usd=search.budget_usd,
        billed=[
            *(billed(search) if job.stacks else ()),
            *(bill for name in job.models for bill in billed_by("chat", name, models)),
        ],
    )

    def build(session: Session) -> str:
        sink(job.setup)
        stored = store_results(_built(job, site.artifacts, session))
        session.tracker.tell(facts={**session.tracker.status.facts, "golden_set_id": stored})
        return stored

    return work_through(order, build, site)


def _built(job: GoldenJob, artifacts: Path, session: Session) -> Batch:
    golden, search = job.spec.golden, None
    if job.stacks:
        corpora = {corpus.hash: corpus for corpus in job.search.corpora.values()}
        builder = Builder(Artifacts(artifacts), session.models, corpora, session.budget.begin_stage)
        search = SearchStage(job, builder, session)
    units = {"judge": len(golden.judge.models), "refine": int(bool(job.refiner)),
             "nuggets": int(bool(golden.nuggets.model))}  # fmt: skip
    session.tracker.expect({"build": 0 if search is None else len(search), **units})
    pool = pool_of(job, [] if search is None else search.run())
    wanted = missing(job, pool)
    session.log.write("pool", passages=pool.rows.height, to_judge=wanted.height)
    deciding = None if job.apart is None else Deciding(job, pool, job.apart)
    acts = JudgingStage(job, session).run(wanted, None if deciding is None else deciding.enough)
    graded = judgements(job, pool, acts)
    orders, refined = (
        _refined(job, session, pruned(pool, graded, golden.prune.keep)) if job.refiner else (None, {})
    )
    finding = NuggetFinding(job, session) if golden.nuggets.model else None
    found = None if finding is None else finding.run(pool, graded)
    facts = {
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
        **({} if deciding is None else {"between": deciding.standing(acts).to_dict()}),
        **({"refined": refined} if refined else {}),
        **({"nuggets": {"unusable": len(finding.problems)}} if finding else {}),
    }
    passages = f"Pool of {pool.rows.height:,} passages for {len(job.questions):,} questions."
    kept = job.held.frames.get("gradings", acts.clear()).lazy().select(acts.columns).collect()
    frames = {"judgements": graded, "gradings": pl.concat([kept, acts]), "orders": orders, "nuggets": found}
    return _batch(job, passages, facts, frames)


def _refined(
    job: GoldenJob, session: Session, kept: pl.DataFrame
) -> tuple[pl.DataFrame | None, dict[str, Any]]:
    """Refine the order of every question's best passages, if that pays; also return how."""
    refine, every = job.spec.golden.refine, items_of(job, kept)
    judge = Ordering(job, session)
    session.tracker.begin("refine", f"refine: {job.refiner}")
    session.budget.begin_stage(f"refine {job.refiner}")
    how: dict[str, Any] = {}
    method = refine.method
    if method == AUTO:
        foreseen = judge.foreseen(every, refine.settings(method))
        method = foreseen.recommended
        noise = {name: None if isnan(value) else value for name, value in asdict(foreseen.noise).items()}
        how = {"noise": noise, "ways": foreseen.ways.to_dicts()}
    how["method"], orders = method, None
    if method != NONE:
        settings = refine.settings(method)
        states = judge.all(every, settings)
        how |= {
            "settings": settings.as_json(),
            "turns": sum(state.turns for state in states),
            "skipped": sum(state.skips for state in states),
            "contradictions": sum(len(state.contradictions) for state in states),
            "questions": {
                items.query_id: {"turns": refinement.turns, "stopped": refinement.stopped}
                for items, refinement in zip(every, states, strict=True)
            },
        }
        orders = order_rows(every, states)
    session.tracker.end()
    return orders, how


def _batch(
    job: GoldenJob, notes: str, made: Mapping[str, Any], frames: Mapping[str, pl.DataFrame | None]
) -> Batch:
    """Return the finished golden set under the id of its first version."""
    judge, held = job.spec.golden.judge, job.held.golden_sets
    judges = (*judge.models, *(golden_set.judge or golden_set.golden_set_id for golden_set in held))
    record = GoldenSet(
        golden_set_id=job.golden_set_id,
        collection_id=job.collection_id,
        name=job.spec.name,
        judge=", ".join(dict.fromkeys(judges)),
        notes=notes,
        parents=tuple(golden_set.golden_set_id for golden_set in held),
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


@dataclass(frozen=True, slots=True)
class Items:
    """Passages to order for one question."""

    query_id: str
    question: str
    passage_ids: list[str]
    texts: list[str]
    grades: list[float]
    ranks: list[float]


def items_of(job: GoldenJob, kept: pl.DataFrame) -> list[Items]:
    """Return the passages that S5 kept, grouped by question, in question order."""
    parts = kept.partition_by("query_id", as_dict=True)
    columns = ("passage_id", "text", pl.col("grade", "rank").cast(pl.Float64))
    return [
        Items(query, question, *(column.to_list() for column in parts[query,].select(columns)))
        for query, question in job.questions.items()
        if (query,) in parts
    ]


class Ordering:
    """Orders batches of passages with a judge."""

    def __init__(self, job: GoldenJob, session: Session) -> None:
        self._job, self._session = job, session
        self._chat = session.models.chat(job.refiner)
        self._folder = session.folder.path / REFINED

    def foreseen(self, every: Sequence[Items], settings: RefineSettings) -> Prediction:
        """Measure the judge's noise by repeating the first batches, and predict the gain of refining."""
        some = [items for items in every if len(items.passage_ids) >= settings.batch][:_BATCHES]
        batches = [(items, self._new(items, settings).batch() or ()) for items in some]
        asked = [(items, batch, again) for items, batch in batches for again in range(_REPEATS)]
        orders_given = list(
            in_order(lambda batch_of_items: self._repeat(*batch_of_items), asked, self._chat.concurrency)
        )
        repeats = [orders_given[at : at + _REPEATS] for at in range(0, len(orders_given), _REPEATS)]
        noise = noise_of([[order for order in orders if order is not None] for orders in repeats])
        grades = {items.query_id: items.grades for items in every}
        tokens = self._task(*batches[0]).tokens(self._chat)
        said = self._chat.count_tokens(f'{{"{ORDER}": {list(range(1, settings.batch + 1))}}}')
        book = self._job.search.book
        usd = 0.0 if self._chat.local else usd_per_call(book, self._chat.item, tokens, said)
        limit = self._job.search.budget_usd
        left = None if limit is None else max(0.0, limit - self._session.budget.usd)
        return predict(noise, grades, settings, usd, limit=left)

    def all(self, every: list[Items], settings: RefineSettings) -> list[Refinement]:
        """Refine all questions, or resume each, with as many in parallel as the judge takes calls."""
        states = []
        work = in_order(lambda items: self._refined(items, settings), every, self._chat.concurrency)
        for done, state in enumerate(work, 1):
            states.append(state)
            self._session.tracker.within(done, len(every), "questions")
        return states

    def _task(self, items: Items, batch: Sequence[int]) -> ChatTask[list[int]]:
        texts = [items.texts[item] for item in batch]
        return ordering(items.question, texts, self._job.spec.golden.language)

    def _order(self, items: Items, batch: tuple[int, ...], extra: str) -> list[int] | None:
        """Return the judge's order of a batch, best first; None if three answers were not permutations."""
        self._session.watch.check()
        reading = ask(self._chat, self._task(items, batch), extra=extra, tries=TRIES).value
        return None if reading.problem else [batch[place] for place in reading.value]

    def _repeat(self, items: Items, batch: tuple[int, ...], again: int) -> list[int] | None:
        """Return an order of a batch, which is shown in a different order each time."""
        drawn = np.random.default_rng(int(short_hash(items.query_id, str(again)), 16)).permutation(len(batch))
        return self._order(items, tuple(batch[place] for place in drawn), f"repeat {again}")

    def _refined(self, items: Items, settings: RefineSettings) -> Refinement:
        path, state = self._folder / f"{short_hash(items.query_id)}.json", self._new(items, settings)
        kept = read_json(path)
        if kept is not None and _begun(kept) == _begun(state.state()):
            with suppress(InputError):
                state = restore(kept)
        self._folder.mkdir(exist_ok=True)
        while (batch := state.batch()) is not None:
            order = self._order(items, batch, f"turn {state.turns}")
            if order is None:
                state.skipped()
            else:
                state.told(order)
            if state.turns % _EVERY == 0:
                write_json(path, dict(state.state()))
        write_json(path, dict(state.state()))
        return state

    def _new(self, items: Items, settings: RefineSettings) -> Refinement:
        seed = f"{self._job.build_id}/{items.query_id}"
        return refinement(items.grades, items.ranks, items.passage_ids, settings, seed)


def _begun(state: JsonMap) -> str:
    """Return the identity of a refinement's inputs; another pool, grades or settings start a new one."""
    return canonical_json({key: value for key, value in state.items() if key != "log"})


def refinements(build: Path) -> dict[str, JsonMap]:
    """Return the checkpoints in a build's folder by question, for `core.golden.refine.restore`."""
    states = [state for path in sorted((build / REFINED).glob("*.json")) if (state := read_json(path))]
    return {str(state.get("seed", "")).partition("/")[2]: state for state in states}


def order_rows(every: list[Items], states: list[Refinement]) -> pl.DataFrame:
    """Return columns of `ORDERS`: the data on every passage."""
    rows = [
        (items.query_id, items.passage_ids[row.item], *row[1:])
        for items, state in zip(every, states, strict=True)
        for row in state.rows()
    ]
    return pl.DataFrame(rows, schema=ORDERS, orient="row")
