"""Searches as part of an evaluation: its stacks are the space, and those that come through are measured.

Only stacks that were asked every query become runs; what was dropped stays in the evaluation's folder, so
that no mean over 16 queries stands beside one over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from core.metrics import Measure
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import ARTIFACTS
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.turn import Turn
from core.pipeline.search.asking import Answers, Course, Grades, Price
from core.pipeline.search.kept import Kept, tell, write_study
from core.pipeline.search.propose import Limits, Told, optuna, propose
from core.pipeline.search.race import Entry, Race, Rules
from core.pipeline.search.run import Plan, search
from core.pipeline.search.space import Space
from core.pipeline.sweep.fields import Search, searched_by
from core.prices import CURRENCY, MS_PER_HOUR, PRICED_AS, PriceBook
from core.providers.base import Amount
from core.records import Stack, short_hash


def searching(job: Job) -> Searching | None:
    """Return what searches the stacks of an evaluation; None where all of them run."""
    how = searched_by(job.spec)
    return None if how is None else Searching(how, start=len(job.spec.get("stack") or ()))


class Searching:
    """Chooses the stacks of an evaluation (`core.pipeline.evaluate.run.Before`).

    Args:
        how: How they are searched.
        start: How many of its stacks the search begins with; they stand first.
    """

    def __init__(self, how: Search, start: int = 0) -> None:
        self._how, self._start = how, start

    def __call__(self, turn: Turn, job: Job) -> Sequence[Stack]:
        """Search, or go on; return the stacks that were asked every query."""
        optuna()  # before anything is asked
        how, measure = self._how, Measure.parse(self._how.measure)
        limits = how.limits
        kept = Kept(turn.folder.answers)
        try:
            space, race = Space(job.stacks), Race(job.queries.height, _rules(how, measure))
            one = _Search(job.name, how, turn, kept, _course(turn, job, how, measure), space, race)
            turn.tracker.tell(stage="search", runs_total=min(how.trials, len(space)))
            plan = Plan(
                trials=how.trials,
                evaluations=how.evaluations,
                seed=how.seed,
                propose=one.propose,
                limits=Limits(ms=limits.sla, usd=limits.budget, quality=limits.floor, harm=limits.harm),
            )
            search(space, race, one.ask, plan, start=range(self._start), more=one.more, told=one.tell)
            one.tell(())
            one.study()
            return [space.stacks[entry.row] for entry in race.whole]
        finally:
            kept.close()


@dataclass(frozen=True, slots=True)
class _Search:
    """What a search of an evaluation is given to go on with."""

    name: str
    how: Search
    turn: Turn
    kept: Kept
    course: Course
    space: Space
    race: Race

    def ask(self, rows: Sequence[int], first: int, last: int) -> list[Answers]:
        """Ask stacks a part of the queries, what is kept from before left out."""
        return [self._answer(self.space.stacks[row], (first, last)) for row in rows]

    def _answer(self, stack: Stack, part: tuple[int, int]) -> Answers:
        known = self.kept.answer(stack.stack_id, part)
        if known is not None:
            return known
        began, usd = monotonic(), self.turn.budget.usd
        (answers,) = self.course.ask([stack], *part)
        spent = self.turn.budget.usd - usd
        self.kept.keep(stack.stack_id, part, answers, (monotonic() - began, spent))
        return answers

    def tell(self, dropped: Sequence[Entry]) -> None:
        """Say how far it is, and write down what was dropped."""
        race, turn = self.race, self.turn
        begun, racing, through = len(race.entries), len(race.racing), len(race.whole)
        turn.tracker.tell(stage=f"search: {begun} stacks begun, {racing} racing, {through} through")
        tell(turn.folder.search, self.space, race, self.how.measure)
        for entry in dropped:
            rival = None if entry.by is None else self.space.stacks[entry.by].label
            label = self.space.stacks[entry.row].label
            turn.log.write("drop", stack=label, queries=entry.n, beaten_by=rival, bound=entry.bound)

    def study(self) -> None:
        """Bring the study up to date, which others may look at meanwhile."""
        write_study(self.turn.folder.study, self.name, self.space, self.race)

    def more(self) -> bool:
        """Whether time and money are left to begin further stacks."""
        minutes, usd = self.how.minutes, self.how.usd
        return (minutes is None or self.kept.seconds < 60 * minutes) and (usd is None or self.kept.usd < usd)

    def propose(self, known: Sequence[Told], count: int, maximised: Sequence[bool]) -> list[int]:
        """Name stacks to begin, as it did before where it was killed since."""
        how = self.how
        key = short_hash(repr(known), str(count), how.sampler, str(how.seed))
        rows = self.kept.proposed(key)
        if rows is None:
            self.turn.watch.check()
            self.study()
            rows = propose(self.space, known, count, maximised=maximised, sampler=how.sampler, seed=how.seed)
            self.kept.propose(key, rows)
        return rows


def _course(turn: Turn, job: Job, how: Search, measure: Measure) -> Course:
    corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
    artifacts = Artifacts(turn.folder.path.parent / ARTIFACTS)
    return Course(
        job,
        np.random.default_rng(how.seed).permutation(job.queries.height).tolist(),
        Grades(job, measure, harm=how.limits.harm is not None),
        builder=Builder(artifacts, turn.models, corpora, turn.budget.begin_stage),
        models=turn.models,
        price=_price(job.book),
        check=turn.watch.check,
        stage=turn.budget.begin_stage,
    )


def _rules(how: Search, measure: Measure) -> Rules:
    return Rules(
        rounds=tuple(sorted(how.rounds)),
        level=how.level,
        margin=how.margin,
        higher_is_better=measure.info.higher_is_better,
        harm=how.limits.harm,
    )


def _price(book: PriceBook) -> Price:
    """Return what an amount costs in production, machine time included; None = unknown."""

    def price(amount: Amount) -> float | None:
        unit = PRICED_AS.get(amount.unit, amount.unit)
        found = book.find(amount.item, unit)
        if found is None or found.currency != CURRENCY or amount.amount is None:
            return None
        return found.each * amount.amount / (MS_PER_HOUR if amount.unit in PRICED_AS else 1)

    return price
