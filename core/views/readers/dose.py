"""Page Readers: how much one more harmful passage takes from an answer, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.telling import answers_of_rankings
from core.analysis.workspace.view import View
from core.answers import CLOSED_BOOK, TOP_K, share
from core.decide.axes import HARM
from core.number_format import PER_1K, CostUnit
from core.readers.curves import CURVE
from core.readers.dose import (
    HARMFUL,
    MOST,
    WHOLE,
    bearable,
    composed,
    effects,
    price,
    response,
    sent_passages,
)
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.readers import joint
from core.views.readers.charts import points
from core.views.readers.reading import MADE_UP, made_up
from core.views.words.made_up import folded

NOTHING = "No answers here come from rankings with grades."
TO_DOSE = (
    'Have a reader answer with `modes = ["gold", "harm_after", "harm_before"]` and `k = [1, 2, 5]`: all gold '
    "passages, then k of the candidates of grade 1 or 2 beside them. Answers from several k tell it too."
)
HOW = (
    f"Harmful: grade 1 to {HARMFUL}. Answers to one question by one reader from several contexts are held "
    "against one another: least squares of the score on the number of harmful passages, whether a gold one "
    "is there, further gold ones and all others, with an intercept per question and stack. 95 % bootstrap "
    "over questions. Only modes harm_after and harm_before change nothing else; from other answers it is an "
    "association, as what else comes with a larger k is not all counted."
)
ABOUT_LOSS = (
    "Points of the score that harmful passages may take together. The cap goes by the interval's end."
)
LOSSES = {
    "label": pl.String(),
    "of": pl.String(),
    **dict.fromkeys(("value", "low", "high", "right", "right_low", "right_high"), pl.Float64()),
    **dict.fromkeys(("queries", "answers"), pl.Int64()),
}
_ANSWERS = cols.count("answers")
SHOWN = cols.Rows(
    "losses",
    "label",
    cols.text("of", "harmful passages"),
    cols.signed("value", "points per passage", "What one more takes (−) or adds.", digits=1),
    "low high",
    cols.signed("right", "correct, per passage", "Percent of answers that are correct.", digits=1),
    "queries",
    _ANSWERS,
    more="right_low right_high",
    ends="95 % bootstrap interval over questions.",
)
DOSES = cols.Rows(
    "dose",
    cols.count("harm", "harmful", f"Passages sent; {MOST} = so many or more."),
    cols.signed("value", "points against none", "All else equal.", digits=1),
    "low high",
    _ANSWERS,
    ends="95 % bootstrap interval over questions.",
)


@cached("Rebuilding what readers were sent…", entries=16)
def contexts(view: View, scorer: str) -> pl.DataFrame:
    """Return scored answers with the contents of their contexts.

    Returns:
        run_id, name, reader, label, group, query_id, mode, k, value (points), right (0 or 100) and the counts
        of `core.readers.dose.composed`.
    """
    found = data.answered(view.snapshot, view.scope, view.book)
    golden, least = view.scope.golden_set_id, view.scope.answering.least
    rows = found.scores.filter(
        pl.col("scorer") == scorer, pl.col("query_id").is_not_null(), pl.col("mode") != CLOSED_BOOK
    ).with_columns(share().alias("share"))
    rows = (
        rows.filter(pl.col("share").is_not_null())
        .group_by(*CURVE, "mode", "k", "query_id")
        .agg(value=100 * pl.col("share").mean(), right=100.0 * (pl.col("share").mean() >= least - 1e-9))
    )
    parts = []
    ranked = found.runs.filter("has_rankings")["run_id"].to_list() if golden else []
    for run_id in ranked:
        asked = rows.filter(pl.col("run_id") == run_id)
        if asked.height:
            parts.append(
                asked.join(
                    _held(view, run_id, str(golden), asked), on=["query_id", "mode", "k"], nulls_equal=True
                )
            )
    if not parts:
        return pl.DataFrame()
    every = pl.concat(parts).join(found.runs.select("run_id", "name"), on="run_id")
    return every.with_columns(data.label_of(every), group=pl.struct(*CURVE, "query_id").rank("dense"))


def _held(view: View, run_id: str, golden: str, asked: pl.DataFrame) -> pl.DataFrame:
    """Return the contents of one run's answer contexts, by query_id, mode and k."""
    ranked = view.snapshot.rankings([run_id], stage="final")
    pool = view.snapshot.rankings([run_id], stage="pool")
    grades = view.snapshot.within(view.snapshot.judging([run_id], golden)[run_id])
    judged = set(grades["query_id"])
    wanted = asked.select("query_id", "mode", "k").filter(pl.col("query_id").is_in(list(judged)))
    of = ("query_id", "rank", "passage_id")
    sent = sent_passages(wanted, ranked.select(of), grades, (ranked if pool.is_empty() else pool).select(of))
    context = pl.struct("mode", "k").alias("context")
    counted = composed(sent.with_columns(context))
    return counted.unnest("context")


@cached("Estimating what a harmful passage does…", entries=16)
def losses(view: View, scorer: str) -> pl.DataFrame:
    """Return the loss from one more harmful passage, by reader, place and grade.

    Returns:
        label, of (which passages), value, low, high (points, negative = lost), right, right_low, right_high
        (share of answers that are correct, points), queries, answers; the row over all passages first.
    """
    rows, alike = contexts(view, scorer), groups(view.snapshot, view.scope).labels
    made: list[dict[str, Any]] = []
    for (label,), part in rows.group_by("label", maintain_order=True) if rows.height else ():
        rights = effects(part.with_columns(value="right"), view.seed, alike)
        for effect, right in zip(effects(part, view.seed, alike), rights, strict=True):
            named = {
                "label": label,
                "of": effect.kind,
                **dict(zip(("value", "low", "high"), effect[1:4], strict=True)),
            }
            ends = {"right": right.value, "right_low": right.low, "right_high": right.high}
            made.append({**named, **ends, "queries": effect.queries, "answers": effect.answers})
    return pl.DataFrame(made, schema=LOSSES)


@section(
    "dose of distractors",
    "What does one more harmful passage take from the answer, and what does it cost?",
    answers_of_rankings,
)
def dose_of_distractors(view: View, ask: Ask) -> Blocks:
    """Yield the loss per harmful passage, the cap that follows from it, and its price."""
    scorers = data.answered(view.snapshot, view.scope, view.book).scorers
    scorer = ask.listed("Score", scorers, "scorer") if scorers else ""
    table = losses(view, scorer) if scorers else pl.DataFrame(schema=LOSSES)
    whole = table.filter(pl.col("of") == WHOLE, pl.col("value").is_not_null())
    if whole.is_empty():
        yield Answer(NOTHING)
        yield Text(TO_DOSE, "guide")
        yield Way("run", "Run", "readers")
        return
    label = ask.listed("Reader", whole["label"].to_list(), "reader")
    asked = contexts(view, scorer).filter(pl.col("label") == label)
    if set(asked["reader"]) == {TRIAL}:
        yield from folded(view, MADE_UP, Table(table, SHOWN))
        return
    tolerance = (
        ask.number("Acceptable loss (points)", "bear", 2.0, 0.0, 100.0, step=0.5, about=ABOUT_LOSS) or 0.0
    )
    row = whole.row(by_predicate=pl.col("label") == label, named=True)
    yield Answer(answer(row, scorer), caveats={"how to read": HOW, **made_up(asked["reader"])})
    priced = prices(view, row, asked)
    yield Cards(cards(row, tolerance, priced, text.cost_unit(view.table)))
    rows = response(asked, view.seed, groups(view.snapshot, view.scope).labels)
    yield Chart(
        chart(rows),
        "dose",
        answer(row, scorer),
        f"{MOST} stands for {MOST} or more." if rows["harm"].to_list()[-1] == MOST else "",
    )
    yield Table(table, SHOWN)
    yield Fold("The score at every dose", [Table(rows, DOSES)])
    yield Way("decision", "Limit harm", settings=_limit(row, tolerance, view.quality.k))


def _limit(row: Mapping[str, Any], tolerance: float, k: int) -> dict[str, str]:
    """Return the harm cap that keeps the loss tolerable, as a share of the first k."""
    cap = bearable(-row["low"], tolerance)
    return {} if cap is None or cap >= k else {HARM.limit: f"{cap / k:g}"}


def answer(row: Mapping[str, Any], scorer: str) -> str:
    """Describe the effect of one more harmful passage."""
    low, high = row["low"], row["high"]
    ends = f"{points(low, high)} ({text.sample(row['queries'])})"
    if low <= 0 <= high:
        by = text.signed(row["value"], points)
        return f"One more harmful passage does not measurably change {scorer}: {by}{ends}."
    does = "takes" if high < 0 else "adds"
    return f"One more harmful passage {does} {points(abs(row['value']))} points of {scorer}{ends}."


def prices(view: View, row: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any] | None:
    """Return the cost of a correct answer, and its increase with one more harmful passage; None = unknown."""
    asked = rows.filter(pl.col("mode") == TOP_K)
    if asked.is_empty() or row["right"] is None:
        return None
    own = _with_answers(view, asked)
    if own.is_empty():
        return None
    best = own.sort("usd_per_1k_correct", "k").row(0, named=True)
    whole, correct = best["usd_per_1k_correct"], best["correct"]
    ends = ("right", "right_high", "right_low")  # the larger the loss, the higher the price
    more, least, most = (None if row[end] is None else price(whole, correct, -row[end] / 100) for end in ends)
    told = {"more": more, "least": least, "most": most, "whole": whole, "k": best["k"]}
    return None if more is None else told


def _with_answers(view: View, asked: pl.DataFrame) -> pl.DataFrame:
    """Return k, correct (share) and usd_per_1k_correct of the runs that a reader answered from."""
    table = joint.joint_table(view.snapshot, view.scope, view.quality, view.book)
    if table.is_empty():
        return table
    of_it = pl.col("run_id").is_in(asked["run_id"].to_list()), pl.col("reader").eq_missing(asked["reader"][0])
    return table.filter(*of_it).drop_nulls("usd_per_1k_correct")


def cards(
    row: Mapping[str, Any], tolerance: float, priced: Mapping[str, Any] | None, said: CostUnit = PER_1K
) -> list[tuple[str, str, str]]:
    """Return loss, cap and price; `said`: the page's cost unit."""
    cap = bearable(-row["low"], tolerance)
    capped = "no cap" if cap is None else text.count(cap, "passage")
    worst = "no loss within the interval" if cap is None else f"at most {points(-row['low'])} points each"
    dollars, about = _priced(priced, said)
    return [
        (
            "Per harmful passage",
            f"{text.signed(row['value'], points)} points",
            f"{points(row['low'], row['high']).strip()}, {text.sample(row['queries'])}",
        ),
        (f"Cap for {tolerance:g} points", capped, worst),
        ("Cost of one more", dollars, about),
    ]


def _priced(priced: Mapping[str, Any] | None, said: CostUnit) -> tuple[str, str]:
    """Format the extra cost, and its base; takes `prices`, in dollars per 1,000 correct answers."""
    if priced is None:
        return "unknown", "what answers cost is not known"
    named = ("more", "least", "most", "whole")
    dollars = dict(zip(named, said.apart(*(priced[name] or 0.0 for name in named)), strict=True))
    ends = "" if priced["least"] is None or priced["most"] is None else "{least} to {most} ".format(**dollars)
    about = f"{ends}per {said.many} correct answers, which cost {dollars['whole']} at k = {priced['k']}"
    return dollars["more"], about


def chart(rows: pl.DataFrame) -> go.Figure:
    """Draw the change of the score by harmful passages, with its interval."""
    known = rows.drop_nulls("value")
    hover = [
        f"{row['harm']} harmful: {text.signed(row['value'], points)} points"
        f"{points(row['low'], row['high'])}, {text.count(row['answers'], 'answer')}"
        for row in known.iter_rows(named=True)
    ]
    colour = theme.OKABE_ITO[0]
    bars = theme.whiskers(*(known[end].to_numpy() for end in ("low", "value", "high")), color=colour)
    x, y = known["harm"].to_numpy(), known["value"].to_numpy()
    look = {"mode": "lines+markers", "marker": {"color": colour, "size": 8}, "line": {"color": colour}}
    trace = theme.scatter("change of the score", x, y, hover=hover, error_y=bars, **look)
    figure = theme.figure(
        [trace], x="harmful passages sent", y="points against none", height=340, legend=False
    )
    return figure.update_xaxes(dtick=1)  # passages are integers
