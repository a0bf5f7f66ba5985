"""Reader jobs: the requested answers for each run, and the calls that make them.

No call is repeated: runs that send the same passages for a question share one call, and so do all runs
for the closed book.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple
from zlib import crc32

import polars as pl

from core.errors import InputError
from core.pipeline.evaluate.identity import billed_by, model_identity
from core.pipeline.evaluate.job import EMPTY_BOOK
from core.pipeline.sweep.check import chat_problems, require
from core.pipeline.sweep.fields import Mode, Reader
from core.pipeline.sweep.problems import Problem
from core.prices import PriceBook
from core.providers.chat import chat_config
from core.providers.config import ModelConfig
from core.records import JsonMap, short_hash
from core.tables import TABLES
from core.work.readers.distractors import MADE, distractor
from core.work.readers.prompts import Prompt, prompt

DOSED = frozenset({"harm_before", "harm_after"})  # Modes that add harmful passages to the gold ones
OF_GOLD = (
    frozenset({"gold", "gold_only", "no_gold"}) | DOSED | MADE.keys()
)  # Modes that need the gold passages


@dataclass(frozen=True, slots=True)
class ReaderReplay:
    """A stored run whose final ranking is read."""

    run_id: str
    searched: str  # the collection, or its part with chunks, whose passages it ranks
    ranked: Mapping[str, tuple[str, ...]]  # by question: its passages, best first, as deep as needed
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by question: gold passages
    harmful: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # candidates of grade 1 or 2


@dataclass(frozen=True, slots=True)
class Material:
    """Rows of the store to read."""

    collection_id: str
    questions: Mapping[str, str]  # by id
    texts: Mapping[str, Mapping[str, str]]  # by searched corpus: passages with title and text
    replays: tuple[ReaderReplay, ...]
    golds: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TABLES["gold_answers"]))
    answerable: Mapping[str, bool] = field(default_factory=dict)  # by question; unknown for others
    held: Set[tuple[object, ...]] = frozenset()  # keys of existing answers


class AnswerBlock(NamedTuple):
    """Answers that are processed together: one reader's under one condition, on one run."""

    run_id: str
    reader: str
    prompt: str
    temperature: float
    mode: Mode
    k: int | None
    turn: int  # number of the pass, from 1


class ReaderCall(NamedTuple):
    """A question to a reader, asked once: equal calls have equal answers."""

    model: str
    prompt: str  # its name in the specification
    temperature: float
    turn: int
    question: str
    passages: tuple[int, ...]  # positions in `ReaderJob.texts`


class WantedScores(NamedTuple):
    """A requested answer."""

    block: AnswerBlock
    query_id: str
    call: ReaderCall

    @property
    def key(self) -> tuple[object, ...]:
        """Return its identity: values of `core.answers.KEY`."""
        run_id, *block, turn = self.block
        return run_id, self.query_id, *block, turn


@dataclass(frozen=True, kw_only=True)
class ReaderJob:
    """Answers of readers from the passages of runs."""

    name: str  # Display name
    reader: Reader  # The readers, their passages, and the scoring of answers
    material: Material  # The store's data for it
    # Configurations of models missing from the catalogue, by name
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    book: PriceBook = EMPTY_BOOK
    budget_usd: float | None = None  # The most dollars that may be spent; None = no limit
    spec: JsonMap = field(default_factory=dict)  # The user's input

    @property
    def job_id(self) -> str:
        """The identity: different readers, prompts, depths and runs resume in the same folder."""
        return short_hash("readers", self.name, self.material.collection_id)

    @property
    def collection_id(self) -> str:
        """The collection whose questions are answered."""
        return self.material.collection_id

    @cached_property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names in the specification."""
        return {name: prompt(name) for name in self.reader.prompts}

    def told(self, name: str) -> str:
        """Return a prompt's name for records, with any limits that override its own."""
        own, reader = self.prompts[name], self.reader
        limits = [
            f"{reader.max_tokens} tokens" if reader.max_tokens not in (None, own.max_tokens) else "",
            f"context {reader.context_tokens}" if reader.context_tokens is not None else "",
        ]
        return ", ".join(part for part in (own.name, *limits) if part)

    @cached_property
    def texts(self) -> Sequence[str]:
        """Distinct texts of passages."""
        return list(self._placed)

    @cached_property
    def _placed(self) -> Mapping[str, int]:
        different = dict.fromkeys(text for some in self.material.texts.values() for text in some.values())
        made = MADE.keys() & set(self.reader.modes)
        for mode, replay in product(sorted(made), self.material.replays):
            for query_id in replay.ranked:
                different |= dict.fromkeys(self.made(replay, query_id, mode, self.reader.depth))
        return {text: place for place, text in enumerate(different)}

    @cached_property
    def golds(self) -> Mapping[str, tuple[str, ...]]:
        """Gold answers by query."""
        rows = self.material.golds.group_by("query_id", maintain_order=True).agg("answer").iter_rows()
        return {query: tuple(answers) for query, answers in rows}

    @cached_property
    def wanted(self) -> Sequence[WantedScores]:
        """Every answer, in the order of the calls."""
        return list(self._wanted())

    @cached_property
    def ideals(self) -> Mapping[tuple[AnswerBlock, str], ReaderCall]:
        """The calls that answer from all gold passages, by block and question."""
        return {(each.block, each.query_id): each.call for each in self.wanted if each.block.mode == "gold"}

    def calls(self, model: str) -> list[ReaderCall]:
        """List the calls of a model, without duplicates."""
        return list(dict.fromkeys(wanted.call for wanted in self.wanted if wanted.call.model == model))

    def sent(self, replay: ReaderReplay, query_id: str, mode: Mode, k: int | None) -> tuple[str, ...] | None:
        """Return the passages to send for a question, best first; None if the mode leaves none."""
        ranked, gold = replay.ranked.get(query_id, ()), replay.gold.get(query_id, ())
        if mode == "none":
            return ()
        if mode == "gold":
            return gold or None
        if mode in DOSED:
            harmful = replay.harmful.get(query_id, ())[:k]
            added = harmful if gold and k is not None and len(harmful) == k else None
            return added and ((*gold, *added) if mode == "harm_after" else (*added, *gold))
        if mode in MADE:
            return gold if len(self.made(replay, query_id, mode, k or 0)) == k else None
        first, known = ranked[:k], set(gold)
        if mode == "top_k":
            return first
        return tuple(name for name in first if (name in known) == (mode == "gold_only")) or None

    def made(self, replay: ReaderReplay, query_id: str, kind: str, most: int) -> tuple[str, ...]:
        """Return distractors made from a question's first gold passages; fewer if these give fewer."""
        others = [answer for other, (answer, *_) in sorted(self.golds.items()) if other != query_id]
        wrong = others[crc32(query_id.encode()) % len(others)] if others else None
        texts = self.material.texts[replay.searched]
        golds = (texts[name] for name in replay.gold.get(query_id, ())[:most] if name in texts)
        return tuple(text for gold in golds if (text := distractor(kind, gold, wrong)))

    def manifest(self) -> JsonMap:
        """Return the data needed to repeat it, as JSON."""
        return {
            "readers": {"id": self.job_id, "name": self.name, "collection": self.collection_id},
            "runs": [replay.run_id for replay in self.material.replays],
            "prompts": {prompt.name: prompt.hash for prompt in self.prompts.values()},
            "models": {
                name: dict(model_identity(chat_config(name, self.models))) for name in self.reader.asked
            },
            "spec": self.spec,
        }

    def billed(self) -> list[tuple[str, str]]:
        """Return item and unit of everything that is paid for."""
        return [pair for name in self.reader.asked for pair in billed_by("chat", name, self.models)]

    def _wanted(self) -> Iterator[WantedScores]:
        reader = self.reader
        conditions = [
            (model, name, temperature, turn, mode, k)
            for model in reader.models
            for name in reader.prompts
            for temperature in reader.temperatures
            for turn in range(1, reader.passes + 1)
            for mode in reader.modes
            for k in reader.depths(mode)
        ]
        for model, name, temperature, turn, mode, k in conditions:
            for replay in self.material.replays:
                block = AnswerBlock(replay.run_id, model, self.told(name), temperature, mode, k, turn)
                for query_id in replay.ranked:
                    passages = self.sent(replay, query_id, mode, k)
                    if passages is not None:
                        texts = self.material.texts[replay.searched]
                        shown = [texts[name] for name in passages if name in texts]
                        shown += self.made(replay, query_id, mode, k or 0) if mode in MADE else ()
                        places = tuple(self._placed[text] for text in shown)
                        question = self.material.questions[query_id]
                        yield WantedScores(
                            block, query_id, ReaderCall(model, name, temperature, turn, question, places)
                        )


def require_material(job: ReaderJob) -> None:
    """Refuse a job that has nothing to read, or modes without gold passages."""
    material, reader = job.material, job.reader
    if not any(replay.ranked for replay in material.replays):
        raise InputError(
            "No run has a ranking of questions with text.",
            where="reader.runs",
            do="Name runs with rankings, of a collection whose questions and passages are stored.",
        )
    asked = ", ".join(sorted(OF_GOLD & set(reader.modes)))
    if asked and not any(replay.gold for replay in material.replays):
        raise InputError(
            f"No passage has grade {reader.gold_from} or more: {asked} cannot be told.",
            where="reader.golden_set",
            do="Name a golden set of the collection, or leave these modes out.",
        )


def require_models(reader: Reader, models: Mapping[str, ModelConfig], *, to_run: bool) -> list[Problem]:
    """Refuse unknown models, unreadable prompts and, to run, missing keys.

    Returns:
        The problems that matter only for running.
    """
    for name in reader.prompts:
        prompt(name)
    named = [*(("reader.models", name) for name in reader.models)]
    named += [("reader.judge.model", name) for name in reader.judges]
    return require(list(chat_problems(named, models)), to_run=to_run)
