"""What people see of questions and queues.

The review of a set of questions, the course of refining (stage S6: how it converged, what it locked, what the
judge contradicted), and a queue as a sheet: CSV and Excel, blind, with no executable content.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import numpy as np
import plotly.graph_objects as go
import polars as pl
import xlsxwriter

from core.errors import InputError
from core.files import locked
from core.golden.book import Item, Queue
from core.golden.by_hand import RUBRIC
from core.golden.refine.base import RankedPair, Refinement, RefinePoint
from core.golden.refine.methods import PreferenceGraph
from core.importers.formats.judging_sheet import COLUMNS, SHEET
from core.records import JsonMap
from core.tables import schema
from core.views import theme
from core.views.golden.judging import Card
from core.views.text import count, escape, shorten, upright
from core.work.questions.folder import REJECTED, QuestionEntry, QuestionSet, read, save

Act = Literal["accept", "edit", "reject", "skip", "undo"]
_DECIDES = ("accept", "edit", "reject")
_LOCK = ".review.lock"
_WORDS = {"accept": "accepted", "edit": "edited", "reject": "rejected"}
MOST = 40  # Maximum passages of the graph, from the best down
_BEND = np.linspace(0.0, 1.0, 13)
_GAP = (None,)
_TYPES = (pl.String, pl.Int64, pl.Int64, pl.Float64)
_PAIRS = schema("query_id better worse rank_better:int64 rank_worse:int64 times:int64")
_WIDTHS = {"question": 34, "title": 24, "passage": 90, "grade": 8, "note": 30}
_CELL = 32_767  # Maximum characters in a cell of a workbook


def following(made: QuestionSet, name: str) -> QuestionEntry | None:
    """Return the next question a person hasn't decided, postponed ones last, or None if none is left."""
    left = [entry for entry in made.entries if _open(entry) and not _decided(entry, name)]
    return min(left, key=lambda entry: sum(one["by"] == name for one in entry.reviews), default=None)


def _decided(entry: QuestionEntry, name: str) -> str:
    """Return the reviewer's latest decision on a question, or "" if there is none."""
    return next(
        (str(one["act"]) for one in entry.reviews[::-1] if one["by"] == name and one["act"] in _DECIDES), ""
    )


def decide(folder: Path, name: str, query_id: str, act: str, *, text: str = "", seconds: float = 0.0) -> str:
    """Record a person's decision, and rewrite the set.

    Raises:
        InputError: If there is no such question, or an edited one is empty.
    """
    if act not in get_args(Act):
        raise InputError(f"There is no way to {act!r} a question.")
    with locked(folder.with_name(f"{folder.name}{_LOCK}"), wait=lambda: None):
        made = read(folder)
        review = {"by": name, "act": act, "seconds": round(seconds, 1)}
        changed = (
            _undone(made, name) if act == "undo" else _after(made, query_id, review, " ".join(text.split()))
        )
        save(folder, changed)
    return ""


def _after(made: QuestionSet, query_id: str, review: JsonMap, text: str) -> QuestionSet:
    if review["act"] == "edit" and not text:
        raise InputError("The question has no words.", do="Write some, or reject it.")
    entries = list(made.entries)
    places = [at for at, entry in enumerate(entries) if entry.query_id == query_id and _open(entry)]
    if not places:
        raise InputError(f"No question {query_id!r} is asked.")
    entry = entries[places[0]]
    entries[places[0]] = replace(
        entry,
        draft=replace(entry.draft, text=text) if review["act"] == "edit" else entry.draft,
        reason=REJECTED if review["act"] == "reject" else entry.reason,
        reviews=(*entry.reviews, {**review, "before": entry.draft.text}),
    )
    last = [*_last(made), [str(review["by"]), query_id]]
    return replace(made, entries=tuple(entries), about={**made.about, "last": last})


def _open(entry: QuestionEntry) -> bool:
    return entry.reason in ("", REJECTED)


def _last(made: QuestionSet) -> list[list[str]]:
    return [list(map(str, one)) for one in made.about.get("last", ())]


def _undone(made: QuestionSet, name: str) -> QuestionSet:
    """Return the set without the person's latest decision."""
    last = _last(made)
    at = next((at for at in range(len(last) - 1, -1, -1) if last[at][0] == name), None)
    if at is None:
        return made
    entries = [
        _without_last(entry, name) if entry.query_id == last[at][1] else entry for entry in made.entries
    ]
    return replace(made, entries=tuple(entries), about={**made.about, "last": [*last[:at], *last[at + 1 :]]})


def _without_last(entry: QuestionEntry, name: str) -> QuestionEntry:
    at = max(at for at, one in enumerate(entry.reviews) if one["by"] == name)
    gone, kept = entry.reviews[at], (*entry.reviews[:at], *entry.reviews[at + 1 :])
    draft = replace(entry.draft, text=str(gone["before"])) if gone["act"] == "edit" else entry.draft
    rejected = any(one["act"] == "reject" for one in kept)
    return replace(entry, draft=draft, reason=REJECTED if rejected else "", reviews=kept)


def progress(made: QuestionSet, name: str) -> str:
    """State a person's progress and pace."""
    own = [entry for entry in made.entries if _decided(entry, name)]
    whole = sum(map(_open, made.entries))
    spent = [float(one["seconds"]) for entry in own for one in entry.reviews if one["by"] == name]
    pace = f", {median(spent):.0f} s each" if spent else ""
    return f"{len(own)} of {count(whole, 'question')} reviewed by {name}{pace}. {agreement(made)}".rstrip()


def over(made: QuestionSet, name: str) -> str:
    """State the result of a review."""
    acts = [act for entry in made.entries if (act := _decided(entry, name))]
    said = ", ".join(f"{acts.count(act)} {word}" for act, word in _WORDS.items())
    return f"All reviewed: {said}. The files of the set are as you left them."


def agreement(made: QuestionSet) -> str:
    """State how often two reviewers of the same questions agree on keeping them, or return ""."""
    names = sorted({str(one["by"]) for entry in made.entries for one in entry.reviews})
    pairs = [
        (_decided(entry, one) == "reject", _decided(entry, other) == "reject")
        for entry in made.entries
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if _decided(entry, one) and _decided(entry, other)
    ]
    if not pairs:
        return ""
    same = sum(one == other for one, other in pairs)
    return f"Two people agree on {same} of {count(len(pairs), 'question')}."


def curves(refined: Mapping[str, Refinement]) -> pl.DataFrame:
    """Return the data points of `convergence`.

    Returns:
        query_id, turn, changed (places of the Top-20 with another passage than one point before), settled
        (pairs locked, or with `map` the certainty of the Top-20, 0..1).
    """
    rows = [(query, *point) for query, state in refined.items() for point in state.curve]
    names = ("query_id", *RefinePoint._fields)
    return pl.DataFrame(rows, schema=dict(zip(names, _TYPES, strict=True)), orient="row")


def convergence(refined: Mapping[str, Refinement]) -> go.Figure:
    """Draw how the Top-20 of a few questions converges.

    Args:
        refined: Refinements by question, all from one method.
    """
    maps = any(state.settings.method == "map" for state in refined.values())
    changed = "Places of the Top-20 changed " + ("in 5 turns" if maps else "per turn, mean of 5")
    panels = theme.Panels((changed, "How sure the Top-20 is" if maps else "Pairs locked"), across=1, x="turn")
    colours, rows = theme.colours_for(refined), curves(refined)
    for query in refined:
        points = rows.filter(query_id=query)
        name = escape(shorten(query, 30))
        smooth = points["changed"].rolling_mean(1 if maps else 5, min_samples=1)
        for place, values in enumerate((smooth, points["settled"])):
            line = go.Scatter(
                x=points["turn"].to_list(), y=values.to_list(), name=name, mode="lines",
                line={"color": colours[query]},
                hovertemplate=f"turn %{{x}}: %{{y:.3~g}}<extra>{name}</extra>",
            )  # fmt: skip
            panels.add(place, line, group=query)
    return panels.figure.update_yaxes(rangemode="tozero")


def needed(locks: Sequence[RankedPair], items: int) -> list[RankedPair]:
    """Return the locks that no path of others implies, and that imply all the others."""
    graph = PreferenceGraph(items)
    for pair in locks:
        graph.lock(pair)
    return [(better, worse) for better, worse in locks if not graph.below[better] & graph.above[worse]]


def lock_graph(refined: Refinement) -> go.Figure:
    """Draw the passages from the best down, locks on the right, contradictions dashed on the left.

    Only locks that no path of others implies are drawn.
    """
    order = refined.order()[:MOST]
    place = {item: rank for rank, item in enumerate(order, start=1)}
    locks = [pair for pair in needed(refined.locks, len(refined.ids)) if place.keys() >= set(pair)]
    against = [pair for pair in dict.fromkeys(refined.contradictions) if place.keys() >= set(pair)]
    titles = [escape(shorten(refined.ids[item], 60)) for item in order]
    traces = [
        _arcs(locks, place, 1, name="locked", color=theme.FRONTIER, width=1.5),
        _arcs(against, place, -1, name="judged against a lock", color=theme.ACCENT, width=1.5, dash="dot"),
        go.Scatter(
            x=[0] * len(order), y=list(place.values()), mode="markers", showlegend=False,
            marker={"color": theme.NEUTRAL, "size": 9}, customdata=titles,
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        ),
    ]  # fmt: skip
    fig = theme.figure(traces, y="rank", height=120 + 16 * max(len(order), 10))
    fig.update_xaxes(visible=False, range=[-1.1, 1.1], fixedrange=True)
    return fig.update_yaxes(range=[len(order) + 0.6, 0.4], showgrid=False)


def _arcs(
    pairs: Sequence[RankedPair], place: Mapping[int, int], side: int, *, name: str, **line: object
) -> go.Scatter:
    """Return one line of arcs; the more ranks an arc spans, the further out it is."""
    widest = max(len(place) - 1, 1)
    x: list[float | None] = []
    y: list[float | None] = []
    for better, worse in pairs:
        start, end = place[better], place[worse]
        out = side * (0.06 + 0.94 * abs(end - start) / widest)
        x += [*(out * 4 * _BEND * (1 - _BEND)).tolist(), *_GAP]
        y += [*(start + (end - start) * _BEND).tolist(), *_GAP]
    return go.Scatter(x=x, y=y, name=name, mode="lines", line=line, opacity=0.7, hoverinfo="skip")


def pairs(refined: Mapping[str, Refinement], *, contradicted: bool = False) -> pl.DataFrame:
    """Return the locks of some questions, or the judgements that contradict them.

    Args:
        contradicted: Whether to return the judgements that contradict a path of locks, instead of the locks.

    Returns:
        query_id, better, worse (passages, in the judged order), rank_better, rank_worse (in the final order),
        times (judgements against locks; 1 for a lock): the most contradicted first, then by rank.
    """
    rows = []
    for query, state in refined.items():
        place = {item: rank for rank, item in enumerate(state.order(), start=1)}
        for (one, other), times in Counter(state.contradictions if contradicted else state.locks).items():
            rows.append((query, state.ids[one], state.ids[other], place[one], place[other], times))
    table = pl.DataFrame(rows, schema=_PAIRS, orient="row")
    return table.sort(
        "times", "query_id", "rank_better", "rank_worse", descending=[True, False, False, False]
    )


def sheet(queue: Queue, items: Sequence[Item], cards: Sequence[Card]) -> pl.DataFrame:
    """Return the remaining cards of a queue, with empty grades: the columns of `COLUMNS`."""
    rows = [
        (queue.collection_id, queue.queue_id, queue.judge, item.query_id, card.question, item.passage_id,
         card.title, card.text, None, item.note or None)
        for item, card in zip(items, cards, strict=True) if item.at is None
    ]  # fmt: skip
    texts = {name: pl.Int8 if name == "grade" else pl.String for name in COLUMNS}
    return upright(pl.DataFrame(rows, schema=texts, orient="row"))


def to_excel(rows: pl.DataFrame) -> bytes:
    """Write a sheet as a workbook: texts as texts, grades 1 to 5 only, the rubric on a separate sheet."""
    file = io.BytesIO()
    # Nothing in a text becomes a formula, a link or a number.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(file, {**options, "in_memory": True}) as book:
        bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
        page = book.add_worksheet(SHEET)
        for place, name in enumerate(rows.columns):
            page.set_column(place, place, _WIDTHS.get(name, 14), wrapped)
            page.write_string(0, place, name, bold)
            for line, text in enumerate(rows[name].to_list(), 1):
                if text is not None:
                    page.write_string(line, place, str(text)[:_CELL], wrapped)
        grade = rows.columns.index("grade")
        rule = {"validate": "integer", "criteria": "between", "minimum": 1, "maximum": 5}
        page.data_validation(1, grade, max(rows.height, 1), grade, rule)
        page.freeze_panes(1, 0)
        meanings = book.add_worksheet("rubric")
        for line, (number, meaning) in enumerate(sorted(RUBRIC.items(), reverse=True)):
            meanings.write_number(line, 0, number)
            meanings.write_string(line, 1, meaning)
    return file.getvalue()
