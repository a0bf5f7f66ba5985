"""Diagnostics, section Names: the words and the chart of other names in a collection's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.diagnostics.named import FORMS
from core.views.workspace.scope import Quality

PAPER = (-71.0, -0.18)
"""What random tokens take of D_name (in percent) and of N-Recall4+@10 (.78 → .60) in the paper, §4.5."""
MEANS: Mapping[str, str] = {
    "1": "one letter off",
    "2": "two letters off",
    "3": "three letters off",
    "mask": "one mask for every name",
    "gibberish": "a random token for each name",
    "label": "without “Author:”",
    "accents": "names without accents",
    "initials": "J. Smith",
    "inverted": "Smith, John",
    "case": "upper, lower, title case",
    "nfd": "NFD and narrow spaces",
}
"""What each form makes of a name, in words."""


def paper() -> dict[str, Any]:
    """Return what the paper sets side by side, as a row of `side_by_side` has it."""
    return {"names": "gibberish", "language": "fr", "d_change": PAPER[0], "change": PAPER[1]}


HOW = (
    "Questions that name something (tags entity=…, sources and titles of the collection, capitals, codes), "
    "asked with other names. Quality: paired over these questions. D_name: cosine with the best judged "
    "passage minus the better of that passage with two other names; passages keep their names, so a mask "
    "leaves about 0. Changes in percent count questions of D_name ≥ 0.02; 95 % bootstraps."
)
NO_RUNS = (
    "No question of this workspace was asked with another name. Run a sweep with "
    '`names = [0, 1, 2, "mask"]` on questions that name people, places, products or parts.'
)


def answer(table: pl.DataFrame, quality: Quality) -> str:
    """Say what the lightest near miss takes of the best stack, of quality and of the margin."""
    row = table.row(0, named=True)
    stack = row["stack"] if row["rewrite"] == "none" else f"{row['stack']} · {row['rewrite']}"
    said = MEANS.get(row["names"], row["names"])
    if row["change"] is None:
        return f"What {said} costs {stack} is not known: no clean run stands beside it."
    ends = text.interval(row["change_low"], row["change_high"]).strip()
    now = f"{text.score(row['clean'])} → {text.score(row['quality'])}, {text.signed(row['change'])} {ends}"
    margin = "" if row["d_change"] is None else f"; its D_name changes by {_percent(row['d_change'])}"
    return f"Names {said}: {quality.name} of {stack} {now}, n = {row['n']}{margin}."


def _percent(value: float) -> str:
    return text.signed(value, "{:.0f} %".format)


def chart(table: pl.DataFrame, quality: Quality) -> go.Figure:
    """Draw the change of D_name beside that of quality by form: a colour and a symbol per stack."""
    panels = theme.Panels(["Δ D_name, %", f"Δ {quality.name}"], across=2, height=420)
    stacks = table.select("stack", "rewrite").unique(maintain_order=True)
    labels = [stack if rewrite == "none" else f"{stack} · {rewrite}" for stack, rewrite in stacks.iter_rows()]
    colours = theme.colours_for(labels)
    for place, (label, (stack, rewrite)) in enumerate(zip(labels, stacks.iter_rows(), strict=True)):
        rows = table.filter(stack=stack, rewrite=rewrite)
        look = {"color": colours[label], "size": 9, "symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)]}
        for panel, (x, low, high, n) in enumerate(
            (("d_change", "d_low", "d_high", "d_n"), ("change", "change_low", "change_high", "n"))
        ):
            some = rows.drop_nulls(x)
            if some.height:
                panels.add(panel, _dots(some, label, look, (x, low, high, n)))
    panels.figure.update_yaxes(categoryorder="array", categoryarray=[MEANS[each] for each in reversed(FORMS)])
    panels.figure.update_yaxes(showticklabels=False, col=2)
    for panel, reference in enumerate(PAPER):
        at = panels.at(panel)
        panels.figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1}, **at)
        panels.add(panel, _published(reference))
    return panels.figure


def _published(reference: float) -> go.Scatter:
    return go.Scatter(
        x=[reference], y=[MEANS["gibberish"]], mode="markers", name="paper, French",
        marker={"color": theme.NEUTRAL, "size": 12, "symbol": "star-open", "line": {"width": 2}},
        hovertemplate="%{y}: %{x:+.3g}, clq_ra_nwg §4.5",
    )  # fmt: skip


def _dots(rows: pl.DataFrame, label: str, look: Mapping[str, Any], columns: Sequence[str]) -> go.Scatter:
    x, low, high, n = (rows[name] for name in columns)
    return go.Scatter(
        x=x.to_list(), y=[MEANS[each] for each in rows["names"]], mode="markers", name=text.escape(label),
        marker=dict(look),
        error_x={"array": (high - x).to_list(), "arrayminus": (x - low).to_list(), "thickness": 1},
        customdata=n.to_list(), hovertemplate="%{y}: %{x:+.3g}, n = %{customdata:,}",
    )  # fmt: skip
