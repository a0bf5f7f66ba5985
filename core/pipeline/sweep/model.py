"""The specification of a sweep: what to search, what to ask, which stacks to compare and how to measure them.

It is written by people in TOML or YAML. Wherever a list is expected, a single value will do, and where a
table with one necessary key is expected, that key's value will do: ``fusion = "rrf"`` is
``fusion = [{method = "rrf"}]``. `core.pipeline.sweep` reads it, `core.pipeline.sweep.expand` makes its
stacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from core.pipeline.chunk.methods import CHUNKERS, canonical
from core.pipeline.own.config import AsPath, OwnStack, Positive
from core.pipeline.ranking.cut import CUTS, cut_options
from core.pipeline.ranking.pool import DEDUPS, FUSIONS, dedup_options, fusion_options
from core.pipeline.sweep.fields import (
    Bm25,
    ChunksSent,
    Encoder,
    EncoderChoice,
    Filtering,
    Index,
    IndexChoice,
    Level,
    Many,
    MethodChoice,
    Methodic,
    Named,
    NameForm,
    Reader,
    Registry,
    Resources,
    Search,
    Table,
    Under,
)
from core.providers.config import ModelConfig

SearchMode = Literal["sparse", "dense", "hybrid"]
Metric = Literal["cosine", "ip", "l2"]
_Method = Literal["grid", "one-factor", "list", "search"]
SourceFormat = Literal["auto", "beir", "jsonl", "table", "documents"]
_TAGS = ("‹Point›", "‹OwnStack›")  # No keys of a specification begin like this


def _named_by_key(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    return {
        key: {"model": key, **table, "name": key} if isinstance(table, Mapping) else table
        for key, table in given.items()
    }


OwnModels = Annotated[dict[str, ModelConfig], BeforeValidator(_named_by_key)]
"""Models that no catalogue has, by the name they go by."""


class CollectionSource(Table):
    """The collection to search.

    Attributes:
        path: BEIR folder or archive, .jsonl, .csv, .tsv or .parquet of passages, or a folder of documents
            (.txt, .md, .pdf, .html).
        stored: Instead of a path, the id of a collection that the store has.
        format: How to read the path; "auto" by content.
        id: Name in the store; None = from the path.
        language: Of stemmer and stop words, in English ("english", "french"…).
        columns: Role → column of a table whose names are not recognised.
    """

    path: AsPath | None = None
    stored: Named | None = None
    format: SourceFormat = "auto"
    id: Named | None = None
    language: Named = "english"
    columns: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.stored is None):
            raise ValueError("Give one of path and stored.")
        return self


class QuerySource(Table):
    """The queries to ask.

    Attributes:
        path: Questions (BEIR .jsonl or a table); None = those that come with the collection.
        limit: How many are asked, drawn with `seed` from the judged ones; None = all.
        seed: Of the draw.
        columns: Role → column of a table whose names are not recognised.
    """

    path: AsPath | None = None
    limit: Positive | None = None
    seed: int = 0
    columns: dict[str, str] = Field(default_factory=dict)


class GoldenSource(Table):
    """How answers are graded.

    Attributes:
        path: Judgements: TREC or BEIR qrels, a table, or spans of documents.
        stored: Instead of a path, the id of a golden set that the store has.
        id: Name in the store; None = from the path.
        mapping: How raw grades become 1..5: a name ("1-5", "binary"…) or text such as "0→1, 1→5"; None =
            chosen by the grades, and said.
        split: Which split of a BEIR collection.
        coverage: Share of a span that a chunk must hold to take over its grade, above 0 to 1.
        columns: Role → column of a table whose names are not recognised.
    """

    path: AsPath | None = None
    stored: Named | None = None
    id: Named | None = None
    mapping: Named | None = None
    split: Named | None = None
    coverage: Annotated[float, Field(gt=0, le=1)] = 0.5
    columns: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _at_most_one_place(self) -> Self:
        if self.path is not None and self.stored is not None:
            raise ValueError("Give one of path and stored.")
        return self


class FilterSource(Table):
    """Filters made of columns of the questions, and the fields that say what an asker may see.

    Attributes:
        column: Columns of the table of questions. A question sees the passages whose field of that name has
            its value (of a list one of its values), and that its column `filter` leaves.
        permission: Fields of passages that are permissions: a stack that leaks is not shipped.
    """

    column: Many[Named] = ()
    permission: Many[Named] = ()


class Axes(Table):
    """Values to combine. An axis that does not concern a mode does not multiply it.

    Attributes:
        method: "grid" = every combination; "one-factor" = the baseline, and each other value of each axis
            put into it alone; "list" = only the stacks under [[stack]]; "search" = the stacks from the grid a
            search begins, see `Search`.
        mode: "sparse", "dense", "hybrid".
        bm25: Parameters of the sparse leg.
        embedder: Models; a model may have its own dimensions.
        dim: Dimensions; empty = each model's default.
        index: Kinds of vector index, with parameters where they differ from the defaults.
        metric: How vectors are compared.
        fusion: How the legs of a hybrid are fused.
        dedup: How near copies are kept out of the pool, or "none".
        filtering: How the filters of the queries are honoured: "pre" = only allowed passages are candidates;
            "post:4" = 4 times the depth is searched, then forbidden passages are dropped; "partition", or
            "partition:FIELD" = an index for each value of a field; "none" = not at all. Empty = "pre" where
            queries have filters.
        candidates: K, the depth of the candidate pool.
        reranker: Models, or "none".
        rewrite: What is searched for a query: "hygiene", "rules", "chat:MODEL" (restated), "hyde:MODEL",
            "multi-query:MODEL", or "none".
        noise: Small talk around the queries, levels 0 to 4; the judgements are still the clean queries',
            and such runs measure how robust their clean stack is: they are not offered themselves.
        typo: Words with a slip of the keyboard, 0 to 4.
        accents: 1 = typed without accents.
        case: 1 = typed in lower case, 2 = in upper case.
        names: Names in the queries put into another form: 1 to 3 letters off, "mask", "gibberish", "label",
            "accents", "initials", "inverted", "case", "nfd"; 0 = unchanged.
        chunker: How documents are cut into passages; empty = files of text by sentences, as the paper does,
            and passages of a collection as they are.
        cut: Dynamic cutoff of the final ranking, or "none".
        chunks_sent: How many passages go to the generator, or "all".
    """

    method: _Method = "grid"
    mode: Many[SearchMode] = ("sparse", "dense", "hybrid")
    bm25: Many[Bm25] = (Bm25(),)
    embedder: Many[EncoderChoice] = (Encoder(name="wordllama"),)
    dim: Many[Positive] = ()
    index: Many[IndexChoice] = (Index(name="flat"),)
    metric: Many[Metric] = ("cosine",)
    fusion: Annotated[Many[MethodChoice], Registry(FUSIONS, fusion_options)] = (Methodic(method="rrf"),)
    dedup: Annotated[Many[MethodChoice], Registry(DEDUPS, dedup_options)] = (Methodic(method="none"),)
    filtering: Many[Filtering] = ()
    candidates: Many[Positive] = (50,)
    reranker: Many[Named] = ("none",)
    rewrite: Many[Named] = ("none",)
    noise: Many[Level] = (0,)
    typo: Many[Level] = (0,)
    accents: Many[Level] = (0,)
    case: Many[Level] = (0,)
    names: Many[NameForm] = ("0",)
    chunker: Annotated[Many[MethodChoice], Registry(CHUNKERS, canonical)] = ()
    cut: Annotated[Many[MethodChoice], Registry(CUTS, cut_options)] = (Methodic(method="none"),)
    chunks_sent: Many[ChunksSent] = ("all",)


METHODS: Mapping[str, Registry] = {
    axis: registry
    for axis, field in Axes.model_fields.items()
    for registry in field.metadata
    if isinstance(registry, Registry)
}
"""The registries of axes whose values are methods, by the key in a stack's specification."""


class Point(Table):
    """One value per axis, None = the default: a baseline, or one stack of a list. See `Axes`."""

    mode: SearchMode | None = None
    bm25: Bm25 | None = None
    embedder: Named | None = None
    dim: Positive | None = None
    index: IndexChoice | None = None
    metric: Metric | None = None
    fusion: MethodChoice | None = None
    rewrite: Named | None = None
    noise: Level | None = None
    typo: Level | None = None
    accents: Level | None = None
    case: Level | None = None
    names: NameForm | None = None
    chunker: MethodChoice | None = None
    dedup: MethodChoice | None = None
    filtering: Filtering | None = None
    reranker: Named | None = None
    candidates: Positive | None = None
    cut: MethodChoice | None = None
    chunks_sent: ChunksSent | None = None


def _kind_of_stack(given: object) -> str:
    """Return whether a stack is named by its axes, or is a custom pipeline."""
    if isinstance(given, OwnStack):
        return _TAGS[1]
    return _TAGS[isinstance(given, Mapping) and bool({"call", "url"} & set(given))]


NamedStack = Annotated[
    Annotated[Point, Tag(_TAGS[0])] | Annotated[OwnStack, Tag(_TAGS[1])], Discriminator(_kind_of_stack)
]


class Latency(Table):
    """How time is measured.

    Attributes:
        warm_up: Unmeasured queries that every remote model answers first in a round, so that connections
            stand; they are paid for. Local stages always answer every query once unmeasured.
        repeats: How often every query is measured in a round; a p50 of fewer than 3 is shaky. The first
            repeat of the first round gives the rankings. 0 = nothing is measured: every query is asked once,
            and answers of other evaluations are used again.
        rounds: How often all of that is done, at different times of the day (the paper: three).
        pause_minutes: Between the beginnings of two rounds.
        order: "sequential" = stack after stack; "shuffled" = in a new random order for every repeat.
        seed: Of that order.
        rerank: "each-depth" = a call for every candidate depth, as production would; "deepest" = one call
            at the deepest, whose scores are used for the smaller depths too, which then have no rerank
            latency (only for rerankers that score passages one by one).
        concurrency: How many queries remote models are asked at once; above 1 they disturb one another.
    """

    warm_up: Annotated[int, Field(ge=0, le=100)] = 1
    repeats: Annotated[int, Field(ge=0, le=1000)] = 3
    rounds: Annotated[int, Field(ge=1, le=100)] = 1
    pause_minutes: Annotated[float, Field(ge=0)] = 0.0
    order: Literal["sequential", "shuffled"] = "sequential"
    seed: int = 0
    rerank: Literal["each-depth", "deepest"] = "each-depth"
    concurrency: Annotated[int, Field(ge=1, le=64)] = 1

    @property
    def passes(self) -> int:
        """Number of times every query is asked and measured."""
        return self.repeats * self.rounds


class Budget(Table):
    """The most that the sweep may cost, and how costs are counted.

    Attributes:
        usd: Hard limit in dollars; None = none.
        prices: Name of a price book.
        amortise_over_queries: Spread the cost of embedding the corpus over this many queries when costs per
            1,000 queries are planned; None = leave it out of them.
    """

    usd: Annotated[float, Field(ge=0)] | None = None
    prices: Named = "list"
    amortise_over_queries: Positive | None = None


class SweepSpec(Table):
    """A whole specification.

    Attributes:
        name: What people read.
        preset: A file of data/presets whose values hold where this one has none.
        collection: What is searched.
        queries: What is asked.
        golden_set: How answers are graded; None = judgements that come with the collection.
        filters: Filters made of columns of the questions, and which fields are permissions.
        axes: Values to combine; several blocks are expanded one after the other.
        search: How axes of the method "search" are searched.
        baseline: Where one-factor starts; by default the first value of every axis.
        stack: Stacks named one by one, first the ones a search begins with; and custom pipelines, whose
            parameters are axes.
        latency: How time is measured.
        budget: What it may cost.
        models: Models that no catalogue has, by the name they have in the axes; `model` is that name unless
            it is given.
        reader: Which models answer from the passages of the runs; None = none.
        resources: What a task gets of a machine, where a cluster does the work.
        incumbent: The stack that runs today, by its label, or a pipeline by its name; it is marked in the
            store.
    """

    name: Named = "sweep"
    preset: Named | None = None
    collection: Annotated[CollectionSource, Under("path")]
    queries: Annotated[QuerySource, Under("path")] = QuerySource()
    golden_set: Annotated[GoldenSource, Under("path")] | None = None
    filters: Annotated[FilterSource, Under("column")] = FilterSource()
    axes: Many[Axes] = ()
    search: Search = Search()
    baseline: Point = Point()
    stack: Many[NamedStack] = ()
    latency: Latency = Latency()
    budget: Budget = Budget()
    models: OwnModels = Field(default_factory=dict)
    reader: Reader | None = None
    resources: Resources = Resources()
    incumbent: Named | None = None

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        names = [pipeline.name for pipeline in self.own]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"Two pipelines are called {twice!r}: give each a name of its own.")
        return self

    @property
    def own(self) -> tuple[OwnStack, ...]:
        """The custom pipelines."""
        return tuple(stack for stack in self.stack if isinstance(stack, OwnStack))

    @property
    def points(self) -> tuple[Point, ...]:
        """The stacks that are named by their axes."""
        return tuple(stack for stack in self.stack if isinstance(stack, Point))

    @property
    def searched(self) -> bool:
        """Whether its stacks are searched, and not all run."""
        methods = [*(axes.method for axes in self.axes), *(pipeline.method for pipeline in self.own)]
        return "search" in methods
