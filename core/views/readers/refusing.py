"""Section Refusing of Readers: unanswerable questions, as a separate class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.readers import GOLD_FROM
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import unanswerable
from core.analysis.workspace.unanswerable import SOME_USE, classes
from core.analysis.workspace.view import View
from core.answers import CLOSED_BOOK, GOLD, GOLD_ONLY, NO_GOLD, TOP_K
from core.arrays import Floats
from core.readers.refusals import refuses
from core.stats import separation
from core.stats.intervals import CLUSTERS, Alike, Labels
from core.stats.means import mean_interval
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Fold, Table, Text, Way, section

NONE_THERE = "No unanswerable queries yet."
TO_HAVE = (
    "Write such questions (`golden questions` has a kind unanswerable), or tag queries `unanswerable`; "
    f"judged questions without a passage of grade {SOME_USE} or more count too."
)
HOW = (
    "AUC: the chance that the first passage of a question with an answer scores above that of one without. "
    "The threshold is expected to lose at most the share of new answerable questions that you allow; how "
    "many it refuses wrongly is told of each question by the threshold of the others. Measures that need a "
    "good passage have no value on such questions: they are not in their n, and are counted here."
)
SHOULD, SHOULD_NOT = "should refuse", "should answer"
CASES: Mapping[str, str] = {
    "no answer exists": SHOULD,
    "context empty": SHOULD,
    "gold left out": SHOULD,
    "gold not found": SHOULD,
    "gold in context": SHOULD_NOT,
}
"""What a reader was given, and whether it should refuse then (Palmieri, §4.3.1)."""
_ENDS = ("", "_low", "_high")
_OF_THRESHOLD = (
    "threshold",
    *(f"{what}{end}" for what in ("right", "wrong") for end in ("", "_low", "_high")),
)
STACKS = cols.Rows(
    "refusing",
    "name",
    cols.score("auc", "AUC", "1 = scores tell answerable questions from others; 0.5 = as a coin."),
    "auc_low auc_high",
    cols.exact("threshold", help="Refuse where the first passage scores lower."),
    cols.share("right", "refused rightly", "Of the questions without an answer."),
    "right_low right_high",
    cols.share("wrong", "refused wrongly", "Of questions with one, each by the others' threshold."),
    "wrong_low wrong_high",
    cols.share("harmful", help="Share of Top(K) judged 1 or 2 on questions without an answer."),
    cols.count("without", help="Questions without an answer."),
    cols.count("answerable", "with", "Questions with an answer."),
    ends="95 % interval; of AUC Newcombe's.",
)
READERS = cols.Rows(
    "refusals",
    "name reader",
    cols.text("case"),
    cols.text("should", "it"),
    cols.share("refused", help="Share of the answers."),
    "refused_low refused_high",
    "n",
)


@cached("Separating the scores…", entries=8)
def stacks(view: View, most: float) -> pl.DataFrame:
    """Return how well each stack's scores detect answerable questions, the best first; see `STACKS`."""
    known = classes(view.snapshot, view.scope)
    runs = runs_in(view.snapshot, view.scope).filter("has_rankings")
    ids = runs["run_id"].to_list()
    ranked = view.snapshot.rankings(ids, stage="final").filter(pl.col("rank") <= max(view.quality.k, 2))
    ranked = ranked.join(known, on="query_id")
    names = dict(runs.select("run_id", "name").iter_rows())
    alike = groups(view.snapshot, view.scope).labels
    harm = _harmful(view, ranked)
    rows = [
        {"name": names[str(run_id)], **_separated(own, most, alike), "harmful": harm.get(str(run_id))}
        for (run_id,), own in ranked.group_by("run_id", maintain_order=True)
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.with_columns(pl.col(pl.Float64).fill_nan(None)).sort(
        "auc", "name", descending=[True, False], nulls_last=True
    )


def _separated(own: pl.DataFrame, most: float, alike: Alike) -> dict[str, Any]:
    first, second = (own.filter(rank=rank)["score"].mean() for rank in (1, 2))
    turned = isinstance(first, float) and isinstance(second, float) and first < second  # distances
    top = own.filter(rank=1).drop_nulls("score").with_columns(pl.col("score") * (-1 if turned else 1))
    labels, answers = alike(top["query_id"].to_list()), top["answerable"].to_numpy()
    with_one, without = (top["score"].to_numpy()[answers == one] for one in (True, False))
    of = None if labels is None else (labels[answers], labels[~answers])
    every = own.filter(rank=1)["answerable"]
    counts = {"without": int((~every).sum()), "answerable": int(every.sum())}
    found = separation.area(with_one, without, clusters=of)
    told = {"auc": found.value, "auc_low": found.low, "auc_high": found.high}
    if np.isnan(found.value):
        return told | dict.fromkeys(_OF_THRESHOLD, np.nan) | counts
    least = separation.threshold(with_one, most)
    if np.isnan(least):
        return told | dict.fromkeys(_OF_THRESHOLD, np.nan) | counts
    refused = (without < least).astype(np.float64)
    lost = separation.lost(with_one, most).astype(np.float64)
    wrong_low, wrong_high = _ends(lost, None if of is None else of[0])
    low, high = _ends(refused, None if of is None else of[1])
    return {
        **told, "threshold": -least if turned else least, "right": float(refused.mean()), "right_low": low,
        "right_high": high, "wrong": float(lost.mean()), "wrong_low": wrong_low,
        "wrong_high": wrong_high, **counts,
    }  # fmt: skip


def _ends(refused: Floats, labels: Labels | None) -> tuple[float, float]:
    low, high = mean_interval(refused, "shares", clusters=labels)
    return float(low[0]), float(high[0])


def _harmful(view: View, ranked: pl.DataFrame) -> dict[str, float]:
    """Return the share of Top(K) judged 1 or 2, over the questions without an answer, by run.

    A run is left out if none of its passages for them are judged.
    """
    if view.scope.golden_set_id is None:
        return {}
    judged = view.snapshot.within(view.scope.golden_set_id)
    bad = judged.filter(pl.col("grade") <= 2)
    top = ranked.filter(~pl.col("answerable"), pl.col("rank") <= view.quality.k)
    if top.join(judged, on="query_id", how="semi").is_empty():
        return {}
    bad_ones = top.join(bad.select("query_id", "passage_id"), on=["query_id", "passage_id"], how="semi")
    found = (
        top.group_by("run_id")
        .agg(asked=pl.col("query_id").n_unique())
        .join(bad_ones.group_by("run_id").len(), on="run_id", how="left")
    )
    rates = pl.col("len").fill_null(0) / (pl.col("asked") * view.quality.k)
    return dict(found.select("run_id", rates).iter_rows())


@cached("Reading who refuses…", entries=8)
def readers(view: View) -> pl.DataFrame:
    """Return how often readers refuse, by the passages they were given; see `READERS`."""
    runs = runs_in(view.snapshot, view.scope)
    having = view.snapshot.sizes("answers")["id"].to_list()
    ids = runs.filter(pl.col("run_id").is_in(having))["run_id"].to_list()
    said = view.snapshot.answers(ids).filter(pl.col("text").is_not_null())
    if said.is_empty():
        return pl.DataFrame()
    found = _gold_found(view, ids)
    rows = (
        said.with_columns(pl.col("mode").fill_null(TOP_K))
        .join(classes(view.snapshot, view.scope), on="query_id")
        .join(found, on=["run_id", "query_id"], how="left")
        .join(runs.select("run_id", "name"), on="run_id")
    )
    refused = [refuses(words) for words in rows["text"]]
    mode, in_context = pl.col("mode"), pl.col("first_gold") <= pl.col("k")
    case = (
        pl.when(~pl.col("answerable")).then(pl.lit("no answer exists"))
        .when(mode == CLOSED_BOOK).then(pl.lit("context empty"))
        .when(mode == NO_GOLD).then(pl.lit("gold left out"))
        .when(mode.is_in([GOLD, GOLD_ONLY]) | in_context).then(pl.lit("gold in context"))
        .otherwise(pl.lit("gold not found"))
    )  # fmt: skip
    by_case = rows.with_columns(pl.Series("refused", refused), case=case)
    parts = (
        by_case.group_by("name", "reader", "case")
        .agg(pl.col("refused").cast(pl.Float64), "query_id")
        .sort("name", "reader")
    )
    alike = groups(view.snapshot, view.scope).labels
    ends = [
        _ends(np.array(some), alike(asked)) for some, asked in parts.select("refused", "query_id").iter_rows()
    ]
    order = pl.col("case").cast(pl.Enum(list(CASES)))
    return parts.select(
        "name", "reader", "case", pl.col("case").replace_strict(CASES).alias("should"),
        pl.col("refused").list.mean(), pl.Series("refused_low", [low for low, _ in ends]),
        pl.Series("refused_high", [high for _, high in ends]), n=pl.col("refused").list.len(),
    ).with_columns(pl.col(pl.Float64).fill_nan(None)).sort("name", "reader", order)  # fmt: skip


def _gold_found(view: View, ids: list[str]) -> pl.DataFrame:
    """Return the rank of the first gold passage: run_id, query_id, first_gold."""
    if view.scope.golden_set_id is None:
        return pl.DataFrame(schema={"run_id": pl.String, "query_id": pl.String, "first_gold": pl.Int32})
    gold = view.snapshot.within(view.scope.golden_set_id).filter(pl.col("grade") >= GOLD_FROM)
    ranked = view.snapshot.rankings(ids, stage="final")
    hits = ranked.join(gold.select("query_id", "passage_id"), on=["query_id", "passage_id"], how="semi")
    return hits.group_by("run_id", "query_id").agg(first_gold=pl.col("rank").min())


@section("refusing", "When should the reader say that there is no answer?", unanswerable)
def refusing(view: View, ask: Ask) -> Blocks:
    """Yield unanswerable questions: how well scores detect them, and which readers refuse them."""
    known = classes(view.snapshot, view.scope)
    without = known.filter(~pl.col("answerable"))
    if without.is_empty():
        yield Answer(NONE_THERE)
        yield Text(TO_HAVE, "guide")
        yield Way("golden", "Golden sets")
    else:
        most = ask.number("Answerable questions refused at most (share)", "lose", 0.05, 0.0, 0.5, step=0.01)
        most = 0.05 if most is None else most
        table = stacks(view, most)
        counts = ", ".join(f"{n} {why}" for why, n in without["why"].value_counts(sort=True).rows())
        said, costs = answer(table, most)
        details = f"{costs} {text.count(without.height, 'question')} without an answer: {counts}.".strip()
        yield Answer(said, details, caveats={"how to read": HOW})
        yield Table(table, STACKS)
    rows = readers(view)
    if rows.height:
        yield Fold("What readers refuse", (Text(of_readers(rows)), Table(rows, READERS)))


def answer(table: pl.DataFrame, most: float) -> tuple[str, str]:
    """Say whose scores detect best, and what refusing by them costs at the tolerated wrong refusals."""
    best = table.row(0, named=True) if table.height else None
    if best is None or best["auc"] is None:
        return f"Too few questions with scores: {separation.FEW} of either kind are needed.", ""
    name, area = best["name"], f"{best['auc']:.3f}"
    if best["auc_low"] is None:
        few = f"Fewer than {CLUSTERS} groups of questions tell no more."
        return f"{name}'s scores have AUC {area} on these queries.", few
    does = "recognise" if best["auc_low"] > 0.5 else "do not surely recognise"
    ends = f"[{best['auc_low']:.3f}, {best['auc_high']:.3f}]"
    said = f"{name}'s scores {does} unanswerable queries: AUC {area} {ends}."
    if best["threshold"] is None:
        needs = f"at least {separation.needed(most)} questions with an answer" if most else "a share above 0"
        return said, f"A threshold needs {needs}."
    wrong, right = (
        "{} ({} to {}, n = {})".format(*(text.percent(best[f"{what}{end}"]) for end in _ENDS), best[of])
        for what, of in (("wrong", "answerable"), ("right", "without"))
    )
    return said, f"Refused where it should answer: {wrong}; where it should refuse: {right}."


def of_readers(rows: pl.DataFrame) -> str:
    """Say how often readers refuse when they should, and when they should not."""
    parts = []
    for should, words in ((SHOULD, "that should be"), (SHOULD_NOT, "that should be answered")):
        own = rows.filter(should=should)
        n = int(own["n"].sum())
        if n:
            parts.append(f"{text.percent(float((own['refused'] * own['n']).sum()) / n)} of {n:,} {words}")
    return f"Refused, by their words: {'; '.join(parts)}."
