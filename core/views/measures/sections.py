"""Page Measures: what a measure means, how to compute it by hand, and which one predicts good answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.answers import made_up
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.telling import answers_of_rankings
from core.analysis.workspace.view import View
from core.metrics import Measure
from core.stats.correlation import KINDS, CorrelationKind
from core.store import Snapshot
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import (
    Answer,
    Blocks,
    Chart,
    Fold,
    SideBySide,
    Table,
    Text,
    Way,
    bare_section,
    section,
)
from core.views.measures import charts, outcome, words
from core.views.measures.outcome import MEASURES, REFERENCE, Curve, Samples, samples
from core.views.measures.worked import cutoff_of, example, worked
from core.views.words.made_up import folded

ALIKE = f"Cells as above; the chart shows the first {charts.PANELS} runs, the table all."

read_samples = cached("Scoring what the answers were written from…", entries=8)(samples)
N = cols.count("n", help="Answers.")
SPREAD = cols.Rows(
    "spread",
    *("name ratio", cols.text("grade"), N),
    cols.share("share", help="Of the answers of the stack at this K / Np."),
)
PARAMETERS = cols.Rows("parameters", "parameter", cols.text("value"), "default range type", cols.text("text"))
LISTED = cols.Rows(
    "measures",
    cols.text("measure", width=150),
    cols.text("says", width=640),
    cols.text("better", width=80),
    more="formula parameters range ceiling needs not_applicable elsewhere defined_in",
)
COEFFICIENTS = cols.Rows(
    "correlations",
    cols.text("measure", help="At each answer's own K; see the list of measures."),
    cols.score("value", "correlation"),
    "low high",
    N,
    cols.count("queries"),
    "note",
)
QUERIES = cols.exact("ranked", "queries", "With graded answers (recall_t_measure, Tables 1, 2: nr).")
GRADED = cols.Rows(
    "graded_samples",
    cols.text("name", "stack", "Of the stack.", width=290),
    QUERIES,
    N,
    cols.exact("narrow", help="Answers with K < Np."),
    cols.exact("wide", help="Answers with K ≥ Np."),
)
RANKED = cols.Rows(
    "ranked_samples",
    cols.text("name", "stack", "Of the stack.", width=290),
    cols.exact("candidates", help="Passages that the stack ranked for the query (Nc)."),
    cols.exact("relevant", help="Passages that are judged relevant to the query (Np)."),
    cols.exact("k_from", "smallest K", "Of the answers."),
    cols.exact("k_to", "largest K", "Of the answers."),
    QUERIES,
    N,
)


@cached("Correlating…")
def correlated(
    data: Snapshot, scope: Scope, kind: CorrelationKind, segment: str
) -> tuple[pl.DataFrame, list[Curve]]:
    """Return coefficients and alpha curves of a segment."""
    samples = cast(Samples, read_samples(data, scope))  # the section ends if there are none
    kept = outcome.segments(samples.rows)[segment]
    curves = outcome.curves(samples, kind, kept)
    return outcome.correlations(samples, kind, kept, curves), curves


@bare_section("all measures", "What does each measure mean?")
def all_measures(view: View | None, ask: Ask) -> Blocks:
    """Yield the explanation of one measure, chosen or typed: by default the workspace's.

    The list of all measures follows.
    """
    own, offered = view.quality.measure if view else None, words.choices()
    usual = own.name if own else offered[0]
    measure = Measure.parse(ask.typed("Measure", offered, "ref", usual=usual, about=words.PICK))
    sentence, more, origin = words.headline(measure)
    yield Answer(sentence, more)
    by_hand = worked(measure)
    yield Text(f"Worked example: {by_hand.measure}", "heading")
    given = (
        Table(example(), cols.Rows("example", cols.text("passage"), cols.text("source"), "rank grade")),
        Text(words.example(cutoff_of(by_hand.measure)), "caption"),
    )
    steps = (*(Text(step) for step in by_hand.steps), Text(words.result(measure), label="Together:"))
    yield SideBySide(given, steps, (1, 2))
    info = measure.info
    yield Text(info.formula, label="At K:")
    yield Text(info.na or "never.", label="Not applicable:")
    if info.differs:
        yield Text(info.differs, label="Elsewhere:")
    yield Text(origin, "caption")
    if info.params:
        yield Table(words.parameter_table(measure), PARAMETERS)
    yield Text("All measures", "heading")
    yield Table(words.measure_table(), LISTED)
    yield Text(words.CEILINGS, "caption")


@section("predicting answers", "Which measure of retrieval predicts good answers?", answers_of_rankings)
def predicting_answers(view: View, ask: Ask) -> Blocks:
    """Yield which retrieval measure best predicts the quality of the generated answer."""
    samples = read_samples(view.snapshot, view.scope)
    if samples is None:
        yield Answer(*words.NO_ANSWERS)
        yield Way("add", "Import results")
        return
    offered = outcome.segments(samples.rows)
    segment = ask.listed("Answers", offered, "seg")
    kind = ask.listed("Correlation", KINDS, "corr", about=words.KINDS)
    table, curves = correlated(view.snapshot, view.scope, kind, segment)
    sentence, chips = words.answer(samples, table, kind, segment)
    runs = samples.rows["run_id"].unique().to_list()
    tried = set(made_up(view.snapshot, runs)) >= set(runs)
    if tried:
        yield from folded(view, words.TRIED, Table(table, COEFFICIENTS))
        return
    yield Answer(sentence, caveats=chips)
    yield Chart(charts.bars(table, kind), "correlations", sentence)
    yield Table(table, COEFFICIENTS)
    ways = outcome.graded_samples(samples, offered[segment])
    ranked = outcome.ranked_samples(samples, offered[segment])
    tables = [Table(ways, GRADED), Table(ranked, RANKED)]
    yield Fold("What the answers are of", tables)
    yield from _over_alpha(curves, kind)
    yield from _by_ratio(samples, kind, offered[segment], ask)


def _over_alpha(curves: Sequence[Curve], kind: CorrelationKind) -> Blocks:
    """Yield the coefficient of F and T at every alpha, in words, as lines and as a table."""
    yield Text("How F and T depend on alpha", "heading")
    for curve in curves:
        yield Text(words.in_words(curve))
    yield Chart(charts.alpha_figure(curves, kind), "alpha", "Correlation over alpha")
    shown = cols.Rows("alpha", cols.number("alpha"), *(cols.score(curve.name) for curve in curves))
    yield Fold("Table", [Table(outcome.curve_table(curves), shown)])


def _by_ratio(samples: Samples, kind: CorrelationKind, kept: pl.Expr, ask: Ask) -> Blocks:
    """Yield where one measure predicts the grade better than another, and how the grades are distributed.

    Both are by run and K / Np.
    """
    yield Text("Two measures, by run and K / Np", "heading")
    measure = ask.listed("Measure", MEASURES, "against", usual="T")
    other = ask.listed("Minus the coefficient of", MEASURES, "less", usual=REFERENCE)
    fewest = ask.number(
        "Answers per cell, at least", "least", float(outcome.SEGMENT_SIZE), 10.0, 10_000.0, step=10.0
    )
    least = int(fewest or outcome.SEGMENT_SIZE)
    cells = outcome.differences(samples, kind, kept, (measure, other), least)
    if cells.is_empty():
        yield Text(words.too_few(least), "info")
        return
    yield Chart(charts.heatmap(cells, measure, other), "against", f"{measure} minus {other}")
    other = f"minus: {other}"
    yield Table(
        cells,
        cols.Rows(
            "against",
            *("name ratio", N, cols.score("value", measure), cols.score("reference", other), "difference"),
        ),
    )
    yield Text("Grades by K / Np", "heading")
    yield Text(ALIKE, "caption")
    grades = outcome.distribution(samples, kept, least)
    shown = charts.distribution_figure(grades)
    yield Chart(shown, "spread", "Share of every grade against K / Np")
    yield Table(grades, SPREAD)


SECTIONS = (all_measures, predicting_answers)
