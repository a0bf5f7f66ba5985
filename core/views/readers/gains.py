"""Section Gains of Readers: the gain of passages over the closed book, and of stacks (RAGGED §4, §7).

A difference of two stacks has companions: gain per point of recall, and interaction with a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import answers_by_depth
from core.analysis.workspace.view import View
from core.answers import TOP_K
from core.metrics import Measure
from core.readers.crossed import EFFECTS, crossed, per_recall
from core.readers.curves import CURVE, gains_over_k, stack_differences
from core.readers.depth import which
from core.store import Snapshot
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Chart, Fold, Table, Text, Way, section
from core.views.readers import charts
from core.views.readers.charts import points
from core.views.readers.scores import Curves, found_in, read

NO_BOOK = "No reader answered without passages here."
TO_BOOK = 'Have readers answer with `modes = ["top_k", "none"]` under `[reader]`: one more call a question.'
ALWAYS, NEVER = "always", "never"
HOW = (
    "Better at: the k whose mean score beats the closed book; surely: the whole 95 % interval does, paired "
    "by question. The mean gain is over all k, of questions that have them all (RAGGED, Tables 1, 4, 5, 7)."
)
HOW_STACKS = (
    "Mean: over the k that both stacks have; at best: each stack at its own k*, whose choice is not in the "
    "interval. Paired by question (RAGGED §7.1, Table 8)."
)
GAINS = cols.Rows(
    "gains",
    "label name",
    cols.text("better_than_closed_book", "better at", "Than the closed book.", width=110),
    cols.text("surely", "surely better at", "Where the 95 % interval of the gain is above 0.", width=120),
    cols.signed("gain_mean", "mean gain", "Points over the closed book, of all k.", digits=1),
    "gain k_star shape queries",
    more=("gain_mean_low gain_mean_high gain_low gain_high best closed_book",),
    ends="95 % interval, paired by question.",
)
LESS = cols.Rows(
    "stack_differences",
    "label",
    cols.signed("mean", "mean difference", "Points, over the k that both have.", digits=1),
    "mean_low mean_high",
    cols.signed("best", "at best", "Points, each stack at its own k*.", digits=1),
    "best_low best_high",
    "k_star",
    cols.count("base_k_star", "k* of the other", "The smallest k with the best score."),
    "queries",
    ends="95 % interval, paired by question.",
)
FACTS = cols.Rows(
    "corpus",
    "collection_id",
    cols.count("passages", help="In the collection."),
    cols.count("documents", help="Sources that passages were cut from."),
    cols.points("each", "passages a document"),
    cols.count("questions", help="In the collection."),
    cols.count("answered", help="Questions with a score here."),
)
RECALL = Measure("R")
HOW_RECALL = (
    "Both gains are means over the k that both stacks have, on the same questions; recall is of passages of "
    "grade 4 or 5 (RAGGED §7.1). The interval is Fieller's; none where recall does not surely differ."
)
HOW_CROSSED = (
    "Interaction: how much more the stack gains with the second prompt than with the first; below 0 the "
    "gains do not add up (RAGGED §6.3). Paired by question, 95 % intervals."
)
SHARE = cols.Rows(
    "per_recall",
    "label",
    cols.signed("reader_gain", help="Points of the score.", digits=1),
    cols.signed("recall_gain", help="Points of recall, in percent.", digits=1),
    cols.signed("per_recall", "reader gain ÷ recall gain", "Points of score a point of recall.", digits=2),
    "per_recall_low per_recall_high",
    cols.count("paired", "n", "Questions."),
    ends="95 % interval, Fieller's.",
)
_CELLS = dict(
    zip(
        EFFECTS,
        (
            "stack, first prompt",
            "stack, second prompt",
            "prompt, other stack",
            "prompt, this stack",
            "interaction",
        ),
        strict=True,
    )
)
CROSS = cols.Rows(
    "stack_and_prompt",
    "reader",
    cols.text("first", "first prompt"),
    cols.text("second", "second prompt"),
    *(cols.signed(name, words, "Points.", digits=1) for name, words in _CELLS.items()),
    "interaction_low interaction_high",
    cols.count("paired", "n", "Questions."),
    more=(
        "temperature",
        *(f"{name}_{end}" for name in _CELLS if name != "interaction" for end in cols.ENDS),
    ),
)


def gain_table(table: pl.DataFrame, depths: pl.DataFrame, over_k: pl.DataFrame) -> pl.DataFrame:
    """Return for every curve at which k it beats the closed book, and by how much; see `GAINS`.

    Args:
        table: From `core.analysis.readers.curve_table`.
        depths: From `core.analysis.readers.depth_table`.
        over_k: From `core.readers.curves.gains_over_k`.
    """
    top = table.filter(pl.col("mode") == TOP_K, pl.col("k") > 0, pl.col("gain").is_not_null()).sort("k")
    by_curve = top.group_by(CURVE, maintain_order=True).agg("k", above="gain", low="gain_low")
    gains = [
        {
            "better_than_closed_book": which(ks, [gain > 0 for gain in above]),
            "surely": None if None in low else which(ks, [end > 0 for end in low]),
        }
        for ks, above, low in by_curve.select("k", "above", "low").iter_rows()
    ]
    kinds = {"better_than_closed_book": pl.String, "surely": pl.String}
    verdicts = pl.concat([by_curve.select(CURVE), pl.DataFrame(gains, schema=kinds)], how="horizontal")
    named = {"mean": "gain_mean", "mean_low": "gain_mean_low", "mean_high": "gain_mean_high"}
    means = over_k.select(*CURVE, *(pl.col(old).alias(new) for old, new in named.items()))
    rows = depths
    for part in (verdicts, means):
        rows = rows.join(part, on=CURVE, how="left", nulls_equal=True, maintain_order="left")
    return rows.sort("gain_mean", descending=True, nulls_last=True, maintain_order=True)


def difference_table(
    table: pl.DataFrame, answered: data.Answered, scorer: str, of: str, base: str
) -> pl.DataFrame:
    """Subtract a stack's scores from another's, a row per reader, the largest difference first; see `LESS`.

    Args:
        table: From `core.analysis.readers.curve_table`, for the readers' labels.
        answered: Answers of both stacks.
        of: A run_id, like `base`, which is subtracted.
    """
    labels = table.filter(pl.col("run_id") == of).select(*CURVE[1:], "label").unique()
    rows = stack_differences(answered.scores, scorer, of, base, answered.groups.labels)
    named = rows.join(labels, on=CURVE[1:], how="left", nulls_equal=True)
    return named.sort("mean", "label", descending=[True, False])


def by_k(table: pl.DataFrame) -> tuple[pl.DataFrame, cols.Columns]:
    """Pivot scores: a row per reader and stack and a column per k (RAGGED, Table 6)."""
    top = table.filter(pl.col("mode") == TOP_K, pl.col("k") > 0).sort("k")
    wide = top.pivot("k", index=["label", "name"], values="value", maintain_order=True).sort("label", "name")
    ks = [name for name in wide.columns if name not in ("label", "name")]
    shown = [cols.points(k, f"k = {k}", "Score in points, 0 to 100.") for k in ks]
    return wide, ("label", "name", *shown)


def facts(snapshot: Snapshot, scope: Scope, scores: pl.DataFrame) -> pl.DataFrame:
    """Count the searched passages and the questions (RAGGED, Tables 2 and 3); null if not stored."""
    about = snapshot.collections(parts=True).filter(collection_id=scope.collection_id)
    kept = snapshot.existing("passages", [scope.collection_id], "source")
    documents = len([name for name in kept if name]) or None
    passages, questions = (about[name][0] or None for name in ("passages", "queries"))
    single = scores["query_id"].drop_nulls().n_unique() or scores["n"].max()
    return pl.DataFrame(
        {
            "collection_id": [scope.collection_id], "passages": [passages], "documents": [documents],
            "each": [passages / documents if passages and documents else None],
            "questions": [questions], "answered": [single],
        }
    )  # fmt: skip


@cached("Comparing with the closed book…", entries=16)
def over_k(view: View, scorer: str, voice: str) -> pl.DataFrame:
    """Average the gains over k; see `core.readers.curves.gains_over_k`."""
    answered = data.of_voice(found_in(view), scorer, voice)
    return gains_over_k(answered.scores, scorer, answered.groups.labels)


@section(
    "gains",
    "Which readers do passages help, at which k, and does a better stack help more?",
    answers_by_depth,
)
def what_retrieval_adds(view: View, ask: Ask) -> Blocks:
    """Yield where passages beat the closed book, and what one stack adds to another, reader by reader."""
    reading = yield from read(view, ask)
    if reading is None:
        return
    table = gain_table(reading.rows, reading.depths, over_k(view, reading.scorer, reading.voice))
    if table["gain_mean"].count():
        sentence, more = answer(table, reading.scorer)
        yield Answer(sentence, more, caveats={"how to read": HOW})
        yield Chart(_drawn(reading, table), "gains", sentence, "Points over the closed book, which is 0.")
    else:
        yield Answer(NO_BOOK)
        yield Text(TO_BOOK, "guide")
        yield Way("run", "Run", "readers")
    yield Table(table, GAINS)
    yield from _between_stacks(view, ask, reading)
    wide, columns = by_k(reading.rows)
    yield Fold("Scores by k", [Table(wide, cols.Rows("by_k", *columns))])
    scores = data.of_voice(found_in(view), reading.scorer, reading.voice).scores
    counted = facts(view.snapshot, view.scope, scores.filter(pl.col("scorer") == reading.scorer))
    yield Fold("Corpus and questions", [Table(counted, FACTS)])


def _drawn(reading: Curves, table: pl.DataFrame) -> Any:  # noqa: ANN401 - a figure of Plotly
    known = pl.col("gain").is_not_null()
    rows = reading.rows.filter(known).with_columns(value="gain", low="gain_low", high="gain_high")
    level = table.filter(known).with_columns(closed_book=pl.lit(0.0))
    colours = theme.colours_for(level["label"].unique().sort())
    return charts.by_depth(rows, level, colours, panel="name", line="label", x="k", y="gain, points")


def _between_stacks(view: View, ask: Ask, reading: Curves) -> Blocks:
    """Ask for two stacks and yield their difference, reader by reader."""
    names = reading.depths["name"].unique(maintain_order=True).to_list()
    if len(names) < 2:
        return
    of = ask.listed("Stack", names, "read")
    rest = [name for name in names if name != of]
    base = ask.listed("Less", rest, "over")
    ids = dict(runs_in(view.snapshot, view.scope).select("name", "run_id").iter_rows())
    answered = data.of_voice(found_in(view), reading.scorer, reading.voice)
    rows = difference_table(reading.rows, answered, reading.scorer, ids[of], ids[base])
    if rows.is_empty():
        yield Text(f"No reader answered from both {of} and {base}.")
        return
    yield Text(of_stacks(rows, of, base), label="Between stacks:")
    yield Table(rows, LESS)
    yield Text(HOW_STACKS, "caption")
    yield from beside(view, answered, reading.scorer, ids[of], ids[base])


def answer(table: pl.DataFrame, scorer: str) -> tuple[str, str]:
    """Say how often passages help, and which reader they help most; takes `gain_table`."""
    rows = table.drop_nulls("better_than_closed_book")
    counts = {name: rows.filter(better_than_closed_book=name).height for name in (ALWAYS, NEVER)}
    some = rows.height - sum(counts.values())
    parts = [(counts[ALWAYS], "at every k"), (some, "at some k"), (counts[NEVER], "at no k")]
    (first, words), *others = [(n, words) for n, words in parts if n]
    rest = ", ".join(f"{words} for {n}" for n, words in others) + ("; " if others else "")
    best = rows.row(0, named=True)
    most = "most for" if best["gain_mean"] > 0 else "nearest is"
    more = (
        f"{rest}{most} {best['label']} on {best['name']}: {_signed(best, 'gain_mean')} points of {scorer} "
        f"over all k, {text.sample(best['queries'])}."
    )
    return (
        f"Passages beat the closed book {words} for {first} of {text.count(rows.height, 'curve')}.",
        f"{more[:1].upper()}{more[1:]}",
    )


def of_stacks(rows: pl.DataFrame, of: str, base: str) -> str:
    """Say which reader gains most and least from one stack over the other; takes `difference_table`."""
    most, least = rows.row(0, named=True), rows.row(-1, named=True)
    said = f"{of} over {base} is worth {_signed(most, 'mean')} points to {most['label']}"
    beside = f" and {_signed(least, 'mean')} to {least['label']}" if rows.height > 1 else ""
    return f"{said}{beside}, on average over k."


def _signed(row: Mapping[str, Any], name: str) -> str:
    ends = row[f"{name}_low"], row[f"{name}_high"]
    return text.signed(row[name], points) + ("" if None in ends else points(*ends))


@cached("Scoring recall…", entries=8)
def recall_by_k(view: View, of: str, base: str, deepest: int) -> pl.DataFrame:
    """Return recall of two runs at every K: run_id, query_id, k, value; empty without judged rankings."""
    kinds = {"run_id": pl.String, "query_id": pl.String, "k": pl.Int32, "value": pl.Float64}
    ranked = view.snapshot.runs().filter("has_rankings")["run_id"]
    if view.scope.golden_set_id is None or not {of, base} <= set(ranked):
        return pl.DataFrame(schema=kinds)
    found = evidence(view.snapshot, [of, base], view.scope.golden_set_id, [RECALL])
    values = found.score([RECALL], depth=deepest)[RECALL]
    rows = [
        (run, query, k, float(value))
        for run, by_query in zip(found.run_ids, values, strict=True)
        for query, by_k in zip(found.query_ids, by_query, strict=True)
        for k, value in enumerate(by_k, 1)
    ]
    return pl.DataFrame(rows, schema=kinds, orient="row").drop_nans()


def beside(view: View, answered: data.Answered, scorer: str, of: str, base: str) -> Blocks:
    """Yield the reader's gain per point of recall, and how two stacks interact with two prompts, if known."""
    labels = data.label_of(answered.scores.filter(scorer=scorer))
    deepest = int(answered.scores["k"].max() or 1)  # type: ignore[arg-type]
    alike, recall = answered.groups.labels, recall_by_k(view, of, base, deepest)
    shares = per_recall(answered.scores, scorer, of, base, recall, alike=alike)
    if shares.height:
        rows = shares.with_columns(labels).sort("per_recall", descending=True, nulls_last=True)
        yield Text(of_recall(rows.row(0, named=True)), label="Beside recall:")
        yield Table(rows, SHARE)
        yield Text(HOW_RECALL, "caption")
    cells = crossed(answered.scores, scorer, of, base, alike)
    if cells.height:
        yield Text(" ".join(map(verdict, cells.head(3).iter_rows(named=True))), label="Stack × prompt:")
        yield Table(cells, CROSS)
        yield Text(HOW_CROSSED, "caption")


def of_recall(row: Mapping[str, Any]) -> str:
    """Say how much a reader gains from a stack's gain in recall."""
    gained = (
        f"{text.signed(row['reader_gain'], points)} points from {text.signed(row['recall_gain'], points)}"
    )
    said = f"{row['label']} gains {gained} of recall"
    if row["per_recall_low"] is None:
        return f"{said}; recall does not surely differ, or questions are few: no ratio."
    ends = f"[{row['per_recall_low']:.2f}, {row['per_recall_high']:.2f}]"
    return f"{said}: a ratio of {row['per_recall']:.2f} {ends}, {text.sample(row['paired'])}."


def verdict(row: Mapping[str, Any]) -> str:
    """Say whether the gains of a stack and of a prompt add up."""
    low, high = row["interaction_low"], row["interaction_high"]
    apart = low is not None and (low > 0 or high < 0)
    words = "more than their sum" if row["interaction"] > 0 else "less than their sum"
    who = f"{row['reader']}, {row['first']} and {row['second']}"
    ends = "" if low is None else points(low, high)
    said = f"stack and prompt together give {words}" if apart else "no significant interaction"
    number = f"{text.signed(row['interaction'], points)}{ends} points"
    return f"{who}: {said} ({number}, {text.sample(row['paired'])})."
