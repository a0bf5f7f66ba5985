"""S6: every question's best passages put in order by a judge, five at a time; a checkpoint per question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from core.errors import InputError
from core.files import read_json, write_json
from core.golden.job import GoldenJob
from core.golden.refine import Refinement, RefineSettings, refinement, restore
from core.golden.refine.predict import Prediction, noise_of, predict, usd_per_call
from core.golden.stages import ORDER, TRIES, ordering
from core.pipeline.evaluate.measure import in_order
from core.prices import PriceBook
from core.providers.chat import Chat
from core.providers.chat.ask import ask
from core.records import JsonMap, canonical_json, short_hash
from core.tables import TABLES

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
    return [
        Items(
            query,
            question,
            parts[query,]["passage_id"].to_list(),
            parts[query,]["text"].to_list(),
            parts[query,]["grade"].cast(pl.Float64).to_list(),
            parts[query,]["rank"].cast(pl.Float64).to_list(),
        )
        for query, question in job.questions.items()
        if (query,) in parts
    ]


@dataclass
class Ordering:
    """Asks a judge for orders of batches."""

    job: GoldenJob  # What is built
    chat: Chat  # The judge
    folder: Path | None = None  # Where checkpoints are kept; None = nowhere
    check: Callable[[], None] = field(default=lambda: None)  # Raises when somebody asked to stop

    def order(self, items: Items, batch: tuple[int, ...], extra: str) -> list[int] | None:
        """The judge's order of a batch, best first; None where three answers were no permutation."""
        self.check()
        texts = [items.texts[item] for item in batch]
        task = ordering(items.question, texts, self.job.spec.golden.language)
        reading = ask(self.chat, task, extra=extra, tries=TRIES).value
        return None if reading.problem else [batch[place] for place in reading.value]

    def foreseen(self, every: Sequence[Items], settings: RefineSettings, book: PriceBook) -> Prediction:
        """Measure the judge's noise by repeats of first batches, and predict what refining gains."""
        some = [items for items in every if len(items.passage_ids) >= settings.batch][:_BATCHES]
        batches = [(items, self._begin(items, settings, fresh=True).batch() or ()) for items in some]
        asked = [(items, batch, again) for items, batch in batches for again in range(_REPEATS)]
        found = list(in_order(lambda each: self._repeat(*each), asked, self.chat.concurrency))
        repeats = [found[at : at + _REPEATS] for at in range(0, len(found), _REPEATS)]
        noise = noise_of([[order for order in orders if order is not None] for orders in repeats])
        grades = {items.query_id: items.grades for items in every}
        items, batch = batches[0]
        task = ordering(items.question, [items.texts[item] for item in batch], self.job.spec.golden.language)
        tokens = task.tokens(self.chat)
        said = self.chat.count_tokens(f'{{"{ORDER}": {list(range(1, settings.batch + 1))}}}')
        usd = 0.0 if self.chat.local else usd_per_call(book, self.chat.item, tokens, said)
        return predict(noise, grades, settings, usd)

    def _repeat(self, items: Items, batch: tuple[int, ...], again: int) -> list[int] | None:
        """An order of a batch, shown in another order each time."""
        drawn = np.random.default_rng(int(short_hash(items.query_id, str(again)), 16)).permutation(len(batch))
        return self.order(items, tuple(batch[place] for place in drawn), f"repeat {again}")

    def refined(self, items: Items, settings: RefineSettings) -> Refinement:
        """Refine one question, or what is left of it."""
        state = self._begin(items, settings)
        while (batch := state.batch()) is not None:
            order = self.order(items, batch, f"turn {state.turns}")
            if order is None:
                state.skipped()
            else:
                state.told(order)
            if state.turns % _EVERY == 0:
                self._keep(items, state)
        self._keep(items, state)
        return state

    def all(
        self, every: list[Items], settings: RefineSettings, told: Callable[[int], None]
    ) -> list[Refinement]:
        """Refine all questions, as many at once as the judge takes calls."""
        found = []
        work = in_order(lambda items: self.refined(items, settings), every, self.chat.concurrency)
        for done, state in enumerate(work, 1):
            found.append(state)
            told(done)
        return found

    def _begin(self, items: Items, settings: RefineSettings, *, fresh: bool = False) -> Refinement:
        """The state of a question: its checkpoint, or a new one."""
        new = refinement(
            items.grades, items.ranks, items.passage_ids, settings,
            seed=f"{self.job.build_id}/{items.query_id}",
        )  # fmt: skip
        kept = None if self.folder is None else read_json(checkpoint(self.folder, items.query_id))
        if fresh or kept is None or _begun(kept) != _begun(new.state()):
            return new
        try:
            return restore(kept)
        except InputError:
            return new

    def _keep(self, items: Items, state: Refinement) -> None:
        if self.folder is not None:
            self.folder.mkdir(exist_ok=True)
            write_json(checkpoint(self.folder, items.query_id), dict(state.state()))


def checkpoint(folder: Path, query_id: str) -> Path:
    """The file with the state of one question."""
    return folder / f"{short_hash(query_id)}.json"


def refinements(folder: Path) -> dict[str, JsonMap]:
    """The checkpoints of a folder by question, for `core.golden.refine.restore`.

    Args:
        folder: "refined" in the folder of a build; nothing where it is not there.
    """
    states = [state for path in sorted(folder.glob("*.json")) if (state := read_json(path))]
    return {str(state.get("seed", "")).partition("/")[2]: state for state in states}


def _begun(state: Any) -> str:  # noqa: ANN401 - JSON
    """What a refinement began with; another pool, grades or settings begin anew."""
    return canonical_json({key: value for key, value in state.items() if key != "log"})


def order_rows(every: list[Items], states: list[Refinement]) -> pl.DataFrame:
    """Columns of `ORDERS`: what is known of every passage."""
    rows = [
        {
            "query_id": items.query_id,
            "passage_id": items.passage_ids[row.item],
            "rank": row.rank,
            "score": row.score,
            "exposures": row.exposures,
            "information": row.information,
            "locks": row.locks,
            "contradictions": row.contradictions,
        }
        for items, state in zip(every, states, strict=True)
        for row in state.rows()
    ]
    return pl.DataFrame(rows, schema=ORDERS, orient="row")
