"""Section Names: how much identity each embedder carries, beside the paper's published figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.diagnostics.names.bundles import ABLATIONS, BASE, DIACRITICS
from core.diagnostics.names.margins import (
    CHANGE,
    DELTA,
    MARGINS,
    MASK,
    RATIO,
    ModelCheck,
    checks,
    summary,
)
from core.paths import PUBLISHED
from core.store import Snapshot
from core.tables import schema
from core.views import theme
from core.views.text import escape, sample, score, signed
from core.work.names.stored import diagnosed

_PAPER = PUBLISHED / "clq_diagnostics.csv"
_MEASURED = r"^Measured( here)?"  # Like `MEASURED`; stores of release 0.2 also say where
_DROPS = ("gibberish_name", "edit_distance_near_miss")
ORDER = (BASE, *ABLATIONS)
ALONE = "Not your stacks: an embedder alone, on questions that name authors."
NOTHING = "No embedder was measured on names yet."
WAY_OUT = "Measure one below, or by `python -m core diagnose names`; the demo brings two."
HOW = (
    "Cosine of a question with five candidates that differ in name and topic. Name signal = right name and "
    "topic minus the better of two other names (D_name, clq_ra_nwg §4.2); topic signal likewise. Changes "
    "count bundles of a signal ≥ 0.02; ± is the deviation between runs. Name ÷ topic is above the paper's "
    "0.54 to 0.59: the shipped titles are real, and few say their topic."
)
MEANS = {
    "hard_name_mask": "one mask for every name",
    "gibberish_name": "a random token for each name",
    "edit_distance_near_miss": "wrong names 1 to 3 letters off",
    "remove_label": "without “Author:”",
    "strip_diacritics": "without accents",
    "initials_form": "J. Smith",
    "name_order_inversion": "Smith, John",
    "case_punct_perturb": "upper, lower, title case",
    "author_position_shift": "author before the title",
    "unicode_normalization_stress": "accents and spaces coded otherwise",
}
"""Description of each ablation."""
_LANGUAGES = {"en": "English", "fr": "French"}
_SPREAD = " ± %{customdata[0]:.1f}, n = %{customdata[1]:,}"
_CARDS = (
    ("Name signal", BASE, "d_name"),
    ("Name signal ÷ topic signal", BASE, RATIO),
    ("Signal with near-identical names", "edit_distance_near_miss", CHANGE),
    ("Signal with random names", "gibberish_name", CHANGE),
)


def published() -> pl.DataFrame:
    """Return the paper's figures (Tables 4.1, 4.2, 10, 11): embedder, language, condition, measure, value."""
    rows = pl.read_csv(_PAPER).filter(pl.col("measure").is_in([CHANGE, *MARGINS, RATIO]))
    return rows.select(
        pl.col("model").alias("embedder"),
        pl.col("language").str.to_lowercase(),
        "condition",
        "measure",
        "value",
    )


def figures(snapshot: Snapshot) -> tuple[pl.DataFrame, list[ModelCheck]]:
    """Return the averages of all name diagnoses in the store, and their checks.

    Measurements on custom names add these to the language: "en · parts.csv".
    """
    sources = snapshot.collections().select("collection_id", own=pl.col("source").str.replace(_MEASURED, ""))
    rows = diagnosed(snapshot, "names").join(sources, on="collection_id", how="left", maintain_order="left")
    of = pl.col("own").fill_null("")
    own = pl.when(of == "").then(pl.lit("")).otherwise(" ·" + of.str.strip_prefix(" on"))
    unknown = {"embedder": "unknown embedder", "language": "unknown language"}
    rows = rows.with_columns(pl.col(name).fill_null(word) for name, word in unknown.items())
    rows = rows.with_columns(language=pl.col("language") + own)
    return summary(rows), checks(rows)


def both(measured: pl.DataFrame) -> pl.DataFrame:
    """Concatenate the figures measured here and those published by the paper.

    Returns:
        Columns of `summary`, label and basis ("measured", "published"); sd, runs and n null if published.
    """
    here = measured.with_columns(label=label(), basis=pl.lit("measured"))
    paper = published().with_columns(label="embedder", basis=pl.lit("published"))
    return pl.concat([here, paper], how="diagonal_relaxed").with_columns(
        pl.col("condition").cast(pl.Enum(ORDER))
    )


def label() -> pl.Expr:
    """Return the label of an embedder with its dimension."""
    return pl.coalesce(pl.format("{} {} d", "embedder", "dim"), "embedder")


def wide(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return a row per ablation of a language, in words: DD% of each embedder, with ± its deviation."""
    rounded = pl.col("value").round(1)
    written = pl.when(rounded == 0).then(0.0).otherwise(rounded).alias("value")  # no minus before 0.0
    some = rows.filter(measure=CHANGE, language=language).with_columns(written)
    some = some.sort("condition", "basis", "label")
    if some.is_empty():
        return pl.DataFrame(schema=schema("condition what"))
    changes = some.pivot("label", index="condition", values="value")
    spreads = some.filter(pl.col("sd").is_not_null()).with_columns(pl.format("± {}", "label").alias("label"))
    both = changes.join(spreads.pivot("label", index="condition", values="sd"), on="condition", how="left")
    named = both.with_columns(pl.col("condition").cast(pl.String))
    return named.with_columns(what=pl.col("condition").replace_strict(MEANS))


def ranking(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Rank embedders by the margin of names: label, basis, margins, ratio, sd, n and two drops.

    The paper's figures come last, without a rank, as its works differ. A larger D_name means more identity;
    gibberish and near misses show how much of it is the spelling of a name.
    """
    some = rows.filter(pl.col("language") == language)
    base = some.filter(condition=BASE).pivot("measure", index=("label", "basis"), values="value")
    spread = some.filter(condition=BASE, measure="d_name").select("label", "sd", "runs", "n")
    drops = some.filter(pl.col("measure") == CHANGE, pl.col("condition").is_in(_DROPS)).pivot(
        "condition", index="label", values="value"
    )
    known = base.join(spread, on="label", how="left").join(drops, on="label", how="left")
    absent = [name for name in (*MARGINS, RATIO, *_DROPS) if name not in known.columns]
    return (
        known.with_columns(pl.lit(None, pl.Float64).alias(name) for name in absent)
        .sort("basis", pl.col("d_name"), descending=[False, True], nulls_last=True)
        .with_columns(rank=pl.when(basis="measured").then(pl.int_range(1, pl.len() + 1)))
    )


def deltas(rows: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return every figure of one language in long form: the data behind the chart."""
    wanted = [CHANGE, DELTA, *MARGINS, RATIO]
    some = rows.filter(pl.col("measure").is_in(wanted), pl.col("language") == language)
    return some.select("label", "basis", "condition", "measure", "value", "sd", "runs", "n").sort(
        "condition", "basis", "label", "measure"
    )


def as_json(rows: pl.DataFrame) -> dict[str, Any]:
    """Return averages, checks and the paper's figures for JSON."""
    return {
        "summary": summary(rows).to_dicts(),
        "checks": [check._asdict() for check in checks(rows)],
        "published": published().to_dicts(),
    }


def spoken(language: str) -> str:
    """Return a language in words, followed by any custom names."""
    name, _, own = language.partition(" · ")
    return " · ".join(filter(None, (_LANGUAGES.get(name, name), own)))


def leading(rows: pl.DataFrame, language: str) -> dict[str, Any] | None:
    """Return the embedder measured here with the most identity in a language."""
    ranked = ranking(rows, language)
    return next(iter(ranked.filter(basis="measured").to_dicts()), None) if ranked.height else None


def answer(rows: pl.DataFrame, language: str) -> tuple[str, str]:
    """Say what near-identical wrong names take of the name signal, of the most dependent embedder."""
    lead = leading(rows, language)
    if lead is None:
        return NOTHING, ""
    ratio, near = lead["name_topic_ratio"], lead["edit_distance_near_miss"]
    more = f"{lead['label']} goes most by names"
    if ratio is not None and ratio > 0:
        many = f"{ratio:.1f} times" if ratio >= 1 else f"{100 * ratio:.0f} %"
        more = f"{lead['label']} counts a name {many} as much as a topic"
    n = f"({sample(lead['n'])})"
    if near is None:
        return f"{more} {n}.", ALONE
    if near >= 0:
        return f"Near-identical wrong names cut nothing of the name signal {n}.", f"{more}. {ALONE}"
    cut = f"{min(-near, 100):.0f} %"
    return f"Near-identical wrong names cut the name signal by {cut} {n}.", f"{more}. {ALONE}"


def cards(rows: pl.DataFrame, language: str) -> list[tuple[str, str, str]]:
    """Return label, number and note of the leading embedder's figures."""
    lead = leading(rows, language)
    if lead is None:
        return []
    mine = rows.filter(pl.col("label") == lead["label"], pl.col("language") == language)
    paper = published().filter(language=language)
    cards = []
    for name, condition, measure in _CARDS:
        for row in mine.filter(condition=condition, measure=measure).iter_rows(named=True):
            change = measure == CHANGE
            sd = "" if row["sd"] is None else f"± {row['sd']:.1f}" if change else f"± {score(row['sd'])}"
            note = " · ".join(filter(None, (sd, sample(row["n"]), _range(paper, condition, measure))))
            cards.append((name, signed(row["value"], _percent) if change else score(row["value"]), note))
    return cards


def _percent(value: float) -> str:
    return f"{value:.1f} %"


def _range(paper: pl.DataFrame, condition: str, measure: str) -> str:
    """Return the range of the paper's figures, least to most."""
    values = paper.filter(condition=condition, measure=measure)["value"].sort().to_list()
    parts = [signed(value, "{:.1f}".format) if measure == CHANGE else score(value) for value in values]
    return f"paper {' to '.join(dict.fromkeys((parts[0], parts[-1])))}" if parts else ""


def checks_line(checks: Sequence[ModelCheck]) -> str:
    """Say how many of the built-in checks passed."""
    passed, failed = (sum(check.passed is answer for check in checks) for answer in (True, False))
    said = f"{failed} of {passed + failed} failed" if failed else f"{passed} of {passed} passed"
    return f"Built-in checks: {said}"


def checked(checks: Sequence[ModelCheck]) -> pl.DataFrame:
    """Return the checks as a table, each with its mark in words."""
    words = {True: "✓ passed", False: "✗ failed", None: "– nothing to check"}
    must = {
        MASK: "mask leaves nothing: exactly −100 %",
        DIACRITICS: "ASCII has no accents to lose: exactly 0",
    }
    rows = [
        {
            "label": f"{check.embedder} {check.dim} d", "language": spoken(check.language),
            "check": must[check.name], "result": words[check.passed], "value": check.value, "n": check.n,
        }
        for check in checks
    ]  # fmt: skip
    return pl.DataFrame(rows)


def chart(rows: pl.DataFrame, language: str) -> go.Figure:
    """Draw DD% by ablation: a colour and a symbol per embedder, open where the paper published it."""
    some = rows.filter(measure=CHANGE, language=language)
    names = some.sort("basis", "label")["label"].unique(maintain_order=True).to_list()
    colours = theme.colours_for(names)
    traces: list[go.BaseTraceType] = []
    for place, name in enumerate(names):
        mine = some.filter(pl.col("label") == name).sort("condition")
        paper = mine["basis"][0] == "published"
        symbol = theme.SYMBOLS[place % len(theme.SYMBOLS)]
        error = None if paper else {"array": mine["sd"].to_list(), "thickness": 1, "width": 3}
        traces.append(
            go.Scatter(
                x=mine["value"].to_list(), mode="markers",
                y=[MEANS[condition] for condition in mine["condition"]],
                name=escape(f"{name} (paper)" if paper else name), error_x=error,
                marker={"color": colours[name], "size": 10, "line": {"width": 2, "color": colours[name]},
                        "symbol": f"{symbol}-open" if paper else symbol},
                customdata=list(zip(mine["sd"], mine["n"], strict=True)),
                hovertemplate=f"%{{y}}: %{{x:+.1f}} %{'' if paper else _SPREAD}",
            )
        )  # fmt: skip
    figure = theme.figure(traces, x="change of the name signal, %", height=520)
    figure.update_yaxes(categoryorder="array", categoryarray=list(reversed(MEANS.values())))
    figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1})
    return figure
