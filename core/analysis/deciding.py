"""Two stacks without judgements: what they show differently, and whether the grades so far decide.

A question's difference in Precision4+@K depends only on the passages that one Top-K has and the other lacks,
as common ones count for both. So its range is known beforehand, from the least (all passages that only the
first stack shows are useful) to the most (all that only the second one shows are useful).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from core.arrays import Floats
from core.errors import InputError
from core.golden.book import PAIR, Item, Queue
from core.golden.by_hand import BETWEEN
from core.stats.correlation import agreement
from core.stats.deciding import Draw, Looks, decisions, drawn, expected_more, looks
from core.stats.intervals import SEED
from core.store import Snapshot
from core.tables import schema

USEFUL = 4
"""Grade from which a passage is useful: the measure is Precision4+@K."""
DELTA = 0.02
"""Usual difference, in the share of useful passages, up to which two stacks count as alike."""
DIFFERENCES = schema("query_id overlap:float rbo:float other_first:bool only_now:int64 only_to:int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two stacks to decide between; kept with the queue of passages to judge."""

    now: str  # run_id of the stack that runs today
    to: str  # run_id of the candidate
    k: int
    margin: float = 0.0  # by how much the candidate has to be better
    delta: float = DELTA  # differences up to it do not matter

    @classmethod
    def of(cls, queue: Queue) -> Contest | None:
        """Return the contest that a queue is to decide; None for another kind of queue."""
        return cls(**json.loads(queue.seed)) if queue.sampling == BETWEEN else None

    @property
    def seed(self) -> str:
        """Return the contest in the form that a queue keeps."""
        return json.dumps(asdict(self))

    @property
    def measure(self) -> str:
        """Return the measure that the contest is decided on."""
        return f"Precision{USEFUL}+@{self.k}"


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The state of a contest by the grades so far."""

    contest: Contest
    questions: int  # on which both stacks were run
    open: int  # of these, those whose passages differ
    done: int  # of these, those judged whole, in the order of the draw
    graded: int  # passages
    passages: int  # to grade, if all questions were judged
    looks: Looks
    answer: str | None  # `decision`, the first one reached; None = not decided
    at: int | None  # number of questions after which it was decided
    more: int | None  # questions that are still expected; None = too few to tell, or decided

    @property
    def value(self) -> float:
        """The candidate's mean less the incumbent's."""
        return float(self.looks.value[-1])

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the value, which may be read at any time."""
        return float(self.looks.low[-1]), float(self.looks.high[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `golden between --format json`; null = unknown, or not decided."""
        low, high = self.ends
        return {
            "answer": self.answer,
            "after": self.at,
            "measure": self.contest.measure,
            "difference": self.value if self.done else None,
            "low": low,
            "high": high,
            "questions": self.questions,
            "to_judge": self.open,
            "judged": self.done,
            "graded": self.graded,
            "passages": self.passages,
            "more": self.more,
        }


def differences(snapshot: Snapshot, contest: Contest) -> pl.DataFrame:
    """Return what two stacks show differently, question by question.

    Returns:
        `DIFFERENCES`: overlap and rbo (0..1), other_first (whether another passage comes first), only_now and
        only_to (passages that only one Top-K has); those that differ most first.

    Raises:
        InputError: If the two have no question in common.
    """
    sides = _sides(snapshot, contest)
    if sides.is_empty():
        raise InputError("The two stacks have no question in common.", do="Choose two others.")
    now, to = (sides.filter(side=side) for side in (-1, 1))
    firsts = now.filter(rank=1).join(to.filter(rank=1), on="query_id", how="inner", suffix="_to")
    same = firsts.select("query_id", other_first=pl.col("passage_id") != pl.col("passage_id_to"))
    counted = (
        _apart(sides)
        .group_by("query_id")
        .agg(only_now=(pl.col("side") < 0).sum(), only_to=(pl.col("side") > 0).sum())
    )
    return (
        agreement(now, to, contest.k)
        .join(same, on="query_id", how="left")
        .join(counted, on="query_id", how="left")
        .with_columns(pl.col("only_now", "only_to").fill_null(0), pl.col("other_first").fill_null(value=True))
        .select(pl.col(name).cast(kind) for name, kind in DIFFERENCES.items())
        .sort("rbo", "query_id")
    )


def _sides(snapshot: Snapshot, contest: Contest) -> pl.DataFrame:
    """Return the Top-K of both on their common questions: query_id, passage_id, rank, side (−1 now, 1 to)."""
    rows = snapshot.rankings([contest.now, contest.to], stage="final").filter(pl.col("rank") <= contest.k)
    both = rows.group_by("query_id").agg(pl.col("run_id").n_unique()).filter(run_id=2)
    side = pl.when(pl.col("run_id") == contest.to).then(1).otherwise(-1)
    return rows.join(both, on="query_id", how="semi").select(*PAIR, "rank", side=side)


def _apart(sides: pl.DataFrame) -> pl.DataFrame:
    """Return the passages that only one of the two shows, with its side."""
    return sides.filter(pl.len().over(PAIR) == 1)


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """What only one of two stacks shows, in the order in which it is judged."""

    contest: Contest
    questions: pl.DataFrame  # `DIFFERENCES`, by query_id
    sides: pl.DataFrame  # query_id, passage_id, side (−1 now, 1 to), by query_id and passage_id

    @classmethod
    def of(cls, snapshot: Snapshot, contest: Contest) -> Apart:
        """Compare two stacks; errors as of `differences`."""
        questions = differences(snapshot, contest).sort("query_id")
        return cls(contest, questions, _apart(_sides(snapshot, contest)).select(*PAIR, "side").sort(PAIR))

    @property
    def drawn(self) -> pl.DataFrame:
        """The passages to judge (query_id, passage_id), question by question in the order of the draw."""
        order = drawn(*self._range).order
        queries = self.questions["query_id"].gather(order)
        turn = pl.DataFrame({"query_id": queries, "turn": np.arange(len(order))})
        apart = self.sides.join(turn, on="query_id").sort("turn", "passage_id")
        chance = np.random.default_rng(SEED).random(
            apart.height
        )  # so that nobody sees which stack shows what
        return apart.with_columns(chance=chance).sort("turn", "chance").select(PAIR)

    @property
    def _range(self) -> tuple[Floats, Floats]:
        """The smallest and the largest possible difference of each question [n]."""
        now, to = (self.questions[name].to_numpy() for name in ("only_now", "only_to"))
        return -now / self.contest.k, to / self.contest.k

    def standing(self, items: Sequence[Item], *, ahead: bool = True) -> Standing:
        """Say what the grades of items decide so far, as `standing`; `ahead`: whether to predict the rest."""
        contest, (low, high) = self.contest, self._range
        place = {query: at for at, query in enumerate(self.questions["query_id"])}
        judged = dict.fromkeys(item.query_id for item in items)
        asked = Draw(low, high, np.array([place[query] for query in judged], dtype=np.intp))
        seen = _seen(self.sides, contest.k, items)
        told = looks(asked, seen)
        said = decisions(told, contest.margin, contest.delta)
        at = next((number for number, answer in enumerate(said) if answer), None)
        open_ = at is None and ahead
        more = expected_more(asked, seen, contest.margin, contest.delta) if open_ else None
        return Standing(
            contest=contest,
            questions=len(self.questions),
            open=len(judged),
            done=len(seen),
            graded=sum(item.at is not None for item in items),
            passages=len(items),
            looks=told,
            answer=None if at is None else said[at],
            at=at,
            more=more,
        )


def draw(snapshot: Snapshot, contest: Contest) -> pl.DataFrame:
    """Return the passages to judge (query_id, passage_id), question by question in the order of the draw.

    Raises:
        InputError: If the two show the same passages, or have no question in common.
    """
    rows = Apart.of(snapshot, contest).drawn
    if rows.is_empty():
        raise InputError("The two stacks show the same passages.", do="Choose two others.")
    return rows


def standing(snapshot: Snapshot, contest: Contest, items: Sequence[Item]) -> Standing:
    """Say what the grades of a queue decide so far.

    Args:
        items: The queue's items, in the order of `draw`. A skipped passage counts as not useful; a question
            counts when all before it are judged whole.
    """
    return Apart.of(snapshot, contest).standing(items)


def _seen(apart: pl.DataFrame, k: int, items: Sequence[Item]) -> Floats:
    """Return the differences of the first questions that are judged whole [t]."""
    side = {(query, passage): each for query, passage, each in apart.select(*PAIR, "side").iter_rows()}
    sums: dict[str, float] = {}
    for item in items:
        if item.at is None:
            sums.pop(item.query_id, None)
            break
        useful = item.grade is not None and item.grade >= USEFUL
        sums[item.query_id] = sums.get(item.query_id, 0.0) + useful * side[item.query_id, item.passage_id]
    return np.array([*sums.values()], dtype=np.float64) / k
