"""Section Sources of Readers: which passages answers are based on, by similarity and by their citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.analysis.cache import cached
from core.analysis.readers import GOLD_FROM, label_of
from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import answers_of_rankings
from core.analysis.workspace.view import View
from core.answers import TOP_K
from core.readers.attribution import attribute
from core.readers.curves import CURVE
from core.readers.refusals import refuses
from core.readers.scoring import against
from core.stats.intervals import Alike, singly
from core.stats.means import mean_interval
from core.store import Snapshot
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Fold, Table, Text, Way, section
from core.views.readers.scores import MADE_UP, made_up
from core.views.words.made_up import folded

if TYPE_CHECKING:  # the engines take a second to load
    from core.providers.embed.base import Embedder

EMBEDDER = "wordllama"  # static vectors shipped with the product, so looking costs nothing
NO_ANSWERS = "No answer here has its text and its passages."
TO_HAVE = (
    "Have a reader answer from stored runs; the prompt “grounded” makes it cite, and a golden set says which "
    "passages are gold."
)
HOW = (
    f"Each sentence rests on the passage sent that is most similar to it (cosine of {EMBEDDER}; Palmieri "
    "§6.2.2). Precision: share of the passages rested on, or cited, that are gold (grade 4, 5); recall: the "
    "gold ones sent that are. Refusals and answers to cut passages are left out, and of precision and recall "
    "questions without a gold passage."
)
MOST = 300  # Maximum sentences shown
_FIGURES: Mapping[str, tuple[str, str]] = {
    "precision": ("precision", "Of the passages that sentences are most similar to, the share that is gold."),
    "recall": ("recall", "Of the gold passages sent, the share that some sentence is most similar to."),
    "cited_precision": ("cited: precision", "Of the passages that the answer cites, the share that is gold."),
    "cited_recall": ("cited: recall", "Of the gold passages sent, the share that the answer cites."),
    "agree": ("agree", "Of the sentences that cite, the share whose most similar passage is cited."),
}
COLUMNS_OF = cols.Rows(
    "sources",
    "label",
    cols.count("k"),
    *(cols.share(name, words, about) for name, (words, about) in _FIGURES.items()),
    cols.share("base", "gold among sent", "Precision of an answer that rests on all alike."),
    cols.share("cites", help="Share of the answers that cite anything."),
    cols.count("n", "answers", "Queries."),
    more=(
        *(f"{name}_{end}" for name in _FIGURES for end in cols.ENDS),
        cols.count("refused", help="Answers that refuse, left out."),
    ),
)
SENTENCES = cols.Rows(
    "sentences",
    "query_id label",
    cols.count("k"),
    cols.text("text", "sentence", width=420),
    cols.count("source", "passage", "Number in what was sent; the most similar."),
    "passage_id",
    cols.score("similarity", help="Cosine."),
    cols.text("gold"),
    cols.text("cites", help="Numbers that the sentence cites."),
)
_KINDS = dict.fromkeys((*_FIGURES, "base"), pl.Float64()) | {"cites": pl.Boolean()}


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return _embedder().embed(texts)


@cache
def _embedder() -> Embedder:
    from core.providers.embed import make_embedder  # noqa: PLC0415 - with the engines, a second

    return make_embedder(EMBEDDER)


def sent_to(snapshot: Snapshot, scope: Scope, run_id: str) -> pl.DataFrame:
    """Return the passages of a run's rankings, in order.

    Returns:
        query_id, rank, passage_id, text and gold (whether its grade is 4 or 5; null if the question has no
        gold passage), for passages with a text.
    """
    from core.pipeline.evaluate.job import texts_of  # noqa: PLC0415 - with the engines, a second

    deep = snapshot.answers([run_id])["k"].max() or 0
    ranked = snapshot.rankings([run_id], stage="final").filter(pl.col("rank") <= deep)
    ids = ranked["passage_id"].unique().sort().to_list()
    texts = texts_of(snapshot.passages(snapshot.searched([run_id])[run_id], ids)).rename({"document": "text"})
    rows = ranked.select("query_id", "rank", "passage_id").join(texts, on="passage_id")
    graded = pl.DataFrame(schema={"query_id": pl.String, "passage_id": pl.String})
    if scope.golden_set_id is not None:
        judges = snapshot.judging([run_id], scope.golden_set_id)[run_id]
        graded = snapshot.within(judges).filter(pl.col("grade") >= GOLD_FROM).select(graded.columns)
    marked = rows.join(graded.with_columns(hit=True), on=["query_id", "passage_id"], how="left")
    known = pl.col("query_id").is_in(graded["query_id"].unique().to_list())
    gold = pl.when(known).then(pl.col("hit").fill_null(False))
    return marked.with_columns(gold=gold).drop("hit").sort("query_id", "rank")


def answers_of(snapshot: Snapshot, scope: Scope, run_id: str) -> pl.DataFrame:
    """Return the answers of a run from Top(k) with the passages they were written from.

    Returns:
        `CURVE`, query_id, k, text, refused; passages, texts and gold (lists, in the order sent), for answers
        whose passages are complete and known.
    """
    said = snapshot.answers([run_id]).filter(
        (pl.col("mode").fill_null(TOP_K) == TOP_K) & (pl.col("k") >= 1) & pl.col("text").is_not_null()
        & ~pl.col("truncated").fill_null(False)
    )  # fmt: skip
    if said.is_empty():
        return said
    said = said.with_row_index("row").with_columns(
        refused=pl.col("text").map_elements(refuses, pl.Boolean), answer="text"
    )
    listed = said.select("row", "query_id", "k").join(
        sent_to(snapshot, scope, run_id), on="query_id", maintain_order="left"
    )
    first = listed.filter(pl.col("rank") <= pl.col("k")).sort("row", "rank")
    sent = first.group_by("row", maintain_order=True).agg(
        passages="passage_id", texts="text", gold=pl.col("gold")
    )
    return said.join(sent, on="row").sort("row").select(
        *CURVE, "query_id", "k", "refused", "passages", "texts", "gold", text="answer"
    )  # fmt: skip


def attributed(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the sentences of answers that don't refuse, with `answer` as their row in the table."""
    rows = answers.with_columns(text=pl.when(pl.col("refused")).then(pl.lit("")).otherwise(pl.col("text")))
    return attribute(rows["text"].to_list(), rows["texts"].to_list(), _embed)


def source_table(answers: pl.DataFrame, sentences: pl.DataFrame, alike: Alike = singly) -> pl.DataFrame:
    """Score the sources and citations of answers, a row per reader and k; see `COLUMNS_OF` and `MORE`.

    Args:
        answers: From `answers_of`.
        sentences: From `attributed`.
        alike: Group numbers of the questions; intervals treat a group as one unit.
    """
    figures = pl.DataFrame([_figures(*row) for row in _by_answer(answers, sentences)], schema=_KINDS)
    rows = pl.concat([answers.select(*CURVE, "query_id", "k", "refused"), figures], how="horizontal")
    counts = rows.group_by(*CURVE, "k", maintain_order=True).agg(
        pl.col("refused").sum(), pl.col("base").mean(), pl.col("cites").cast(pl.Float64).mean(),
        n=pl.len() - pl.col("refused").sum(),
    )  # fmt: skip
    table = counts
    for name in _FIGURES:
        table = table.hstack(_spans(rows, counts, name, alike))
    return table.with_columns(label_of(table)).sort("label", "k")


def _by_answer(answers: pl.DataFrame, sentences: pl.DataFrame) -> list[tuple[Any, ...]]:
    own = sentences.group_by("answer").agg("cited", "source")
    lists = pl.DataFrame({"answer": range(answers.height)}, schema={"answer": pl.Int64}).join(
        own, on="answer", how="left", maintain_order="left"
    )
    return list(
        zip(answers["gold"].to_list(), lists["cited"].to_list(), lists["source"].to_list(), strict=True)
    )


def _figures(
    gold: Sequence[bool | None], cited: Sequence[Sequence[int]] | None, sources: Sequence[int | None] | None
) -> dict[str, Any]:
    """Score one answer; an unknown figure is None."""
    if cited is None or sources is None:
        return dict.fromkeys(_KINDS)
    numbers = {number for some in cited for number in some}
    rests = {source for source in sources if source is not None}
    citing = [source in some for some, source in zip(cited, sources, strict=True) if some and source]
    told = {"agree": sum(citing) / len(citing) if citing else None, "cites": bool(numbers)}
    if any(one is None for one in gold):
        return dict.fromkeys(_KINDS) | told
    relevant = [bool(one) for one in gold]
    precision, recall = against(rests, relevant)
    cited_precision, cited_recall = against(numbers, relevant) if numbers else (None, None)
    return told | {
        "precision": precision, "recall": recall, "cited_precision": cited_precision,
        "cited_recall": cited_recall, "base": sum(relevant) / len(relevant),
    }  # fmt: skip


def _spans(rows: pl.DataFrame, groups: pl.DataFrame, name: str, alike: Alike) -> pl.DataFrame:
    """Average a figure over the questions of each group, with its 95 % interval."""
    on = [*CURVE, "k"]
    mean = rows.drop_nulls(name).group_by(*on, "query_id").agg(pl.col(name).mean())
    queries = rows["query_id"].unique().sort()
    cell = mean.join(groups.select(on).with_row_index("row"), on=on, nulls_equal=True)
    values = np.full((groups.height, len(queries)), np.nan)
    column = cell["query_id"].replace_strict(queries, np.arange(len(queries)), return_dtype=pl.Int64)
    values[cell["row"].to_numpy(), column.to_numpy()] = cell[name].to_numpy()
    some = ~np.isnan(values).all(axis=1)
    ends = np.full((3, groups.height), np.nan)
    if some.any():
        ends[0, some] = np.nanmean(values[some], axis=1)
        ends[1:, some] = mean_interval(values[some], "shares", clusters=alike(queries.to_list()))
    named = zip(("", "_low", "_high"), ends, strict=True)
    return pl.DataFrame({f"{name}{end}": value for end, value in named}).fill_nan(None)


def sentence_table(answers: pl.DataFrame, sentences: pl.DataFrame) -> pl.DataFrame:
    """Return every sentence with its source, by question; see `SENTENCES`."""
    labelled = answers.with_columns(label_of(answers))
    rows = sentences.drop("cited").with_columns(
        cites=sentences["cited"].list.eval(pl.element().cast(pl.String)).list.join(", ")
    )
    kept = labelled.with_row_index("answer").select(
        pl.col("answer").cast(pl.Int64), "query_id", "label", "k", "passages", "gold"
    )
    at = pl.col("source") - 1
    return (
        rows.join(kept, on="answer", maintain_order="left")
        .with_columns(
            passage_id=pl.col("passages").list.get(at),
            gold=pl.col("gold").list.get(at).replace_strict({True: "gold", False: "not gold"}, default=None),
        )
        .sort("query_id", "label", "k", "place")
        .drop("passages", "answer", "place")
    )


@cached("Comparing sentences with passages…", entries=4)
def found(view: View, run_id: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a run's table of sources and its sentences; empty if no answer can be traced."""
    answers = answers_of(view.snapshot, view.scope, run_id)
    if answers.is_empty():
        return pl.DataFrame(), pl.DataFrame()
    sentences = attributed(answers)
    alike = groups(view.snapshot, view.scope).labels
    return source_table(answers, sentences, alike), sentence_table(answers, sentences)


@section(
    "sources", "Which passages do the answers rest on, and do their citations say so?", answers_of_rankings
)
def sources(view: View, ask: Ask) -> Blocks:
    """Yield the sources of answers by similarity, beside their citations."""
    runs = runs_in(view.snapshot, view.scope).filter("has_rankings").sort("name")
    having = set(view.snapshot.sizes("answers")["id"])
    ids = {name: run_id for run_id, name in runs.select("run_id", "name").iter_rows() if run_id in having}
    name = ask.listed("Stack", list(ids), "read") if ids else ""
    table, sentences = found(view, ids[name]) if ids else (pl.DataFrame(), pl.DataFrame())
    if table.is_empty():
        yield Answer(NO_ANSWERS)
        yield Text(TO_HAVE, "guide")
        yield Way("run", "Run", "readers")
        return
    if set(table["reader"]) == {TRIAL}:
        yield from folded(view, MADE_UP, Table(table, COLUMNS_OF))
        return
    yield Answer(*answer(table, name), caveats={"how to read": HOW, **made_up(table["reader"])})
    yield Table(table, COLUMNS_OF)
    shown = sentences.head(MOST)
    title = f"Sentences ({shown.height:,} of {sentences.height:,})"
    yield Fold(title, [Table(shown, SENTENCES, whole=sentences)])


def answer(table: pl.DataFrame, name: str) -> tuple[str, str]:
    """Say how much comes from gold passages, and whether citations agree, for the reader that cites most."""
    row = table.sort("cites", "k", descending=True, nulls_last=True).row(0, named=True)
    who = f"{row['label']} on {name}, k = {row['k']}, {text.sample(row['n'])} answers."
    said = "Which passages are gold is not known."
    if row["precision"] is not None:
        said = f"{text.percent(row['precision'])} of the passages behind the answers are relevant"
        said += f", {text.percent(row['base'])} of those sent."
    if row["agree"] is None:
        return said, f"{who} It cites none."
    gold = (
        ""
        if row["cited_precision"] is None
        else f"; {text.percent(row['cited_precision'])} of those cited are gold"
    )
    return said, f"{who} Citations agree on {text.percent(row['agree'])} of the sentences that cite{gold}."
