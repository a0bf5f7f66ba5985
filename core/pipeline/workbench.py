"""Everything that stacks share over one corpus, built once on first use: embedders, vectors, indexes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

import polars as pl

from core.errors import InputError
from core.pipeline.bm25 import Bm25Index
from core.pipeline.dense import DenseIndex, make_index
from core.pipeline.retriever import DenseRetriever, FusedRetriever, Retriever, SparseRetriever
from core.providers.embed import Embedder, Vectors, make_embedder, unit_rows
from core.records import JsonMap, short_hash

_Made = TypeVar("_Made")


class Workbench:
    """One corpus and what is built over it.

    A passage is searched by its title and its text. Passages without either cannot be found by what they say;
    they are not indexed.

    Args:
        passages: Frame of `TABLES["passages"]`, one collection.

    Attributes:
        passage_ids: Identifiers of the indexed passages; hits refer to positions in it.
        without_text: How many passages were left out.
        corpus_hash: Identifies the identifiers and texts that were indexed.

    Raises:
        InputError: If no passage has text.
    """

    def __init__(self, passages: pl.DataFrame) -> None:
        title, text = (pl.col(name).fill_null("") for name in ("title", "text"))
        documents = passages.select(
            "passage_id", document=pl.concat_str(title, text, separator="\n").str.strip_chars()
        )
        indexed = documents.filter(pl.col("document") != "")
        if indexed.is_empty():
            raise InputError("No passage has text.", where="passages", do="Import passages with text.")
        self.passage_ids = indexed["passage_id"]
        self.without_text = documents.height - indexed.height
        self._texts: list[str] = indexed["document"].to_list()
        self.corpus_hash = short_hash(*self.passage_ids, *self._texts)
        self._made: dict[str, Any] = {}
        self._seconds: dict[str, float] = {}

    def retriever(self, spec: JsonMap) -> Retriever:
        """What answers queries for a specification that `core.pipeline.spec.check` has accepted.

        Raises:
            InputError: If the embedder lacks the dimension or does not give unit vectors.
        """
        if spec["mode"] == "sparse":
            return SparseRetriever(self._bm25())
        dense = DenseRetriever(self._embedder(spec), self._index(spec))
        if spec["mode"] == "dense":
            return dense
        fusion = spec["fusion"]
        return FusedRetriever((SparseRetriever(self._bm25()), dense), fusion["constant"], fusion["depth"])

    def indexes(self, spec: JsonMap) -> JsonMap:
        """How the indexes of a stack were built and are searched, for its manifest.

        Returns:
            Per index its parameters and the seconds that building it took; for an index of vectors the
            seconds of embedding the corpus (of shortening the vectors of a longer dimension where the model
            allows that) and its size in bytes, too.
        """
        described: dict[str, JsonMap] = {}
        if spec["mode"] != "dense":
            described["bm25"] = {**self._bm25().parameters, "build_s": self._seconds["bm25"]}
        if spec["mode"] != "sparse":
            index = self._index(spec)
            described[index.name] = {
                **index.parameters,
                "embed_s": self._seconds[f"vectors {_model(spec)}"],
                "build_s": self._seconds[f"{index.name} {_model(spec)}"],
                "bytes": index.size_bytes,
            }
        return described

    def _bm25(self) -> Bm25Index:
        return self._once("bm25", lambda: Bm25Index(self._texts))

    def _embedder(self, spec: JsonMap) -> Embedder:
        embedder = self._once(
            f"embedder {_model(spec)}", lambda: make_embedder(spec["embedder"], spec["dim"])
        )
        if not embedder.normalised:
            raise InputError(
                f"{embedder.name} does not give unit vectors, but the indexes compare by inner product.",
                where="stack",
                do="Choose an embedder with unit vectors.",
            )
        return embedder

    def _vectors(self, spec: JsonMap) -> Vectors:
        embedder = self._embedder(spec)
        if embedder.full_dim > embedder.dim:
            full = self._vectors({**spec, "dim": embedder.full_dim})
            return self._once(f"vectors {_model(spec)}", lambda: unit_rows(full[:, : embedder.dim]))
        return self._once(f"vectors {_model(spec)}", lambda: embedder.embed(self._texts))

    def _index(self, spec: JsonMap) -> DenseIndex:
        vectors = self._vectors(spec)
        return self._once(f"{spec['index']} {_model(spec)}", lambda: make_index(spec["index"], vectors))

    def _once(self, key: str, make: Callable[[], _Made]) -> _Made:
        if key not in self._made:
            start = perf_counter()
            self._made[key] = make()
            self._seconds[key] = round(perf_counter() - start, 3)
        made: _Made = self._made[key]
        return made


def _model(spec: JsonMap) -> str:
    return f"{spec['embedder']} {spec['dim']}"
