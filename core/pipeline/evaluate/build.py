"""Builds the vectors of a corpus, shorter ones, and indexes, each once, kept for later evaluations.

It also makes the models of one evaluation, each once, with its journals and its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl
from numpy.lib.format import open_memmap

from core.arrays import Ints, Vectors
from core.files import read_json, write_json
from core.jobs import cores
from core.pipeline.chunk import vectors_of
from core.pipeline.environment import threads
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.job import Corpus, Late
from core.pipeline.evaluate.steps import FIELDS, Step
from core.pipeline.index import (
    ENGINES,
    DatabaseIndex,
    DatabasePlace,
    DenseIndex,
    is_existing,
    load_index,
    make_index,
    use_index,
)
from core.pipeline.index.bm25 import BM25_OPTIONS, Bm25Index, NoWordsError, make_bm25
from core.pipeline.index.partitioned import Partitioned, folder_of
from core.pipeline.index.scope import PARTITION, partition
from core.pipeline.own.config import OWN, OwnStack
from core.pipeline.own.model import OwnRetriever, asker_of
from core.pipeline.own.passages import PassageShelf
from core.pipeline.query.rewrite import Rewrite, make_rewrite
from core.providers.base import Amount, Meter, Reply, total
from core.providers.calls import Journal, Keys
from core.providers.chat import Chat, make_chat
from core.providers.config import ModelConfig
from core.providers.embed import Embedder, TokenEmbedder, make_embedder, unit_rows
from core.providers.rerank import Reranker, make_reranker
from core.records import Basis, JsonMap

M = TypeVar("M")
VECTORS, INDEX = "vectors.npy", "index"
_BM25 = tuple(option.name for option in BM25_OPTIONS)
LOCAL_PART, REMOTE_PART = 1024, 16_384
"""Texts that are embedded together. A killed process loses at most one part of local work; of paid work it
loses at most the batches under way, as their replies are in the journal."""
_SLICE_ROWS = 65_536
OPEN_BYTES = 2 * 2**30
"""Stacks are measured in turn with others as long as their indexes need no more memory than this."""
SEQUENTIAL_BELOW = 50_000
"""Fewer vectors than this are indexed on one thread: a graph is then the same every time."""
Progress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what ("passages"); may raise an error to stop the work."""
PASSAGES = "passages"
Dense = DenseIndex | DatabaseIndex


class Models:
    """Makes models by the names that stacks use."""

    def __init__(
        self,
        configs: Mapping[str, ModelConfig],
        *,
        shared: Journal | None,
        own: Journal | None,
        meter: Meter,
        keys: Keys | None = None,
    ) -> None:
        self._configs, self._meter, self._keys = configs, meter, keys or Keys()
        self._shared, self._own = shared, own
        self._by_key: dict[tuple[object, ...], Any] = {}

    def for_passages(self, name: str, dim: int) -> Embedder:
        """Return an embedder whose replies are kept for all evaluations."""
        return self._embedder(name, dim, self._shared)

    def for_queries(self, name: str, dim: int) -> Embedder:
        """Return an embedder whose replies are kept for this evaluation."""
        return self._embedder(name, dim, self._own)

    def reranker(self, name: str) -> Reranker:
        """Return a reranker whose replies are kept for this evaluation."""
        reranker = self._asked(make_reranker, name)
        reranker.journal = None if reranker.local else reranker.journal
        return reranker

    def rewrite(self, name: str) -> Rewrite:
        """Return a rewrite whose replies are kept for this evaluation."""
        return self._asked(make_rewrite, name)

    def chat(self, name: str) -> Chat:
        """Return a chat model whose replies are kept for this evaluation."""
        return self._asked(make_chat, name)

    def own(self, config: OwnStack, step: Step, shelf: PassageShelf) -> OwnRetriever:
        """Return a custom pipeline.

        Its stacks share a process, whose answers are kept for this evaluation.
        """
        identity = {name: step.params[name] for name in ("model", "params", "corpus")}

        def make() -> OwnRetriever:
            asks = self._once(("pipeline", config.name), lambda: asker_of(config, self._keys))
            return OwnRetriever(
                config, asks, shelf, params=step.params["params"], identity=identity, journal=self._own,
                meter=self._meter,
            )  # fmt: skip

        return self._once((OWN, step), make)

    def close(self) -> None:
        """Close connections."""
        for model in self._by_key.values():
            model.close()
        self._by_key.clear()

    def interrupt(self) -> None:
        """Cancel pending waits for vendors."""
        for model in list(self._by_key.values()):
            model.interrupt()

    def _embedder(self, name: str, dim: int, journal: Journal | None) -> Embedder:
        model = self._configs.get(name, name)
        embedder = self._once(
            ("embedder", name, dim, journal),
            lambda: make_embedder(model, dim, keys=self._keys, meter=self._meter, journal=journal),
        )
        # What runs here costs nothing, and answers faster than a file.
        embedder.journal = None if embedder.local else journal
        return embedder

    def _asked(self, make: Callable[..., M], name: str) -> M:
        wired = {"keys": self._keys, "meter": self._meter, "journal": self._own}
        return self._once((make, name), lambda: make(name, models=self._configs, **wired))

    def _once(self, key: tuple[object, ...], make: Callable[[], M]) -> M:
        if key not in self._by_key:
            self._by_key[key] = make()
        model: M = self._by_key[key]
        return model


def no_progress(_done: int, _whole: int, _unit: str) -> None:
    """Ignore progress reports."""


_Index = TypeVar("_Index", bound=Bm25Index | Dense | Partitioned[Any])


class Builder:
    """Makes and opens what queries search."""

    def __init__(
        self,
        artifacts: Artifacts,
        models: Models,
        corpora: Mapping[str, Corpus],
        stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._artifacts, self._models, self._corpora, self._stage = artifacts, models, corpora, stage
        self._open: dict[Step, Any] = {}

    def vectors(self, step: Step, within: Progress = no_progress) -> Vectors:
        """Return the vectors of a step of kind "vectors" or "slice"."""
        whole = step.kind == "vectors"  # the vectors embedded before a process was killed are kept
        fill = partial(self._embed if whole else self._shorten, step, within=within)
        waiting = lambda: within(0, 0, "")  # noqa: E731
        folder = self._artifacts.make(step, fill, continues=whole, waiting=waiting)
        vectors: Vectors = np.load(folder / VECTORS, mmap_mode="r")
        return vectors

    def corpus(self, step: Step) -> Corpus:
        """Return the corpus that a step builds from."""
        while "corpus" not in step.params:
            step = step.needs[0]
        return self._corpora[step.params["corpus"]]

    def index(self, step: Step, within: Progress = no_progress) -> Dense | Partitioned[Dense]:
        """Return the index of a step of kind "index"."""
        name, metric, params = (step.params[key] for key in ("name", "metric", "params"))
        if PARTITION in step.params:
            load = partial(Partitioned.load, load=load_index)
            return self._saved(step, partial(self._parts, step, within=within), load, within)
        existing = is_existing(name, params)
        corpus = self.corpus(step)
        ids = corpus.passage_ids.to_list() if existing else ()

        def make(folder: Path) -> Dense:
            fields = corpus.fields if FIELDS in step.params else None
            place = DatabasePlace(folder, f"clq_{step.key.replace('-', '_')}", ids, corpus.texts, fields)
            if existing:
                return use_index(name, metric, params, place=place, dim=step.params["dim"])
            vectors = self.vectors(step.needs[0], within)
            with threads(1 if len(vectors) < SEQUENTIAL_BELOW else cores()):
                return make_index(name, vectors, metric, params, place=place)

        return self._saved(step, make, partial(load_index, ids=ids), within)

    def _parts(self, step: Step, folder: Path, within: Progress) -> Partitioned[Dense]:
        name, metric, params = (step.params[key] for key in ("name", "metric", "params"))
        vectors, corpus = self.vectors(step.needs[0], within), self.corpus(step)
        fields = corpus.fields if FIELDS in step.params else None
        positions, parts = self._positions(step), list[Dense | None]()
        for number, of_part in enumerate(positions):
            table = f"clq_{step.key.replace('-', '_')}_{number}"
            held = None if fields is None else fields[of_part]
            place = DatabasePlace(folder_of(folder, number), table, (), corpus.texts.gather(of_part), held)
            with threads(1 if len(of_part) < SEQUENTIAL_BELOW else cores()):
                parts.append(make_index(name, vectors[of_part], metric, params, place=place))
            within(number + 1, len(positions), "partitions")
        return Partitioned(parts, positions, step.params[PARTITION]["field"])

    def _positions(self, step: Step) -> list[Ints]:
        """Return the positions of the passages of each part that a step makes an index of."""
        fields = self.corpus(step).fields
        return partition(pl.DataFrame() if fields is None else fields, step.params[PARTITION]["field"])

    def search(self, step: Step) -> Dense | Partitioned[Dense]:
        """Return the index of a step of kind "search", set up for that search."""
        index, options = self.index(step.built), step.params.get("options")
        return index.with_options(options) if options else index

    def bm25(self, step: Step, within: Progress = no_progress) -> Bm25Index | Partitioned[Bm25Index]:
        """Return the sparse index of a step of kind "bm25"."""
        given = {name: value for name, value in step.params.items() if name in _BM25}
        texts = self.corpus(step).texts
        if PARTITION not in step.params:
            return self._saved(step, lambda _: make_bm25(texts.to_list(), given), Bm25Index.load, within)

        def make(_: Path) -> Partitioned[Bm25Index]:
            positions = self._positions(step)
            parts = [_bm25_part(texts.gather(of_part).to_list(), given) for of_part in positions]
            return Partitioned(parts, positions, step.params[PARTITION]["field"])

        return self._saved(step, make, partial(Partitioned.load, load=Bm25Index.load), within)

    def build(self, step: Step, within: Progress = no_progress) -> None:
        """Build a step's result, so that it exists when it is asked for."""
        {"bm25": self.bm25, "index": self.index}.get(step.kind, self.vectors)(step, within)

    @property
    def open_bytes(self) -> int:
        """Memory size of the open indexes."""
        here = [step for step in self._open if step.params.get("name") not in ENGINES]
        return sum(self._artifacts.about(step)["bytes"] for step in here)

    def release(self, kept: Container[Step]) -> None:
        """Close indexes in memory other than those to keep."""
        for step in [step for step in self._open if step not in kept]:
            del self._open[step]

    def about(self, step: Step) -> JsonMap:
        """Describe how an index was built and is searched, for the manifest."""
        built = self._artifacts.about(step)
        about = {**built["parameters"], "build_s": built["build_s"], "bytes": built["bytes"]}
        if not step.needs:
            return about
        vectors = self._artifacts.about(step.needs[0])
        whole = self._artifacts.about(step.needs[0].needs[0]) if step.needs[0].needs else vectors
        return {**about, "embed_s": vectors["seconds"], "embed_usage": whole["usage"]}

    def _saved(
        self, step: Step, make: Callable[[Path], _Index], load: Callable[[Path], _Index], within: Progress
    ) -> _Index:
        """Return an open index, loaded from its file, which is written first if necessary.

        New or old, it is searched from its file, so that times are comparable.
        """
        if step not in self._open:

            def fill(draft: Path) -> JsonMap:
                built = make(draft)
                built.save(draft / INDEX)
                size = {"build_s": round(built.build_s, 3), "bytes": built.size_bytes}
                return {"parameters": dict(built.parameters), **size}

            folder = self._artifacts.make(step, fill, waiting=lambda: within(0, 0, ""))
            self._open[step] = load(folder / INDEX)
        index: _Index = self._open[step]
        return index

    def _embed(self, step: Step, draft: Path, within: Progress) -> JsonMap:
        """Embed a corpus part by part into a file, keeping the parts that a killed process finished."""
        corpus, dim = self._corpora[step.params["corpus"]], step.params["dim"]
        embedder = self._models.for_passages(step.params["model"]["name"], dim)
        self._stage(f"embed the corpus: {embedder.name} {dim} d")
        if corpus.late is not None:
            return _embed_late(corpus.late, embedder, draft, within)
        progress = _Parts(draft / "parts.json")
        mode = "r+" if progress.done else "w+"
        vectors = open_memmap(draft / VECTORS, mode=mode, dtype=np.float32, shape=(len(corpus), dim))
        size = LOCAL_PART if embedder.local else REMOTE_PART
        for start, texts in corpus.parts(size):
            if start in progress.done:
                continue
            on_batch = partial(_batch_done, within, start, len(corpus))
            reply = embedder.embed_all(texts, out=vectors[start : start + len(texts)], on_batch=on_batch)
            vectors.flush()
            progress.add(start, reply)
            within(start + len(texts), len(corpus), PASSAGES)
        return {"rows": len(corpus), "dim": dim, "seconds": progress.seconds, "usage": progress.usage}

    def _shorten(self, step: Step, draft: Path, within: Progress) -> JsonMap:
        whole, dim, begin = self.vectors(step.needs[0], within), step.params["dim"], perf_counter()
        shorter = open_memmap(draft / VECTORS, mode="w+", dtype=np.float32, shape=(len(whole), dim))
        for start in range(0, len(whole), _SLICE_ROWS):
            shorter[start : start + _SLICE_ROWS] = unit_rows(whole[start : start + _SLICE_ROWS, :dim])
            within(start, len(whole), PASSAGES)
        shorter.flush()
        return {"rows": len(whole), "dim": dim, "seconds": round(perf_counter() - begin, 3)}


def _bm25_part(texts: Sequence[str], options: JsonMap) -> Bm25Index | None:
    """Return the index of a part of a corpus, or None if nothing in it can be found by words."""
    try:
        return make_bm25(texts, options)
    except NoWordsError:
        return None


def _embed_late(late: Late, embedder: Embedder, draft: Path, within: Progress) -> JsonMap:
    """Embed whole documents, and pool the vectors of their chunks from token vectors."""
    begin, cpu = perf_counter(), process_time()
    encoder = cast(TokenEmbedder, embedder)  # its caller refuses other embedders
    on_document = lambda done, n: within(done, n, "documents")  # noqa: E731
    vectors = vectors_of(late.documents, late.chunks, encoder, on_document=on_document)
    np.save(draft / VECTORS, vectors)
    usage = [[embedder.item, "cpu_ms", (process_time() - cpu) * 1000, Basis.MEASURED.value]]
    seconds = round(perf_counter() - begin, 3)
    return {"rows": len(vectors), "dim": embedder.dim, "seconds": seconds, "usage": usage}


def _batch_done(within: Progress, start: int, whole: int, done: int, _: int) -> None:
    within(start + done, whole, PASSAGES)


class _Parts:
    """The embedded parts of a corpus, and their usage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        progress = read_json(path) or {}
        self.done: list[int] = progress.get("done", [])
        self.seconds: float = progress.get("seconds", 0.0)
        self.usage: list[list[Any]] = progress.get("usage", [])

    def add(self, start: int, reply: Reply[Vectors]) -> None:
        before = [Amount(item, unit, n, Basis(basis)) for item, unit, n, basis in self.usage]
        self.usage = [[a.item, a.unit, a.amount, a.basis.value] for a in total([before, reply.usage])]
        self.seconds = round(self.seconds + (reply.ms + reply.waited_ms) / 1000, 3)
        self.done.append(start)
        write_json(self._path, {"done": self.done, "seconds": self.seconds, "usage": self.usage})
