"""Questions that the texts of a workspace cannot answer: a separate class, never dropped silently."""

from __future__ import annotations

import re

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.scope import Scope
from core.store import Snapshot

SOME_USE = 3  # Grade from which a passage answers at least a part
TAGGED = re.compile(r"(^|[=: ])(unanswerable|no[ _-]answer|impossible)$", re.IGNORECASE)
WITHOUT = "without an answer"  # The slice of these questions, as a tag


def classes(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Classify the questions of a workspace as answerable by the texts or not.

    Returns:
        query_id, answerable and why ("tagged", "nothing of use judged"; null if it has an answer): a row
        per question that is judged or tagged; others are unknown.
    """
    queries = snapshot.queries(scope.collection_id).select("query_id", "tags")
    tagged = [query for query, tags in queries.iter_rows() if any(TAGGED.search(tag) for tag in tags or ())]
    best = pl.DataFrame(schema={"query_id": pl.String, "best": pl.Int8})
    if scope.golden_set_id is not None:
        best = snapshot.within(scope.golden_set_id).group_by("query_id").agg(best=pl.col("grade").max())
    known = pl.concat(
        [best.select("query_id"), pl.DataFrame({"query_id": tagged}, schema={"query_id": pl.String})]
    )
    rows = known.unique().join(best, on="query_id", how="left").sort("query_id")
    why = (
        pl.when(pl.col("query_id").is_in(tagged)).then(pl.lit("tagged"))
        .when(pl.col("best") < SOME_USE).then(pl.lit("nothing of use judged"))
    )  # fmt: skip
    return rows.with_columns(why=why).with_columns(answerable=pl.col("why").is_null()).drop("best")


@cached(entries=64)
def without_answer(snapshot: Snapshot, scope: Scope) -> list[str]:
    """List the questions that are known to have no answer in the texts."""
    return classes(snapshot, scope).filter(~pl.col("answerable"))["query_id"].to_list()


def with_slice(queries: pl.DataFrame, snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Add the tag `WITHOUT` to the questions without an answer; takes query_id and tags."""
    tagged = pl.col("tags").fill_null([]).list.concat(pl.lit([WITHOUT], pl.List(pl.String)))
    of_class = pl.col("query_id").is_in(without_answer(snapshot, scope))
    return queries.with_columns(pl.when(of_class).then(tagged).otherwise("tags").alias("tags"))
