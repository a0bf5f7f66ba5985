"""Page Latency: quality, time and leaks by what the filters of questions leave, and by tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.analysis import filtered
from core.analysis.cache import cached
from core.analysis.workspace import telling
from core.analysis.workspace.view import View
from core.store.read.access import Access
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Chart, Fold, Table, Text, section
from core.views.legend import colours_of, labels_of

NOTHING = "No query here has a filter."
NEEDS = "Import filters of queries and metadata of passages."
HOW = (
    "Selectivity: share of the passages that a filter leaves. Leak: share of questions whose first K hold a "
    "passage that the filter forbids. Short: fewer allowed passages than exact filtered search returns. "
    "Quality is over the judged questions; leaks and short answers are over all that a stack was asked."
)
MOST = 6  # Maximum stacks shown
USUAL = "the best of each way of filtering"
FORBIDDEN_MOST = 500  # Maximum forbidden passages that are listed
_FIGURES = ("questions selectivity recall quality low high n p50 usd_per_1k leak leak_n short",)
_MORE = "leak_low leak_high short_n"
BINS = cols.Rows("filters", "name", "bin", *_FIGURES, more=_MORE)
TENANTS = cols.Rows("tenants", "name tenant passages", *_FIGURES, more=_MORE)
SHOWN = cols.Rows("forbidden", "name query_id filter rank passage_id")
PROBLEMS = cols.Rows("empty_filters", "query_id why")


@cached("Comparing rankings with filters…")
def questions(view: View, names: tuple[str, ...]) -> pl.DataFrame:
    """Return every question with a filter, by stack."""
    return filtered.questions(view, list(names))


@section("filters", "What do filters cost, and does anything forbidden show?", telling.filtered)
def filters(view: View, ask: Ask) -> Blocks:
    """Yield quality, latency, leaks and short answers by selectivity and by tenant."""
    access = view.snapshot.access(view.scope.collection_id)
    ranked = view.table.filter("has_rankings")
    if access is None or ranked.is_empty():
        yield Answer(NOTHING, NEEDS)
        return
    usual = usual_names(view, ranked)
    names = tuple(ask.stacks(ranked, view.decision, "lats", usual=usual, most=MOST, unsaid=USUAL))
    rows = questions(view, names)
    bins = filtered.by_selectivity(view, rows)
    first = bins.filter(pl.col("name") == names[0])
    every = first.filter(bin=filtered.ALL).row(0, named=True)
    yield Answer(
        answer(every, view),
        " ".join(filter(None, (lowest(bins, names[0]), narrow(every), others(bins, names[0], view)))),
        caveats={"narrow and wide filters": ends(first, view), "how to read": HOW, **caveats(view, access)},
    )
    yield from _charts(view, bins.filter(pl.col("bin") != filtered.ALL), names)
    yield Table(bins, BINS)
    yield from _tenants(view, names[0], rows, access)
    yield from _forbidden(view, rows, access)
    if access.problems:
        title = f"{text.count(len(access.problems), 'filter')} match no passage"
        yield Fold(
            title,
            [
                Table(
                    pl.DataFrame(
                        sorted(access.problems.items()), schema=PROBLEMS.frame().schema, orient="row"
                    ),
                    PROBLEMS,
                )
            ],
        )


def usual_names(view: View, ranked: pl.DataFrame) -> list[str]:
    """Return the chosen stack, then the best one of each way of filtering, then the others by quality."""
    rows = ranked.sort("quality", descending=view.quality.higher_is_better, nulls_last=True)
    chosen = None if view.decision.chosen is None else view.table["name"][view.decision.chosen]
    ways = filtered.ways(view.snapshot, rows["run_id"].to_list())
    seen: set[tuple[str, bool]] = set()
    order: list[tuple[bool, bool, int, str]] = []
    for name, run_id in rows.select("name", "run_id").iter_rows():
        again = ways[run_id] in seen
        seen.add(ways[run_id])
        order.append((name != chosen, again, len(order), name))
    return [name for *_, name in sorted(order)][:MOST]


def answer(row: Mapping[str, Any], view: View) -> str:
    """Say whether a stack shows what filters forbid, and on how many questions."""
    k = view.quality.k
    if row["leak"] is None:
        return f"Whether {row['name']} leaks is unknown: metadata of passages are missing."
    measured = f"Leak@{k} {text.score(row['leak'])}{text.interval(row['leak_low'], row['leak_high'])}"
    said = "shows forbidden passages" if row["leak"] else "shows nothing forbidden"
    return f"{row['name']} {said}: {measured}, {text.sample(row['leak_n'])}."


def narrow(every: Mapping[str, Any]) -> str:
    """Say how narrow the filters are."""
    return f"Filters leave {text.percent(every['selectivity'])} of the passages (median)."


def ends(rows: pl.DataFrame, view: View) -> str:
    """Say the quality where filters are narrowest and widest, and how many answers are short."""
    every, said = rows.filter(bin=filtered.ALL).row(0, named=True), []
    known = rows.filter(pl.col("bin") != filtered.ALL).drop_nulls("quality")
    if known.height:
        outer = known if known.height == 1 else pl.concat([known.head(1), known.tail(1)])
        parts = [
            f"{text.score(row['quality'])} where they leave {row['bin']} ({text.sample(row['n'])})"
            for row in outer.iter_rows(named=True)
        ]
        said.append(f"{view.quality.name} is {', '.join(parts)}.")
    if every["short"] is not None:
        said.append(f"Short@{view.quality.k} {text.score(every['short'])}.")
    return " ".join(said)


def others(bins: pl.DataFrame, first: str, view: View) -> str:
    """Name the other stacks shown that leak, or of which that is unknown, the worst first."""
    every = bins.filter((pl.col("bin") == filtered.ALL) & (pl.col("name") != first))
    leaky = every.filter(pl.col("leak").is_null() | (pl.col("leak") > 0)).sort("leak", descending=True)
    said = [
        f"{row['name']} {'unknown' if row['leak'] is None else text.score(row['leak'])}"
        for row in leaky.iter_rows(named=True)
    ]
    return f"Leak@{view.quality.k} of others: {', '.join(said)}." if said else ""


def lowest(bins: pl.DataFrame, first: str) -> str:
    """Say which stack finds least of what exact filtered search finds, where, and what the first keeps there.

    Returns:
        "" if unknown.
    """
    known = (
        bins.filter(pl.col("bin") != filtered.ALL).drop_nulls("recall").sort("recall", maintain_order=True)
    )
    if known.is_empty() or known["recall"][0] == 1:  # nothing is lost
        return ""
    row = known.row(0, named=True)
    short = "" if row["short"] is None else f", and leaves {text.percent(row['short'])} of answers short"
    said = (
        f"Where filters leave {row['bin']}, {row['name']} finds {text.percent(row['recall'])} of what exact "
        f"filtered search finds{short} (n = {row['questions']})"
    )
    own = known.filter(name=first, bin=row["bin"])
    if row["name"] == first or own.is_empty():
        return f"{said}."
    (kept,) = own.iter_rows(named=True)
    times = f" at {kept['p50'] / row['p50']:.2g} × the latency" if kept["p50"] and row["p50"] else ""
    return f"{said}; {first} keeps {text.percent(kept['recall'])}{times}."


def caveats(view: View, access: Access) -> dict[str, str]:
    """Say which judgements are set aside, and which fields are permissions."""
    outside = filtered.set_aside(view)
    found = {}
    if outside:
        many = text.count(outside, "judged passage")
        found["judgements set aside"] = f"{many} outside of what the asker may see."
    if access.permissions:
        found["permissions"] = f"A stack that leaks is not shipped: {', '.join(sorted(access.permissions))}."
    return found


def _charts(view: View, bins: pl.DataFrame, names: Sequence[str]) -> Blocks:
    colours = colours_of(view, list(names))
    sides = (
        ("recall", "recall of exact filtered search", "recall_by_selectivity"),
        ("quality", view.quality.name, "quality_by_selectivity"),
        ("p50", "latency p50 (ms)", "latency_by_selectivity"),
    )
    for column, title, name in sides:
        known = bins.drop_nulls(column).filter(pl.col("selectivity") > 0)
        if known.height:
            yield Chart(lines(known, column, title, colours), name, f"{title} by selectivity of the filters")


def lines(rows: pl.DataFrame, column: str, title: str, colours: Mapping[str, str]) -> go.Figure:
    """Draw a figure against selectivity, a line per stack."""
    labels, traces = labels_of(colours), []
    for name, colour in colours.items():
        own = rows.filter(pl.col("name") == name).sort("selectivity")
        if own.is_empty():
            continue
        hover = [
            f"{labels[name]}<br>filters leave {row['bin']}: {row[column]:.4g}, {row['questions']} questions"
            for row in own.iter_rows(named=True)
        ]
        look: theme.Spec = {
            "mode": "lines+markers",
            "line": {"color": colour},
            "marker": {"color": colour, "size": 8},
        }
        if column == "quality":
            look["error_y"] = theme.whiskers(own["low"], own[column], own["high"], color=colour)
        traces.append(
            theme.scatter(
                labels[name], (100 * own["selectivity"]).to_list(), own[column].to_list(), hover=hover, **look
            )
        )
    style = theme.layout(x="left by the filter (% of passages)", y=title, height=360)
    ticks = [10.0**power for power in range(-2, 3)]
    style["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    style["yaxis"]["rangemode"] = "tozero"
    return theme.finished(traces, style)


def _tenants(view: View, first: str, rows: pl.DataFrame, access: Access) -> Blocks:
    fields = filtered.fields_of_one(access)
    if not fields:
        return
    found = filtered.by_tenant(view, rows, access, fields[0])
    yield Text(f"By {fields[0]}", "heading")
    own = found.filter(pl.col("name") == first)
    if own.height > 1:
        yield Text(tenants_in_words(own, view))
    yield Table(found, TENANTS)


def tenants_in_words(rows: pl.DataFrame, view: View) -> str:
    """Name the largest, the smallest and the worst value of a field, for one stack."""
    ends = [("largest", rows.row(0, named=True)), ("smallest", rows.row(-1, named=True))]
    known = rows.drop_nulls("quality").sort("quality", descending=not view.quality.higher_is_better)
    if known.height:
        ends.append(("worst", known.row(0, named=True)))
    parts = [
        f"{word} {row['tenant']} ({row['passages']:,} passages) {text.score(row['quality'])}"
        f"{text.interval(row['low'], row['high'])}, {text.sample(row['n'])}"
        for word, row in ends
    ]
    return f"{view.quality.name} of {rows['name'][0]}: {'; '.join(parts)}."


def _forbidden(view: View, rows: pl.DataFrame, access: Access) -> Blocks:
    found = filtered.leaking(view, rows, access)
    if found.is_empty():
        return
    many = text.count(found.height, "forbidden passage")
    yield Text(f"{many} within the first {view.quality.k}", "heading")
    yield Table(found.head(FORBIDDEN_MOST), SHOWN, whole=found)
