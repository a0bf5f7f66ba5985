"""Evaluations of search engines: Elasticsearch's ranking evaluation, OpenSearch's search relevance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.errors import InputError
from core.importers.base import Options
from core.importers.formats.lists import ListedResults, ResultLists, scored, unseen
from core.importers.read.jsons import (
    Json,
    at,
    expect,
    identifier,
    items,
    mapping,
    number,
    outline,
    read_json,
    text,
    texts,
)
from core.importers.read.member import Member
from core.importers.report import TAKEN
from core.importers.samples import FormatSample

_HITS = "details.*.hits."
_UNRATED = "queries without a rating"
_RELEVANCE = (
    "judgmentRatings.query", "judgmentRatings.ratings.docId", "judgmentRatings.ratings.rating", "searchText",
    "searchConfigurationId", "documentIds", "metrics.metric", "metrics.value", "results.queryText",
    "results.snapshots.searchConfigurationId", "results.snapshots.docIds",
)  # fmt: skip
_HOLDS = ("judgmentRatings", "documentIds", "results")


class RankEval(ResultLists):
    """Requests and responses of Elasticsearch's ``_rank_eval`` (OpenSearch has it too)."""

    name, title = "rank-eval", "Elasticsearch ranking evaluation (JSON)"
    takes = {
        "judgements": "ratings of a request, or those of the hits of a response",
        "rankings": "the hits of a response in their order, with their scores",
        **scored("metric_score of each query"),
    }
    recognised = "requests with ratings, or details with metric_score and hits"
    untried = unseen("Elasticsearch")
    traps = ("Documents are named by their id alone; where two indexes have the same it is refused.",)
    known = {
        "request": {
            **dict.fromkeys(("requests.id", "requests.ratings._id", "requests.ratings.rating"), TAKEN),
            "requests.ratings._index": "ids alone name documents",
            **dict.fromkeys(("requests.*", "*"), "how it was asked, not what came of it"),
        },
        "response": {
            **dict.fromkeys((f"{_HITS}hit._id", f"{_HITS}hit._score", f"{_HITS}rating"), TAKEN),
            "details.*.metric_score": TAKEN,
            f"{_HITS}hit.*": "ids alone name documents",
            "details.*.unrated_docs": "they are hits without a rating",
            "details.*.metric_details": "follow from hits and ratings",
            "metric_score": "the mean over the queries is computed",
            "failures": "queries that failed",
        },
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        paths = outline(member).keys()
        if "requests[].ratings" in paths:
            return "request"
        steps = [path.rsplit(".", 1) for path in paths if path.startswith(("details.", "rank_eval.details."))]
        return "response" if {"metric_score", "hits"} <= {step[-1] for step in steps} else None

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        whole, listed = read_json(member), ListedResults()
        if self.kind(member) == "request":
            for index, asked in enumerate(items(whole, "requests", member.name) or ()):
                where = at(member.name, "requests", index)
                query = expect(asked, "id", str, where)
                rated = [(rating, where) for rating in items(asked, "ratings", where) or ()]
                listed.left[_UNRATED] += not rated
                listed.judged += _judged(query, rated)
            return listed
        whole = mapping(whole, "rank_eval", member.name) or whole
        samples = listed.samples.setdefault("", [])
        for query, detail in expect(whole, "details", dict, member.name).items():
            where = at(member.name, "details", query)
            hits = [(mapping(hit, "hit", where) or {}, hit) for hit in items(detail, "hits", where) or ()]
            rated = [({**hit, "rating": both.get("rating")}, where) for hit, both in hits]
            listed.judged += _judged(query, rated)
            samples.append(
                FormatSample(
                    text="",
                    query_id=query,
                    context_ids=[identifier(hit, "_id", where) for hit, _ in hits],
                    scores=[number(hit, "_score", where) for hit, _ in hits],
                    values={"metric_score": number(detail, "metric_score", where)},
                )
            )
        listed.left["queries that failed"] += len(mapping(whole, "failures", member.name) or ())
        return listed


def _judged(query: str, rated: list[tuple[Json, str]]) -> Iterator[tuple[str, str, object]]:
    indexes: dict[str, object] = {}
    for rating, where in rated:
        passage = identifier(rating, "_id", where)
        if passage is None:
            raise InputError("There is no '_id' here.", where=where)
        if indexes.setdefault(passage, rating.get("_index")) != rating.get("_index"):
            problem = f"Document {passage!r} stands in two indexes; by its id alone they are one."
            raise InputError(problem, where=where)
        yield query, passage, rating.get("rating")


class SearchRelevance(ResultLists):
    """Judgement lists, experiments and evaluation results of OpenSearch's search relevance."""

    name, title = "search-relevance", "OpenSearch search relevance (JSON)"
    takes = {
        "judgements": "the ratings of a judgement list, by the text of the query",
        "rankings": "documents of evaluation results, and of both sides of a pairwise comparison",
        **scored("the metrics of evaluation results"),
    }
    recognised = "judgmentRatings, documentIds with searchText and metrics, or results with snapshots"
    untried = unseen("OpenSearch")
    traps = (
        "A query is known by its text there.",
        "Metrics of a comparison say how alike its two sides are, of none how good: they are left out.",
        "Experiments that name their evaluations alone hold no result: offer those too.",
    )
    known = {
        "": {
            f"{head}{key}": why
            for head in ("hits.hits._source.", "_source.", "")
            for key, why in {
                **dict.fromkeys(_RELEVANCE, TAKEN),
                **dict.fromkeys(("results.metrics", "results.*"), "of both sides, not how good they are"),
                "*": "says how it was run",
            }.items()
        }
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        if not outline(member):
            return None
        shapes = (("judgmentRatings",), ("documentIds", "searchText"), ("queryText", "snapshots"))
        keys = (all(f'"{key}"'.encode() in member.head for key in shape) for shape in shapes)
        return "found" if any(keys) else None

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        listed, runs = ListedResults(), dict[str, dict[str, FormatSample]]()
        for where, source in _sources(read_json(member), member.name):
            listed.left["documents of another kind"] += all(source.get(key) is None for key in _HOLDS)
            for judged in items(source, "judgmentRatings", where) or ():
                query = expect(judged, "query", str, where)
                listed.texts[query] = query
                ratings = items(judged, "ratings", where)
                listed.left[_UNRATED] += not ratings
                for rating in ratings or ():
                    passage = expect(rating, "docId", str, where)
                    listed.judged.append((query, passage, rating.get("rating")))
            for query, run, ids, metrics in _found(source, where, listed):
                sample = runs.setdefault(run, {}).setdefault(query, FormatSample(text=query, query_id=query))
                if sample.context_ids is not None:
                    raise InputError(f"The query {query!r} of {run} stands twice.", where=where)
                sample.context_ids, sample.values = ids, metrics
        listed.samples = {run: list(samples.values()) for run, samples in runs.items()}
        return listed


def _sources(whole: object, name: str) -> Iterator[tuple[str, Json]]:
    """Yield documents: the hits of a search response, or else the members of a list, or the single one."""
    hits = mapping(whole, "hits", name) if isinstance(whole, dict) else None
    held = items(hits, "hits", name) if hits else None
    for index, one in enumerate(held if held is not None else whole if isinstance(whole, list) else [whole]):
        where = at(name, index) if isinstance(whole, list) else name
        source = mapping(one, "_source", where) or one
        if isinstance(source, dict):
            yield where, source


def _found(
    source: Json, where: str, listed: ListedResults
) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
    ids = texts(source, "documentIds", where)
    if ids is not None:
        run = text(source, "searchConfigurationId", where) or ""
        metrics = {}
        for metric in items(source, "metrics", where) or ():
            value = metric.get("value") if isinstance(metric, dict) else None
            metrics[expect(metric, "metric", str, where)] = _number(value, where)
        yield expect(source, "searchText", str, where), run, ids, metrics
    for result in items(source, "results", where) or ():
        snapshots = items(result, "snapshots", where)
        listed.left["results that only name their evaluation: offer it too"] += not snapshots
        for side in snapshots or ():
            run = text(side, "searchConfigurationId", where) or ""
            yield expect(result, "queryText", str, where), run, texts(side, "docIds", where) or [], {}


def _number(value: object, where: str) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        raise InputError(f"{value!r} is not a number.", where=where) from None
