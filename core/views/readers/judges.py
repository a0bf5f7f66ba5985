"""Section Judges of Readers: how far a judge of answers can be trusted, and its correction by people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import about_groups
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import graded_answers
from core.analysis.workspace.view import View
from core.stats.corrected import FEW
from core.stats.intervals import CLUSTERS
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.charts.corrected import MARKS, drawn
from core.views.readers import corrected
from core.views.readers.charts import points
from core.views.readers.corrected import PANEL, GradedAnswers, Judge
from core.views.readers.generators import COMPUTED

NO_GRADES = "No answers graded by hand yet."

NO_JUDGE = "No judge scored the answers that people graded."

TO_GRADE = (
    "Grade about 40 answers of each stack, drawn at random and blind (Golden sets → judge → grade answers). "
    "These grades then correct the judge's mean over all questions."
)

HOW = (
    "Corrected: people's mean, moved by how far the judge's mean over all questions lies from that over the "
    "graded ones, times the weight that makes the interval least (PPI++). Valid where the graded answers "
    "were drawn at random."
)

STACK = ("name", cols.text("label", "reader", width=170))

SCORES = cols.Rows(
    "corrected",
    *STACK,
    "corrected low high judged_score moved alone graded",
    cols.count("queries", "judged", "Questions whose answers the judge scored."),
    "effective",
    more=(
        cols.count("units", "groups", "Groups of questions that the grades come from."),
        "alone_low alone_high by_errors by_errors_low by_errors_high",
    ),
)


AGREEMENT = cols.Rows(
    "judge_agreement",
    *STACK,
    "judge_bias judge_bias_low judge_bias_high",
    "agree sensitivity specificity graded",
)

GAPS = cols.Rows(
    "corrected_differences",
    *STACK,
    cols.signed("difference", "corrected", "Points, to the compared stack.", digits=1),
    "difference_low difference_high",
    cols.signed("judged_difference", "judge's", "Points.", digits=1),
    cols.signed("alone_difference", "people alone", "Points.", digits=1),
    "alone_difference_low alone_difference_high",
    "graded",
    cols.count("both", help="Questions of which people graded both answers."),
    "effective",
)

NEXT = cols.Rows("grade_next", *STACK, "graded width width_then minutes narrower")

PANEL_COLUMNS = cols.Rows(
    "panel",
    "judge",
    cols.count("answers", help="That it judged."),
    "told agree sensitivity specificity graded",
)


@cached("Reading what people graded…", entries=8)
def graded(view: View) -> GradedAnswers | None:
    """Return the scores of single answers of a workspace."""
    return corrected.graded(view.snapshot, view.scope)


@cached("Correcting the judge…", entries=16)
def table_of(view: View, judge: Judge, least: float) -> pl.DataFrame:
    """Return every stack's score, corrected."""
    of = graded(view)
    return pl.DataFrame() if of is None else corrected.corrected_table(of, judge, least)


@section("judges", "How far can the judge of the answers be believed?", graded_answers)
def judges(view: View, ask: Ask) -> Blocks:
    """Yield a judge's scores corrected by people's grades."""
    of = graded(view)
    if of is None or not of.judges:
        yield Answer(NO_GRADES if of is None else NO_JUDGE)
        yield Text(TO_GRADE, "guide")
        yield Way("golden", "Grade answers", "judge")
        return
    named = {judge.label: judge for judge in of.judges}
    judge = named[ask.listed("Judge", named, "trust")]
    least = 0.5
    with ask.aside("Rules"):
        least = (
            ask.number("Good from", "goodfrom", least, 0.05, 1.0, step=0.05, about="Score 0 to 1.") or least
        )
    table = table_of(view, judge, least)
    sentence = answer(table, judge)
    yield Answer(sentence, caveats=caveats(view, of, judge, table))
    known = table.filter(pl.col("corrected").is_not_null())
    if known.height:
        yield Cards(cards(known.row(0, named=True)))
        yield Chart(
            drawn(known, [_named(row) for row in known.iter_rows(named=True)], "score, points", points),
            "judges",
            sentence,
            MARKS,
        )
    yield Table(table, SCORES)
    if known.height > 1:
        yield from compared(of, judge, least, table, ask)
    yield Fold("Agreement of judge and people, stack by stack", [Table(table, AGREEMENT)])
    yield Fold("Whom to grade next", next_grades(table))
    for scorer in sorted({one.scorer for one in of.judges if one.name == PANEL}):
        rows = corrected.panel_table(of, scorer, least)
        yield Fold(f"Several judges of {scorer}", [Text(of_panel(rows)), Table(rows, PANEL_COLUMNS)])
    yield Way("golden", "Grade answers", "judge")


def compared(of: GradedAnswers, judge: Judge, least: float, table: pl.DataFrame, ask: Ask) -> Blocks:
    """Yield the differences from one stack."""
    names = [_named(row) for row in table.iter_rows(named=True)]
    able = [name for name, known in zip(names, table["corrected"].is_not_null(), strict=True) if known]
    base = ask.listed("Compared with", able, "over")
    rows = corrected.differences(of, judge, least, table, names.index(base))
    yield Text(of_gap(rows, base), label="Differences")
    yield Table(rows, GAPS)


def next_grades(table: pl.DataFrame) -> Blocks:
    """Yield which stack's answers to grade next."""
    few = table.filter(pl.col("graded") < FEW)
    rows = pl.concat(
        [few, table.filter(pl.col("graded") >= FEW).sort("narrower", descending=True, nulls_last=True)]
    )
    first = rows.row(0, named=True)
    if first["graded"] < FEW:
        yield Text(f"First those of {_named(first)}: below {FEW} grades nothing is corrected.")
    elif first["narrower"] is not None:
        yield Text(
            f"Ten more of {_named(first)}: its interval narrows from {points(first['width'])} to about "
            f"{points(first['width_then'])} points in {first['minutes']:.0f} minutes."
        )
    yield Table(rows, NEXT)


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['label']} on {row['name']}"


def answer(table: pl.DataFrame, judge: Judge) -> str:
    """Say which stack is best once the judge is corrected, and what that changed."""
    known = table.filter(pl.col("corrected").is_not_null())
    if known.is_empty():
        most = text.count(max(table["graded"], default=0), "answer")
        return f"People graded {most} of one stack at most: {FEW} are needed."
    best = known.row(0, named=True)
    moved = text.signed(best["moved"], "{:.1f}".format)
    score = f"{points(best['corrected'])}{points(best['low'], best['high'])} points"
    by = f"by {text.count(best['graded'], 'grade')}"
    return f"{_named(best)} scores {score}, {moved} against {judge.label}, {by}."


def cards(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the numbers of the best stack."""
    return [
        (
            "Corrected",
            points(row["corrected"]),
            f"{points(row['low'], row['high']).strip()} {text.sample(row['queries'])}",
        ),
        (
            "Judge",
            points(row["judged_score"]),
            f"{text.signed(row['moved'], '{:.1f}'.format)} by the correction",
        ),
        (
            "People alone",
            points(row["alone"]),
            f"{points(row['alone_low'], row['alone_high']).strip()} {text.sample(row['graded'])}",
        ),
        ("Worth", f"{row['effective']:.0f} grades", f"with the judge, of {row['graded']} given"),
    ]


def of_gap(rows: pl.DataFrame, base: str) -> str:
    """Say how many stacks differ significantly, and for how many the judge alone says otherwise."""
    told = rows.drop_nulls(["difference_low", "difference_high"])
    if told.is_empty():
        return f"No other stack has {FEW} grades to compare with {base}."
    sure = told.filter((pl.col("difference_low") > 0) | (pl.col("difference_high") < 0)).height
    turned = told.filter(pl.col("difference") * pl.col("judged_difference") < 0).height
    tail = f"; of {turned} the judge alone says the opposite" if turned else ""
    return f"{sure} of {text.count(told.height, 'stack')} surely differ from {base}{tail}."


def of_panel(rows: pl.DataFrame) -> str:
    """Say whether the weighted panel is nearer to people than the majority."""
    panel, majority = (row["agree"] for row in rows.tail(2).iter_rows(named=True))
    if panel is None or majority is None:
        return "Weights from agreement alone (Dawid–Skene); people graded none of these answers."
    n = int(rows["graded"].tail(1).item())
    return (
        f"The panel agrees with people on {text.percent(panel)}, the majority on {text.percent(majority)} "
        f"({text.sample(n)}). Judges of one family err together, and are then weighed too high."
    )


def caveats(view: View, of: GradedAnswers, judge: Judge, table: pl.DataFrame) -> dict[str, str]:
    """Return the assumptions of the correction, conflicts of interest of the judge, and whom it favours."""
    found = {"how to read": HOW, **dict(circular(view, of, judge))}
    apart = corrected.favours(table)
    if apart is not None and apart[3] > 0:
        liked, other, gap, low, high = apart
        more = f"{points(gap)}{points(low, high)} points more"
        found["favours a stack"] = f"Beside people, the judge gives {liked} {more} than {other}."
    few = table.filter(pl.col("corrected").is_null())
    if few.height:
        groups = (
            f", or grades from fewer than {CLUSTERS} groups of questions," if of.clusters is not None else ""
        )
        stacks = text.count(few.height, "stack")
        found["too few grades"] = f"{stacks} with fewer than {FEW} grades{groups} cannot be corrected."
    if said := about_groups(view.table):
        found["questions in groups"] = said
    if corrected.made_up(judge):
        found["made up"] = f"{judge.name} makes its scores up."
    return found


def circular(view: View, of: GradedAnswers, judge: Judge) -> Iterator[tuple[str, str]]:
    """Yield cases of a judge judging its own work: answers, order of passages, their grades, questions."""
    if judge.name == COMPUTED:
        return
    names = {one.name for one in of.panel_of(judge.scorer)} if judge.name == PANEL else {judge.name}
    readers = sorted({str(name) for name in of.points["reader"].unique()} & names)
    if readers:
        yield "judges itself", f"{', '.join(readers)} judges answers that it wrote."
    runs = runs_in(view.snapshot, view.scope).filter(
        pl.col("run_id").is_in(of.points["run_id"].unique().to_list())
    )
    reranked = sorted({str(name) for name in runs["reranker"].unique()} & names)
    if reranked:
        yield "judge is reranker", f"{', '.join(reranked)} also put the passages in order."
    sets = view.snapshot.golden_sets(view.scope.collection_id)
    graders = sorted(name for name in names if any(name in str(judged or "") for judged in sets["judge"]))
    if graders:
        yield "judge graded passages", f"{', '.join(graders)} also graded the passages of a golden set."
    wrote = sorted(names & set(_askers(sets)))
    if wrote:
        yield "judge wrote questions", f"{', '.join(wrote)} also wrote the questions."
    if any(json.loads(spec or "{}").get("mode") == "own" for spec in runs["spec"]):
        yield (
            "prompt may be known",
            "A pipeline of your own that knows the judge's prompt can write for it (arXiv:2601.13227).",
        )


def _askers(sets: pl.DataFrame) -> Iterator[str]:
    """Yield the models that wrote questions, from the manifests of golden sets."""
    for manifest in sets["manifest"]:
        about = json.loads(manifest or "{}")
        asked = about.get("questions")
        if isinstance(asked, dict):
            yield from (str(name) for name in (asked.get("model"), *(about.get("models") or {})) if name)
