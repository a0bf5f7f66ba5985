"""Candidate pools computed while planning, if that is free, as rerankers are billed by their content.

BM25 and the static embeddings that come with the product are run over small corpora; nothing is sent and
nothing is written. Pools that need a vendor's vectors, or a slow model, stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from core.arrays import Vectors
from core.axes import KEYS
from core.pipeline.evaluate import Corpus
from core.pipeline.index import ENGINES, make_index, parted
from core.pipeline.index.bm25 import make_bm25
from core.pipeline.query.entities import Names
from core.pipeline.query.perturb import perturbed
from core.pipeline.ranking import Hits
from core.pipeline.ranking.pool import fuse
from core.pipeline.sweep.known import NONE, KnownNames
from core.providers.base import Purpose
from core.providers.embed import make_embedder, unit_rows
from core.records import JsonMap, canonical_json

MAX_PASSAGES = 20_000  # A larger corpus takes too long for a plan
FREE = ("wordllama", "fake")  # Providers of embeddings that take milliseconds a passage or less

_Made = TypeVar("_Made")


class Pools:
    """Computes the candidate pools of stacks."""

    def __init__(
        self,
        corpora: Mapping[str | None, Corpus],
        queries: Sequence[str],
        known: KnownNames,
        chunking: Callable[[JsonMap], str | None],
        names: Names = MappingProxyType({}),
    ) -> None:
        self._corpora, self._queries, self._known, self._chunking = corpora, queries, known, chunking
        self._names = names
        self._kept: dict[str, Any] = {}

    def of(self, spec: JsonMap, depth: int) -> list[list[str]] | None:
        """Return the texts of the pool of every query; see `hits`."""
        rankings, corpus = self.hits(spec, depth), self._corpora[self._chunking(spec)]
        if rankings is None:
            return None
        return [corpus.texts.gather(hits.passages[:depth]).to_list() for hits in rankings]

    def hits(self, spec: JsonMap, depth: int) -> list[Hits] | None:
        """Return the pool of every query, or None if finding it out would cost something or take long."""
        if len(self._corpora[self._chunking(spec)]) > MAX_PASSAGES or not self._is_free(spec):
            return None
        if spec["mode"] == "sparse":
            return self._sparse(spec, depth)
        if spec["mode"] == "dense":
            return self._dense(spec, depth)
        legs_depth = int(spec["fusion"].get("depth", depth))
        legs = zip(self._sparse(spec, legs_depth), self._dense(spec, legs_depth), strict=True)
        return [fuse(spec["fusion"], pair, depth) for pair in legs]

    def typed(self, spec: JsonMap) -> list[str]:
        """Return the questions as they are typed."""
        perturb, names = spec.get("perturb"), self._names
        if not perturb:
            return list(self._queries)
        return self._once(
            f"typed {perturb}",
            lambda: [perturbed(query, perturb, names.get(query, ())) for query in self._queries],
        )

    def asked(self, spec: JsonMap) -> list[str]:
        """Return questions as searched, or as typed if a chat model would rewrite them."""
        rewrite, typed = spec.get("rewrite", NONE), self.typed(spec)
        if rewrite == NONE or not self._known.is_local("rewrite", rewrite):
            return typed
        change = self._known.planned_rewrite(rewrite)
        return self._once(f"rewrite {_text(spec)}", lambda: [change.rewrite(query).value for query in typed])

    def _is_free(self, spec: JsonMap) -> bool:
        if any(spec.get(name) for name, key in KEYS.items() if not key.planned):
            return False
        if not self._known.is_local("rewrite", spec.get("rewrite", NONE)):
            return False
        if spec["mode"] == "sparse":
            return True
        embedder = self._known.embedder(spec["embedder"])
        return embedder is not None and embedder.provider in FREE

    def _sparse(self, spec: JsonMap, depth: int) -> list[Hits]:
        options, asked = spec.get("bm25", {}), self.asked(spec)
        name = f"bm25 {self._chunking(spec)} {canonical_json(options)}"
        index = self._once(name, lambda: make_bm25(self._texts(spec), options))
        key = f"{name} {_text(spec)} {depth}"
        return self._once(key, lambda: [index.search(query, depth) for query in asked])

    def _dense(self, spec: JsonMap, depth: int) -> list[Hits]:
        metric, kind = spec.get("metric", "cosine"), spec["index"]
        params, how = parted(kind, spec.get("index_params"))
        if kind in ENGINES:  # which a plan does not ask
            kind, params, how = "flat", {}, {}
        vectors = f"{self._chunking(spec)} {spec['embedder']} {spec['dim']}"
        name = f"index {vectors} {kind} {metric} {canonical_json(params)}"
        index = self._once(name, lambda: make_index(kind, self._vectors(spec, vectors), metric, params))
        asked = self._asked_vectors(spec)
        key = f"{name} {canonical_json(how)} {_text(spec)} {depth}"
        return self._once(key, lambda: index.with_options(how).search_batch(asked, depth))

    def _vectors(self, spec: JsonMap, name: str) -> Vectors:
        config, dim = self._known.config("embedder", spec["embedder"]), spec["dim"]
        full = config.full_dim(dim)
        if full == dim:
            embedder = make_embedder(config, full)
            return self._once(f"vectors {name}", lambda: embedder.embed(self._texts(spec)))
        whole = self._vectors({**spec, "dim": full}, f"{self._chunking(spec)} {spec['embedder']} {full}")
        return unit_rows(whole[:, :dim])

    def _asked_vectors(self, spec: JsonMap) -> Vectors:
        embedder = make_embedder(self._known.config("embedder", spec["embedder"]), spec["dim"])
        key = f"asked {_text(spec)} {spec['embedder']} {spec['dim']}"
        return self._once(key, lambda: embedder.embed(self.asked(spec), Purpose.QUERY))

    def _texts(self, spec: JsonMap) -> list[str]:
        texts: list[str] = self._corpora[self._chunking(spec)].texts.to_list()
        return texts

    def _once(self, key: str, make: Callable[[], _Made]) -> _Made:
        if key not in self._kept:
            self._kept[key] = make()
        kept: _Made = self._kept[key]
        return kept


def _text(spec: JsonMap) -> str:
    return f"{spec.get('rewrite')} {spec.get('perturb')}"
