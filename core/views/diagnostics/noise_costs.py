"""Diagnostics, section Noise: its answer, its numbers and its chart."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from core.analysis.perturbed import TYPED, hardest
from core.analysis.workspace.scope import Quality
from core.diagnostics.noise import CLEAN, NONE, orders
from core.tables import Row
from core.views import text, theme
from core.views.words.users import in_words

HOW = (
    "Change: quality minus that of the same stack and rewrite with the queries as they are. Recovered: minus "
    "that without a rewrite. Both are paired over queries; intervals are of 95 %. Small talk (noise 1 to 4): "
    "a greeting is put around the question, then filler, a digression and emoji as well."
)

NO_RUNS = "No stack of this workspace was asked perturbed queries."

WAY_OUT = (
    'Run a sweep with `noise = [0, 2, 4]` and `rewrite = ["none", "rules"]` on it; the demo has one on '
    "python-docs."
)

ASKED_CLEAN = "as they are"

_PANELS, _DASHES, _SYMBOLS = 6, ("solid", "dash", "dot", "dashdot"), ("circle", "square", "diamond", "cross")

_HALF = 0.5
_ORDERED = 5  # Stacks from which a rank correlation says anything


def best_rewrite(table: pl.DataFrame, row: Row, quality: Quality) -> Row | None:
    """Return the rewrite that recovers most from a perturbation of a stack, or None if none was run."""
    rows = table.filter(family=row["family"], perturb=row["perturb"]).filter(pl.col("won").is_not_null())
    if rows.is_empty():
        return None
    return rows.sort("won", descending=quality.higher_is_better).row(0, named=True)


def answer(table: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """Say what perturbed queries cost, and how a team should respond."""
    row = hardest(table, quality)
    if row is None:
        return f"No clean run beside these: their loss of {quality.name} is unknown.", ""
    sign = 1 if quality.higher_is_better else -1
    worse = row["change_high"] if sign > 0 else row["change_low"]
    said = in_words(row["perturb"])
    said = f"{said[:1].upper()}{said[1:]}"
    n = text.sample(row["n"])
    if worse is None or sign * worse >= 0:
        return f"{said} costs no measurable {quality.name} ({n}).", f"Of {row['stack']}."
    advice = _advice(best_rewrite(table, row, quality), row, sign)
    ends = f"{text.score(row['quality'] - row['change'])} to {text.score(row['quality'])}"
    moves = "lowers" if sign > 0 else "raises"
    return f"{said} {moves} {quality.name} from {ends} ({n}).", f"Of {row['stack']}. {advice}."


def way(rewrite: str) -> str:
    """Say what a rewrite does to a query."""
    words = {NONE: NONE, "hygiene": "cleaning spaces and signs", "rules": "cutting small talk"}
    return words.get(rewrite, f"rewriting by {rewrite}")


def _advice(won: Row | None, row: Row, sign: int) -> str:
    if won is None:
        return 'Run it with rewrite = ["rules", "chat:MODEL"] to see what that recovers'
    least = won["won_low"] if sign > 0 else won["won_high"]
    share = won["won"] / -row["change"]
    if least is not None and sign * least > 0 and share >= _HALF:
        return f"Rewrite queries by {won['rewrite']}, which recovers {text.percent(share)} of it"
    said = way(won["rewrite"])
    said = f"{said[:1].upper()}{said[1:]}"
    then = "choose by Robust quality" if ":" in won["rewrite"] else "try a rewrite by a chat model"
    if least is not None and sign * least > 0:
        return f"{said} recovers only {text.percent(share)}: {then}"
    return f"{said} did not help: {then}"


def cards(table: pl.DataFrame, quality: Quality) -> list[tuple[str, str, str]]:
    """Return loss, recovery, ranking overlap, and whether stacks (five or more) keep their order."""
    row = hardest(table, quality)
    if row is None:
        return []
    said = in_words(row["perturb"])
    cards = [(f"{said[:1].upper()}{said[1:]}", text.signed(row["change"]), _interval(row, "change"))]
    won = best_rewrite(table, row, quality)
    if won is not None:
        cards.append((f"Recovered by {way(won['rewrite'])}", text.signed(won["won"]), _interval(won, "won")))
    if row["overlap"] is not None:
        cards.append(
            (f"Share of the top {quality.k} that stays", text.percent(row["overlap"]), f"n = {row['n']}")
        )
    kept = orders(table, higher_is_better=quality.higher_is_better)
    kept = kept.filter(pl.col("stacks") >= _ORDERED, rewrite=NONE, perturb=row["perturb"]).drop_nulls("tau")
    for tau, stacks in kept.select("tau", "stacks").iter_rows():
        said = f"Kendall's tau-b of {stacks} stacks against clean queries"
        cards.append(("Order of the stacks", f"τ {tau:.2f}", said))
    return cards


def _interval(row: Row, name: str) -> str:
    ends = text.interval(row[f"{name}_low"], row[f"{name}_high"]).strip()
    return f"{ends} n = {row['n']}"


def chart(table: pl.DataFrame, quality: Quality) -> go.Figure | None:
    """Draw quality by perturbation, a panel per stack and a line per rewrite; equal lines are merged.

    Like the answer, it leaves other names to section Names.
    """
    table = table.filter(TYPED).filter((pl.col("perturb") != CLEAN).any().over("family"))
    families = table["family"].unique(maintain_order=True).to_list()[:_PANELS]
    if not families:
        return None
    titles = [table.filter(family=family)["stack"][0] for family in families]
    panels = theme.Panels(titles, across=2, height=210)
    rewrites = table["rewrite"].unique(maintain_order=True).to_list()
    for place, family in enumerate(families):
        drawn: list[dict[str, float | None]] = []
        for rewrite in rewrites:
            rows = table.filter(family=family, rewrite=rewrite)
            seen = dict(rows.select("perturb", "quality").iter_rows())
            if any(seen.items() <= line.items() for line in drawn):
                continue
            drawn.append(seen)
            panels.add(place, _line(rows, rewrite, rewrites.index(rewrite), quality))
    asked = names(table["perturb"].unique(maintain_order=True).to_list())
    panels.figure.update_xaxes(tickvals=asked, ticktext=[theme.lines(name, 11) for name in asked])
    panels.figure.update_yaxes(rangemode="tozero", matches="y")
    panels.figure.update_yaxes(title_text=text.escape(quality.name), col=1)
    return panels.figure


def _line(rows: pl.DataFrame, rewrite: str, number: int, quality: Quality) -> theme.Spec:
    colour = theme.OKABE_ITO[number % len(theme.OKABE_ITO)]
    low, at, high = (rows[name].to_numpy() for name in ("low", "quality", "high"))
    x = names(rows["perturb"].to_list())
    how = text.escape("no rewrite" if rewrite == NONE else way(rewrite))
    said = f"{text.escape(quality.name)}, {how}"
    return theme.scatter(
        how, x, at.tolist(), mode="lines+markers",
        hover=[f"{text.escape(name)}: {said} {value:.3f}" for name, value in zip(x, at, strict=True)],
        error_y=theme.whiskers(low, at, high, thickness=1, width=3),
        line={"color": colour, "dash": _DASHES[number % len(_DASHES)]},
        marker={"symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 9},
    )  # fmt: skip


def names(perturbs: Sequence[str]) -> list[str]:
    """Return perturbations in human-readable form."""
    return [in_words(perturb) or ASKED_CLEAN for perturb in perturbs]
