"""Judges' scores of answers, corrected with the answers that people graded too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import BY_PEOPLE, TOP_K, share
from core.arrays import Floats, Ints, Mask
from core.readers.curves import POINT
from core.stats.corrected import FEW, Corrected, Errors, ScoredLabels, correct, rogan_gladen
from core.stats.intervals import Labels
from core.stats.means import mean_interval
from core.stats.panel import JudgePanel, dawid_skene, majority
from core.store import Snapshot
from core.views.readers.generators import COMPUTED, label

PANEL = "panel"
STEP = 10  # Number of further grades assumed in the table of what to grade next
_WORDS_A_MINUTE, _LETTERS_A_WORD, _DECIDING_S = 238, 6, 5.0
"""Reading speed (Brysbaert 2019, J. Memory and Language 109), and the extra time for a grade."""


class Judge(NamedTuple):
    """The scorer of answers: who, and by which measure."""

    scorer: str
    name: str  # a model's or a person's; `COMPUTED`; `PANEL`: all models that judge by this scorer

    @property
    def label(self) -> str:
        """Return its human-readable label."""
        return f"{self.scorer}, {COMPUTED}" if self.name == COMPUTED else f"{self.scorer} by {self.name}"


@dataclass(frozen=True)
class GradedAnswers:
    """Scores of single answers by people and by judges, on one set of questions."""

    points: pl.DataFrame  # POINT, name (of the stack), label (of the reader): a row per point, in order
    queries: tuple[str, ...]
    scores: Mapping[Judge, Floats]  # [points, queries], 0..1; NaN = not scored; the mean of several passes
    people: tuple[Judge, ...]  # people who graded by hand
    seconds: Floats  # [points], approximate time to read and grade an answer
    clusters: Labels | None = None  # [queries], groups of the questions; None = each is independent

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """All other scorers: first the judges of answers that people graded, then the computed ones."""
        asked, wrote = {one.scorer for one in self.people}, set(self.points["reader"])
        others = [one for one in self.scores if one not in self.people]
        order = {
            one: (one.scorer not in asked, one.name == COMPUTED, one.name in wrote, -self.count(one))
            for one in others
        }
        ranked = sorted(others, key=lambda one: (order[one], one))
        models = [one for one in ranked if one.name != COMPUTED and one.scorer in asked]
        alike = {one.scorer for one in models if [other.scorer for other in models].count(one.scorer) > 1}
        return (*ranked, *(Judge(scorer, PANEL) for scorer in sorted(alike)))

    def count(self, judge: Judge) -> int:
        """Return the number of answers that a judge scored."""
        return int(np.count_nonzero(~np.isnan(self.scores[judge])))

    def by_people(self) -> Floats:
        """Return the mean of people's scores [points, queries], by the scorer with most grades."""
        first = max(self.people, key=self.count).scorer
        return mean_of([self.scores[one] for one in self.people if one.scorer == first])

    def panel_of(self, scorer: str) -> list[Judge]:
        """Return the models that judge by a scorer."""
        return [one for one in self.judges if one.scorer == scorer and one.name not in (COMPUTED, PANEL)]

    def of(self, judge: Judge, least: float) -> Floats:
        """Return the scores of a judge, or a panel's probability that an answer is good [points, queries]."""
        if judge.name != PANEL:
            return self.scores[judge]
        weighed = panel(self, judge.scorer, least)
        some = np.stack([self.scores[one] for one in self.panel_of(judge.scorer)])
        likely = weighed.likely[:, 1].reshape(some.shape[1:])
        return np.where(np.isnan(some).all(axis=0), np.nan, likely)


def mean_of(some: Sequence[Floats]) -> Floats:
    """Average the known values, element by element."""
    stacked = np.stack(some)
    known = ~np.isnan(stacked)
    return np.asarray(
        np.divide(
            np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0),
            out=np.full(stacked.shape[1:], np.nan), where=known.any(axis=0),
        )
    )  # fmt: skip


def graded(snapshot: Snapshot, scope: Scope) -> GradedAnswers | None:
    """Read the scores of single answers of a workspace; None if nobody graded any by hand."""
    runs = runs_in(snapshot, scope)
    having = snapshot.sizes("answer_scores")["id"].to_list()
    ids = runs.filter(pl.col("run_id").is_in(having))["run_id"].to_list()
    single = snapshot.answer_scores(ids).filter(pl.col("query_id").is_not_null())
    if not single.filter(source=BY_PEOPLE).height:
        return None
    found = of_scores(single, runs.select("run_id", "name"), snapshot.answers(ids))
    return replace(found, clusters=groups(snapshot, scope).labels(found.queries))


def of_scores(single: pl.DataFrame, names: pl.DataFrame, answers: pl.DataFrame) -> GradedAnswers:
    """Arrange scores of single answers in arrays.

    Args:
        single: Rows of "answer_scores" that have a query.
        names: run_id and name of the stacks.
        answers: Rows of "answers", for their lengths.
    """
    rows = single.with_columns(
        share(), pl.col("mode").fill_null(TOP_K), pl.col("judge").fill_null(COMPUTED),
    ).filter(pl.col("value").is_not_null())  # fmt: skip
    people = rows.filter(source=BY_PEOPLE).select("scorer", "judge").unique().sort("scorer", "judge").rows()
    cells = rows.group_by(*POINT, "query_id", "scorer", "judge").agg(pl.col("value").mean())
    points = cells.select(POINT).unique().join(names, on="run_id", how="left").sort("name", *POINT[1:])
    points = points.with_columns(label(points.drop("name"))).with_row_index("point")
    queries = cells["query_id"].unique().sort()
    placed = cells.join(points.select("point", *POINT), on=POINT, nulls_equal=True).with_columns(
        query=pl.col("query_id").replace_strict(queries, np.arange(len(queries)), return_dtype=pl.Int64)
    )
    scores: dict[Judge, Floats] = {}
    for (scorer, judge), some in placed.group_by("scorer", "judge", maintain_order=False):
        table = np.full((points.height, len(queries)), np.nan)
        table[some["point"].to_numpy(), some["query"].to_numpy()] = some["value"].to_numpy()
        scores[Judge(str(scorer), str(judge))] = table
    return GradedAnswers(
        points, tuple(queries), dict(sorted(scores.items())), tuple(Judge(*one) for one in people),
        _seconds(points, answers),
    )  # fmt: skip


def _seconds(points: pl.DataFrame, answers: pl.DataFrame) -> Floats:
    long = answers.with_columns(pl.col("mode").fill_null(TOP_K)).group_by(POINT)
    letters = long.agg(letters=pl.col("text").str.len_chars().mean())
    found = points.join(letters, on=POINT, how="left", nulls_equal=True, maintain_order="left")["letters"]
    words = found.fill_null(0.0).to_numpy() / _LETTERS_A_WORD
    return np.asarray(_DECIDING_S + 60 * words / _WORDS_A_MINUTE)


def corrected_table(of: GradedAnswers, judge: Judge, least: float) -> pl.DataFrame:
    """Correct a judge's mean at every point with people's grades.

    Args:
        least: The minimum score 0..1 of a good answer, for the yes/no figures.

    Returns:
        POINT, name, label; judged_score, alone and corrected with its ends low and high (points 0..100; null
        below `FEW` grades), graded, queries, effective, moved; judge_bias (the judge's score minus people's,
        over the graded answers) with its ends; agree, sensitivity, specificity (shares, by `least`);
        by_errors with its ends (Rogan and Gladen, from the judge's errors on all other stacks); width,
        width_then (after `STEP` more grades), minutes (to make those), narrower (points of width per minute).
        The best first.
    """
    people, judged = of.by_people(), of.of(judge, least)
    rows = [
        _row(of, place, people, judged, least)
        for place in range(of.points.height)
        if not np.isnan(judged[place]).all() or not np.isnan(people[place]).all()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    named = of.points.join(table, on="point", maintain_order="right").drop("point")
    numbers = named.with_columns(pl.col(pl.Float64).fill_nan(None))
    order = pl.coalesce("corrected", "alone", "judged_score")
    return numbers.sort(pl.col("corrected").is_null(), -order, "name", "label", nulls_last=True)


def _row(of: GradedAnswers, place: int, people: Floats, judged: Floats, least: float) -> dict[str, Any]:
    own, said = people[place], judged[place]
    both = ~np.isnan(own) & ~np.isnan(said)
    told = correct(ScoredLabels(own, said, of.clusters))
    apart = said[both] - own[both]
    alike = None if of.clusters is None else of.clusters[both]
    few = both.sum() < 2
    bias = (np.array([np.nan]),) * 2 if few else mean_interval(100 * apart, "differences", clusters=alike)
    errors = _errors(own, said, least)
    others = np.arange(len(people)) != place
    by_errors = rogan_gladen(
        _good(said[~np.isnan(said)], least).astype(np.float64), _errors(people[others], judged[others], least)
    )
    enough, more = told.enough, max(min(STEP, told.questions - told.graded), 0)
    minutes = more * of.seconds[place] / 60
    then = 100 * told.width(more) if enough else np.nan
    width = 100 * told.width() if enough else np.nan
    return {
        "point": place,
        "judged_score": 100 * told.judged,
        "alone": 100 * told.alone,
        "alone_low": 100 * told.alone_low,
        "alone_high": 100 * told.alone_high,
        "corrected": 100 * told.value if enough else np.nan,
        "low": 100 * told.low,
        "high": 100 * told.high,
        "graded": told.graded,
        "units": told.units,
        "queries": told.questions,
        "effective": told.effective if enough else np.nan,
        "moved": 100 * told.moved if enough else np.nan,
        "judge_bias": float(100 * apart.mean()) if len(apart) else np.nan,
        "judge_bias_low": float(bias[0][0]),
        "judge_bias_high": float(bias[1][0]),
        "agree": _agree(own[both], said[both], least),
        "sensitivity": errors.sensitivity,
        "specificity": errors.specificity,
        **dict(
            zip(
                ("by_errors", "by_errors_low", "by_errors_high"),
                (100 * end for end in by_errors),
                strict=True,
            )
        ),
        "width": width,
        "width_then": then,
        "minutes": minutes,
        "narrower": (width - then) / minutes if more else np.nan,
    }


def _good(scores: Floats, least: float) -> Mask:
    return np.asarray(scores >= least)


def _agree(own: Floats, said: Floats, least: float) -> float:
    return float((_good(own, least) == _good(said, least)).mean()) if len(own) else np.nan


def _errors(people: Floats, judged: Floats, least: float) -> Errors:
    both = ~np.isnan(people) & ~np.isnan(judged)
    return Errors.of(_good(people[both], least), _good(judged[both], least))


def differences(
    of: GradedAnswers, judge: Judge, least: float, table: pl.DataFrame, baseline: int
) -> pl.DataFrame:
    """Correct the difference between every point and one of them.

    Args:
        table: From `corrected_table`.
        baseline: Its row to subtract.

    Returns:
        name, label; difference with its ends, judged_difference, alone_difference with its ends (points),
        graded (of the one with fewer), both (questions with both answers graded by people), effective
        and moved, in the order of the table; null below `FEW` grades.
    """
    people, judged = of.by_people(), of.of(judge, least)
    places = table.join(of.points.select("point", *POINT), on=POINT, nulls_equal=True, maintain_order="left")[
        "point"
    ]
    base = places[baseline]
    rows = []
    for row, place in enumerate(places):
        if row == baseline:
            continue
        own, other = (ScoredLabels(people[at], judged[at], of.clusters) for at in (place, base))
        told = correct(own, other)
        rows.append(
            {
                **dict(zip(("name", "label"), table.select("name", "label").row(row), strict=True)),
                **_difference(told),
                "both": int((~np.isnan(people[place]) & ~np.isnan(people[base])).sum()),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col(pl.Float64).fill_nan(None))


def _difference(told: Corrected) -> dict[str, float | int]:
    enough = told.enough
    return {
        "difference": 100 * told.value if enough else np.nan,
        "difference_low": 100 * told.low,
        "difference_high": 100 * told.high,
        "judged_difference": 100 * told.judged,
        "alone_difference": 100 * told.alone,
        "alone_difference_low": 100 * told.alone_low,
        "alone_difference_high": 100 * told.alone_high,
        "graded": told.graded,
        "effective": told.effective if enough else np.nan,
        "moved": 100 * told.moved if enough else np.nan,
    }


def favours(table: pl.DataFrame) -> tuple[str, str, float, float, float] | None:
    """Find the two stacks whose judge biases differ most.

    Args:
        table: From `corrected_table`.

    Returns:
        The favoured stack, the other one, by how many points, with the ends of an interval valid for the
        choice of the two (Bonferroni over all pairs); None below two points with enough grades.
    """
    rows = table.filter(
        pl.col("graded") >= FEW, pl.col("judge_bias_low").is_not_null(), pl.col("judge_bias").is_not_null()
    )
    if rows.height < 2:
        return None
    ordered = rows.sort("judge_bias")
    least, most = ordered.row(0, named=True), ordered.row(-1, named=True)
    pairs = rows.height * (rows.height - 1) / 2
    # Normal quantile that holds over all pairs, relative to the 1.96 of one interval
    wide = float(np.sqrt(2 * np.log(40 * pairs))) / 1.96 if pairs > 1 else 1.0
    spread = (
        float(np.hypot(*((one["judge_bias_high"] - one["judge_bias_low"]) / 2 for one in (least, most))))
        * wide
    )
    gap = most["judge_bias"] - least["judge_bias"]
    return (
        f"{most['label']} on {most['name']}",
        f"{least['label']} on {least['name']}",
        gap,
        gap - spread,
        gap + spread,
    )


def _votes(of: GradedAnswers, scorer: str, least: float) -> Ints:
    some = np.stack([of.scores[one].ravel() for one in of.panel_of(scorer)], axis=1)
    return np.where(np.isnan(some), -1, _good(some, least)).astype(np.int64)


def panel(of: GradedAnswers, scorer: str, least: float) -> JudgePanel:
    """Weight the models that judge by a scorer, from their verdicts on whether answers are good."""
    return dawid_skene(_votes(of, scorer, least), 2)


def panel_table(of: GradedAnswers, scorer: str, least: float) -> pl.DataFrame:
    """Compare every judge of a panel, the panel and the majority with people's grades.

    Returns:
        judge, answers, told (its weight; null for the panel and the majority), agree, sensitivity,
        specificity (shares, against people) and graded (answers scored by both).
    """
    votes, weighed = _votes(of, scorer, least), panel(of, scorer, least)
    judges = of.panel_of(scorer)
    columns = [*votes.T, np.where((votes >= 0).any(axis=1), weighed.said, -1), majority(votes, 2)]
    people = of.by_people().ravel()
    rows = []
    for name, weight, said in zip(
        [*(one.name for one in judges), "panel (Dawid–Skene)", "majority"],
        [*weighed.weight, np.nan, np.nan], columns, strict=True,
    ):  # fmt: skip
        both = ~np.isnan(people) & (said >= 0)
        errors = Errors.of(_good(people[both], least), said[both] == 1)
        agree = float((_good(people[both], least) == (said[both] == 1)).mean()) if both.any() else np.nan
        rows.append(
            (
                name,
                int((said >= 0).sum()),
                weight,
                agree,
                errors.sensitivity,
                errors.specificity,
                int(both.sum()),
            )
        )
    names = ("judge", "answers", "told", "agree", "sensitivity", "specificity", "graded")
    return pl.DataFrame(rows, schema=list(names), orient="row").with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )


def made_up(judge: Judge) -> bool:
    """Return whether a judge's scores are fake."""
    return judge.name == TRIAL
