"""Page Golden sets: ranking scores, corrected with the questions whose passages people graded completely.

PRECISE for P@K (arXiv:2606.05308), generalised to every measure computed from grades and ranks: the
judge's mean over all questions, moved by the difference of people's values from the judge's on graded ones,
times the weight that minimises the variance (`core.stats.corrected`). A question counts as graded for a
stack if people graded all of its Top(K); passages deeper in the pool keep the judge's grade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtr, stdtrit

from core.analysis.cache import cached
from core.analysis.workspace.clusters import about_groups, groups
from core.analysis.workspace.noise import PAIR, auditors, of_rows, refusal, samplings
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.telling import graded_by_hand
from core.analysis.workspace.view import View
from core.arrays import Floats, Mask
from core.golden.by_hand import QUESTIONS, SAMPLINGS
from core.stats.corrected import FEW, Corrected, ScoredLabels, correct
from core.stats.intervals import CLUSTERS, Labels
from core.stats.significance import holm
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.charts.corrected import MARKS, drawn
from core.views.words.judging import by_models

GUIDE = (
    f"Judge the whole Top-K of about {QUESTIONS} random questions (Golden sets → judge → whole questions). "
    "These grades then correct the judge's, for every stack and measure."
)
HOW = (
    "Corrected: people's mean, moved by how far the judge's mean over all questions lies from that over the "
    "graded ones, times the weight that makes the interval least (PPI++; for rankings PRECISE, "
    "arXiv:2606.05308). A question counts where people graded all of a stack's Top-K; deeper passages keep "
    "the judge's grade. Valid where the questions were drawn at random."
)
A_FAMILY = 40
"""Minimum hand-graded passages in each family of stacks for comparing the judge's errors."""
TABLE = cols.Rows(
    "set_right",
    "name",
    cols.score("corrected", help="By people's grades and the judge's."),
    "low high",
    cols.score("judged", "judge's", "By the judge's grades alone."),
    "judged_low judged_high",
    cols.signed("moved", "moved by", "Corrected less the judge's."),
    cols.score("alone", "people alone", "On the questions that people graded."),
    "alone_low alone_high",
    cols.share("narrower", help="Than by people alone, by so much of the width."),
    cols.count("graded", help="Questions whose Top-K people graded whole."),
    cols.count("units", "groups", "Groups that these questions come from."),
    cols.count("queries", "judged", "Questions that the judge's grades score."),
)
GAPS = cols.Rows(
    "set_right_gaps",
    "name",
    cols.signed("difference", help="Corrected, to the stack above."),
    "difference_low difference_high",
    cols.signed("judged_difference", "judge's", "By the judge's grades alone."),
    cols.count("graded", help="Questions, of the stack that has fewer."),
)
FAMILIES = cols.Rows(
    "families",
    cols.text("family", "stacks"),
    cols.count("passages", help="Graded by both, in the Top-K of such a stack."),
    cols.signed("error", "judge − people", "Grades, of these passages.", digits=2),
    cols.signed("apart", "than elsewhere", "Grades more than on the other graded passages.", digits=2),
    "apart_low apart_high",
    cols.number("p", "p adjusted", "Student's t over questions, Holm over the families.", digits=4),
    cols.count("more", "to grade", f"More by hand, to have {A_FAMILY}."),
)


@dataclass(frozen=True, eq=False)
class SetRight:
    """Values of every stack on every question, by the judge and by people."""

    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    scored: tuple[ScoredLabels, ...]  # per stack
    passages: int  # graded by people for these questions
    whole: float  # share of the judged passages of the graded questions that people graded


@cached("Setting the scores right by people…", entries=8)
def set_right(view: View, reference: str) -> SetRight | None:
    """Score every question on the judge's grades, and on people's if they graded it completely.

    Args:
        reference: The golden set whose grades are taken as the truth.

    Returns:
        None if the measure cannot be computed from grades (`refusal`), or nothing is ranked.
    """
    measure, golden = view.quality.measure, view.scope.golden_set_id
    if measure is None or golden is None or refusal(view.snapshot, view.table, view.scope, view.quality):
        return None
    runs = view.table.filter("has_rankings")["run_id"].to_list()
    graded = evidence(view.snapshot, runs, golden, [measure], only=among(view.snapshot, view.scope))
    rows = _both(view, golden, reference)
    judged = of_rows(graded, rows, view.snapshot.rankings(runs, stage="final"), measure)
    known = np.append(judged.known > 0, [False, True])  # unjudged isn't graded; an empty place needs none
    whole = known[judged.slots].all(axis=2)
    some = np.bincount(judged.query, judged.known > 0, minlength=len(graded.query_ids)) > 0
    counts = np.zeros((len(graded.query_ids), 5), dtype=np.int32)
    np.add.at(counts, (judged.query, judged.grade.astype(np.intp) - 1), 1)
    grades = np.append(judged.grade, np.array([0, -1], dtype=np.int8))[judged.slots]
    people = graded.rescored(measure, grades, np.broadcast_to(counts, (len(grades), *counts.shape)))
    people = np.where(whole & some, people, np.nan)
    labels = groups(view.snapshot, view.scope).labels(graded.query_ids)
    said = at_cutoff(graded, measure)
    scored = tuple(ScoredLabels(own, by_judge, labels) for own, by_judge in zip(people, said, strict=True))
    of_some = some[judged.query]
    share = float((judged.known > 0)[of_some].mean()) if of_some.any() else 0.0
    return SetRight(graded.run_ids, graded.query_ids, scored, int((judged.known > 0).sum()), share)


def _both(view: View, golden: str, reference: str) -> pl.DataFrame:
    """Return every passage that judge or people graded; people's grade wins, and is marked in known."""
    judge, people = (view.snapshot.within(name).select(*PAIR, "grade") for name in (golden, reference))
    rows = judge.join(people.rename({"grade": "known"}), on=PAIR, how="full", coalesce=True)
    return rows.with_columns(judged="grade", grade=pl.coalesce("known", "grade"))


def table_of(view: View, found: SetRight) -> pl.DataFrame:
    """Return `TABLE`, the best first; null below `FEW` graded questions."""
    rows = [_row(run_id, correct(each)) for run_id, each in zip(found.run_ids, found.scored, strict=True)]
    known = view.table.select("run_id", "name", judged_low="quality_low", judged_high="quality_high")
    table = pl.DataFrame(rows, infer_schema_length=None).join(known, on="run_id")
    order = pl.coalesce(pl.col("corrected").fill_nan(None), "judged")
    table = table.with_columns(pl.col(pl.Float64).fill_nan(None), _order=order)
    down = view.quality.higher_is_better
    return table.sort("_order", "name", descending=[down, False], nulls_last=True).drop("_order")


def _row(run_id: str, told: Corrected) -> dict[str, Any]:
    alone = told.alone_high - told.alone_low
    return {
        "run_id": run_id,
        "corrected": told.value if told.enough else np.nan,
        "low": told.low,
        "high": told.high,
        "judged": told.judged,
        "moved": told.moved if told.enough else np.nan,
        "alone": told.alone,
        "alone_low": told.alone_low,
        "alone_high": told.alone_high,
        "narrower": 1 - (told.high - told.low) / alone if alone > 0 else np.nan,
        "graded": told.graded,
        "units": told.units,
        "queries": told.questions,
    }


def gaps(found: SetRight, table: pl.DataFrame) -> pl.DataFrame:
    """Correct every other stack's difference from the first of the table: `GAPS`."""
    at = {run_id: place for place, run_id in enumerate(found.run_ids)}
    first, *others = table.select("run_id", "name").rows()
    rows = []
    for run_id, name in others:
        told = correct(found.scored[at[run_id]], found.scored[at[first[0]]])
        rows.append(
            {
                "name": name,
                "difference": told.value if told.enough else np.nan,
                "difference_low": told.low,
                "difference_high": told.high,
                "judged_difference": told.judged,
                "graded": told.graded,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col(pl.Float64).fill_nan(None))


def family(row: Mapping[str, Any]) -> str:
    """Return the family of a stack: its retrievers, and whether it reranks."""
    mode = row["mode"] or "other"
    return str(mode) if (row["reranker"] or "none") == "none" else f"{mode}, reranked"


@cached("Comparing the judge's errors…", entries=8)
def families(view: View, reference: str) -> pl.DataFrame:
    """Test whether the judge errs equally on what every family of stacks retrieves: `FAMILIES`."""
    golden = view.scope.golden_set_id or ""
    both = _both(view, golden, reference).drop_nulls(["known", "judged"])
    both = both.with_columns(error=pl.col("judged").cast(pl.Int16) - pl.col("known"))
    stacks = view.table.filter("has_rankings")
    named = {row["run_id"]: family(row) for row in stacks.iter_rows(named=True)}
    top = view.snapshot.rankings(list(named), stage="final").filter(pl.col("rank") <= view.quality.k)
    top = top.with_columns(family=pl.col("run_id").replace_strict(named, return_dtype=pl.String))
    labels = groups(view.snapshot, view.scope).labels(asked := sorted(both["query_id"].unique()))
    unit = dict(zip(asked, range(len(asked)) if labels is None else labels.tolist(), strict=True))
    both = both.with_columns(unit=pl.col("query_id").replace_strict(unit, return_dtype=pl.Int64))
    rows = []
    for name in sorted(set(named.values())):
        own = top.filter(family=name).select(PAIR).unique().with_columns(own=pl.lit(value=True))
        marked = both.join(own, on=PAIR, how="left")
        rows.append({"family": name, **_apart(marked, marked["own"].is_not_null().to_numpy())})
    table = pl.DataFrame(rows, infer_schema_length=None)
    if table.is_empty():
        return table
    adjusted = holm(table["p"].cast(pl.Float64).to_numpy())
    return table.with_columns(p=pl.Series(adjusted)).with_columns(pl.col(pl.Float64).fill_nan(None))


def _apart(rows: pl.DataFrame, own: Mask) -> dict[str, Any]:
    """Compare the errors on some passages with those on the others, by their questions."""
    error, unit = rows["error"].to_numpy().astype(np.float64), rows["unit"].to_numpy()
    n = int(own.sum())
    told = {"passages": n, "error": float(error[own].mean()) if n else np.nan, "more": max(A_FAMILY - n, 0)}
    unknown = dict.fromkeys(("apart", "apart_low", "apart_high", "p"), np.nan)
    if n < A_FAMILY or (~own).sum() < A_FAMILY:
        return {**told, **unknown}
    return {**told, **_welch(error, own, unit)} if len(np.unique(unit)) >= CLUSTERS else {**told, **unknown}


def _welch(error: Floats, own: Mask, unit: Labels) -> dict[str, float]:
    """Return the difference of two means with Student's interval of the sums over units."""
    apart = error[own].mean() - error[~own].mean()
    inside, outside = (np.where(some, error - error[some].mean(), 0.0) / some.sum() for some in (own, ~own))
    sums = np.bincount(unit, inside - outside)
    units = len(np.unique(unit))
    spread = float(np.sqrt(np.sum(sums**2) * units / (units - 1)))
    reach = float(stdtrit(units - 1, 0.975)) * spread
    p = 2 * float(stdtr(units - 1, -abs(apart) / spread)) if spread > 0 else float(apart == 0)
    return {"apart": apart, "apart_low": apart - reach, "apart_high": apart + reach, "p": p}


def of_families(table: pl.DataFrame) -> str:
    """Say where the judge errs differently, and which passages to grade by hand."""
    sure = table.filter(pl.col("p") < 0.05)
    few = table.filter(pl.col("more") > 0)
    if sure.height:
        said = "; ".join(
            f"{row['family']} by {text.signed(row['apart'], '{:.2f}'.format)} grades"
            for row in sure.iter_rows(named=True)
        )
        return f"The judge errs otherwise on some stacks ({said}): grade {A_FAMILY} by hand of each family."
    if few.height:
        said = ", ".join(f"{row['more']} more of {row['family']}" for row in few.iter_rows(named=True))
        return f"Whether the judge errs alike on all stacks is unknown: grade {said}."
    tested = table.filter(pl.col("p").is_not_null()).height
    return f"No sign that the judge errs otherwise on one of {text.count(tested, 'family', 'families')}."


def how_drawn(kinds: Sequence[str]) -> str:
    """Say how the passages graded by people were drawn."""
    if not kinds:
        return "How these passages were drawn is not known: at random, this holds; by a rule, it may not."
    said: Mapping[str, str] = {str(kind): words for kind, words in SAMPLINGS.items()}
    return f"Drawn: {'; '.join(said.get(kind, kind) for kind in kinds)}."


def caveats(view: View, found: SetRight, reference: str) -> Iterator[tuple[str, str]]:
    """Yield the assumptions of the correction."""
    yield "how to read", HOW
    yield "how they were drawn", how_drawn(samplings(view.snapshot, view.scope, reference))
    if found.whole < 1 and view.quality.measure is not None and view.quality.measure.info.needs_pool:
        yield (
            "the ideal is the judge's in part",
            f"People graded {text.percent(found.whole)} of what is judged of these questions.",
        )
    if said := about_groups(view.table):
        yield "questions in groups", said


@section("people", "How much do people's grades change the scores?", graded_by_hand)
def do_people_agree(view: View, ask: Ask) -> Blocks:
    """Yield the scores of all stacks, corrected with the questions that people graded completely."""
    models = by_models(view.snapshot.golden_sets(view.scope.collection_id))
    offered = [name for name in auditors(view.snapshot, view.scope, least=FEW) if name not in models]
    why = refusal(view.snapshot, view.table, view.scope, view.quality)
    if not offered or why:
        yield Answer("Nobody has graded these passages by hand.", f"It cannot be: {why}." if offered else "")
        yield Text(GUIDE, "guide")
        yield Way("golden", "Grade passages", "judge")
        return
    reference = ask.listed("Graded by", offered, "people")
    found = set_right(view, reference)
    if found is None or not found.run_ids:
        yield Answer("No stack here is ranked on these questions.")
        return
    table = table_of(view, found)
    sentence = answer(table, view.quality.name)
    yield Answer(sentence, caveats=dict(caveats(view, found, reference)))
    known = table.filter(pl.col("corrected").is_not_null())
    if known.height:
        yield Cards(cards(known.row(0, named=True)))
        rows = known.rename({"judged": "judged_score"})
        yield Chart(
            drawn(rows, known["name"].to_list(), view.quality.name, text.score), "people", sentence, MARKS
        )
        yield Table(table, TABLE)
    else:
        yield Text(GUIDE, "guide")
    if known.height > 1:
        yield Fold(f"Differences to {known['name'][0]}", [Table(gaps(found, known), GAPS)])
    apart = families(view, reference)
    alike = (Text(of_families(apart)), Table(apart, FAMILIES))
    yield Fold("Does the judge err alike on all stacks?", alike)


def answer(table: pl.DataFrame, measure: str) -> str:
    """Say which stack is best once people have corrected the judge, and what that changed."""
    known = table.filter(pl.col("corrected").is_not_null())
    if known.is_empty():
        most = int(table["graded"].max() or 0)  # type: ignore[arg-type]
        units = f" of {CLUSTERS} groups" if most >= FEW else ""
        return (
            f"People graded the whole Top-K of {text.count(most, 'query')}; at least {FEW}{units} are needed."
        )
    best = known.row(0, named=True)
    score = f"{text.score(best['corrected'])}{text.interval(best['low'], best['high'])}"
    moved = text.signed(best["moved"], "{:.3f}".format)
    by = f"by {text.count(best['graded'], 'graded query')}"
    return f"{best['name']} has {measure} {score}, {moved} against the judge, {by}."


def cards(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the numbers of the best stack."""
    return [
        (label, text.score(row[of]), f"{text.interval(row[low], row[high]).strip()} {text.sample(row[n])}")
        for label, of, low, high, n in (
            ("Corrected", "corrected", "low", "high", "queries"),
            ("Judge", "judged", "judged_low", "judged_high", "queries"),
            ("People alone", "alone", "alone_low", "alone_high", "graded"),
        )
    ]
