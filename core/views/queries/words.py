"""Words of the Queries page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.per_query import FOUND_NOTHING, NOT_RANKED, WEAK, ordered, useless
from core.analysis.workspace.clusters import EACH, Groups
from core.analysis.workspace.pools import candidates_of
from core.analysis.workspace.scope import Quality
from core.stats.means import mean_interval
from core.stats.significance import TOLERANCE, outcomes
from core.views import text
from core.views.blocks import Card
from core.views.queries.one_query import Side

MOST = 4  # Cards per row
NO_PASSAGES = "Scored elsewhere: which passages were ranked is not known. Import the rankings to see them."
LISTS = {
    "ranking": "its ranking",
    "oracle": "the best order of its pool",
    "missed": "relevant passages that its pool misses",
}
"""Names of the tables of a side."""
MEANS = "Mean difference, by tag and tested"
NO_TEXT = "The text of this passage is not stored."
NO_QUESTION = "The text of this question is not stored."
RARE = "The rarer the good grades of a query, the more they weigh (CLQ paper §2.4)."
MISSED = "Grade 4 or 5, yet not among the candidates: only retrieval can bring them in."


@dataclass(frozen=True)
class QueryHead:
    """The head of the page."""

    sentence: str  # where the stack is weak, or where it wins and loses, in numbers
    details: str = ""  # what to do if there is nothing to say
    cards: tuple[Card, ...] = ()  # label, number and note: means with interval and n, and what is left out


def answer(
    rows: pl.DataFrame,
    total: int,
    quality: Quality,
    name: str,
    other: str | None = None,
    *,
    pool: str | None = None,
    alike: Groups = EACH,
) -> QueryHead:
    """Say where a stack is weak, or wins and loses against another.

    Args:
        total: Number of queries without a filter.
        pool: The convention of the candidate pool, for a stack alone; None = not stated.
    """
    if rows.is_empty():
        return QueryHead(f"None of {text.count(total, 'query')} matches.", "Clear the tag or the search.")
    scored = rows.filter(pl.col("score").is_not_null())
    if scored.is_empty():
        note = rows["note"].drop_nulls().mode().sort().to_list()
        return QueryHead(
            f"No query {'here' if rows.height == total else 'shown'} has a score ({quality.name}).",
            f"{note[0] if note else ''} The rankings can be read all the same.".strip(),
        )
    n = text.count(scored.height, "query")
    among = n if rows.height == total else f"the {n} shown"
    sentence, details = (
        _weakness(scored, among, name) if other is None else _duel(scored, quality, (name, other))
    )
    cards = _cards(rows, scored, quality, other, pool=pool, alike=alike)
    return QueryHead(f"{sentence} ({quality.name}).", details, cards)


def _weakness(scored: pl.DataFrame, among: str, name: str) -> tuple[str, str]:
    if scored["best"].is_null().all():
        least, most = (text.score(end) for end in scored["score"].sort().gather([0, -1]))
        return f"{name} scores between {least} and {most} on {among}", ""
    weak = scored.filter(pl.col("share") < WEAK, pl.col("score") != 0).height
    failed = useless(scored)
    if failed.height:
        empty = failed.filter(pl.col("best") == 0).height
        details = [
            f"On {empty:,} of these no candidate was useful either.",
            f"On {weak:,} more, ordering loses over half of what was found." * bool(weak),
        ]
        said = f"{name} finds nothing useful on {failed.height:,} of {among}"
        return said, " ".join(filter(None, details))
    on = f"{weak:,}" if weak else "none"
    return f"Ordering loses over half of what {name} found on {on} of {among}", ""


def _duel(scored: pl.DataFrame, quality: Quality, names: tuple[str, str]) -> tuple[str, str]:
    deltas = scored.select("delta").to_numpy().T * (1 if quality.higher_is_better else -1)
    better, ties, worse = (int(outcome[0]) for outcome in outcomes(deltas, TOLERANCE))
    does = "equals" if better == worse else "beats" if better > worse else "loses to"
    said = f"{names[0]} {does} {names[1]}: {better:,} won, {worse:,} lost, {ties:,} equal"
    return said, f"Equal: within {TOLERANCE:g}."


def _cards(
    rows: pl.DataFrame,
    scored: pl.DataFrame,
    quality: Quality,
    other: str | None,
    *,
    pool: str | None,
    alike: Groups,
) -> tuple[Card, ...]:
    # Every judged query, by id, has the same interval as in the stack table, however these rows are sorted.
    counted = rows.filter("counts").sort("query_id")
    judged, labels = counted.select("score").to_numpy().T, alike.labels(counted["query_id"].to_list())
    low, high = mean_interval(judged, "shares", clusters=labels)
    bounds = text.interval(low[0], high[0]).strip()
    sample = " · ".join(filter(None, (bounds, f"n = {scored.height:,}")))
    cards = [(f"Mean {quality.name}", text.score(np.nanmean(judged[0])), sample)]
    if missing := rows.height - scored.height:
        unranked = rows.filter(pl.col("note") == NOT_RANKED).height
        note = f"{unranked:,} of them not ranked, which averages over all judged queries count as 0"
        cards.append(("Without a score", f"{missing:,}", note if unranked else "see their notes"))
    if other is None:
        reached = reachable(rows, pool)
        cards[1:1] = [] if reached is None else [reached]
        worst = ordered(scored, "worst first", higher_is_better=quality.higher_is_better)
        where = text.quoted(worst["query_id"][0], worst["text"][0])
        cards.append(("Worst query", text.score(worst["score"][0]), where))
    return tuple(cards[:MOST])


def reachable(rows: pl.DataFrame, pool: str | None) -> Card | None:
    """Return the score of the best order of the candidate pool, or None if unknown.

    Args:
        rows: Rows of one stack alone.
        pool: The convention of the pool; None = not stated.
    """
    known = rows.filter("counts").drop_nulls(["score", "best"])
    if known.is_empty():
        return None
    words = f"best order of its {candidates_of(pool or '')}"
    return "PROC", text.score(float(known["best"].to_numpy().mean())), words


def about(row: Mapping[str, Any], judged: Sequence[int]) -> str:
    """Return the text below a question: its id, judgements and tags, why it has no score."""
    passages = " and ".join(text.count(number, "judged passage") for number in judged)
    return " · ".join(filter(None, (row["query_id"], passages, *row["tags"], row["note"])))


def card(row: Mapping[str, Any], *, against: bool) -> str:
    """Return the text of a passage's card: its other ranks, its weight, its source."""
    parts = [row["outside"]] if row.get("outside") else []
    if against and row.get("change"):
        there = "not ranked by the other" if row["before"] is None else f"#{row['before']} of the other"
        moved = row["change"].replace("▲ ", "up ").replace("▼ ", "down ")
        parts.append(there if row["change"] in ("new", "=") else f"{there}, {moved} here")
    if "now" in row:
        parts.append("left out of the ranking" if row["now"] is None else f"now #{row['now']}")
    if row.get("weight") is not None:
        parts.append(f"weight {row['weight']:.3f}")
    if row.get("points") is not None:
        parts.append(f"score {row['points']:.4g}")
    if row.get("reason"):
        parts.append(f"rated so because: {row['reason']}")
    return " · ".join([*parts, row["source"] or row["passage_id"]])


def ranked(side: Side, quality: Quality) -> str:
    """Return the score of a stack's ranking, or why there is none."""
    if not side.ranked:
        return FOUND_NOTHING if side.asked else NOT_RANKED
    possible = "" if side.best is None else f" of a possible {text.score(side.best)}"
    return f"{quality.name} {text.score(side.score)}{possible}"


def best(side: Side, quality: Quality) -> str:
    """Describe the best order of a stack's pool, and its score."""
    if side.oracle.is_empty():
        return "Nothing in the pool earns anything."
    return f"{quality.name} {text.score(side.best)}: those of the first {quality.k} that count"


def bars(most: int) -> str:
    """Say what a chart of many queries leaves out."""
    return f"At most {most} bars, both ends of the order; queries without a score are left out."


def gains(side: Side, k: int) -> str:
    """Say how much weight a stack's ranking collects, and how much the best order of its pool would."""
    ideal = side.judged.ideal
    own, best = (
        f"{gain:.3f}" + (f" ({gain / ideal:.3f})" if ideal else "") for gain in (side.gain, side.reachable)
    )
    return (
        f"{side.name}: G_obs of the ranking {own}; of the best order of its pool {best}. G_ideal, the {k} "
        f"largest weights of all judged passages: {ideal:.3f}."
    )


def nothing(name: str | None, ranked: str) -> tuple[str, str]:
    """Say why there are no queries to show, and what to do; without a name the limits exclude all stacks."""
    if name is None:
        return "Your limits leave no stack.", "Choose one by name, or relax a limit."
    return (
        f"{name} came without per-query data: only its averages are known.",
        f"Choose another stack, for example {ranked}, or bring its rankings.",
    )
