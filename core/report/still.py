"""A workspace as one file that stands still: the answer, its charts and all stacks, to be sent or kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from core.decide.frontier import frontier_rows
from core.report.data import Case, record_data
from core.report.document.blocks import Block, Cell, Chart, Column, Document, Facts, Say, Section, Table
from core.report.document.html import html
from core.report.files import chart
from core.report.parts import basis, near, prices, promising, status
from core.report.words import check, lead, moment, question, trust
from core.views import theme
from core.views.curves.page import curve_table, curves
from core.views.decision.facts import status_rows
from core.views.decision.near import HEADING
from core.views.decision.promising import HEADING as PROMISING
from core.views.decision.verdict import Verdict
from core.views.golden import page as evidence
from core.views.headroom import words as headroom_words
from core.views.headroom.page import conventions, headroom
from core.views.text import NOT_APPLICABLE, UNKNOWN, cost_of, count, interval, ms, percent, score
from core.views.workspace.query_sets import among
from core.views.workspace.stacks import runs_in

CURVES = 6
"""Stacks with a curve: the chosen one, the runner-up and the best of the frontier."""
STACKS = 1000
"""Rows of the table of stacks at most."""
_OPTIONAL = {"interval": "quality_low", "pct_proc": "pct_proc", "p_best": "p_best", "reason": "reason"}
"""Columns that are left out where nothing is known, with the column that says so."""
BOUNDS = 15
"""Stacks whose bounds by holes are drawn, the best."""
_BASES = {"quality_basis": "quality", "latency_basis": "latency_ms", "cost_basis": "cost"}
COPIES_UP_TO = 200_000
"""Passages up to which the judgements are looked through for copies of a passage."""


def still_file(case: Case, found: Verdict, *, address: str, made_at: datetime) -> str:
    """Write a workspace as one HTML file that needs no network.

    Args:
        case: What was asked, and where.
        found: What was decided.
        address: The pinned link to this view, see `core.views.link`.
        made_at: The time of the file; nothing else in it depends on when it is made.

    Returns:
        The file.
    """
    return html(still_document(case, found, record_data(case, found, link=address, made_at=made_at)))


def still_document(case: Case, found: Verdict, data: Mapping[str, Any]) -> Document:
    """Put a workspace into words, tables and charts."""
    sections = (
        Section("Latency and quality", _pareto(case, found, data)),
        Section(HEADING, near(data)),
        Section(PROMISING, promising(data)),
        Section("What limits the stacks", _headroom(case, found)),
        Section("How many passages to send", _curves(case, found)),
        Section("The evidence", (*_evidence(case, found), *trust(data))),
        Section("What was asked", (question(data),)),
        Section("Every stack", (_stacks(case, found),)),
        Section("Prices", prices(data)),
        Section("How to check it", check(data)),
    )
    name = data["workspace"]["name"] or data["collection"]
    return Document(
        kind=f"Snapshot of {name}",
        title=f"Snapshot: {name}",
        answer=data["answer"]["sentence"],
        lead=tuple(lead(data)),
        sections=tuple(section for section in sections if section.blocks),
        foot=(
            f"Made {moment(data['made_at'])} by {data['made_by']['name']} {data['made_by']['version']}, "
            f"from revision {data['revision']} of the store."
        ),
    )


def _pareto(case: Case, found: Verdict, data: Mapping[str, Any]) -> tuple[Block, ...]:
    caption = (
        f"{theme.best_corner(higher=case.asked.quality.higher_is_better)} The line is the frontier of what "
        "the limits allow; dimmed stacks break a limit, named when you point at them. The ring marks the "
        "chosen stack."
    )
    return (Chart("pareto", chart(case, found), alt=data["answer"]["sentence"], caption=caption),)


def _headroom(case: Case, found: Verdict) -> tuple[Block, ...]:
    chosen = found.decision.chosen
    pool = next(iter(conventions(found.table, chosen)), "")
    split = headroom(found.table, case.asked.quality, pool, chosen)
    if split is None:
        return (Say(f"No ceiling is on record for {case.asked.quality.name}."),)
    caption = f"{headroom_words.HOW} Pool convention: {pool}."
    numbers = headroom_words.numbers(split.explained, case.asked.quality)
    drawn = Chart("headroom", split.figure, alt=numbers, caption=caption)
    more = f"{numbers} {headroom_words.levers(split.explained)}"
    return Say(split.answer), Say(more, quiet=True), drawn


def _curves(case: Case, found: Verdict) -> tuple[Block, ...]:
    names = _shown(found)
    runs = runs_in(case.snapshot, case.scope).filter(pl.col("name").is_in(names))
    measure = case.asked.quality.measure
    rows = curve_table(
        case.snapshot,
        runs,
        case.scope.golden_set_id,
        None if measure is None else measure.at(None),
        among(case.snapshot, case.scope),
    )
    if rows.is_empty():
        return ()
    view = curves(rows, case.asked.quality, theme.colours_for(names))
    caption = (
        "Solid: actual. Dotted: ceiling of the candidate pool (PROC). Band: 95 % bootstrap interval over "
        "queries, where results per query exist. Dashed: the cutoff of this file."
    )
    blocks: list[Block] = [Say(view.answer), Chart("curves", view.main, alt=view.answer, caption=caption)]
    if view.beside.data:
        blocks.append(Chart("measures", view.beside, alt="Every measure of the same stacks against K."))
    return tuple(blocks)


def _shown(found: Verdict) -> list[str]:
    """The chosen stack, the runner-up, the best of the frontier; the first where nothing is left."""
    rows = [row for row in (found.decision.chosen, found.decision.runner_up) if row is not None]
    rows += frontier_rows(found.table, found.decision)
    picked = list(dict.fromkeys(rows))[:CURVES] or [0][: found.table.height]
    return [str(found.table["name"][row]) for row in picked]


def _stacks(case: Case, found: Verdict) -> Table:
    wanted = ("quality_low", "quality_high", "n", *_BASES, "pct_proc")
    listed = status_rows(found.sure_table, found.decision, weak=case.asked.weak)
    rows = listed.join(found.table.select("run_id", *wanted), on="run_id", how="left", maintain_order="left")
    shared = {name: _shared(rows.filter(pl.col(of).is_not_null())[name]) for name, of in _BASES.items()}
    quality, latency, cost = (f", {words}" if words else "" for words in shared.values())
    columns = {
        "status": Column("status"),
        "stack": Column("stack", wide=True),
        "quality": Column(f"{case.asked.quality.name}{quality}", number=True),
        "interval": Column("95 % interval", number=True),
        "n": Column("n", number=True),
        "latency_ms": Column(f"latency{latency}", number=True),
        "cost": Column(f"$ / 1k{cost}", number=True),
        "pct_proc": Column("%PROC", number=True),
        "p_best": Column("best", number=True),
        "reason": Column("excluded because"),
    }
    empty = {name for name, source in _OPTIONAL.items() if rows[source].is_null().all()}
    shown = [name for name in columns if name not in empty]
    told = [name for name, words in shared.items() if words]
    cells = tuple(
        tuple(each for name, each in _cells({**row, **dict.fromkeys(told)}).items() if name in shown)
        for row in rows.head(STACKS).iter_rows(named=True)
    )
    strong = frozenset({0} if found.decision.chosen is not None else ())
    left_out = max(0, rows.height - STACKS)
    return Table(tuple(columns[name] for name in shown), cells, "", strong, left_out, sortable=True)


def _shared(bases: pl.Series) -> str:
    """How all known numbers of a column were obtained; empty where that differs."""
    found = bases.drop_nulls().unique()
    return str(found[0]) if len(found) == 1 else ""


def _cells(row: Mapping[str, Any]) -> dict[str, Cell]:
    spread = interval(row["quality_low"], row["quality_high"]).strip() or NOT_APPLICABLE
    return {
        "status": Cell(status(row)),
        "stack": Cell(row["stack"]),
        "quality": Cell(score(row["quality"]), row["quality"], basis(row, "quality")),
        "interval": Cell(spread, row["quality_low"]),
        "n": Cell(UNKNOWN if row["n"] is None else f"{row['n']:,}", row["n"]),
        "latency_ms": Cell(ms(row["latency_ms"]), row["latency_ms"], basis(row, "latency_ms")),
        "cost": Cell(cost_of(row, ""), row["cost"], basis(row, "cost")),
        "pct_proc": Cell(percent(row["pct_proc"]), row["pct_proc"]),
        "p_best": Cell(percent(row["p_best"]), row["p_best"]),
        "reason": Cell(row["reason"] or ""),
    }


def _evidence(case: Case, found: Verdict) -> list[Block]:
    """What the judgements can carry."""
    sizes = case.snapshot.collections()
    space = sizes.row(by_predicate=pl.col("collection_id") == case.scope.collection_id, named=True)
    if space["passages"] > COPIES_UP_TO:
        return [Say(f"{count(space['passages'], 'passage')}; judgements were not looked through here.")]
    judged = evidence.judged(case.snapshot, case.scope)
    if judged is None:
        return [Say("There are no judgements here: figures are as they were reported.")]
    sentence, details = evidence.answer(judged, found.table, case.asked.quality)
    mix = tuple(
        (_grade(str(row["grade"])), f"{row['total']:,} judgements, {percent(row['share'])}")
        for row in judged.mix.iter_rows(named=True)
    )
    blocks: list[Block] = [Say(sentence), *([Say(f"{details}.")] if details else []), Facts(mix)]
    bounds = evidence.with_bounds(found.table, higher_is_better=case.asked.quality.higher_is_better)
    if not bounds.is_empty():
        best = bounds.head(BOUNDS)
        figure = evidence.bounds_figure(best, case.asked.quality)
        alt = f"{case.asked.quality.name} of the best {count(best.height, 'stack')} with its bounds by holes."
        caption = "Line: what the score could be if every unjudged passage were of the worst, or best, grade."
        blocks.append(Chart("bounds", figure, alt, caption))
    return blocks


def _grade(name: str) -> str:
    return "all grades" if name == "all" else f"grade {name}"
