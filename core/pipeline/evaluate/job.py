"""An evaluation's job, read and checked before anything has run or been spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from core.errors import InputError
from core.filters import Filter
from core.pipeline.evaluate.steps import Route
from core.pipeline.own.config import OwnStack
from core.pipeline.query.entities import Names
from core.prices import PriceBook
from core.providers.config import ModelConfig
from core.records import Batch, JsonMap, Stack, canonical_json, short_hash

EMPTY_BOOK = PriceBook("none", ())
TASKS = ("embed", "index", "query")  # Kinds of tasks of a cluster


@dataclass(frozen=True, slots=True)
class Late:
    """Documents and chunks for late chunking, which takes the vectors of chunks from whole documents."""

    documents: pl.DataFrame  # source and text
    chunks: pl.DataFrame  # the place of each passage


@dataclass(frozen=True, slots=True)
class Named:
    """Further ways to identify the passages of a corpus, beside ids and whole texts."""

    rows: pl.DataFrame  # title, text and source of each passage, in the order of the corpus
    # Places of passages cut from them, frame of `TABLES["chunks"]`, if they are documents whose parts may be
    # retrieved; None = they are passages
    chunks: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages with text, in the order in which hits count them."""

    passage_ids: pl.Series  # their identifiers; hits are positions in it
    texts: pl.Series  # the searched text of each: title and text
    without_text: int  # number of passages left out because they have neither
    hash: str  # identifies the identifiers and texts
    chunking: str | None = None  # name of the chunking; None = the collection's own passages
    late: Late | None = None  # the data for late chunking; None = each passage is embedded by itself
    named: Named | None = None  # further ways to identify its passages; None = unused
    # Fields of each passage that filters ask about, of `core.filters.fields_of`; None = nothing is filtered
    fields: pl.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.passage_ids)

    @property
    def fields_hash(self) -> str:
        """Identify the fields; empty if nothing is filtered."""
        return "" if self.fields is None else short_hash(self.fields.write_ndjson())

    def parts(self, size: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the texts in pieces: the position of the first text, and at most `size` texts."""
        for start in range(0, len(self), size):
            yield start, self.texts.slice(start, size).to_list()


def texts_of(passages: pl.DataFrame) -> pl.DataFrame:
    """Return passage_id and document (title and text) of the passages that have either."""
    title, text = (pl.col(name).fill_null("") for name in ("title", "text"))
    document = pl.concat_str(title, text, separator="\n").str.strip_chars()
    return passages.select("passage_id", document=document).filter(pl.col("document") != "")


def named_corpus(passages: pl.DataFrame, chunks: pl.DataFrame | None) -> Corpus:
    """Return the texts of passages with other ways to identify them; `chunks` is as in `Named`."""
    corpus = corpus_of(passages)
    rows = corpus.passage_ids.to_frame().join(passages, on="passage_id", how="left", maintain_order="left")
    return replace(corpus, named=Named(rows.select("title", "text", "source"), chunks))


def corpus_of(passages: pl.DataFrame, chunking: str | None = None, *, late: Late | None = None) -> Corpus:
    """Return the searched texts of passages: their titles and texts.

    Passages with neither have no content to search, and are left out.

    Args:
        passages: Frame of `TABLES["passages"]`, one collection.
        chunking: Name of the chunking that made them.
        late: The data for late chunking, with chunks in any order.

    Raises:
        InputError: If no passage has text.
    """
    searched = texts_of(passages)
    if searched.is_empty():
        raise InputError("No passage has text.", where="passages", do="Import passages with text.")
    ids, texts = searched["passage_id"], searched["document"]
    if late is not None:
        placed = ids.to_frame().join(late.chunks, on="passage_id", how="inner", maintain_order="left")
        late = Late(late.documents, placed)
    return Corpus(ids, texts, passages.height - searched.height, short_hash(*ids, *texts), chunking, late)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How time is measured."""

    # How often every query is measured in a round. With 0 nothing is measured, and answers of other
    # evaluations are reused.
    repeats: int = 3
    rounds: int = 1  # How often all of that is repeated, at other times of the day
    pause_s: float = 0.0  # Seconds between the beginnings of two rounds
    warm_up: int = 1  # Unmeasured queries that every remote model answers first in a round; they are billed
    # Measure all stacks in a new order for each repeat, not stack after stack. A burst of load from elsewhere
    # then affects one repeat of a stack and not all of them.
    shuffled: bool = False
    seed: int = 0  # For that order, and the order of the queries in each pass
    concurrency: int = 1  # Number of concurrent queries to remote models; above 1 they disturb one another
    # Ask rerankers that score passages one by one only at the deepest K of a pool; smaller K then have no
    # latency
    deepest: bool = False

    @property
    def passes(self) -> int:
        """Number of times every query is measured."""
        return self.repeats * self.rounds

    def plain(self) -> JsonMap:
        """Describe it for the manifest."""
        return {
            "repeats": self.repeats,
            "rounds": self.rounds,
            "pause_s": self.pause_s,
            "warm_up": {"local": 1, "remote_queries": self.warm_up},
            "order": "rounds, shuffled" if self.shuffled else "stack after stack",
            "queries": "in an order drawn anew for each pass",
            "seed": self.seed,
            "threads": 1,
            "concurrency": self.concurrency,
            "rerank": "deepest" if self.deepest else "each-depth",
        }


@dataclass(frozen=True, slots=True)
class Share:
    """One task's share of a machine of a cluster."""

    cpus: float = 1.0  # Processors
    gpus: float = 0.0  # Graphics processors
    memory_gb: float | None = None  # Reserved memory; None = none


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An evaluation."""

    name: str  # Display name
    collection_id: str  # The searched collection
    corpora: Mapping[str | None, Corpus]  # By chunking (None = the collection's own passages)
    queries: pl.DataFrame  # Frame of `TABLES["queries"]`, in the order in which they are asked
    stacks: Sequence[Stack]  # The stacks to run
    # Needed in the store before the results: collection, queries, golden set
    setup: Batch = field(default_factory=Batch)
    # Name of the chunking by the canonical JSON of a chunker
    chunkings: Mapping[str, str] = field(default_factory=dict)
    # Configurations of models missing from the catalogues, by name
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)  # How time is measured
    budget_usd: float | None = None  # Maximum dollars to spend; None = no limit
    book: PriceBook = EMPTY_BOOK
    # The user's specification, with defaults filled in; empty if unknown
    spec: JsonMap = field(default_factory=dict)
    # Hashes of the inputs: "corpus" (passages or documents), "golden_set", "prices"…
    hashes: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""  # Separates measurements of the same thing
    # Names in the questions, for stacks whose questions use other names
    names: Names = field(default_factory=dict)
    own: Mapping[str, OwnStack] = field(default_factory=dict)  # Custom pipelines, by name
    # What the asker of each query may see (None = all); empty = nothing is filtered
    filters: Sequence[Filter | None] = ()
    # Share of a cluster machine for a task of each kind in `TASKS`
    resources: Mapping[str, Share] = field(default_factory=lambda: dict.fromkeys(TASKS, Share()))

    def __post_init__(self) -> None:
        if not self.stacks or self.queries.is_empty():
            raise InputError("There is nothing to run.", do="Give at least one stack and one query.")
        if len({stack.stack_id for stack in self.stacks}) < len(self.stacks):
            raise InputError("A stack stands twice in the list.", do="Name every stack once.")

    @property
    def queries_hash(self) -> str:
        """The hash that identifies the questions."""
        return short_hash(*self.queries["query_id"], *self.queries["text"])

    @property
    def evaluation_id(self) -> str:
        """The identity: these questions over these passages, measured under these conditions.

        Stacks, repeats and rounds can be added without repeating what was measured and paid for. The budget,
        the prices and the golden set do not affect the measurements.
        """
        conditions = {"warm_up": self.protocol.warm_up, "concurrency": self.protocol.concurrency}
        return short_hash(
            self.name,
            self.collection_id,
            self.hashes.get("corpus", ""),
            *(corpus.hash for chunking, corpus in self.corpora.items() if chunking is None),
            self.queries_hash,
            *self._filtered,
            canonical_json({**conditions, "unmeasured": self.protocol.repeats == 0}),
            self.nonce,
        )

    @property
    def _filtered(self) -> tuple[str, ...]:
        """Identify the filters and the fields that they ask about; empty if nothing is filtered."""
        if not self.filters:
            return ()
        fields = [corpus.fields_hash for corpus in self.corpora.values()]
        asked = [asked.text if asked else "" for asked in self.filters]
        return (short_hash(*asked, *fields),)

    def run_id(self, route: Route) -> str:
        """Return the identity of a stack's run in this evaluation."""
        steps = (step.key for step in route.steps)
        measured = (str(self.protocol.repeats), str(self.protocol.rounds))
        return f"r-{short_hash(self.evaluation_id, route.stack.stack_id, *steps, *measured)}"
