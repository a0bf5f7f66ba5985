"""From axes to stacks: deterministic, each stack once, in the canonical form of `Stack.spec`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from core.pipeline.query.perturb import WAYS, perturb_table
from core.pipeline.ranking.dedup import BY_VECTORS
from core.pipeline.sweep.fields import Bm25, Encoder, Index, Methodic
from core.pipeline.sweep.known import Known
from core.pipeline.sweep.model import Axes, Mode, Point, SweepSpec
from core.pipeline.sweep.sources import is_documents
from core.records import JsonMap, Stack

NONE = "none"
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value per axis; see `core.pipeline.sweep.model.Axes`."""

    mode: str = "dense"
    bm25: Bm25 | None = None
    embedder: str = "wordllama"
    dim: int | None = None
    index: Index | None = None
    metric: str = "cosine"
    fusion: Methodic | None = None
    dedup: Methodic | None = None
    candidates: int = 50
    reranker: str = NONE
    rewrite: str = NONE
    noise: int = 0
    typo: int = 0
    accents: int = 0
    case: int = 0
    names: str = "0"
    chunker: Methodic | None = None
    cut: Methodic | None = None
    chunks_sent: int | str = ALL


def spec_of(choice: Choice, language: str, known: Known) -> JsonMap:
    """The specification of a stack."""
    spec: dict[str, Any] = {"mode": choice.mode}
    if choice.mode != "dense":
        spec["sparse"] = "bm25"
        _put(spec, "bm25", _bm25(choice.bm25 or Bm25(), language))
    if choice.mode != "sparse":
        spec |= _dense_keys(choice, known)
    if choice.mode == "hybrid":
        spec["fusion"] = known.canonical("fusion", _table(choice.fusion or Methodic(method="rrf")))
    if choice.rewrite != NONE:
        spec["rewrite"] = choice.rewrite
    _put(spec, "perturb", perturb_table({way: getattr(choice, way) for way in WAYS}, language))
    if choice.chunker is not None and choice.chunker.method != NONE:
        spec["chunker"] = known.canonical("chunker", known.spoken(_table(choice.chunker), language))
    if choice.dedup is not None and choice.dedup.method != NONE:
        spec["dedup"] = known.canonical("dedup", _table(choice.dedup))
    spec["reranker"] = choice.reranker
    spec["candidates"] = choice.candidates
    if choice.cut is not None and choice.cut.method != NONE:
        spec["cut"] = known.canonical("cut", _table(choice.cut))
    if choice.chunks_sent != ALL:
        spec["chunks_sent"] = choice.chunks_sent
    return spec


def _bm25(bm25: Bm25, language: str) -> dict[str, Any]:
    chosen = {"k1": bm25.k1, "b": bm25.b, "language": bm25.language or language}
    usual = {**Bm25().model_dump(), "language": "english"}
    return {key: value for key, value in chosen.items() if value != usual[key]}


def _dense_keys(choice: Choice, known: Known) -> dict[str, Any]:
    index = _table(choice.index or Index(name="flat"))
    name = index.pop("name")
    made: dict[str, Any] = {"embedder": choice.embedder, "index": name}
    _put(made, "dim", choice.dim)
    _put(made, "index_params", known.index_params(name, index))
    _put(made, "metric", choice.metric if choice.metric != "cosine" else None)
    return made


def _table(value: Methodic | Index) -> dict[str, Any]:
    return value.model_dump()


def _put(spec: dict[str, Any], key: str, value: object) -> None:
    """Set a key unless its value is empty."""
    if value:
        spec[key] = value


SENTENCES = Methodic(method="sentence")
"""How documents are cut where nothing is said: the paper's chunks (§3.5)."""
MAX_STACKS = 20_000  # More than this many combinations are a mistake


def expand(spec: SweepSpec, known: Known | None = None) -> list[Stack]:
    """The stacks of a specification; those that a search begins with stand first."""
    known = known or Known.of(spec)
    language = spec.collection.language
    usual = SENTENCES if is_documents(spec.collection) else None
    choices = [_listed(point, known) for point in spec.stack] if spec.searched else []
    choices += [each for axes in spec.axes for each in _block(axes, spec.baseline, known)]
    choices += [] if spec.searched else [_listed(point, known) for point in spec.stack]
    choices = [each if each.chunker else replace(each, chunker=usual) for each in choices]
    stacks = [Stack(spec_of(each, language, known)) for each in choices]
    return list({stack.stack_id: stack for stack in stacks}.values())


def count(spec: SweepSpec) -> int:
    """How many combinations a specification asks for at most, without making them."""
    return sum(_size(axes) for axes in spec.axes) + len(spec.stack)


def grid(axes: Axes, language: str = "english") -> list[Stack]:
    """The stacks of one block of axes, without a specification around it; see `expand`."""
    known = Known()
    made = [Stack(spec_of(each, language, known)) for each in _grid(axes, known)]
    return list({stack.stack_id: stack for stack in made}.values())


def _block(axes: Axes, baseline: Point, known: Known) -> Iterable[Choice]:
    if axes.method == "list":
        return ()
    return _one_factor(axes, baseline, known) if axes.method == "one-factor" else _grid(axes, known)


def _grid(axes: Axes, known: Known) -> Iterator[Choice]:
    """Every combination; axes of a leg that a mode lacks do not multiply it."""
    chunkers, levels = axes.chunker or (None,), product(*(getattr(axes, way) for way in WAYS))
    for chunker, rewrite, typed, mode in product(chunkers, axes.rewrite, levels, axes.mode):
        for leg in _legs(axes, mode, known):
            dedups = [each for each in axes.dedup if mode != "sparse" or each.method != BY_VECTORS]
            rest = (dedups, axes.reranker, axes.candidates, axes.cut, axes.chunks_sent)
            for dedup, reranker, k, cut, sent in product(*rest):
                yield Choice(
                    mode=mode,
                    chunker=chunker,
                    rewrite=rewrite,
                    dedup=dedup,
                    reranker=reranker,
                    candidates=k,
                    cut=cut,
                    chunks_sent=sent,
                    **dict(zip(WAYS, typed, strict=True)),
                    **leg,
                )


def _legs(axes: Axes, mode: Mode, known: Known) -> Iterator[dict[str, Any]]:
    sparse = [{"bm25": each} for each in axes.bm25]
    encoders = [(each.name, dim) for each in axes.embedder for dim in _dims(each, axes.dim, known)]
    dense = [
        {"embedder": name, "dim": dim, "index": index, "metric": metric}
        for (name, dim), index, metric in product(encoders, axes.index, axes.metric)
    ]
    if mode == "sparse":
        yield from sparse
    elif mode == "dense":
        yield from dense
    else:
        for one, other, fusion in product(sparse, dense, axes.fusion):
            yield {**one, **other, "fusion": fusion}


def _dims(encoder: Encoder, dims: Sequence[int], known: Known) -> Sequence[int | None]:
    return encoder.dim or dims or (known.default_dim(encoder.name),)


def _one_factor(axes: Axes, baseline: Point, known: Known) -> Iterator[Choice]:
    """The baseline, then every other value of every axis put into it alone."""
    start = _start(axes, baseline, known)
    yield start
    for name in _VARIED:
        if name == "embedder":
            for encoder in axes.embedder:
                yield replace(start, embedder=encoder.name, dim=_fitting(encoder, start.dim, known))
        else:
            for value in getattr(axes, name):
                yield replace(start, **{name: value})


_VARIED = tuple(Point.model_fields)  # The axes, in the order in which one-factor varies them


def _start(axes: Axes, baseline: Point, known: Known) -> Choice:
    firsts: dict[str, Any] = {name: next(iter(getattr(axes, name)), None) for name in _VARIED}
    encoder: Encoder = firsts.pop("embedder")
    given = {name: value for name in _VARIED if (value := getattr(baseline, name)) is not None}
    name = given.get("embedder", encoder.name)
    own = next((each for each in axes.embedder if each.name == name), Encoder(name=name))
    dim = given.get("dim") or next(iter(_dims(own, axes.dim, known)))
    return Choice(**{**firsts, **given, "embedder": name, "dim": dim})


def _fitting(encoder: Encoder, dim: int | None, known: Known) -> int | None:
    """The baseline's dimension where the model has it, else the model's own."""
    if encoder.dim:
        return encoder.dim[0]
    dims = known.dims(encoder.name)
    return dim if dim in dims or not dims else known.default_dim(encoder.name)


def _listed(point: Point, known: Known) -> Choice:
    given = {name: value for name in _VARIED if (value := getattr(point, name)) is not None}
    made = Choice(**given)
    return made if made.dim else replace(made, dim=known.default_dim(made.embedder))


def _size(axes: Axes) -> int:
    if axes.method == "list":
        return 0
    if axes.method == "one-factor":
        return 1 + sum(len(getattr(axes, name)) for name in _VARIED)
    sparse = len(axes.bm25)
    dims = sum(len(each.dim or axes.dim) or 1 for each in axes.embedder)
    dense = dims * len(axes.index) * len(axes.metric)
    legs = {"sparse": sparse, "dense": dense, "hybrid": sparse * dense * len(axes.fusion)}
    typed = [getattr(axes, way) for way in WAYS]
    others = (*typed, axes.rewrite, axes.dedup, axes.reranker, axes.candidates, axes.cut, axes.chunks_sent)
    return sum(legs[mode] for mode in axes.mode) * math.prod(map(len, others)) * (len(axes.chunker) or 1)
