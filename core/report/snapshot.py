"""A workspace as one static file: the answer, its charts and all stacks, to be sent or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis.status import status_rows
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.pools import NOT_STATED
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.view import View
from core.decide.pareto import frontier_rows
from core.report.data import Verdict
from core.report.render import Chart
from core.report.tables import (
    EVERY_STACK,
    Cell,
    Column,
    Table,
    numbers,
    share,
    table,
)
from core.views import headroom as headroom_words
from core.views.curves import page as curve_words
from core.views.curves.page import as_deep, curve_table, curves
from core.views.golden import charts as golden_charts
from core.views.golden import data as evidence
from core.views.golden import sections as golden_sections
from core.views.headroom import conventions, headroom
from core.views.legend import colours_of
from core.views.text import count, percent

CURVES = 6  # Stacks with a curve: the chosen one, the runner-up and the best of the frontier
BOUNDS = 15  # Maximum stacks whose bounds from unjudged passages are drawn, best first
COPIES_UP_TO = 200_000  # Maximum passages for which the judgements are searched for duplicate passages
_OPTIONAL = {
    "95 % interval": "quality_low",
    "%PROC of pool": "pct_proc",
    "best": "p_best",
    "excluded because": "reason",
}
"""Columns left out if nothing is known, with the column that shows whether it is."""
_BASES = {"quality_basis": "quality", "latency_basis": "latency_ms", "cost_basis": "cost"}


def parts(view: View, verdict: Verdict) -> tuple[dict[str, object], dict[str, Chart]]:
    """Return the parts that a snapshot adds to a record: more for its template, and its charts by name."""
    said, charts = _headroom(view, verdict)
    charts |= _curves(view, verdict)
    words, grades, bounds = _evidence(view, verdict)
    return {"headroom": said, "evidence": words, "grades": grades}, charts | bounds


def _headroom(view: View, verdict: Verdict) -> tuple[list[str], dict[str, Chart]]:
    chosen = verdict.decision.chosen
    pool = next(iter(conventions(verdict.table, chosen)), "")
    split = headroom(verdict.table, view.quality, pool, chosen, view.running_name)
    if split is None:
        return [f"No ceiling is on record for {view.quality.name}."], {}
    caption = f"{headroom_words.HOW} Pool convention: {pool}."
    figures = headroom_words.numbers(split.explained, view.quality)
    tried = headroom_words.caveats(split.explained, view, mixed=False)["what was tried"]
    said = [headroom_words.answer(split.explained, view.quality), f"{figures} {tried}"]
    return said, {"headroom": Chart(split.figure, figures, caption)}


def _curves(view: View, verdict: Verdict) -> dict[str, Chart]:
    names = _shown(verdict)
    named = runs_in(view.snapshot, view.scope).filter(pl.col("name").is_in(names))
    runs = as_deep(view.snapshot, named, view.scope.golden_set_id)
    measure = view.quality.measure
    rows = curve_table(
        view.snapshot,
        runs,
        view.scope.golden_set_id,
        None if measure is None else measure.at(None),
        among(view.snapshot, view.scope),
        alike=groups(view.snapshot, view.scope),
    )
    drawn_curves = curves(rows, view.quality, colours_of(view, names), today=view.running_name)
    if not drawn_curves.main.data:
        return {}
    drawn = {
        "curves": Chart(drawn_curves.main, f"{drawn_curves.answer} {drawn_curves.details}", curve_words.HOW)
    }
    if drawn_curves.beside.data:
        drawn["measures"] = Chart(drawn_curves.beside, "Every measure of the same stacks against K.")
    return drawn


def _shown(verdict: Verdict) -> list[str]:
    """Return the chosen stack, the runner-up, the best of the frontier; the first one if none is feasible."""
    rows = [row for row in (verdict.decision.chosen, verdict.decision.runner_up) if row is not None]
    rows += frontier_rows(verdict.table, verdict.decision)
    picked = list(dict.fromkeys(rows))[:CURVES] or [0][: verdict.table.height]
    return [str(verdict.table["name"][row]) for row in picked]


def every_stack(view: View, verdict: Verdict) -> Table | None:
    """Return all stacks with their numbers; a basis shared by a whole column is in its heading."""
    wanted = ("quality_low", "quality_high", "n", *_BASES, "pct_proc", "proc_pool")
    listed = status_rows(verdict.sure_table, verdict.decision, weak=view.weak)
    rows = listed.join(
        verdict.table.select("run_id", *wanted), on="run_id", how="left", maintain_order="left"
    )
    shared = {name: _shared(rows.filter(pl.col(of).is_not_null())[name]) for name, of in _BASES.items()}
    quality, latency, cost = (f", {words}" if words else "" for words in shared.values())
    empty = {label for label, source in _OPTIONAL.items() if rows[source].is_null().all()}
    columns = (
        Column("status", lambda row: Cell(row["status"])),
        *numbers(f"{view.quality.name}{quality}", f"latency{latency}", cost, view.constraints.costs_said),
        Column("%PROC of pool", _reached, number=True),
        share("p_best", "best"),
        Column("excluded because", lambda row: Cell(row["reason"] or "")),
    )
    blanked = dict.fromkeys(name for name, words in shared.items() if words)
    shown: list[Mapping[str, Any]] = [{**row, **blanked} for row in rows.iter_rows(named=True)]
    kept = [column for column in columns if column.label not in empty]
    return table(shown, kept, EVERY_STACK, strong=verdict.decision.chosen is not None, sortable=True)


def _reached(row: Mapping[str, Any]) -> Cell:
    """Return a stack's share of the ceiling of its pool, which is named beside it."""
    pool = f" {row['proc_pool'] or NOT_STATED}" if row["pct_proc"] is not None else ""
    return Cell(f"{percent(row['pct_proc'])}{pool}", row["pct_proc"])


def _shared(bases: pl.Series) -> str:
    """Say how all known numbers of a column were obtained, or return "" if they differ."""
    kinds = bases.drop_nulls().unique()
    return str(kinds[0]) if len(kinds) == 1 else ""


def _evidence(view: View, verdict: Verdict) -> tuple[list[str], list[tuple[str, str]], dict[str, Chart]]:
    """Return what the judgements support."""
    sizes = view.snapshot.collections()
    space = sizes.row(by_predicate=pl.col("collection_id") == view.scope.collection_id, named=True)
    if space["passages"] > COPIES_UP_TO:
        return [f"{count(space['passages'], 'passage')}; judgements were not looked through here."], [], {}
    judged = evidence.judged(view.snapshot, view.scope)
    if judged is None:
        return ["There are no judgements here: figures are as they were reported."], [], {}
    sentence, details = golden_sections.summary(judged, verdict.table, view.quality)
    mix = [
        (_grade(str(row["grade"])), f"{row['total']:,} judgements, {percent(row['share'])}")
        for row in judged.mix.iter_rows(named=True)
    ]
    words = [sentence, *([details] if details else [])]
    bounds = evidence.with_bounds(verdict.table, higher_is_better=view.quality.higher_is_better)
    if bounds.is_empty():
        return words, mix, {}
    best = bounds.head(BOUNDS)
    alt = f"{view.quality.name} of the best {count(best.height, 'stack')}, and its bounds."
    caption = "Line: what the score could be if every unjudged passage were of the worst, or best, grade."
    figure = golden_charts.bounds_figure(best, view.quality)
    return words, mix, {"bounds": Chart(figure, alt, caption)}


def _grade(name: str) -> str:
    return "all grades" if name == "all" else f"grade {name}"
