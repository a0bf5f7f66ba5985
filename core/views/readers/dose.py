"""Page Readers: dollars per correct answer by passages sent, and the price of harmful passages.

The latter: how much one more takes from an answer, and what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.workspace.answers import TRIAL, means, shares
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.costs import costs
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import evidence, mean
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import answers_of_rankings
from core.analysis.workspace.view import View
from core.answers import CLOSED_BOOK, TOP_K, share
from core.decide.axes import HARM
from core.number_format import PER_1K, CostUnit
from core.prices import PriceBook
from core.readers.curves import CURVE, per_correct
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
from core.store import Snapshot
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.legend import labels_of
from core.views.readers.charts import by_passages, points
from core.views.readers.scores import MADE_UP, made_up
from core.views.words.made_up import folded

_ONE = ("run_id", "k")
_BARS = {"correct": ("correct_low", "correct_high"), "usd_per_1k_correct": ("usd_low", "usd_high")}
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


def joint_table(snapshot: Snapshot, scope: Scope, quality: Quality, book: PriceBook) -> pl.DataFrame:
    """Compute the cost of a correct answer on every stack, by the number of passages sent.

    Args:
        scope: The workspace; its answering says whose answers count, and which score makes one correct.
        quality: The measure of retrieval, taken at every k.

    Returns:
        run_id, name, reader, scorer, k, retrieval, score (both 0..1), correct (share) with correct_low and
        correct_high, n, usd_per_1k (queries with their answers), missing (the unknown parts), and
        usd_per_1k_correct with its ends from the interval of the share; sorted by name and k.
    """
    runs = runs_in(snapshot, scope)
    ids, only = runs["run_id"].to_list(), among(snapshot, scope)
    alike = groups(snapshot, scope).labels
    right = shares(snapshot, ids, scope.answering, only, alike)
    ks = right["k"].unique().sort().to_list()
    asked = replace(scope, answering=replace(scope.answering, per="answered query"))
    billed = [
        costs(snapshot, runs, book, (asked, k)).select(
            "run_id", pl.lit(k, pl.Int32).alias("k"), pl.col("cost") / 1000, missing="cost_missing"
        )
        for k in ks
    ]
    spent = pl.concat(billed) if billed else pl.DataFrame(schema={"run_id": pl.String, "k": pl.Int32})
    if spent.is_empty():
        return pl.DataFrame()
    scored = means(snapshot, ids, scope.answering.measure(), only).select(*_ONE, score="value")
    return (
        per_correct(right, spent.select(*_ONE, usd="cost"))
        .join(spent.select(*_ONE, "missing"), on=_ONE, how="left")
        .join(scored, on=_ONE, how="left")
        .join(_retrieval(snapshot, scope, quality, ks), on=_ONE, how="left")
        .join(runs.select("run_id", "name"), on="run_id")
        .select(
            "run_id", "name", "reader", "scorer", "k", "retrieval", "score", pl.col("value").alias("correct"),
            pl.col("low").alias("correct_low"), pl.col("high").alias("correct_high"), n="queries",
            usd_per_1k=1000 * pl.col("usd"), missing="missing",
            usd_per_1k_correct=1000 * pl.col("usd_per_correct"),
            usd_low=1000 * pl.col("usd_low"), usd_high=1000 * pl.col("usd_high"),
        )
        .sort("name", "k")
    )  # fmt: skip


def retrieval_of(quality: Quality) -> Quality:
    """Return the measure of retrieval: the limits' measure, unless it measures answers."""
    measure = quality.measure
    answers = measure is not None and "answers" in measure.info.needs
    return Quality("RA-nWG", quality.k) if answers else quality


def _retrieval(snapshot: Snapshot, scope: Scope, quality: Quality, ks: list[int]) -> pl.DataFrame:
    """Return the mean of a retrieval measure at every k: run_id, k, retrieval; empty without rankings."""
    ranked = runs_in(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    measure, golden = retrieval_of(quality).measure, scope.golden_set_id
    nothing = pl.DataFrame(schema={"run_id": pl.String, "k": pl.Int32, "retrieval": pl.Float64})
    if measure is None or golden is None or not ranked or not ks:
        return nothing
    graded = evidence(snapshot, ranked, golden, [measure], only=among(snapshot, scope))
    values = graded.score([measure], depth=max(ks))[measure]
    parts = [
        pl.DataFrame({"run_id": graded.run_ids, "retrieval": mean(values[..., k - 1])[0]}).with_columns(
            pl.lit(k, pl.Int32).alias("k"), pl.col("retrieval").fill_nan(None)
        )
        for k in ks
    ]
    return pl.concat(parts).select(nothing.columns)


def best_rows(table: pl.DataFrame, target: float | None = None) -> pl.DataFrame:
    """Return the k at which a correct answer costs least, a row per stack, the cheapest first.

    Args:
        table: From `joint_table`.
        target: The share of correct answers, or the score, that k_target must reach; None = none.

    Returns:
        The row of that k (of the largest share if no cost is known), with k_target: the smallest k whose
        score reaches the target.
    """
    if table.is_empty():
        return table
    share = pl.when(pl.col("usd_per_1k_correct").is_null()).then(-pl.col("correct"))
    best = table.sort("usd_per_1k_correct", share, "k", nulls_last=True).unique("run_id", maintain_order=True)
    reached = table.filter(pl.col("score") >= (np.inf if target is None else target - 1e-9))
    met = reached.group_by("run_id").agg(k_target=pl.min("k"))
    return best.join(met, on="run_id", how="left").sort(
        "usd_per_1k_correct", "correct", "name", descending=[False, True, False], nulls_last=True
    )


def dollars_answer(rows: pl.DataFrame, said: CostUnit = PER_1K) -> tuple[str, str]:
    """Say how many passages to send, then to which reader; takes `best_rows`, and the page's cost unit."""
    best = rows.row(0, named=True)
    who = best["reader"] or "a reader unnamed"
    if best["usd_per_1k_correct"] is None:
        why = best["missing"] or "no answer is correct"
        right = text.percent(best["correct"])
        return (
            f"{who} is right most often at k = {best['k']} on {best['name']}: {right}.",
            f"What a correct answer costs is unknown: {why}.",
        )
    return (
        f"Send {text.count(best['k'], 'passage')}: {_counted(said)} correct answers cost least, "
        f"{said.bare(best['usd_per_1k_correct'])}.",
        f"By {who} on {best['name']}.",
    )


def _counted(said: CostUnit) -> str:
    return "a million" if said.million else said.many


def dollars_cards(
    best: Mapping[str, Any], target: float, said: CostUnit = PER_1K
) -> tuple[tuple[str, str, str], ...]:
    """Return the numbers of the cheapest stack at its k; `said`: the page's cost unit."""
    low, high = (text.percent(best[f"correct_{end}"]) for end in ("low", "high"))
    share = "" if best["correct_low"] is None else f"{low} to {high} · "
    costs = said.apart(*(best[name] for name in ("usd_low", "usd_per_1k_correct", "usd_high", "usd_per_1k")))
    least, correct, most, answered = costs
    known = best["usd_low"] is not None and best["usd_high"] is not None
    ends = f"{least} to {most}, from the share's interval" if known else ""
    met = "–" if best["k_target"] is None else f"k = {best['k_target']}"
    return (
        (f"$ per {said.many} correct", correct, ends),
        ("Correct", text.percent(best["correct"]), f"{share}{text.sample(best['n'])}"),
        (f"$ per {said.many} answered", answered, best["missing"] or "retrieval and reader"),
        (
            f"For a score of {target:g}",
            met,
            "none reaches it" if met == "–" else "the smallest that reaches it",
        ),
    )


def joint_chart(
    table: pl.DataFrame, colours: Mapping[str, str], quality: Quality, said: CostUnit = PER_1K
) -> go.Figure:
    """Draw the retrieval score, the share correct and the cost of a correct answer, by passages sent.

    Args:
        said: The page's cost unit.
    """
    dollars = ("usd_per_1k_correct", "usd_low", "usd_high")
    table = table.with_columns(pl.col(name) * said.factor for name in dollars)
    fields = {
        "retrieval": f"{retrieval_of(quality).bare} at k",
        "correct": "correct answers",
        "usd_per_1k_correct": f"$ per {said.many} correct",
    }
    there = {name: title for name, title in fields.items() if table[name].count()}
    panels, labels = theme.Panels(list(there.values()), x="passages sent, k", height=300), labels_of(colours)
    for place, field in enumerate(there):
        for name, colour in colours.items():
            rows = table.filter((pl.col("name") == name) & pl.col(field).is_not_null())
            if rows.height:
                panels.add(place, _line(rows, field, labels[name], colour), text.escape(name))
    return by_passages(panels.figure, table["k"]).update_yaxes(exponentformat="none")


def _line(rows: pl.DataFrame, field: str, said: str, colour: str) -> theme.Spec:
    written = text.usd if field.startswith("usd") else text.score
    hover = [f"{said}<br>k = {k}: {written(value)}" for k, value in rows.select("k", field).iter_rows()]
    cheapest = rows["usd_per_1k_correct"].arg_min()
    line = theme.scatter(
        said, rows["k"].to_list(), rows[field].to_list(), hover=hover, mode="lines+markers",
        line={"color": colour}, marker={"size": [11 if at == cheapest else 6 for at in range(rows.height)]},
    )  # fmt: skip
    if field in _BARS:
        low, high = (rows[end].to_numpy() for end in _BARS[field])
        line["error_y"] = theme.whiskers(
            low, rows[field].to_numpy(), high, thickness=1, width=3, color=colour
        )
    return line


def counted(rows: pl.DataFrame, least: float) -> str:
    """Say whose answers count and what correct means; takes `best_rows`."""
    readers = ", ".join(sorted({str(name or "unnamed") for name in rows["reader"]}))
    scorers = ", ".join(sorted(set(rows["scorer"])))
    return (
        f"Answers of {readers}, scored by {scorers}; correct from {least:g} of 1 on. Reader, score and "
        "threshold are chosen in Settings; the interval is that of the share, the cost being taken as known."
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
    yield Answer(harm_answer(row, scorer), caveats={"how to read": HOW, **made_up(asked["reader"])})
    priced = prices(view, row, asked)
    yield Cards(cards(row, tolerance, priced, text.cost_unit(view.table)))
    rows = response(asked, view.seed, groups(view.snapshot, view.scope).labels)
    yield Chart(
        chart(rows),
        "dose",
        harm_answer(row, scorer),
        f"{MOST} stands for {MOST} or more." if rows["harm"].to_list()[-1] == MOST else "",
    )
    yield Table(table, SHOWN)
    yield Fold("The score at every dose", [Table(rows, DOSES)])
    yield Way("decision", "Limit harm", settings=_limit(row, tolerance, view.quality.k))


def _limit(row: Mapping[str, Any], tolerance: float, k: int) -> dict[str, str]:
    """Return the harm cap that keeps the loss tolerable, as a share of the first k."""
    cap = bearable(-row["low"], tolerance)
    return {} if cap is None or cap >= k else {HARM.limit: f"{cap / k:g}"}


def harm_answer(row: Mapping[str, Any], scorer: str) -> str:
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
    table = joint_table(view.snapshot, view.scope, view.quality, view.book)
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
