"""The filters of a sweep's queries, the fields that they ask about, and how each stack honours them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import polars as pl

from core.errors import ClqError, InputError, UnknownNameError
from core.filters import Condition, Filter, Kind, decoded, fields_of, parse
from core.pipeline.evaluate.job import Corpus
from core.pipeline.evaluate.steps import FILTERING, NONE
from core.pipeline.index import ENGINES, index_options, is_existing, kind_of
from core.pipeline.index.scope import PARTITION, PRE, FilterWay, filter_way, partition
from core.pipeline.own.config import OwnStack, own_of
from core.pipeline.own.signature import takes_no_filter
from core.pipeline.sweep.problems import Problem, Severity
from core.records import JsonMap, Stack
from core.tables import frame

_LISTED = 5  # Queries named in a message


@dataclass(frozen=True)
class Filters:
    """The filters of queries, in their order (None = there is none), and what passages are known by."""

    query_ids: Sequence[str]
    asked: Sequence[Filter | None]
    metadata: Mapping[str, Mapping[str, object] | None]  # of passages and documents, by their ids
    declared: Mapping[str, Kind]  # types of fields, where they are declared

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields that any filter asks about."""
        return frozenset(chain.from_iterable(each.names for each in self.asked if each is not None))

    def apply(self, corpus: Corpus, sources: pl.Series) -> Corpus:
        """Return a corpus with the fields of its passages: their own, else those of their source.

        Args:
            sources: The source of each passage of the corpus; null if there is none.
        """
        pairs = zip(corpus.passage_ids, sources, strict=True)
        known = [self.metadata.get(own) or self.metadata.get(source) for own, source in pairs]
        return replace(corpus, fields=fields_of(known, self.declared, self.names))

    def problems(self, corpus: Corpus) -> Iterator[Problem]:
        """Yield filters that no passage can match, with the queries that have them."""
        fields = pl.DataFrame(height=len(corpus)) if corpus.fields is None else corpus.fields
        found: dict[tuple[str, str, Severity], list[str]] = {}
        checked: dict[Filter, tuple[str, str, Severity] | None] = {}
        for query_id, asked in zip(self.query_ids, self.asked, strict=True):
            if asked is not None:
                if asked not in checked:
                    checked[asked] = _problem(asked, fields)
                if (problem := checked[asked]) is not None:
                    found.setdefault(problem, []).append(query_id)
        for (reason, do, severity), queries in found.items():
            more = f" and {len(queries) - _LISTED} more" if len(queries) > _LISTED else ""
            yield Problem(f"filter of {', '.join(queries[:_LISTED])}{more}", reason, do, severity)


def filters_of(frames: Mapping[str, pl.DataFrame], queries: pl.DataFrame) -> Filters | None:
    """Return the filters of queries, or None if they have none."""
    stored = frames.get("query_filters")
    if stored is None or stored.join(queries, on="query_id", how="semi").is_empty():
        return None
    by_query = dict(stored.select("query_id", "filter").iter_rows())
    read = {text: parse(text, "filters") for text in set(by_query.values())}
    metadata, fields = frames.get("passage_metadata"), frames.get("fields")
    known = {} if metadata is None else dict(metadata.select("passage_id", "metadata").iter_rows())
    declared = () if fields is None else fields.select("field", "kind").drop_nulls().iter_rows()
    ids = queries["query_id"].to_list()
    return Filters(
        query_ids=ids,
        asked=[read[by_query[query]] if query in by_query else None for query in ids],
        metadata=dict(zip(known, decoded(list(known.values())), strict=True)),
        declared={name: Kind(kind) for name, kind in declared},
    )


def marked(frames: Mapping[str, pl.DataFrame], names: Sequence[str], collection_id: str) -> pl.DataFrame:
    """Return what is declared of fields, with some marked as permissions: a frame of `TABLES["fields"]`.

    Raises:
        UnknownNameError: If one of the names is a field of no passage.
    """
    metadata = frames.get("passage_metadata")
    known = fields_of(decoded([] if metadata is None else metadata["metadata"].to_list()))
    for name in names:
        if name not in known.columns:
            raise UnknownNameError("field of passages", name, known.columns, where="filters.permission")
    rows = [{"collection_id": collection_id, "field": name, "permission": True} for name in names]
    others = frames.get("fields", frame("fields", []))
    return pl.concat([others.filter(~pl.col("field").is_in(list(names))), frame("fields", rows)])


def with_ways(stacks: Sequence[Stack], filters: Filters | None) -> list[Stack]:
    """Return stacks with the way in which each honours filters; by default passages are filtered first.

    Raises:
        InputError: If a way is named and no query has a filter, or the field of partitions is not clear.
    """
    if filters is not None:
        return [_with_way(stack, filters) for stack in stacks]
    named = next((stack.spec[FILTERING] for stack in stacks if FILTERING in stack.spec), None)
    if named is not None:
        raise InputError(
            f"No query has a filter, so that filtering = {str(named)[:60]!r} means nothing.",
            where="filtering",
            do="Give the queries filters, or leave the axis out.",
        )
    return list(stacks)


def way_problems(
    stacks: Sequence[Stack], filters: Filters, corpora: Mapping[str | None, Corpus]
) -> Iterator[Problem]:
    """Yield what keeps stacks from honouring filters in their way, and what partitions come to.

    Args:
        corpora: By chunking, with the fields of their passages.
    """
    for corpus in corpora.values():
        yield from filters.problems(corpus)
        fields = {way.field for stack in stacks if (way := _way(stack.spec)).kind == PARTITION}
        for name in sorted(fields):
            yield from _partition_problems(name, corpus, stacks)
    found = (problem for stack in stacks for problem in _refusals(stack))
    yield from dict.fromkeys(found)


def own_problems(pipelines: Sequence[OwnStack]) -> Iterator[Problem]:
    """Yield a warning for each custom pipeline that no filter reaches."""
    for own in pipelines:
        if takes_no_filter(own):
            do = "Give it a parameter filter." if own.call else "Put {{ filter }} into its request."
            reason = "It takes no filter: it is asked for everything."
            yield Problem(f"stack {own.name}", reason, do, Severity.WARNING)


def _problem(asked: Filter, fields: pl.DataFrame) -> tuple[str, str, Severity] | None:
    try:
        asked.check(fields)
    except ClqError as error:
        return error.found, error.do, Severity.ERROR
    if asked.mask(fields).any():
        return None
    return "No passage matches the filter.", "Nothing is found for them.", Severity.WARNING


def _with_way(stack: Stack, filters: Filters) -> Stack:
    if own_of(stack.spec):
        return stack
    named = str(stack.spec.get(FILTERING, PRE))
    if filter_way(named) == FilterWay(PARTITION):
        named = f"{PARTITION}:{_field(filters)}"
    return Stack({**stack.spec, FILTERING: named})


def _field(filters: Filters) -> str:
    """Return the field that partitions are made by: the one that every filter wants to be equal."""
    wanted = [
        {part.name for part in asked.parts if isinstance(part, Condition) and part.operator == "in"}
        for asked in {*filters.asked} - {None}
        if asked is not None
    ]
    common = sorted(set.intersection(*wanted))
    if len(common) == 1:
        return common[0]
    found = f"All filters ask for {', '.join(common)}" if common else "No field is asked for by all filters"
    raise InputError(
        f"{found}, so that it is not clear what to partition by.",
        where="filtering",
        do=f"Name it: partition:FIELD, one of {', '.join(sorted(filters.names))}.",
    )


def _way(spec: JsonMap) -> FilterWay:
    return filter_way(str(spec.get(FILTERING, NONE)))


def _partition_problems(name: str, corpus: Corpus, stacks: Sequence[Stack]) -> Iterator[Problem]:
    fields = pl.DataFrame(height=len(corpus)) if corpus.fields is None else corpus.fields
    try:
        sizes = sorted(map(len, partition(fields, name)))
    except ClqError as error:
        yield Problem(error.where, error.found, error.do)
        return
    counted = f"{len(sizes)} partitions by {name} hold {sizes[0]:,} to {sizes[-1]:,} passages"
    yield Problem(FILTERING, f"{counted}; each is an index.", "", Severity.WARNING)
    for spec in (stack.spec for stack in stacks):
        if _way(spec).field == name and spec.get("index"):
            try:
                index_options(spec["index"], spec.get("index_params"), dim=spec.get("dim"), passages=sizes[0])
            except ClqError as error:
                reason = f"The smallest partition by {name} is too small for it: {error.found}"
                yield Problem(f"index {spec['index']}", reason, error.do)


def _refusals(stack: Stack) -> Iterator[Problem]:
    """Yield why the index of a stack cannot honour filters in the stack's way."""
    spec, way = stack.spec, _way(stack.spec)
    if own_of(spec) or spec["mode"] == "sparse":
        return
    name, existing = spec["index"], is_existing(spec["index"], spec.get("index_params"))
    if way.kind == PRE and (existing or not selects(name)):
        reason = f"The index {name} cannot filter while it searches."
        if existing:
            reason = f"The table of {name} is there already, without the fields of the filters."
        yield Problem(FILTERING, reason, "Use post:4 or partition with it.")
    if way.kind == PARTITION and existing:
        yield Problem(
            FILTERING, f"A table of {name} that is there is not partitioned.", "Use post:4 with it."
        )


def selects(name: str) -> bool:
    """Return whether a kind of index can search among some of its passages only."""
    if name in ENGINES:
        return ENGINES[name].selects
    kind = kind_of(name)
    return bool(getattr(kind, "selects", False))
