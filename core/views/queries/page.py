"""Queries: where a stack is weak, query by query, alone or against a second stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.stats.intervals import bootstrap_means
from core.stats.significance import TOLERANCE, outcomes
from core.store import Snapshot
from core.views import text
from core.views.queries.scores import NOT_RANKED, query_scores
from core.views.workspace.scope import Quality, Scope

WEAK = 0.5
"""A query is weak when the ranking reaches less than this share of what its candidate pool holds."""
UNJUDGED = "No passage of this query is judged."
_QUESTION = 70
_TIES = ("best", "query_id")

SORTS: Mapping[str, tuple[str, bool]] = {
    "worst first": ("score", False),
    "best first": ("score", True),
    "most holes": ("holes", True),
    "id": ("query_id", False),
}
"""How the table can be ordered: column, and whether the largest comes first."""
SORTS_AGAINST: Mapping[str, tuple[str, bool]] = {
    "largest loss": ("delta", False),
    "largest gain": ("delta", True),
    **SORTS,
}
"""The same with a second stack."""


def query_table(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    run_id: str,
    other: str | None = None,
    *,
    as_zero: bool = False,
) -> pl.DataFrame:
    """Every query of the workspace with what one stack makes of it.

    Args:
        snapshot: Where to read.
        scope: Collection and golden set.
        quality: Measure and cutoff.
        run_id: A run with rankings.
        other: Another run with rankings, to compare with.
        as_zero: Count a judged query that a stack was not asked as 0, as averages over all queries do; else
            its score is unknown. One that it was asked and ranks nothing for scores 0 either way.

    Returns:
        One row per query that is stored, judged or ranked, by id: query_id, text (null = not stored), tags,
        score (null = not applicable or not known), other (the second stack's score), delta = score − other,
        best (PROC of the query), share = score / best, holes (unjudged passages in the Top-K), judged
        (passages judged for the query), counts (whether it is among the judged queries that the workspace is
        compared on), note (why there is no score, or why it is 0).

    Raises:
        UnknownNameError: If the collection, the golden set or a run does not exist.
    """
    texts = snapshot.queries(scope.collection_id).select("query_id", "text", "tags")
    run_ids = [run_id] if other is None else [run_id, other]
    scores = query_scores(snapshot, scope, quality, run_ids, as_zero=as_zero)
    return (
        texts.join(scores, on="query_id", how="full", coalesce=True)
        .join(_ranked(snapshot, texts, run_id), on="query_id", how="full", coalesce=True)
        .with_columns(
            pl.col("tags").fill_null([]),
            pl.col("judged").fill_null(0),
            pl.col("counts").fill_null(value=False),
            (pl.col("score") - pl.col("other")).alias("delta"),
            pl.when(pl.col("best") > 0).then(pl.col("score") / pl.col("best")).alias("share"),
        )
        .with_columns(pl.when(pl.col("judged") == 0).then(pl.lit(UNJUDGED)).otherwise("note").alias("note"))
        .sort("query_id")
    )


def _ranked(snapshot: Snapshot, texts: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """Ids of the ranked queries where no query texts are stored; they are the only list of queries then."""
    if texts.height:
        return texts.select("query_id").clear()
    return snapshot.rankings([run_id], stage="final").select("query_id").unique()


def tags_of(table: pl.DataFrame) -> list[str]:
    """The tags that queries of the table carry, sorted."""
    return table["tags"].explode().drop_nulls().unique().sort().to_list()


def narrowed(table: pl.DataFrame, tags: Sequence[str], words: str) -> pl.DataFrame:
    """The queries that match.

    Args:
        table: The query table.
        tags: Tags to look for: any of those with the same name (``package=numpy`` or ``package=polars``), and
            one of every name.
        words: Every word must occur in the question, the id or a tag, upper and lower case alike.

    Returns:
        The rows, in their order.
    """
    facets: dict[str, list[str]] = {}
    for tag in tags:
        facets.setdefault(tag.split("=", 1)[0], []).append(tag)
    for wanted in facets.values():
        table = table.filter(pl.col("tags").list.set_intersection(wanted).list.len() > 0)
    haystack = pl.concat_str(
        "query_id", pl.col("text"), pl.col("tags").list.join(" "), separator="\n", ignore_nulls=True
    ).str.to_lowercase()
    found = (haystack.str.contains(word, literal=True) for word in words.lower().split())
    return table.filter(pl.all_horizontal(pl.lit(value=True), *found))


def ordered(table: pl.DataFrame, sort: str, *, higher_is_better: bool = True) -> pl.DataFrame:
    """The table in one of the orders of `SORTS_AGAINST`; what has no value comes last.

    Of equals, the one whose pool holds more comes first: more was lost there.
    """
    column, largest_first = SORTS_AGAINST[sort]
    if column in ("score", "delta"):
        largest_first = largest_first == higher_is_better
    descending = {column: largest_first, **{name: name == "best" for name in _TIES if name != column}}
    return table.sort(list(descending), descending=list(descending.values()), nulls_last=True)


@dataclass(frozen=True)
class Answer:
    """The head of the page.

    Attributes:
        sentence: Where the stack is weak, or where it wins and loses, in numbers.
        details: Means with interval and n, and what is left out.
    """

    sentence: str
    details: str


def answer(rows: pl.DataFrame, total: int, quality: Quality, name: str, other: str | None = None) -> Answer:
    """Say where a stack is weak, or where it wins and loses against another.

    Args:
        rows: The queries to speak about.
        total: How many queries there are without a filter.
        quality: Measure and cutoff.
        name: The stack.
        other: The second stack.
    """
    if rows.is_empty():
        return Answer(
            f"None of {text.count(total, 'query', 'queries')} matches.", "Clear the tag or the search."
        )
    scored = rows.filter(pl.col("score").is_not_null())
    if scored.is_empty():
        note = rows["note"].drop_nulls().mode().sort().to_list()
        return Answer(
            f"No query {'here' if rows.height == total else 'shown'} has a score ({quality.name}).",
            f"{note[0] if note else ''} The rankings can be read all the same.".strip(),
        )
    n = text.count(scored.height, "query", "queries")
    among = n if rows.height == total else f"the {n} shown"
    sentence = (
        _weakness(scored, quality, among, name)
        if other is None
        else _duel(scored, quality, among, (name, other))
    )
    return Answer(sentence, _details(rows, scored, quality, other))


def _weakness(scored: pl.DataFrame, quality: Quality, among: str, name: str) -> str:
    worst = ordered(scored, "worst first", higher_is_better=quality.higher_is_better)
    lowest = f"worst: {_quoted(worst)} ({text.score(worst['score'][0])})"
    if scored["best"].is_null().all():
        return f"{name} scores between {_span(scored['score'])} on {among} ({quality.name}); {lowest}."
    weak = scored.filter(pl.col("share") < WEAK).height
    return (
        f"On {f'{weak:,}' if weak else 'none'} of {among} {name} finds less than half of what its pool holds "
        f"({quality.name}); {lowest}."
    )


def _span(scores: pl.Series) -> str:
    return " and ".join(text.score(value) for value in (scores.to_numpy().min(), scores.to_numpy().max()))


def _duel(scored: pl.DataFrame, quality: Quality, among: str, names: tuple[str, str]) -> str:
    up = quality.higher_is_better
    deltas = scored.select("delta").to_numpy().T * (1 if up else -1)
    better, ties, worse = (int(each[0]) for each in outcomes(deltas, TOLERANCE))
    sentence = (
        f"{names[0]} beats {names[1]} on {better:,} of {among}, loses on {worse:,} and ties on {ties:,} "
        f"({quality.name}, differences up to {TOLERANCE:g} are ties)"
    )
    if not worse:
        return f"{sentence}."
    loss = ordered(scored, "largest loss", higher_is_better=up)
    return f"{sentence}; largest loss: {_quoted(loss)} ({signed(loss['delta'][0])})."


def _details(rows: pl.DataFrame, scored: pl.DataFrame, quality: Quality, other: str | None) -> str:
    n = scored.height
    # Every judged query, by id, has the same resamples as in the stack table, however these rows are ordered.
    judged = rows.filter("counts").sort("query_id").select("score", "delta").to_numpy().T
    low, high = bootstrap_means(judged[: 1 if other is None else 2])
    mean = text.score(np.nanmean(judged[0]))
    said = [f"Mean {quality.name} {mean}{text.interval(low[0], high[0])}, n = {n:,}"]
    if other is not None:
        difference, least, most = (signed(value) for value in (np.nanmean(judged[1]), low[1], high[1]))
        said.append(f"mean difference {difference} [{least}, {most}] (paired bootstrap over queries)")
    said.append(
        f"{scored['holes'].to_numpy().mean():.1f} of the first {quality.k} passages are unjudged on average"
    )
    hopeless = int((scored["best"] == 0).sum())
    if hopeless:
        said.append(f"on {hopeless:,} the pool holds nothing that counts")
    if n < rows.height:
        said.append(f"{text.count(rows.height - n, 'query has', 'queries have')} no score")
    if unranked := rows.filter(pl.col("note") == NOT_RANKED).height:
        said.append(f"{unranked:,} of them not ranked, which averages over all judged queries count as 0")
    return "; ".join(said) + "."


def signed(value: float) -> str:
    """A difference of qualities with its sign, three decimals: ``+0.031``, ``−0.500``."""
    return f"{'−' if value < -0.0005 else '+' if value >= 0.0005 else ''}{abs(value):.3f}"


def _quoted(rows: pl.DataFrame) -> str:
    """The first row's query: its id and the start of its question."""
    question = rows["text"][0]
    said = f" “{text.shorten(' '.join(question.split()), _QUESTION)}”" if question else ""
    return f"{rows['query_id'][0]}{said}"


def nothing(name: str | None, ranked: Sequence[str]) -> tuple[str, str]:
    """What to say instead of the page: why there are no queries to show, and what to do.

    Args:
        name: The stack that was picked; None when the limits of the sidebar leave none.
        ranked: Stacks that have rankings.
    """
    choice = (
        f"Choose another stack, for example {ranked[0]}, or import rankings."
        if ranked
        else "Import rankings."
    )
    if name is None:
        return "Your limits leave no stack.", "Choose one by name, or relax a limit in the sidebar."
    return (
        f"{name} came without per-query data: only its averages are known.",
        f"This page needs its ranking of every query. {choice}",
    )
