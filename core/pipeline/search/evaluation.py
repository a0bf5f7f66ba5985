"""Searches as part of an evaluation: its stacks are the space, and the surviving ones are measured.

Only stacks that were asked every query become runs; dropped ones stay in the evaluation's folder, so
that no mean over 16 queries is compared with one over all.

A search that was killed is run again from its beginning: answers and proposals that are kept are taken from
the folder, so that it repeats its steps, asks nothing twice and resumes.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import polars as pl

from core.errors import DiskError, refusal
from core.files import write_json
from core.metrics import Measure
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import ARTIFACTS
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.run import Before
from core.pipeline.evaluate.session import Session
from core.pipeline.search.asking import AskedGrades, Course, SearchAnswers
from core.pipeline.search.propose import Space, StackTrial, optuna, parameters, propose, quiet
from core.pipeline.search.race import Entry, Race, search
from core.pipeline.sweep.fields import Search, searched_by
from core.prices import CURRENCY, MS_PER_HOUR, PRICED_AS, PriceBook
from core.prices.cost import DOLLARS
from core.providers.base import Amount
from core.records import Stack, short_hash

_FIGURES = ("quality", "latency_ms", "usd_per_1k", "harm")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (stack TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    figures BLOB NOT NULL, seconds REAL NOT NULL, usd REAL NOT NULL, PRIMARY KEY (stack, first));
CREATE TABLE IF NOT EXISTS proposals (known TEXT PRIMARY KEY, rows TEXT NOT NULL);
"""


def searching(job: Job) -> Before | None:
    """Return the search that chooses the stacks of an evaluation, or None if all of them run."""
    return None if searched_by(job.spec) is None else _searched


def _searched(session: Session, job: Job) -> list[Stack]:
    """Start or resume a search; return the stacks that were asked every query."""
    optuna()  # before anything is asked
    how = searched_by(job.spec) or Search()
    measure = Measure.parse(how.measure)
    with closing(KeptEvaluations(session.folder.answers)) as kept:
        space = Space(job.stacks)
        race = Race(job.queries.height, how, higher_is_better=measure.info.higher_is_better)
        one = _Search(job.name, session, kept, _course(session, job, how, measure), space, race)
        session.tracker.tell(stage="search", runs_total=min(how.trials, len(space)))
        start = range(
            sum(not (stack.get("call") or stack.get("url")) for stack in job.spec.get("stack") or ())
        )
        search(space, race, one.ask, one.propose, start=start, more=one.more, on_round=one.tell)
        one.tell(())
        one.study()
        return [space.stacks[entry.row] for entry in race.whole]


@dataclass(frozen=True, slots=True)
class _Search:
    """A search of an evaluation in progress."""

    name: str
    session: Session
    kept: KeptEvaluations
    course: Course
    space: Space
    race: Race

    def ask(self, rows: Sequence[int], first: int, last: int) -> list[SearchAnswers]:
        """Ask stacks part of the queries, except for answers kept from before."""
        every: list[SearchAnswers] = []
        for stack in (self.space.stacks[row] for row in rows):
            answers = self.kept.answer(stack.stack_id, (first, last))
            if answers is None:
                began, usd = monotonic(), self.session.budget.usd
                (answers,) = self.course.ask([stack], first, last)
                cost = monotonic() - began, self.session.budget.usd - usd
                self.kept.keep(stack.stack_id, (first, last), answers, cost)
            every.append(answers)
        return every

    def tell(self, dropped: Sequence[Entry]) -> None:
        """Report progress, and log the dropped stacks."""
        race, session = self.race, self.session
        begun, racing, through = len(race.entries), len(race.racing), len(race.whole)
        session.tracker.tell(stage=f"search: {begun} stacks begun, {racing} racing, {through} through")
        progress = {
            "measure": race.how.measure,
            "queries": race.queries,
            "stacks": len(self.space),
            "begun": begun,
            "dropped": sum(candidate.dropped for candidate in race.entries.values()),
            "through": through,
            "asked": race.asked,
            "asked_of": len(self.space) * race.queries,
            "level": race.how.level,
            "margin": race.how.margin,
            "entries": self._entries(),
        }
        write_json(session.folder.search, progress)
        for entry in dropped:
            row = self._about(entry)
            rival, bound = row["beaten_by"], row["bound"]
            session.log.write("drop", stack=row["label"], queries=entry.n, beaten_by=rival, bound=bound)

    def _entries(self) -> list[dict[str, Any]]:
        """Return a row of facts about every started stack."""
        entries = list(self.race.entries.values())
        harm = self.race.harm(entries)
        columns = (*self.race.figures(), np.full(len(entries), np.nan) if harm is None else harm)
        figures = pl.DataFrame(dict(zip(_FIGURES, columns, strict=True))).fill_nan(None).to_dicts()
        return [{**self._about(entry), **row} for entry, row in zip(entries, figures, strict=True)]

    def _about(self, entry: Entry) -> dict[str, Any]:
        """Return an entry's stack, how far it got, and why it was dropped."""
        stack, race = self.space.stacks[entry.row], self.race
        open_ = "through" if entry.n == race.queries else "racing"
        return {
            "stack_id": stack.stack_id,
            "label": stack.label,
            "spec": dict(stack.spec),
            "queries": entry.n,
            "round": race.rounds.index(entry.n) + 1,
            "state": "dropped" if entry.dropped else open_,
            "beaten_by": None if entry.by is None else self.space.stacks[entry.by].label,
            "bound": entry.bound,
        }

    def study(self) -> None:
        """Bring the study up to date: a trial per stack that is finished (complete) or dropped (pruned).

        optuna-dashboard opens it: ``optuna-dashboard sqlite:///…/study.sqlite``. The study restarts when time
        or cost becomes known, or turns out to be unknown for some stack.
        """
        space, race = self.space, self.race
        figures = race.figures()
        path, name = self.session.folder.study, self.name
        axes = [at for at, axis in enumerate(figures) if not np.isnan(axis).any()]
        names = [("quality", "latency ms", "$ per 1,000 queries")[at] for at in axes]
        with quiet() as package, _usable(path, "it is made anew from the answers", _study_errors()):
            states = package.trial.TrialState
            storage = f"sqlite:///{path}"
            held = path.exists() and name in package.get_all_study_names(storage)
            if held and package.load_study(study_name=name, storage=storage).metric_names != names:
                package.delete_study(study_name=name, storage=storage)
            study = package.create_study(
                storage=storage,
                study_name=name,
                directions=["maximize" if not at and race.higher_is_better else "minimize" for at in axes],
                load_if_exists=True,
            )
            study.set_metric_names(names)
            known = {trial.user_attrs.get("stack_id") for trial in study.get_trials(deepcopy=False)}
            for place, entry in enumerate(race.entries.values()):
                stack = space.stacks[entry.row]
                if stack.stack_id in known or not (entry.dropped or entry.n == race.queries):
                    continue
                about = {"stack_id": stack.stack_id, "label": stack.label, "queries": entry.n}
                if entry.by is not None:
                    about |= {"beaten by": space.stacks[entry.by].label, "bound": entry.bound}
                trial = package.trial.create_trial(
                    state=states.PRUNED if entry.dropped else states.COMPLETE,
                    values=[float(figures[at][place]) for at in axes],
                    user_attrs=about,
                    **parameters(package, space, entry.row),
                )
                study.add_trial(trial)

    def more(self) -> bool:
        """Return whether time and money are left to begin further stacks."""
        minutes, usd = self.race.how.minutes, self.race.how.usd
        return (minutes is None or self.kept.seconds < 60 * minutes) and (usd is None or self.kept.usd < usd)

    def propose(self, known: Sequence[StackTrial], count: int, maximised: Sequence[bool]) -> list[int]:
        """Propose stacks to begin, repeating earlier proposals if the run was killed."""
        how = self.race.how
        key = short_hash(repr(known), str(count), how.sampler, str(how.seed))
        rows = self.kept.proposed(key)
        if rows is None:
            self.session.watch.check()
            self.study()
            rows = propose(self.space, known, count, maximised=maximised, sampler=how.sampler, seed=how.seed)
            self.kept.propose(key, rows)
        return rows


@contextmanager
def _usable(path: Path, without: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Turn what a damaged or locked database file raises into an error that names it; nothing is deleted.

    Args:
        path: The file.
        without: What happens once it is moved away.
        errors: What its library raises.
    """
    try:
        yield
    except errors as error:
        locked = "locked" in f"{error} {error.__cause__}"
        problem = "Another program keeps the file locked." if locked else "The file is damaged."
        do = "Close what has it open, then resume." if locked else f"Move it away, then resume: {without}."
        raise refusal(error) or DiskError(problem, where=str(path), do=do) from error


def _study_errors() -> tuple[type[Exception], ...]:
    """Return the errors that Optuna raises about its file; some come from below it."""
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415 - an extra
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - comes with it

    return StorageInternalError, SQLAlchemyError, sqlite3.Error


def _course(session: Session, job: Job, how: Search, measure: Measure) -> Course:
    corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
    artifacts = Artifacts(session.folder.path.parent / ARTIFACTS)
    return Course(
        job,
        np.random.default_rng(how.seed).permutation(job.queries.height).tolist(),
        AskedGrades(job, measure, harm=how.limits.max_harm is not None),
        builder=Builder(artifacts, session.models, corpora, session.budget.begin_stage),
        models=session.models,
        price=partial(_dollars, job.book),
        check=session.watch.check,
        stage=session.budget.begin_stage,
    )


def _dollars(book: PriceBook, amount: Amount) -> float | None:
    """Return the cost of an amount in production, machine time included; None = unknown."""
    if amount.unit == DOLLARS:
        return amount.amount
    price = book.find(amount.item, PRICED_AS.get(amount.unit, amount.unit))
    if price is None or price.currency != CURRENCY or amount.amount is None:
        return None
    return price.each * amount.amount / (MS_PER_HOUR if amount.unit in PRICED_AS else 1)


class KeptEvaluations:
    """Answers and proposals of one search."""

    def __init__(self, path: Path) -> None:
        with _usable(path, "its stacks are asked again", (sqlite3.Error,)):
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
        self.seconds = self.usd = 0.0  # of the answers returned so far

    def answer(self, stack: str, part: tuple[int, int]) -> SearchAnswers | None:
        """Return a stack's recorded answers, or None."""
        row = self._db.execute(
            "SELECT figures, seconds, usd FROM answers WHERE stack = ? AND first = ? AND last = ?",
            (stack, *part),
        ).fetchone()
        if row is None:
            return None
        self.seconds, self.usd = self.seconds + row[1], self.usd + row[2]
        return tuple(np.load(io.BytesIO(row[0])))

    def keep(
        self, stack: str, part: tuple[int, int], answers: SearchAnswers, cost: tuple[float, float]
    ) -> None:
        """Record a stack's answers, with the seconds and dollars they took."""
        held = io.BytesIO()
        np.save(held, np.stack(answers))
        self._db.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
            (stack, *part, held.getvalue(), *cost),
        )
        self.seconds, self.usd = self.seconds + cost[0], self.usd + cost[1]

    def proposed(self, known: str) -> list[int] | None:
        """Return the recorded proposal for the same knowledge."""
        row = self._db.execute("SELECT rows FROM proposals WHERE known = ?", (known,)).fetchone()
        return None if row is None else list(json.loads(row[0]))

    def propose(self, known: str, rows: Sequence[int]) -> None:
        """Record a proposal."""
        self._db.execute("INSERT OR REPLACE INTO proposals VALUES (?, ?)", (known, json.dumps(list(rows))))

    def close(self) -> None:
        """Release the file."""
        self._db.close()
