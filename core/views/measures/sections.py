"""Page Measures: what a measure means, how to work it out by hand, and which one predicts good answers."""

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
from core.stats.correlation import KINDS, Kind
from core.store import Snapshot
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
from core.views.columns import COLUMNS, Column
from core.views.measures import charts, outcome, words
from core.views.measures.outcome import MEASURES, REFERENCE, Curve, Samples, samples
from core.views.measures.worked import cutoff_of, example, worked

ALIKE = f"Cells as above; the chart shows the first {charts.PANELS} runs, the table all."

read_samples = cached("Scoring what the answers were written from…", entries=8)(samples)


@cached("Correlating…")
def correlated(data: Snapshot, scope: Scope, kind: Kind, segment: str) -> tuple[pl.DataFrame, list[Curve]]:
    """Return coefficients and alpha curves of a segment."""
    samples = cast(Samples, read_samples(data, scope))  # the section ends where there are none
    kept = outcome.segments(samples.rows)[segment]
    curves = outcome.curves(samples, kind, kept)
    return outcome.correlations(samples, kind, kept, curves), curves


@bare_section("all measures", "What does each measure mean?")
def all_measures(view: View | None, ask: Ask) -> Blocks:
    """Yield a measure, chosen or typed, with cutoff and parameters: at first the workspace's.

    And all of them.
    """
    own, offered = view.quality.measure if view else None, words.choices()
    usual = own.name if own else offered[0]
    measure = Measure.parse(ask.typed("Measure", offered, "ref", usual=usual, about=words.PICK))
    sentence, more, origin = words.headline(measure)
    yield Answer(sentence, more)
    by_hand = worked(measure)
    yield Text(f"Worked example: {by_hand.measure}", "heading")
    given = (
        Table(
            example(),
            "example",
            (
                COLUMNS["passage"].but(about="", width=None),
                COLUMNS["source"].but(width=None),
                "rank",
                "grade",
            ),
        ),
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
        yield Table(words.parameter_table(measure), "parameters", PARAMETERS)
    yield Text("All measures", "heading")
    yield Table(words.measure_table(), "measures", LISTED, LISTED_MORE)
    yield Text(words.CEILINGS, "caption")


@section("predicting answers", "Which measure of retrieval predicts good answers?", answers_of_rankings)
def predicting_answers(view: View, ask: Ask) -> Blocks:
    """Yield which retrieval measure predicts how good the generated answer is."""
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
    if set(made_up(view.snapshot, runs)) >= set(runs):
        chips["made up"] = words.TRIED
    yield Answer(sentence, caveats=chips)
    yield Chart(charts.bars(table, kind), "correlations", sentence)
    yield Table(table, "correlations", COEFFICIENTS)
    ways = outcome.graded_samples(samples, offered[segment])
    ranked = outcome.ranked_samples(samples, offered[segment])
    tables = [Table(ways, "graded_samples", GRADED), Table(ranked, "ranked_samples", RANKED)]
    yield Fold("What the answers are of", tables)
    yield from _over_alpha(curves, kind)
    yield from _by_ratio(samples, kind, offered[segment], ask)


def _over_alpha(curves: Sequence[Curve], kind: Kind) -> Blocks:
    """Yield the coefficient of F and T at every alpha, in words, as lines and as a table."""
    yield Text("How F and T depend on alpha", "heading")
    for curve in curves:
        yield Text(words.in_words(curve))
    yield Chart(charts.alpha_figure(curves, kind), "alpha", "Correlation over alpha")
    columns = [COLUMNS["alpha"].but(digits=2), *(Column(curve.name, curve.name, "score") for curve in curves)]
    yield Fold("Table", [Table(outcome.curve_table(curves), "alpha", columns)])


def _by_ratio(samples: Samples, kind: Kind, kept: pl.Expr, ask: Ask) -> Blocks:
    """Yield where a measure predicts the grade better than another does, and the grades.

    By run and K / Np.
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
    values = (COLUMNS["value"].but(measure), Column("reference", f"minus: {other}", "score"))
    yield Table(cells, "against", ("name", "ratio", N, *values, COLUMNS["difference"].but(about="")))
    yield Text("Grades by K / Np", "heading")
    yield Text(ALIKE, "caption")
    grades = outcome.distribution(samples, kept, least)
    shown = charts.distribution_figure(grades)
    yield Chart(shown, "spread", "Share of every grade against K / Np")
    share = COLUMNS["share"].but(about="Of the answers of the stack at this K / Np.")
    grade = COLUMNS["grade"].but(form="text")
    yield Table(grades, "spread", ("name", "ratio", grade, N, share))


N = COLUMNS["n"].but(about="Answers.")
PARAMETERS = (
    *("parameter", COLUMNS["value"].but(form="text"), "default", "range", "type"),
    COLUMNS["text"].but("text", width=None),
)
LISTED = (
    COLUMNS["measure"].but(width=150),
    COLUMNS["says"].but("says", width=640),
    COLUMNS["better"].but("better", width=80),
)
LISTED_MORE = (
    *("formula", "parameters", "range", "ceiling"),
    *("needs", "not_applicable", "elsewhere", "defined_in"),
)
COEFFICIENTS = (
    COLUMNS["measure"].but(about="At each answer's own K; see the list of measures."),
    COLUMNS["value"].but("correlation"),
    *("low", "high", N),
    COLUMNS["queries"].but("queries", ""),
    "note",
)
QUERIES = Column("ranked", "queries", "exact", "With graded answers (recall_t_measure, Tables 1, 2: nr).")
GRADED = (
    COLUMNS["name"].but(about="Of the stack."),
    QUERIES,
    N,
    Column("narrow", "narrow", "exact", "Answers with K < Np."),
    Column("wide", "wide", "exact", "Answers with K ≥ Np."),
)
RANKED = (
    COLUMNS["name"].but(about="Of the stack."),
    Column("candidates", "candidates", "exact", "Passages that the stack ranked for the query (Nc)."),
    Column("relevant", "relevant", "exact", "Passages that are judged relevant to the query (Np)."),
    Column("k_from", "smallest K", "exact", "Of the answers."),
    Column("k_to", "largest K", "exact", "Of the answers."),
    QUERIES,
    N,
)
SECTIONS = (all_measures, predicting_answers)
