"""Rows of a reranker's ratings per criterion: the evidence behind its scores, for reweighting them."""

from __future__ import annotations

from typing import Any

import polars as pl

from core.pipeline.evaluate.measure import StepOutputs
from core.pipeline.evaluate.steps import Route
from core.tables import frame

PER_QUERY = frozenset({"inferred", "fallback"})


def rated(
    run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series, passage_ids: pl.Series
) -> dict[str, pl.DataFrame]:
    """Return rows of the tables "criteria" and "ratings", or {} if only relevance was rated."""
    if route.rerank is None:
        return {}
    told = [details.get("rated") for details in results[route.rerank].details]
    if not any(told):
        return {}
    criteria: dict[tuple[str | None, int], dict[str, Any]] = {}
    ratings: list[dict[str, Any]] = []
    for query_id, hits, about in zip(query_ids, results[route.pool].values, told, strict=True):
        if not about:
            continue
        of_query = query_id if about["origin"] in PER_QUERY else None
        for position, (name, meaning, weight) in enumerate(about["criteria"], 1):
            row = {"criterion": name, "meaning": meaning, "weight": weight, "origin": about["origin"]}
            named = {"run_id": run_id, "query_id": of_query, "position": position}
            criteria.setdefault((of_query, position), {**named, **row})
        reasons = about.get("reasons") or [None] * len(about["ratings"])
        for passage, row_of, reason in zip(
            hits.passages[: route.depth], about["ratings"], reasons, strict=False
        ):
            named = {"run_id": run_id, "query_id": query_id, "passage_id": passage_ids[int(passage)]}
            ratings += [
                {**named, "position": position, "rating": rating, "reason": None if position else reason}
                for position, rating in enumerate(row_of or ())
            ]
    return {"criteria": frame("criteria", list(criteria.values())), "ratings": frame("ratings", ratings)}
