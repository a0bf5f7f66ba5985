"""Readers' answers from the first k passages of a stack: their quality and usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote, unquote

import polars as pl

from core.analysis.workspace.scope import Answering, Quality
from core.answers import GRADE, SCORERS, TOP_K, share
from core.metrics import Measure
from core.metrics.rates import ACC_HIT, ANSWER, ANY
from core.prices import PriceBook
from core.prices.cost import DOLLARS
from core.readers.curves import correct, points
from core.stats.intervals import Alike, singly
from core.store import Snapshot
from core.tables import GENERATE, schema

_ASKED = ("reader", "scorer")
CORRECTNESS = "correctness"  # The scorer of judges who rate how correct an answer is
TRIAL = "fake"  # the reader, and the judge, that ship for trials: no evidence for a decision
_UNITS = ("input_tokens", "output_tokens")
_BY = ("run_id", "reader", "prompt", "temperature", "scorer", "judge")
_READ = ("run_id", "reader", "prompt", "temperature")
_SENT = ("run_id", "query_id", "reader", "prompt", "temperature", "k")
MADE_UP = f"all answers or their grades are by {TRIAL}, which makes them up"
_OWN = ("run_id", "query_id", "item")


def as_word(name: str) -> str:
    """Return a name as a parameter of a measure; `ANY` stays unchanged."""
    return quote(name, safe=" /:+@'!*~#&;$")


def as_name(word: str) -> str:
    """Return the name behind such a parameter; `ANY` stays unchanged."""
    return unquote(word)


def agreed(quality: Quality, answering: Answering) -> tuple[Quality, Answering]:
    """Make an answer-score quality and the divisor of costs refer to the same answers."""
    measure = quality.measure
    if measure is not None and measure.name == ACC_HIT.name and ANY not in (answering.scorer, ""):
        asked = dict(measure.params) | {"scorer": answering.scorer}
        return Quality(str(Measure(measure.name, None, tuple(asked.items()))), quality.k), answering
    if measure is None or measure.name != ANSWER.name:
        return quality, answering
    own = dict(measure.params)
    answering = replace(
        answering,
        reader=str(own.get("reader", answering.reader)),
        scorer=str(own.get("scorer", answering.scorer)),
    )
    wanted = answering.measure()
    if "people" in own:
        wanted = Measure(wanted.name, None, (*wanted.params, ("people", own["people"])))
    return Quality(str(wanted), quality.k), answering


def graded(snapshot: Snapshot, run_ids: Sequence[str], measure: Measure) -> pl.DataFrame:
    """Return the answers from the first passages that a measure refers to.

    Args:
        measure: One that needs answers; its reader and scorer count if it has such parameters.

    Returns:
        The columns of `Snapshot.graded_answers` for k from 1 on, and correct: the grade on a scale of 0 to 1,
        null if there is none. A scale is written "low-high"; a grade on any other isn't known to be good
        or bad. Answers and grades of `TRIAL` are left out.
    """
    asked = {name: str(value) for name in _ASKED if (value := measure.values.get(name, ANY)) != ANY}
    named = {name: as_name(word) for name, word in asked.items()}
    if measure.name == ACC_HIT.name and "scorer" not in named and _judged(snapshot, run_ids):
        named["scorer"] = CORRECTNESS
    rows = snapshot.graded_answers(run_ids, **named).filter(pl.col("k") >= 1, _real())
    return rows.with_columns(share("grade").alias("correct"))


def _real() -> pl.Expr:
    return pl.col("reader").ne_missing(TRIAL) & pl.col("judge").ne_missing(TRIAL)


def made_up(snapshot: Snapshot, run_ids: Sequence[str]) -> list[str]:
    """Return the runs whose answers, or answer grades, were all made by `TRIAL`."""
    rows = snapshot.answer_scores(run_ids).group_by("run_id").agg(_real().any().alias("real"))
    return rows.filter(~pl.col("real"))["run_id"].to_list()


def _judged(snapshot: Snapshot, run_ids: Sequence[str]) -> bool:
    """Return whether correctness was judged, and no import names another score as the grade."""
    single = snapshot.answer_scores(run_ids).filter(pl.col("query_id").is_not_null())
    return CORRECTNESS in single["scorer"] and GRADE not in single["source"]


def scored(snapshot: Snapshot, run_ids: Sequence[str], measure: Measure) -> pl.DataFrame:
    """Return the scores from the first passages that a measure refers to.

    They are scores of single answers, otherwise imported means.

    Returns:
        Rows of "answer_scores" with one reader, prompt, temperature, scorer and judge per run.
    """
    top = pl.col("mode").is_null() | (pl.col("mode") == TOP_K)
    rows = snapshot.answer_scores(run_ids).filter(top, pl.col("k") >= 1, _real())
    named = graded(snapshot, run_ids, measure).drop_nulls("correct").select(_BY).unique()
    single = rows.filter(pl.col("query_id").is_not_null())
    single = single.join(named, on=_BY, how="semi", nulls_equal=True)
    rest = rows.filter(pl.col("query_id").is_null()).join(named, on="run_id", how="anti")
    for name in _ASKED:
        if (word := measure.values.get(name, ANY)) != ANY:
            rest = rest.filter(pl.col(name) == as_name(str(word)))
    order = pl.col("scorer").replace_strict(list(SCORERS), range(len(SCORERS)), default=len(SCORERS))
    best = share().mean().over(_BY[1:]).fill_null(0)
    ranked = rest.with_columns(best.alias("best")).sort(order, -pl.col("best"), *_BY, nulls_last=True)
    usual = ranked.unique("run_id", keep="first", maintain_order=True).select(_BY)
    return pl.concat([single, rest.join(usual, on=_BY, how="semi", nulls_equal=True)])


def scored_too(
    snapshot: Snapshot, run_ids: Sequence[str], answering: Answering, scorer: str, k: int
) -> pl.DataFrame:
    """Return another scorer's scores for the very answers that count.

    Returns:
        run_id, query_id, reader and value (0..1) of the answers from the first k passages.
    """
    counted = graded(snapshot, run_ids, answering.measure(k)).select(_READ).unique()
    rows = counted.clear().with_columns(query_id=pl.lit("", pl.String), correct=pl.lit(0.0))
    for reader in counted["reader"].drop_nulls().unique().sort():
        asked = replace(answering, reader=as_word(reader), scorer=scorer).measure(k)
        own = graded(snapshot, run_ids, asked).filter(k=k).drop_nulls("correct")
        rows.extend(own.join(counted, on=_READ, how="semi", nulls_equal=True).select(rows.columns))
    return rows.select("run_id", "query_id", "reader", value="correct")


def means(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    measure: Measure,
    only: Collection[str] | None = None,
    alike: Alike = singly,
) -> pl.DataFrame:
    """Return the mean score 0..1 of a measure's answers, in the form of `shares`."""
    rows = _of(scored(snapshot, run_ids, measure), only)
    percent = _by_scorer(rows, partial(points, alike=alike))
    return percent.with_columns(pl.col("value", "low", "high") / 100)


def shares(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    answering: Answering,
    only: Collection[str] | None = None,
    alike: Alike = singly,
) -> pl.DataFrame:
    """Return the share of correct answers by run and k.

    Args:
        only: The queries that count; None = all.
        alike: As in `core.readers.curves.points`.

    Returns:
        Columns of `core.readers.curves.points` (value, low and high are shares) and scorer.
    """
    rows = _of(scored(snapshot, run_ids, answering.measure()), only)
    return _by_scorer(rows, lambda some, scorer: correct(some, scorer, answering.least, alike))


def _of(rows: pl.DataFrame, only: Collection[str] | None) -> pl.DataFrame:
    """Return the scores of some queries (None = all), and the means that belong to no query."""
    if only is None:
        return rows
    return rows.filter(pl.col("query_id").is_null() | pl.col("query_id").is_in(list(only)))


def _by_scorer(rows: pl.DataFrame, read: Callable[[pl.DataFrame, str], pl.DataFrame]) -> pl.DataFrame:
    parts = [
        read(rows, scorer).with_columns(scorer=pl.lit(scorer)) for scorer in rows["scorer"].unique().sort()
    ]
    return pl.concat(parts) if parts else read(rows, "").with_columns(scorer=pl.lit(None, pl.String))


def taken(snapshot: Snapshot, run_ids: Sequence[str], measure: Measure) -> pl.DataFrame:
    """Sum up the usage of a measure's answers, at its cutoff.

    An answer written by a custom pipeline used nothing beyond the pipeline, unless its stage says so.
    """
    wanted = graded(snapshot, run_ids, measure).filter(pl.col("k") == measure.k).select(_SENT)
    top = pl.col("mode").is_null() | (pl.col("mode") == TOP_K)
    every = snapshot.answers(run_ids).filter(top)
    rows = every.join(wanted, on=_SENT, how="semi", nulls_equal=True)
    used = rows.group_by("run_id", "query_id", "reader", maintain_order=True).agg(
        pl.col(*_UNITS, "ms", "usd").mean()
    )
    used = used.join(
        _answers_itself(snapshot, run_ids), on=["run_id", "reader"], how="left", maintain_order="left"
    )
    nothing = pl.when("itself").then(0.0)
    used = used.with_columns(pl.coalesce(name, nothing) for name in ("ms", "usd")).drop("itself")
    return used.join(_items(snapshot, every), on="run_id", how="left", maintain_order="left").with_columns(
        pl.coalesce("item", "reader")
    )


def _answers_itself(snapshot: Snapshot, run_ids: Sequence[str]) -> pl.DataFrame:
    """Return runs of custom pipelines, each as its own reader: run_id, reader, itself (true)."""
    runs = snapshot.runs().filter(pl.col("run_id").is_in(list(run_ids))).select("run_id", "spec")
    specs = [(run_id, json.loads(spec)) for run_id, spec in runs.iter_rows()]
    own = [(run_id, spec["name"], True) for run_id, spec in specs if spec.get("mode") == "own"]
    return pl.DataFrame(own, schema=schema("run_id reader itself:bool"), orient="row")


def _items(snapshot: Snapshot, answers: pl.DataFrame) -> pl.DataFrame:
    """Return each run's reader under its name in price books, if it has only one: run_id, item."""
    alone = answers.group_by("run_id").agg(pl.col("reader").n_unique()).filter(pl.col("reader") == 1)
    used = snapshot.usage(alone["run_id"].to_list()).filter(pl.col("stage") == GENERATE)
    items = used.group_by("run_id").agg(pl.col("item").unique())
    return items.filter(pl.col("item").list.len() == 1).select("run_id", pl.col("item").list.first())


def answer_usage(rows: pl.DataFrame, runs: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Return answers' usage as rows of table "usage": tokens if the book prices them, otherwise dollars."""
    sold = book.frame().filter(pl.col("unit").is_in(_UNITS)).group_by("item").agg(pl.col("unit").n_unique())
    priced = sold.filter(pl.col("unit") == len(_UNITS))["item"].to_list()
    counted = pl.all_horizontal(pl.col(_UNITS).is_not_null())
    by_token = (pl.col("item").is_in(priced) & counted).all().over("run_id")
    parts = [rows.filter(by_token).select(*_OWN, unit=pl.lit(unit), amount=pl.col(unit)) for unit in _UNITS]
    parts.append(rows.filter(~by_token).select(*_OWN, unit=pl.lit(DOLLARS), amount=pl.col("usd")))
    known = pl.concat(parts, how="vertical_relaxed")
    return (
        runs.select("run_id", "basis")
        .join(known, on="run_id", how="left", maintain_order="left")
        .select(
            "run_id",
            "query_id",
            pl.lit(GENERATE).alias("stage"),
            pl.col("item").fill_null("the answer"),
            pl.col("unit").fill_null(DOLLARS).alias("unit"),
            pl.col("amount").cast(pl.Float64),
            "basis",
        )
    )
