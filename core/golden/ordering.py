"""S6: every question's best passages put in order by a judge, five at a time; a checkpoint per question."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from core.errors import InputError
from core.files import read_json, write_json
from core.golden.job import GoldenJob
from core.golden.refine import Refinement, RefineSettings, refinement, restore
from core.golden.refine.predict import Prediction, noise_of, predict, usd_per_call
from core.golden.stages import ORDER, TRIES, ordering
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.turn import Turn
from core.providers.chat.ask import Task, ask
from core.records import JsonMap, canonical_json, short_hash
from core.tables import TABLES

REFINED = "refined"  # Folder of the checkpoints in that of a build
ORDERS = {name: dtype for name, dtype in TABLES["orders"].items() if name != "golden_set_id"}
_BATCHES, _REPEATS = 12, 3
"""Batches by which a judge's noise is measured, of different questions, and how often each is judged."""
_EVERY = 10  # Turns between two checkpoints; answers are in the journal besides, so that none is paid twice


@dataclass(frozen=True, slots=True)
class Items:
    """What is put in order for one question."""

    query_id: str
    question: str
    passage_ids: list[str]
    texts: list[str]
    grades: list[float]
    ranks: list[float]


def items_of(job: GoldenJob, kept: pl.DataFrame) -> list[Items]:
    """The passages that S5 kept, by question in the order of the questions."""
    parts = kept.partition_by("query_id", as_dict=True)
    columns = ("passage_id", "text", pl.col("grade", "rank").cast(pl.Float64))
    return [
        Items(query, question, *(column.to_list() for column in parts[query,].select(columns)))
        for query, question in job.questions.items()
        if (query,) in parts
    ]


class Ordering:
    """Has a judge put batches of passages in order."""

    def __init__(self, job: GoldenJob, turn: Turn) -> None:
        self._job, self._turn = job, turn
        self._chat = turn.models.chat(job.refiner)
        self._folder = turn.folder.path / REFINED

    def foreseen(self, every: Sequence[Items], settings: RefineSettings) -> Prediction:
        """Measure the judge's noise by repeats of first batches, and predict what refining gains."""
        some = [items for items in every if len(items.passage_ids) >= settings.batch][:_BATCHES]
        batches = [(items, self._new(items, settings).batch() or ()) for items in some]
        asked = [(items, batch, again) for items, batch in batches for again in range(_REPEATS)]
        found = list(in_order(lambda each: self._repeat(*each), asked, self._chat.concurrency))
        repeats = [found[at : at + _REPEATS] for at in range(0, len(found), _REPEATS)]
        noise = noise_of([[order for order in orders if order is not None] for orders in repeats])
        grades = {items.query_id: items.grades for items in every}
        tokens = self._task(*batches[0]).tokens(self._chat)
        said = self._chat.count_tokens(f'{{"{ORDER}": {list(range(1, settings.batch + 1))}}}')
        book = self._job.search.book
        usd = 0.0 if self._chat.local else usd_per_call(book, self._chat.item, tokens, said)
        return predict(noise, grades, settings, usd)

    def all(self, every: list[Items], settings: RefineSettings) -> list[Refinement]:
        """Refine all questions, or what is left of each, as many at once as the judge takes calls."""
        found = []
        work = in_order(lambda items: self._refined(items, settings), every, self._chat.concurrency)
        for done, state in enumerate(work, 1):
            found.append(state)
            self._turn.tracker.within(done, len(every), "questions")
        return found

    def _task(self, items: Items, batch: Sequence[int]) -> Task[list[int]]:
        texts = [items.texts[item] for item in batch]
        return ordering(items.question, texts, self._job.spec.golden.language)

    def _order(self, items: Items, batch: tuple[int, ...], extra: str) -> list[int] | None:
        """The judge's order of a batch, best first; None where three answers were no permutation."""
        self._turn.watch.check()
        reading = ask(self._chat, self._task(items, batch), extra=extra, tries=TRIES).value
        return None if reading.problem else [batch[place] for place in reading.value]

    def _repeat(self, items: Items, batch: tuple[int, ...], again: int) -> list[int] | None:
        """An order of a batch, shown in another order each time."""
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
    """What a refinement began with; another pool, grades or settings begin anew."""
    return canonical_json({key: value for key, value in state.items() if key != "log"})


def refinements(build: Path) -> dict[str, JsonMap]:
    """The checkpoints in the folder of a build by question, for `core.golden.refine.restore`."""
    states = [state for path in sorted((build / REFINED).glob("*.json")) if (state := read_json(path))]
    return {str(state.get("seed", "")).partition("/")[2]: state for state in states}


def order_rows(every: list[Items], states: list[Refinement]) -> pl.DataFrame:
    """Columns of `ORDERS`: what is known of every passage."""
    rows = [
        (items.query_id, items.passage_ids[row.item], *row[1:])
        for items, state in zip(every, states, strict=True)
        for row in state.rows()
    ]
    return pl.DataFrame(rows, schema=ORDERS, orient="row")
