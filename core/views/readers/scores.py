"""Scores of readers: the curves that sections ask for, and all points as a table; those of RAGGED."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.readers import (
    WITH,
    WITHOUT,
    Answered,
    AnyAll,
    Rules,
    answered,
    curve_table,
    of_voice,
    slice_table,
)
from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.view import View
from core.answers import CLOSED_BOOK, TOP_K
from core.errors import InputError
from core.importers.formats.published.readers import RAGGED, published_readers
from core.paths import PUBLISHED
from core.prices import PriceBook
from core.readers.curves import CURVE, POINT, depths, gains, points
from core.store import Snapshot
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks, Table, Way
from core.views.words.made_up import folded, nothing

NO_CURVE = "No answer here says from how many passages it comes."
MADE_UP = "No real reader has run yet; the answers below are samples."
VOICES = "Judges: the mean of all of them; people's grades are never mixed with theirs."
SENT = cols.count("k")
CURVE_COLUMNS: cols.Columns = (
    "sent",
    SENT,
    cols.points("value", "score", "Points 0 to 100."),
    "low high queries",
)
POINTS = cols.Rows(
    "points",
    "label name",
    *CURVE_COLUMNS,
    cols.signed("gain", help="Points over the closed book, where a question has both.", digits=1),
    cols.count("tokens", "tokens sent", "Mean of the prompt, or of the passages where it is counted here."),
    cols.usd("usd_per_1k", "$ / 1k", "What the reader cost, per 1,000 questions."),
    more=("gain_low gain_high", cols.count("n", "scores", "With all passes."), "truncated counted"),
)
READING = "k_last: last gain anywhere"
"""How `rsc` reads k_last; `rsc_before_stop` reads it as the last k before the first gain below epsilon."""
_SPAN = ("low", "high", "n")
_ITS = {"flanT5": "FlanT5", "flanUl2": "FlanUL2", "llama_7b": "LLAMA 2 7B", "llama_70b": "LLAMA 2 70B"}
"""The paper's names of the readers in the tool's results."""
_GAIN = {"gain": "closed_book_gain", "gain_low": "closed_book_gain_low", "gain_high": "closed_book_gain_high"}
_PARTS = {WITH: "with_gold", WITHOUT: "without_gold"}
_FIGURES = (
    *("k_star", "best", "rss", "rss_fewer", "rss_more", "rss_reason", "rsc", "rsc_before_stop"),
    *("shape", "wanted"),
)
_BY = ("dataset", "retriever", "reader")
_PRINTED = {
    "optimal_k": "k_star",
    "f1_gain_at_best_k": "closed_book_gain",
    "f1_gain_mean_over_k": "gain_mean",
    "f1_difference_at_best_k": "over_bm25",
    "f1_difference_mean_over_k": "over_bm25_mean",
}


@cached("Reading the answers…", entries=8)
def found_in(view: View) -> Answered:
    """Return the scored answers of a workspace."""
    return data.answered(view.snapshot, view.scope, view.book)


@cached("Scoring the answers…", entries=16)
def curves(view: View, scorer: str, voice: str) -> pl.DataFrame:
    """Return the curves of a scorer, by one of `core.analysis.readers.voices`, with the tokens sent."""
    answers = data.of_voice(found_in(view), scorer, voice)
    return data.with_sent(data.curve_table(answers, scorer), view.snapshot, answers, view.book)


class Curves(NamedTuple):
    """The curves of a scorer, as requested."""

    scorer: str
    voice: str  # whose scores, one of `data.voices`
    rules: Rules
    rows: pl.DataFrame  # from `curves`
    depths: pl.DataFrame  # from `data.depth_table`


def read(view: View, ask: Ask, *, ruled: bool = True) -> Generator[Block, None, Curves | None]:
    """Ask for a score, and the rules for reading its curves; if there is none, yield what is missing."""
    answered = found_in(view)
    if not answered.scorers:
        yield from nothing(view)
        return None
    scorer = ask.listed("Score", answered.scorers, "scorer")
    voices = data.voices(answered, scorer)
    voice = ask.listed("Scored by", voices, "voice", about=VOICES) if len(voices) > 1 else ""
    rows = curves(view, scorer, voice)
    if set(rows["reader"]) == {TRIAL}:
        yield from folded(view, MADE_UP, Table(rows, POINTS))
        return None
    rules = ask_rules(ask) if ruled else Rules()
    depths = data.depth_table(rows, rules)
    if depths.is_empty():
        yield from no_curve(NO_CURVE)
        yield Table(rows, POINTS.named("answers"))
        return None
    return Curves(scorer, voice, rules, rows, depths)


def made_up(readers: Iterable[str | None]) -> dict[str, str]:
    """Return a chip that says so if some answers come from the fake reader."""
    said = f"The reader {TRIAL} repeats a sentence: its answers count in no decision."
    return {"made up": said} if TRIAL in set(readers) else {}


def ask_rules(ask: Ask) -> Rules:
    """Ask for the rules behind k*, RSS, RSC and the shape."""
    delta, gain, flat = Rules()
    with ask.aside("Rules"):
        near = ask.number("Neighbours of k* within ±", "near", float(delta), 1.0, 100.0)
        least = ask.number("Smallest gain (points)", "eps", float(gain), 0.0, 10.0, step=0.1)
        level = ask.number("Plateau: share of the best", "flat", float(flat), 0.5, 1.0, step=0.01)
    return Rules(round(near or delta), gain if least is None else least, level or flat)


def no_curve(why: str) -> Blocks:
    """Yield why there are no curves by k, and a link to the section for answers of any number of passages."""
    yield Answer(why)
    yield Way("readers", "Generators side by side", "generators")


def scored(
    snapshot: Snapshot, scope: Scope, book: PriceBook, *, scorer: str | None = None, need: AnyAll = "any"
) -> pl.DataFrame:
    """Score the readers of a workspace at every k.

    Args:
        scorer: Whose scores; None = the workspace's usual scorer.
        need: Whether a slice's questions have "any" gold passage in Top(k), or "all" of theirs.

    Returns:
        A row per point: its reader, score, low and high (points), n, queries, the figures of its curve, with
        the reading of rsc, closed_book_gain, the scores with and without gold in Top(k), each with low, high
        and n, truncated, tokens, usd_per_1k; null if unknown. Empty if no answer is scored.

    Raises:
        InputError: If nobody scored by that scorer.
    """
    readers = answered(snapshot, scope, book)
    if not readers.scorers:
        return pl.DataFrame()
    scorer = scorer or readers.scorers[0]
    if scorer not in readers.scorers:
        raise InputError(
            f"No answer is scored by {scorer!r}.", do=f"Scorers here: {', '.join(readers.scorers)}."
        )
    readers = of_voice(readers, scorer)
    rows = with_depths(curve_table(readers, scorer))
    rows = rows.join(_sliced(snapshot, scope, readers, scorer, need), on=POINT, how="left", nulls_equal=True)
    return rows.select(
        *("run_id", "name", *CURVE[1:], "mode", "k", pl.lit(scorer).alias("scorer")),
        *(pl.col("value").alias("score"), *_SPAN, "queries", *_FIGURES, "rsc_reading"),
        *(pl.col(old).alias(new) for old, new in _GAIN.items()),
        *(f"{part}_{name}" for part in _PARTS.values() for name in ("score", *_SPAN)),
        *("truncated", "tokens", "usd_per_1k"),
    )


def with_depths(curve_points: pl.DataFrame) -> pl.DataFrame:
    """Add the figures of its curve to every point, and to its closed book."""
    modes = pl.DataFrame({"mode": [TOP_K, CLOSED_BOOK]})
    figures = depths(curve_points).select(*CURVE, *_FIGURES, rsc_reading=pl.lit(READING))
    on = [*CURVE, "mode"]
    return curve_points.join(
        figures.join(modes, how="cross"), on=on, how="left", nulls_equal=True, maintain_order="left"
    )


def _sliced(snapshot: Snapshot, scope: Scope, answers: Answered, scorer: str, need: AnyAll) -> pl.DataFrame:
    rows = pl.concat(
        slice_table(snapshot, scope, answers, scorer=scorer, run_id=run_id, need=need)
        for run_id in answers.runs["run_id"]
    ).filter(pl.col("mode") == "top_k")
    points = rows.select(POINT).unique()
    for part, name in _PARTS.items():
        ends = (
            pl.col(old).alias(f"{name}_{new}")
            for old, new in zip(("value", *_SPAN), ("score", *_SPAN), strict=True)
        )
        points = points.join(
            rows.filter(part=part).select(*POINT, *ends), on=POINT, how="left", nulls_equal=True
        )
    return points


def published() -> pl.DataFrame:
    """Return for RAGGED's readers the figures printed in its tables, and those derived from its scores.

    Returns:
        A row per data set, retriever, reader and scorer: k_star, closed_book_gain (points, at k*), gain_mean
        (of all k), better_than_closed_book, over_bm25 and over_bm25_mean, recall_at_k_star (percent of gold
        paragraphs) and the figures of the curve; null if a figure is neither printed nor derivable.
    """
    tables = pl.read_csv(PUBLISHED / "ragged_tables.csv", infer_schema=False)
    recall = (
        tables.filter(pl.col("measure").str.starts_with("recall_passage@"))
        .with_columns(k_star=pl.col("measure").str.split("@").list.last().cast(pl.Float64))
        .select("dataset", "retriever", "k_star", pl.col("value").cast(pl.Float64).alias("recall_at_k_star"))
    )
    rows = pl.concat([_computed(), _printed(tables)], how="diagonal")
    return rows.join(
        recall, on=["dataset", "retriever", "k_star"], how="left", maintain_order="left"
    ).with_columns(pl.col("k_star").cast(pl.Int32))


def _printed(tables: pl.DataFrame) -> pl.DataFrame:
    """Return the paper's Tables 1, 4, 5, 7 and 8, by F1."""
    names = {**_PRINTED, "better_than_closed_book": "better_than_closed_book"}
    own = tables.filter(pl.col("measure").is_in(list(names)), pl.col("dataset") != "average")
    own = own.with_columns(pl.col("retriever").str.split(" - ").list.first())
    wide = own.with_columns(pl.col("measure").replace_strict(names)).pivot(
        "measure", index=list(_BY), values="value"
    )
    return wide.with_columns(
        *(pl.col(name).cast(pl.Float64) for name in _PRINTED.values()),
        scorer=pl.lit("f1"),
        source=pl.lit("RAGGED, Tables 1, 4, 5, 7, 8 and 9"),
    ).sort(_BY)


def _computed() -> pl.DataFrame:
    """Compute the figures that follow from the scores by k published with the tool, by exact match."""
    scores = published_readers().frames["answer_scores"].lazy().collect()
    own = scores.filter(pl.col("run_id").str.starts_with(f"{RAGGED}-"))
    curves = with_depths(points(own, "exact_match"))
    gained = gains(own, "exact_match").select(*POINT, pl.col("value").alias("closed_book_gain"))
    best = curves.filter(pl.col("mode") == "top_k", pl.col("k") == pl.col("k_star"))
    return best.join(gained, on=POINT, nulls_equal=True, maintain_order="left").select(
        pl.lit("nq").alias("dataset"),
        pl.col("run_id").str.strip_prefix(f"{RAGGED}-").alias("retriever"),
        pl.col("reader").replace(_ITS),
        pl.lit("exact_match").alias("scorer"),
        pl.col("k_star").cast(pl.Float64),
        *(name for name in _FIGURES if name not in ("k_star", "wanted")),
        "rsc_reading",
        "closed_book_gain",
        pl.lit("computed from the results published with the tool").alias("source"),
    )
