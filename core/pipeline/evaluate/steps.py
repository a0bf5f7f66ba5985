"""The work of stacks as steps named by their content: equal steps of several stacks are one step.

Building: corpus → vectors (one embedding of it) → slice (a shorter dimension) → index; corpus → bm25.
Asking: rewrite → embed → search, rewrite → sparse; both → fuse; → dedup; the pool of these → rerank → cut.
A custom pipeline is one step by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any

from core.axes import QUERY_STAGES
from core.params import Method
from core.pipeline.index import ENGINES, is_existing, parted
from core.pipeline.index.scope import PARTITION, POST, PRE, FilterWay, filter_way, filters_in
from core.pipeline.own.config import OWN, own_of
from core.pipeline.query.perturb import identified
from core.pipeline.query.rewrite import HYDE, MULTI_QUERY, QUERIES, way_of
from core.pipeline.ranking.pool import DEDUPS
from core.records import JsonMap, Stack, canonical_json, short_hash

NONE = "none"
CHUNKER = "chunker"
OF_POOL: Mapping[str, Mapping[str, Method]] = {"dedup": DEDUPS}
"""Kinds of steps that drop passages of a pool, in this order, with their methods; a kind is a key of
specifications. A method with an option `look` is given that many times the passages to choose from."""
FILTERING, FIELDS = "filtering", "fields"
_OVER_QUERIES: JsonMap = {"method": "rrf", "constant": 60, "depth": 100}
"""Fusion of the rankings of several queries."""


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work."""

    kind: str  # its action
    params: JsonMap = field(compare=False)  # its parameters
    needs: tuple[Step, ...] = field(default=(), compare=False)  # steps whose results it takes, in order
    key: str = field(init=False)  # its identity: kind, parameters and the identities of its needs

    def __post_init__(self) -> None:
        digest = short_hash(canonical_json(self.params), *(need.key for need in self.needs))
        object.__setattr__(self, "key", f"{self.kind}-{digest}")

    @property
    def asks(self) -> bool:
        """Whether queries go through it; otherwise it is built once."""
        return self.kind in QUERY_STAGES

    @property
    def stage(self) -> str:
        """The stage of a step that a query goes through."""
        return QUERY_STAGES[self.kind]

    @property
    def inputs(self) -> tuple[Step, ...]:
        """Return the steps among its needs that a query goes through."""
        return tuple(need for need in self.needs if need.asks)

    @property
    def built(self) -> Step:
        """Return the index that a search searches."""
        return next(need for need in self.needs if not need.asks)

    @property
    def index_options(self) -> JsonMap:
        """Options of the index that a search searches: some are for building it, all apply to searching."""
        return {**self.built.params["params"], **self.params.get("options", {})}

    @property
    def way(self) -> FilterWay | None:
        """How it honours the filters of its queries; None if it ignores them."""
        return filter_way(self.params[FILTERING]) if FILTERING in self.params else None

    @property
    def rewrite(self) -> Step | None:
        """The step that made its text, if any; rerankers are asked the question itself."""
        if self.kind in ("rewrite", "variant"):
            return self
        rewrite = next((rewrite for step in self.inputs if (rewrite := step.rewrite)), None)
        return None if self.kind == "rerank" and rewrite is not None and rewrite.only_searched else rewrite

    @property
    def typed(self) -> JsonMap:
        """Ways and levels by which its queries were perturbed; empty = unchanged."""
        own: JsonMap = self.params.get("typed", {})
        return own or next((typed for step in self.inputs if (typed := step.typed)), {})

    @property
    def only_searched(self) -> bool:
        """Whether a rewrite only gives text to search with, not the question in other words."""
        return self.kind == "variant" or way_of(self.params["model"]["name"]) == HYDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The steps by which one stack answers a query."""

    stack: Stack  # the stack
    chunking: str | None  # name of the chunking that is searched; None = the collection's own passages
    steps: tuple[Step, ...]  # what a query goes through, in order
    pool: Step  # the step whose first `depth` hits are the candidate pool
    depth: int  # candidate depth K
    rerank: Step | None = None  # the step that scores the pool, if any
    cut: Step | None = None  # the step that cuts the ranking, if any
    sent: int | None = None  # maximum number of passages kept; None = all

    @property
    def replayed(self) -> bool:
        """Whether the reranker's scores come from a deeper pool than this stack's own."""
        return self.rerank is not None and self.rerank.params["depth"] != self.depth

    @property
    def drops(self) -> tuple[Step, ...]:
        """The steps that drop passages of the pool, the last first."""
        found, step = [], self.pool
        while step.kind in OF_POOL:
            found.append(step)
            step = step.inputs[0]
        return tuple(found)

    @property
    def source(self) -> Step:
        """The step that ranked the passages from which the pool is taken."""
        return self.drops[-1].inputs[0] if self.drops else self.pool

    @property
    def ranked(self) -> int:
        """Number of passages that the source ranks: as many as the pool takes, or those to drop some of."""
        return self.depth * prod(map(_look, self.drops))

    @property
    def pool_name(self) -> str:
        """The convention of the pool: "bm25@K", "dense@K", or a fusion with its depth, "rrf100@K".

        A pool without near copies has another name: "rrf100-minhash@K".
        """
        fusion = self.source.params.get("fusion", {})
        heads = {"sparse": "bm25", "search": "dense", OWN: OWN}
        head = heads.get(self.source.kind) or f"{fusion['method']}{fusion.get('depth', '')}"
        head = f"queries-{head}" if "over" in self.source.params else head
        without = "".join(f"-{step.params[step.kind]['method']}" for step in reversed(self.drops))
        return f"{head}{without}@{self.depth}"

    @property
    def keeps_pool(self) -> bool:
        """Whether something selects from the pool, so that it is stored separately."""
        return self.rerank is not None or self.cut is not None or self.sent is not None


@dataclass(frozen=True, slots=True)
class Graph:
    """All routes, and the depths that their shared steps must reach."""

    routes: tuple[Route, ...]  # one per stack, in the order of the stacks
    depths: Mapping[Step, int]  # per search, fusion or sparse step the most hits that any stack takes

    def label(self, step: Step) -> str:
        """Return the name of a step at its depth in files."""
        return f"{step.key}@{self.depths.get(step, 0)}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps that queries go through, each once, after the steps that it needs."""
        return tuple(dict.fromkeys(step for route in self.routes for step in route.steps))

    @property
    def firsts(self) -> frozenset[Step]:
        """The first step of every model and pipeline; the same whatever part of the work is left."""
        steps = [step for step in self.steps if "model" in step.params]
        named = {(s.kind, s.key if s.kind == OWN else s.params["model"]["name"]): s for s in reversed(steps)}
        return frozenset(named.values())

    @property
    def builds(self) -> tuple[Step, ...]:
        """Return the steps that are built first, each once, after the steps that it needs."""
        return tuple(dict.fromkeys(build for step in self.steps for build in _builds(step)))


@dataclass(frozen=True, slots=True)
class Identities:
    """Identities of the names in a specification; part of the identity of steps."""

    corpora: Mapping[str | None, str]  # hash of what is searched, by chunking
    chunkings: Mapping[str, str] = field(default_factory=dict)  # name of a chunking, by its chunker as JSON
    models: Mapping[str, JsonMap] = field(default_factory=dict)  # all that could change a model's results
    full_dims: Mapping[tuple[str, int], int] = field(default_factory=dict)  # a corpus's embedding dimension
    versions: Mapping[str, JsonMap] = field(default_factory=dict)  # versions of the engines, by kind of step
    names: str = ""  # hash of the names in the questions
    # hash of the values of a field that a corpus is partitioned by, by chunking and field
    parts: Mapping[tuple[str | None, str], str] = field(default_factory=dict)
    # hash of the fields of a corpus that filters ask about, by chunking; engines store them
    fields: Mapping[str | None, str] = field(default_factory=dict)
    own: Mapping[str, JsonMap] = field(
        default_factory=dict
    )  # all that could change a custom pipeline's answers

    def chunking(self, spec: JsonMap) -> str | None:
        """Return the chunking that a stack searches."""
        chunker = spec.get(CHUNKER)
        return None if chunker is None else self.chunkings[canonical_json(chunker)]

    def model(self, name: str) -> JsonMap:
        """Return the identity of a model."""
        return {"name": name, **self.models.get(name, {})}


def graph(stacks: Iterable[Stack], names: Identities, *, deepest: Iterable[str] = ()) -> Graph:
    """Work out the steps of stacks."""
    stacks = tuple(stacks)
    depth_of = _rerank_depths(stacks, names, frozenset(deepest))
    routes = tuple(_route(stack, names, depth_of) for stack in stacks)
    depths: dict[Step, int] = {}
    for route in routes:
        _deepen(depths, route.pool, route.depth)
        if route.rerank is not None:
            _deepen(depths, route.pool, route.rerank.params["depth"])
    return Graph(routes, depths)


def vectors_step(spec: JsonMap, names: Identities) -> Step:
    """Return the vectors that the index of a dense or hybrid stack holds."""
    model, dim = spec["embedder"], spec["dim"]
    full = names.full_dims.get((model, dim), dim)
    chunking = names.chunking(spec)
    corpus = {"corpus": names.corpora[chunking]}
    whole = Step("vectors", {**corpus, "model": names.model(model), "dim": full})
    return whole if full == dim else Step("slice", {"dim": dim}, (whole,))


def index_step(spec: JsonMap, names: Identities) -> Step:
    """Return the vector index of a dense or hybrid stack; stacks that only search it differently share it."""
    built, _ = parted(spec["index"], spec.get("index_params"))
    params = {
        "name": spec["index"],
        "metric": spec.get("metric", "cosine"),
        "params": built,
        **_partition(spec, names),
        **_stored_fields(spec, names),
    }
    if is_existing(spec["index"], params["params"]):
        # An existing table is searched as it is: nothing is embedded for it.
        there = {"corpus": names.corpora[names.chunking(spec)], "dim": spec["dim"]}
        return Step("index", {**params, **there})
    return Step("index", {**params, **_versions(names, "index")}, (vectors_step(spec, names),))


def bm25_step(spec: JsonMap, names: Identities) -> Step:
    """Return the sparse index of a sparse or hybrid stack."""
    corpus = {"corpus": names.corpora[names.chunking(spec)]}
    options = {**spec.get("bm25", {}), **_partition(spec, names)}
    return Step("bm25", {**corpus, **options, **_versions(names, "bm25")})


def own_step(spec: JsonMap, names: Identities) -> Step:
    """Return the one step of a stack that is a custom pipeline."""
    model = {"name": spec["name"], **names.own[spec["name"]]}
    options = {"params": dict(spec.get("params", {})), "depth": int(spec["candidates"])}
    return Step(OWN, {"model": model, **options, "corpus": names.corpora[names.chunking(spec)]})


def _partition(spec: JsonMap, names: Identities) -> dict[str, JsonMap]:
    """Return the field that an index is partitioned by, with the hash of its values."""
    way = filter_way(str(spec.get(FILTERING, NONE)))
    if way.kind != PARTITION:
        return {}
    groups = names.parts.get((names.chunking(spec), way.field), "")
    return {PARTITION: {"field": way.field, "groups": groups}}


def _stored_fields(spec: JsonMap, names: Identities) -> dict[str, str]:
    """Return the hash of the fields that an engine stores beside the vectors, to filter by them."""
    kind = filter_way(str(spec.get(FILTERING, NONE))).kind
    if spec["index"] not in ENGINES or kind not in (PRE, PARTITION):
        return {}
    return {FIELDS: names.fields.get(names.chunking(spec), "")}


def _builds(step: Step) -> Iterator[Step]:
    for need in step.needs:
        yield from _builds(need)
        if not need.asks:
            yield need


def _versions(names: Identities, kind: str) -> dict[str, Any]:
    return {"versions": dict(names.versions[kind])} if names.versions.get(kind) else {}


def _route(stack: Stack, names: Identities, depth_of: Mapping[tuple[Step, str], int]) -> Route:
    spec = stack.spec
    pool, before = _pool(spec, names)
    depth, steps = int(spec["candidates"]), list(before)
    rerank = cut = None
    if spec.get("reranker", NONE) != NONE:
        deep = depth_of.get((pool, spec["reranker"]), depth)
        rerank = Step("rerank", {"model": names.model(spec["reranker"]), "depth": deep}, (pool,))
        steps.append(rerank)
    if spec.get("cut"):
        cut = Step("cut", {"cut": dict(spec["cut"]), "depth": depth}, (rerank or pool,))
        steps.append(cut)
    return Route(
        stack=stack,
        chunking=names.chunking(spec),
        steps=tuple(steps),
        pool=pool,
        depth=depth,
        rerank=rerank,
        cut=cut,
        sent=spec.get("chunks_sent"),
    )


def _pool(spec: JsonMap, names: Identities) -> tuple[Step, list[Step]]:
    if own_of(spec):
        step = own_step(spec, names)
        return step, [step]
    pool, steps = _ranked(spec, names)
    for kind, methods in OF_POOL.items():
        if options := dict(spec.get(kind) or {}):
            by_vectors = methods[options["method"]].needs_vectors
            compared = (vectors_step(spec, names),) if by_vectors else ()
            corpus = {} if by_vectors else {"corpus": names.corpora[names.chunking(spec)]}
            pool = Step(kind, {kind: options, **corpus}, (pool, *compared))
            steps = [*steps, pool]
    return pool, steps


def _ranked(spec: JsonMap, names: Identities) -> tuple[Step, list[Step]]:
    rewrite = spec.get("rewrite", NONE)
    if rewrite == NONE:
        return _searched(spec, names, ())
    text = Step("rewrite", {"model": names.model(rewrite), **_typed(spec, names)})
    if way_of(rewrite) != MULTI_QUERY:
        ranked, steps = _searched(spec, names, (text,))
        return ranked, [text, *steps]
    variants = [Step("variant", {"number": number}, (text,)) for number in range(QUERIES)]
    searched = [_searched(spec, names, (variant,)) for variant in variants]
    depth = max(int(_OVER_QUERIES["depth"]), int(spec["candidates"]))
    fusion = {"fusion": {**_OVER_QUERIES, "depth": depth}, "over": "queries"}
    fuse = Step("fuse", fusion, tuple(ranked for ranked, _ in searched))
    legs = [(variant, *steps) for variant, (_, steps) in zip(variants, searched, strict=True)]
    return fuse, [text, *chain.from_iterable(legs), fuse]


def _searched(spec: JsonMap, names: Identities, asked: tuple[Step, ...]) -> tuple[Step, list[Step]]:
    sparse, dense = [], []
    way = _filtering(spec)
    typed = {} if asked else _typed(spec, names)
    if spec["mode"] != "dense":
        sparse = [Step("sparse", {**typed, **way}, (*asked, bm25_step(spec, names)))]
    if spec["mode"] != "sparse":
        embed = Step("embed", {"model": names.model(spec["embedder"]), "dim": spec["dim"], **typed}, asked)
        _, how = parted(spec["index"], spec.get("index_params"))
        options = {**({"options": how} if how else {}), **way}
        dense = [embed, Step("search", options, (embed, index_step(spec, names)))]
    if spec["mode"] != "hybrid":
        return (sparse or dense)[-1], sparse + dense
    fuse = Step("fuse", {"fusion": dict(spec["fusion"])}, (sparse[-1], dense[-1]))
    return fuse, [*sparse, *dense, fuse]


def _filtering(spec: JsonMap) -> dict[str, Any]:
    """Return how a stack's searches honour filters.

    A post-filter finds the more the deeper it searches, so that stacks share one of equal depths only.
    """
    if not filters_in(spec.get(FILTERING)):
        return {}
    way = {FILTERING: spec[FILTERING]}
    if filter_way(spec[FILTERING]).kind != POST:
        return way
    look = prod(int(spec[kind].get("look", 1)) for kind in OF_POOL if spec.get(kind))
    return {**way, "depth": spec.get("fusion", {}).get("depth", int(spec["candidates"]) * look)}


def _typed(spec: JsonMap, names: Identities) -> dict[str, Any]:
    """Return how a stack's queries are perturbed, for the first steps that read them."""
    return {"typed": identified(spec["perturb"], names.names)} if spec.get("perturb") else {}


def _rerank_depths(
    stacks: Sequence[Stack], names: Identities, deepest: frozenset[str]
) -> dict[tuple[Step, str], int]:
    """Return the deepest K for each pool and reranker that is asked only once."""
    depths: dict[tuple[Step, str], int] = {}
    for stack in stacks:
        reranker = stack.spec.get("reranker", NONE)
        if reranker in deepest:
            key = (_pool(stack.spec, names)[0], reranker)
            depths[key] = max(depths.get(key, 0), int(stack.spec["candidates"]))
    return depths


def _look(step: Step) -> int:
    return int(step.params[step.kind].get("look", 1))


def _deepen(depths: dict[Step, int], step: Step, depth: int) -> None:
    depths[step] = max(depths.get(step, 0), depth)
    if step.kind in OF_POOL:
        _deepen(depths, step.inputs[0], depth * _look(step))
    if step.kind == "fuse":
        for leg in step.needs:
            _deepen(depths, leg, int(step.params["fusion"].get("depth", depth)))
