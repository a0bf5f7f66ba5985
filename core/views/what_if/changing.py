"""Section of What if on single queries: what a move changes, and which queries get worse by it."""

from __future__ import annotations

import polars as pl

from core.analysis.cache import cached
from core.analysis.moves.switching import switch
from core.analysis.paired import LOSSES, WINS
from core.analysis.sides import look_closer
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.records import is_group
from core.stats.significance import Setup
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Click, Fold, Table, section
from core.views.text import count, percent
from core.views.what_if.moving import asked_terms, unmarked

FIRST = 3
"""Ranks whose passages are compared."""
WORSE = cols.Rows(
    "worse",
    "query_id text delta",
    cols.score("score", "after"),
    cols.score("other", "today"),
    more="overlap tags",
)
BY_TAG = cols.Rows(
    "changing",
    cols.text("tag"),
    cols.count("n", "queries"),
    cols.share("worse", "get worse"),
    cols.share(
        "changed", f"first {FIRST} change", "Share whose first three passages are not the same three."
    ),
)


@section("queries that change", "Which queries would a move change, and which make worse?", seldom)
def questions(view: View, ask: Ask) -> Blocks:
    """Yield the share of queries that change and that get worse, by tag, and the questions themselves."""
    if view.incumbent is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    move = switch(view)
    if move.to is None:
        yield Answer("No other stack is within the limits.", "There is no move to look at.")
        return
    now, to = str(move.now["name"]), str(move.to["name"])
    rows = outcomes(view, move.now["run_id"], move.to["run_id"])
    if rows.is_empty():
        yield Answer("Quality is not known query by query for both.", f"{now} and {to} are averages.")
        return
    rows = rows.join(_changed(view, move.now["run_id"], move.to["run_id"]), on="query_id", how="left")
    worse, better = (rows.filter(outcome=outcome).height for outcome in (LOSSES, WINS))
    n, changed = rows.height, rows["changed"].mean()
    yield Answer(
        f"{percent(worse / n)} of queries get worse by {to}, {percent(better / n)} better.",
        f"{now} runs today. {view.quality.name}, n = {n}.",
    )
    yield Cards(
        [
            ("Get worse", f"{worse:,}", f"of {count(n, 'query')}"),
            ("Get better", f"{better:,}", f"of {count(n, 'query')}"),
            (
                f"First {FIRST} change",
                "unknown" if not isinstance(changed, float) else percent(changed),
                "without their order",
            ),
        ]
    )
    losses = rows.filter(outcome=LOSSES)
    side_by_side = Click(losses, {"q": "query_id"}, {"stack": to, "vs": now}, page="queries")
    yield Table(losses, WORSE, click=side_by_side)
    tags = _by_tag(rows)
    if tags.height:
        yield Fold("By tag", [Table(tags, BY_TAG)])


@cached("Comparing query by query…", entries=8)
def outcomes(view: View, now: str, to: str) -> pl.DataFrame:
    """Return the questions that both stacks have a value on, with outcome and scores; losses first."""
    setup = Setup(higher_is_better=view.quality.higher_is_better)
    looked = look_closer(view.snapshot, view.scope, view.quality, view.table, pair=(now, to), setup=setup)
    return looked.queries.filter(pl.col("outcome").is_not_null())


def _changed(view: View, now: str, to: str) -> pl.DataFrame:
    """Return per query whether the first passages differ; a query without rankings is left out."""
    ranked = view.snapshot.rankings([now, to], stage="final").filter(pl.col("rank") <= FIRST)
    sets = ranked.group_by("query_id", "run_id").agg(pl.col("passage_id").unique().sort())
    one, other = (sets.filter(run_id=run_id).drop("run_id") for run_id in (now, to))
    both = one.join(other, on="query_id", how="full", coalesce=True)
    return both.select("query_id", changed=pl.col("passage_id").ne_missing(pl.col("passage_id_right")))


def _by_tag(rows: pl.DataFrame) -> pl.DataFrame:
    """Return n and the shares that get worse and that change, per tag; the worst first."""
    tagged = rows.select("outcome", "changed", tag="tags").explode("tag").drop_nulls("tag")
    tagged = tagged.filter([not is_group(tag) for tag in tagged["tag"]])
    shares = (
        pl.len().cast(pl.Int64).alias("n"),
        (pl.col("outcome") == LOSSES).mean().alias("worse"),
        pl.col("changed").mean().alias("changed"),
    )
    found = tagged.group_by("tag").agg(shares).sort(["worse", "tag"], descending=[True, False])
    return found.select("tag", "n", "worse", "changed")
