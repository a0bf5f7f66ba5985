"""K curves: every measure against the cutoff, and quality, latency and cost against the candidate depth."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.choices import telling
from core.analysis.workspace.clusters import EACH, Groups
from core.analysis.workspace.comparable import MANY_HOLES
from core.analysis.workspace.figures.costs import basis
from core.analysis.workspace.pools import stack_of
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.scores import Evidence, evidence, furthest
from core.axes import SAID_K
from core.metrics import REGISTRY, Measure, aggregate
from core.number_format import PER_1K, CostUnit
from core.records import stack_label
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema
from core.views import text, theme
from core.views.blocks import Card
from core.views.legend import labels_of
from core.views.words.choice import axis

MAX_DEPTH = 200
BESIDE = ("RA-nWG", "N-Recall4+", "N-Recall5", "Precision4+", "Harm", "Hole", "Hit")
OF_NUGGETS = ("NuggetCoverage", "Nuggets", "NuggetRedundancy")
"""Companion measures that are added if the golden set has nuggets."""
COLUMNS = schema("name measure k:int32 value:float low:float high:float n:int32 basis")
X_AXES = {"k": "cutoff K", "tokens": "tokens sent", "usd_per_1k": "$ of generator input"}
"""Axes for the curves, by column."""
HOW = (
    "Band: 95 % interval of the mean over queries, where results per query exist. "
    "Dotted: PROC, what the best order of the pool that the stack could choose from would reach. "
    "Dashed line or large dot: the cutoff. ↓: lower is better."
)
CEILINGS = "best order of each pool (PROC)"
"""The legend's text for ceilings."""
NO_OTHERS = "Every other measure needs rankings; of these stacks only averages are known."
DEEPER = "the stacks run at several K"
NO_DEPTHS = "No two stacks here differ in their candidate depth K alone."
UNREAD = "{} has no reranker, so K changes nothing for it."
OTHER_MEASURES = (
    "Hit: share of queries with every passage of grade 4 or 5 within K. "
    "Hole: share of unjudged passages. Harm: share of grade 1 or 2."
)
_Looks = tuple[Mapping[str, str], Mapping[str, str]]  # Colours and labels, by name of the stack


def curve_table(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    golden_set_id: str | None,
    measure: Measure | None,
    only: Container[str] | None = None,
    *,
    alike: Groups = EACH,
) -> pl.DataFrame:
    """Return a measure, its ceiling and its companion measures at every cutoff, for some runs.

    Args:
        runs: run_id, name, has_rankings of the chosen stacks.
        golden_set_id: The judgements; None if there are only aggregates.
        measure: The measure, without cutoff, that carries bands; None = none.
        only: The queries that count; None = every judged one.
        alike: Groups of queries.

    Returns:
        `COLUMNS`, one row per run, measure and K; low and high only for `measure` where per-query data exist.
    """
    ranked = runs.filter(pl.col("has_rankings"))
    parts = [pl.DataFrame(schema=COLUMNS)]
    if golden_set_id and not ranked.is_empty():
        told = OF_NUGGETS if snapshot.nuggets(golden_set_id).height else ()
        wanted = _wanted((*telling(snapshot, golden_set_id, BESIDE), *told), measure)
        graded = evidence(snapshot, ranked["run_id"].to_list(), golden_set_id, wanted, only=only)
        parts.append(_computed(graded, ranked, measure, wanted, alike))
    rest = runs.filter(~pl.col("has_rankings"))
    if not rest.is_empty():
        parts.append(_reported(snapshot, rest))
    return pl.concat(parts).sort("measure", "name", "k")


def as_deep(snapshot: Snapshot, runs: pl.DataFrame, golden_set_id: str | None) -> pl.DataFrame:
    """Return runs with the id of the run that kept the deepest ranking of their stack.

    The id changes only if nothing reads K (`core.analysis.workspace.pools`), to none of these runs.
    """
    ids = runs["run_id"].to_list()
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    deep: dict[str, str] = {}
    for own, other in furthest(snapshot, ranked, golden_set_id).items():
        deep[own] = own if other in ids or other in deep.values() else other
    return runs.with_columns(pl.col("run_id").replace(deep))


def _wanted(beside: Sequence[str], measure: Measure | None) -> list[Measure]:
    wanted = [Measure(name) for name in beside]
    if measure is not None:
        wanted += [measure] if measure not in wanted else []
        wanted += [replace(measure, name=f"PROC[{measure.name}]")] if measure.info.ceiling else []
    return wanted


def _computed(
    graded: Evidence, runs: pl.DataFrame, measure: Measure | None, wanted: Sequence[Measure], alike: Groups
) -> pl.DataFrame:
    depth = min(MAX_DEPTH, graded.depth)
    scored = graded.score(wanted, depth)
    names = dict(runs.select("run_id", "name").iter_rows())
    own_depth = (graded.grades >= 0).any(axis=1).sum(axis=1)
    parts = []
    for scored_measure, values in scored.items():
        means, n = aggregate(values)
        for row, run_id in enumerate(graded.run_ids):
            ks = np.arange(1, min(depth, max(1, own_depth[row])) + 1)
            own = {"value": means[row, : len(ks)], "n": n[row, : len(ks)], "low": None, "high": None}
            if scored_measure == measure:
                low, high = mean_interval(values[row].T, "shares", clusters=alike.labels(graded.query_ids))
                own |= {"low": low[: len(ks)], "high": high[: len(ks)]}
            of = {"name": names[run_id], "measure": str(scored_measure), "k": ks, "basis": "measured"}
            parts.append(pl.DataFrame({**of, **own}, schema_overrides=COLUMNS).select(list(COLUMNS)))
    return pl.concat(parts).with_columns(pl.col("value", "low", "high").fill_nan(None))


def _reported(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    named = runs.select("run_id", "name", basis())
    return (
        snapshot.aggregates(runs["run_id"].to_list())
        .filter(pl.col("k").is_not_null())
        .join(named, on="run_id")
        .select([pl.col(column).cast(dtype) for column, dtype in COLUMNS.items()])
    )


def leaders(rows: pl.DataFrame, quality: Quality, names: Sequence[str]) -> list[str]:
    """Return some stacks of the stack table by quality, the best first; ties keep the order of the names."""
    known = rows.filter(pl.col("name").is_in(list(names)) & pl.col("quality").is_not_null())
    order = pl.col("name").replace_strict(
        dict(zip(names, range(len(names)), strict=True)), default=len(names)
    )
    ranked = known.sort(pl.col("quality"), order, descending=[quality.higher_is_better, False])
    return ranked["name"].unique(maintain_order=True).to_list()


def answer(main: pl.DataFrame, quality: Quality, names: Sequence[str]) -> tuple[str, str]:
    """Say how the leading stack's value changes from the cutoff to the deepest one, and which stack it is."""
    known = main.filter(pl.col("value").is_not_null())
    places = dict(zip(names, range(len(names)), strict=True))
    place = pl.col("name").replace_strict(places, default=len(names), return_dtype=pl.Int64)
    at_k = known.filter(pl.col("k") == quality.k)
    at_k = at_k.sort(pl.col("value"), place, descending=[quality.higher_is_better, False])
    if at_k.is_empty():
        return f"None of the stacks shown has a value for {quality.name}.", ""
    best = at_k.row(0, named=True)
    deepest = known.filter(pl.col("name") == best["name"]).sort("k").row(-1, named=True)
    ends = (best,) if deepest["k"] <= quality.k else (best, deepest)
    first, last = (text.score(row["value"]) for row in (best, deepest))
    sent, n = text.count(quality.k, "passage"), text.sample(best["n"])
    if len(ends) == 1:
        said = f"{quality.bare} is {first} with {sent} ({n})."
    elif first == last:
        said = f"{quality.bare} is {first} with {sent} and with {deepest['k']} ({n})."
    else:
        moves = "rises" if deepest["value"] > best["value"] else "falls"
        instead = f"With {deepest['k']} passages instead of {quality.k}"
        said = f"{instead}, {quality.bare} {moves} from {first} to {last} ({n})."
    spans = [
        f"{text.interval(row['low'], row['high']).strip()} with {row['k']}"
        for row in ends
        if row["low"] is not None
    ]
    return said, f"Of {best['name']}{': ' if spans else ''}{', '.join(spans)}."


def nothing(table: pl.DataFrame, quality: Quality, x: str) -> str:
    """Say why there is no curve of the measure."""
    known = table.filter((pl.col("measure") == quality.bare) & pl.col("value").is_not_null())["k"].unique()
    if len(known) == 1:
        return f"{quality.bare} is known at cutoff {known[0]} only, which the table has: there is no curve."
    return f"There is no curve: of the stacks shown, the {X_AXES[x]} is not known."


def depth_cards(depths: pl.DataFrame, family: str, quality: Quality, gap: str) -> list[Card]:
    """Compare the shallowest candidate pool of a family with its deepest; takes `depth_table`.

    Args:
        gap: Whether they differ significantly, in the words of `core.analysis.workspace.gaps.gap`.
    """
    rows = depths.filter(pl.col("family") == family)
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    cost = text.cost_unit(rows).beside(first["cost"], last["cost"]).usd
    return [
        (f"{label} with {last['candidates']} candidates", write(last[column]),
         f"from {write(first[column])} with {first['candidates']}{note}")
        for label, column, write, note in (
            (quality.name, "quality", text.score, f"; {gap}; {text.sample(last['n'])}"),
            ("Latency", "latency_ms", text.ms, ""),
            ("Cost", "cost", cost, ""),
        )
    ]  # fmt: skip


@dataclass(frozen=True)
class CurvesView:
    """The page's content."""

    answer: str  # the leading stack's value at the cutoff, and at a deeper one
    details: str  # the stack that leads at the cutoff, with its intervals
    main: go.Figure  # the curves of the measure; without traces if no stack has two points
    beside: go.Figure  # every other measure of the same stacks


def against(table: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Add the prompt tokens of Top(K) to every point, from `core.analysis.prompt_tokens.tokens_sent`.

    Nuggets also gets facts_per_100: the new facts per 100 more tokens, from the previous K.
    """
    rows = table.join(sent, on=["name", "k"], how="left", maintain_order="left")
    of = ["name", "measure"]
    more, longer = (
        (pl.col(name) - pl.col(name).shift(1, fill_value=0.0)).over(of, order_by="k")
        for name in ("value", "tokens")
    )
    told = (pl.col("measure") == OF_NUGGETS[1]) & (longer > 0)
    return rows.with_columns(facts_per_100=pl.when(told).then(100 * more / longer))


def unjudged(rows: pl.DataFrame, name: str) -> dict[str, str]:
    """Warn where many of the passages at a stack's largest cutoff are unjudged, keyed by words of a chip."""
    holes = rows.filter(pl.col("name") == name, pl.col("measure") == "Hole", pl.col("value").is_not_null())
    most = holes.filter(pl.col("k") == pl.col("k").max())
    if most.is_empty() or most["value"][0] <= MANY_HOLES:
        return {}
    share, k = text.percent(most["value"][0]), most["k"][0]
    return {f"{share} unjudged at K = {k}": "They count as useless, so the curve may truly rise further."}


def new_facts(rows: pl.DataFrame, name: str, k: int) -> str:
    """State a stack's new facts per 100 more tokens at the first passage and at a cutoff; takes `against`."""
    known = rows.filter(pl.col("name") == name).drop_nulls("facts_per_100").sort("k")
    upto = known.filter(pl.col("k") <= k)
    if upto.is_empty():
        return ""
    first, last = upto.row(0, named=True), upto.row(-1, named=True)
    return (
        f"{name}: 100 tokens bring {first['facts_per_100']:.2f} new facts at K = {first['k']}, "
        f"{last['facts_per_100']:.2f} at K = {last['k']} ({text.sample(last['n'])})."
    )


def curves(
    table: pl.DataFrame,
    quality: Quality,
    colours: Mapping[str, str],
    x: str = "k",
    said: CostUnit = PER_1K,
    *,
    today: str | None = None,
) -> CurvesView:
    """Draw the curves of `curve_table` or `against`.

    Args:
        quality: The measure of the main chart, with the cutoff to mark.
        colours: Colour by name of the stack, the one to emphasise first.
        x: One of `X_AXES`; a stack without a known value is missing from the charts.
        said: The page's cost unit.
        today: The stack that runs today, which is marked.
    """
    title, scale = (f"{X_AXES[x]} / {said.per}", said.factor) if x == "usd_per_1k" else (X_AXES[x], 1)
    shown = pl.col("name").is_in(list(colours)) & pl.col("value").is_not_null()
    known = table.with_columns(x=scale * pl.col(x)).filter(shown & pl.col("x").is_not_null())
    own = pl.col("measure") == quality.bare
    sentence, of = answer(table.filter(own), quality, list(colours))
    return CurvesView(
        answer=sentence,
        details=of,
        main=_main(known, quality, (colours, labels_of(colours, today)), title, by_k=x == "k"),
        beside=_beside(known.filter(~own), (colours, labels_of(colours, today)), title),
    )


def _main(known: pl.DataFrame, quality: Quality, looks: _Looks, title: str, *, by_k: bool) -> go.Figure:
    colours, labels = looks
    fig = theme.figure(x=title, y=axis(quality, at_any=True), height=400)
    main = known.filter(pl.col("measure") == quality.bare)
    if main["x"].n_unique() < 2:
        return fig
    best = quality.ceiling
    ceilings = known.filter(
        pl.col("measure") == (f"PROC[{quality.bare}]" if best is None else str(best.at(None)))
    )
    for place, (name, colour) in enumerate(colours.items()):
        rows, ceiling = (part.filter(pl.col("name") == name) for part in (main, ceilings))
        if rows.is_empty():
            continue
        if rows["low"].count() > 1:
            fig.add_trace(_band(rows.drop_nulls("low"), colour, name))
        fig.add_trace(_line(rows, labels[name], colour, name, stress=not place))
        if ceiling.height:
            dotted = {"mode": "lines", "line": {"dash": "dot", "width": 1, "color": colour}, "opacity": 0.7}
            named = {"name": f"{labels[name]} PROC", "showlegend": False}
            fig.add_trace({**_line(ceiling, labels[name], colour, name, stress=False), **dotted, **named})
        if not by_k:
            at = rows.filter(pl.col("k") == quality.k).select("x", "value").to_numpy().T
            marker = {"color": colour, "size": 10, "line": {"color": theme.NEUTRAL, "width": 1}}
            fig.add_trace(theme.quiet("", *at, marker=marker, legendgroup=text.escape(name)))
    line = {"width": 1, "color": theme.NEUTRAL}
    if ceilings.height:
        fig.add_trace(theme.scatter(CEILINGS, [None], [None], mode="lines", line={**line, "dash": "dot"}))
    if by_k:
        words = {"annotation_text": f"cutoff {quality.k}", "annotation_position": "bottom right"}
        fig.add_vline(x=quality.k, line={**line, "dash": "dash"}, **words)
    return fig


def _line(rows: pl.DataFrame, label: str, colour: str, name: str, *, stress: bool) -> theme.Spec:
    tokens = rows.get_column("tokens", default=pl.repeat(None, rows.height, eager=True))
    hover = [
        f"K = {k}{'' if tokens is None else f', {tokens:,.0f} tokens sent'}: {text.score(value)}"
        f"{text.interval(low, high)}, {text.sample(n)}"
        for k, tokens, value, low, high, n in rows.select(
            "k", tokens.alias("tokens"), "value", "low", "high", "n"
        ).iter_rows()
    ]
    return theme.scatter(
        label,
        rows["x"].to_numpy(),
        rows["value"].to_numpy(),
        mode="lines+markers" if rows.height <= 12 else "lines",
        line={"color": colour, "width": 3.5 if stress else 1.8},
        legendgroup=text.escape(name),
        customdata=hover,
        hovertemplate="%{fullData.name}<br>%{customdata}<extra></extra>",
    )


def _band(rows: pl.DataFrame, colour: str, name: str) -> theme.Spec:
    """Return the interval as an area, drawn along its upper end and back along its lower one."""
    x, low, high = (rows[column].to_numpy() for column in ("x", "low", "high"))
    shade = f"rgba({','.join(map(str, bytes.fromhex(colour[1:])))},0.12)"
    area = {"mode": "none", "fill": "toself", "fillcolor": shade, "line": {"width": 0}}
    ends = np.append(x, x[::-1]), np.append(high, low[::-1])
    return theme.quiet("", *ends, legendgroup=text.escape(name), **area)


def _beside(table: pl.DataFrame, looks: _Looks, title: str) -> go.Figure:
    """Draw small multiples of the other measures that some stack has at two points; ↓ = lower is better."""
    there = [
        name for name in (*BESIDE, *OF_NUGGETS) if table.filter(pl.col("measure") == name)["x"].n_unique() > 1
    ]
    titles = [name if REGISTRY[name].higher_is_better else f"{name} ↓" for name in there]
    panels, (colours, labels) = theme.Panels(titles, x=title), looks
    for panel, measure in enumerate(there):
        for place, (name, colour) in enumerate(colours.items()):
            rows = table.filter((pl.col("measure") == measure) & (pl.col("name") == name))
            if rows.height:
                panels.add(
                    panel, _line(rows, labels[name], colour, name, stress=not place), text.escape(name)
                )
    return panels.figure


def depth_table(table: pl.DataFrame) -> pl.DataFrame:
    """Return the stacks of the workspace by candidate depth; those that differ in nothing else form a family.

    Returns:
        family, candidates, quality, proc, proc_pool, latency_ms, cost, the cost unit, n, name; families
        with two or more depths that matter.
    """
    families = [_family(spec) for spec in table["spec"]]
    named = pl.col("name").cast(pl.String).str.replace_all(SAID_K, "").first().over("family")
    alone = pl.col("family").n_unique().over(named) == 1  # whose name without K is unique among the families
    said = [name for name in text.UNIT if name in table.columns]
    read = pl.Series([stack_of(spec) is None for spec in table["spec"]], dtype=pl.Boolean)
    return (
        table.with_columns(pl.Series("family", families, dtype=pl.String))
        .filter(pl.col("candidates").is_not_null() & read)
        .filter(pl.col("candidates").n_unique().over("family") > 1)
        .with_columns(family=pl.when(alone).then(named).otherwise("family"))
        .sort("family", "candidates")
        .select(
            "family", "candidates", "quality", "proc", "proc_pool", "latency_ms", "cost", *said, "n", "name"
        )
    )


def _family(spec: str) -> str:
    return stack_label({key: value for key, value in json.loads(spec).items() if key != "candidates"})


def families_of(depths: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the families of some stacks, or a few of `depth_table` if they belong to none.

    Families without a quality come last.
    """
    of = dict(depths.select("name", "family").iter_rows())
    own = dict.fromkeys(of[name] for name in names if name in of)
    known = depths.group_by("family", maintain_order=True).agg(pl.col("quality").is_null().any())
    return list(own) or known.sort("quality", maintain_order=True)["family"].head(4).to_list()


def depth_figure(rows: pl.DataFrame, families: Sequence[str], quality: Quality) -> go.Figure:
    """Draw quality with its ceiling, latency and cost against the candidate depth, one line per family."""
    part = rows.filter(pl.col("family").is_in(families))
    said = text.cost_unit(part)
    rows = part.with_columns(cost=said.factor * pl.col("cost"))
    fields = {"quality": quality.name, "latency_ms": "latency (ms)", "cost": f"$ / {said.per}"}
    panels = theme.Panels(list(fields.values()), across=3, x="candidate depth K", height=210)
    for place, (family, colour) in enumerate(theme.colours_for(families).items()):
        part = rows.filter(pl.col("family") == family)
        label = text.escape(text.shorten(family))
        drawn = [(panel, field, label, "solid") for panel, field in enumerate(fields)]
        if part["proc"].count():
            drawn.append((0, "proc", CEILINGS, "dot"))
        for panel, field, name, dash in drawn:
            line = {"color": colour, "width": 1.8 if place else 3.5, "dash": dash}
            hover = "%{fullData.name}<br>K = %{x}: %{y:.4g}<extra></extra>"
            x, y = part["candidates"].to_numpy(), part[field].to_numpy()
            drawn_as = theme.scatter(name, x, y, mode="lines+markers", line=line, hovertemplate=hover)
            panels.add(panel, drawn_as)
    return panels.figure.update_yaxes(exponentformat="none")
