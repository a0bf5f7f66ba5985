"""Expands axes into stacks: deterministic, each stack once, in the canonical form of `Stack.spec`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from core.errors import ClqError
from core.pipeline.evaluate.steps import FILTERING
from core.pipeline.index import INDEX_NAMES, kind_of
from core.pipeline.query.perturb import WAYS, perturb_table
from core.pipeline.sweep.fields import Bm25, Encoder, Methodic
from core.pipeline.sweep.known import NONE, KnownNames
from core.pipeline.sweep.model import METHODS, Axes, Point, SearchMode, SweepSpec
from core.pipeline.sweep.sources import is_documents
from core.records import JsonMap, Stack

ALL = "all"


_Choice = Mapping[str, Any]  # One value per axis; None, or none at all = its default
_VARIED = tuple(Point.model_fields)  # The axes, in the order in which one-factor varies them
_LEG = ("mode", "bm25", "embedder", "dim", "index", "metric", "fusion")
_LATER = tuple(axis for axis in _VARIED if axis not in (*_LEG, "rewrite", *WAYS, "chunker"))
_USUAL = {
    **{axis: next(iter(getattr(Axes(), axis)), None) for axis in _VARIED},
    "mode": "dense",
    "embedder": "wordllama",
}
SENTENCES = Methodic(method="sentence")
"""The default chunker: the paper's chunks (§3.5)."""
MAX_STACKS = 20_000  # More than this many combinations are a mistake


def _spec(choice: _Choice, language: str, known: KnownNames, chunker: Methodic | None = None) -> JsonMap:
    """Write the specification of a stack; `chunker` is for stacks that name none."""
    given = {axis: value for axis, value in choice.items() if value is not None}
    own = {**_USUAL, "chunker": chunker, **given}
    spec: dict[str, Any] = {"mode": own["mode"]}
    if own["mode"] != "dense":
        spec["sparse"] = "bm25"
        usual = {**Bm25().model_dump(), "language": "english"}
        bm25 = {**own["bm25"].model_dump(), "language": own["bm25"].language or language}
        _put(spec, "bm25", {key: value for key, value in bm25.items() if value != usual[key]})
    if own["mode"] != "sparse":
        index = own["index"].model_dump()
        spec |= {"embedder": own["embedder"], "index": index.pop("name")}
        _put(spec, "dim", own["dim"] or known.default_dim(own["embedder"]))
        options = kind_of(spec["index"]).options if spec["index"] in INDEX_NAMES else ()
        defaults = {option.name: option.default for option in options}
        _put(spec, "index_params", {key: value for key, value in index.items() if value != defaults.get(key)})
        _put(spec, "metric", own["metric"] if own["metric"] != "cosine" else None)
    _put(spec, "rewrite", own["rewrite"] if own["rewrite"] != NONE else None)
    _put(spec, "perturb", perturb_table({way: own[way] for way in WAYS}, language))
    for axis in METHODS:
        if axis != "fusion" or own["mode"] == "hybrid":
            _put(spec, axis, _canonical(axis, own[axis], language))
    _put(spec, FILTERING, own[FILTERING])
    spec |= {"reranker": own["reranker"], "candidates": own["candidates"]}
    _put(spec, "chunks_sent", own["chunks_sent"] if own["chunks_sent"] != ALL else None)
    return spec


def _put(spec: dict[str, Any], key: str, value: object) -> None:
    """Set a key unless its value is empty."""
    if value:
        spec[key] = value


def _canonical(axis: str, chosen: Methodic | None, language: str) -> JsonMap:
    """Return a method with all of its parameters, unchanged if it cannot be read, or {} if none is chosen.

    A method with a language option gets the collection's language by default.
    """
    if chosen is None or (chosen.method == NONE and axis != "fusion"):
        return {}
    table, registry = chosen.model_dump(), METHODS[axis]
    if chosen.method in registry.methods:
        params = {param.name: param.choices for param in registry.methods[chosen.method].options}
        table = {"language": language, **table} if language in params.get("language", ()) else table
    try:
        return registry.read(table)
    except ClqError:
        return table


def expand(spec: SweepSpec, known: KnownNames | None = None, *, whole: bool = False) -> list[Stack]:
    """Return the stacks of a specification; those that a search begins with come first.

    Args:
        whole: Whether the passages of a stored collection are whole documents, which are cut by default as
            their folder would be.
    """
    known = known or KnownNames(spec.models)
    usual = SENTENCES if whole or is_documents(spec.collection) else None
    listed: list[_Choice] = [dict(point) for point in spec.points]
    combined: list[_Choice] = []
    for axes in spec.axes:
        if axes.method != "list":
            combined += (
                _one_factor(axes, spec.baseline, known) if axes.method == "one-factor" else _grid(axes)
            )
    choices = [*listed, *combined] if spec.searched else [*combined, *listed]
    specs = [_spec(choice, spec.collection.language, known, usual) for choice in choices]
    own = [pipeline.spec(params) for pipeline in spec.own for params in pipeline.points()]
    return _stacks([*specs, *own])


def point(spec: JsonMap) -> dict[str, Any]:
    """Return a stack as a specification lists it, so that `expand` makes it again."""
    index = {"name": spec["index"], **spec.get("index_params", {})} if "index" in spec else None
    given = {**spec, **spec.get("perturb", {}), "index": index}
    return {axis: given[axis] for axis in _VARIED if given.get(axis) is not None}


def count(spec: SweepSpec) -> int:
    """Return how many combinations a specification asks for at most, without making them."""
    own = sum(math.prod(map(len, pipeline.params.values())) for pipeline in spec.own)
    return sum(_size(axes) for axes in spec.axes) + len(spec.points) + own


def grid(axes: Axes, language: str = "english") -> list[Stack]:
    """Return the stacks of one block of axes, without a specification around it; see `expand`."""
    known = KnownNames()
    return _stacks(_spec(choice, language, known) for choice in _grid(axes))


def _stacks(specs: Iterable[JsonMap]) -> list[Stack]:
    return list({stack.stack_id: stack for stack in map(Stack, specs)}.values())


def _grid(axes: Axes) -> Iterator[_Choice]:
    """Yield every combination; axes of a leg that a mode lacks do not multiply it."""
    chunkers, levels = axes.chunker or (None,), product(*(getattr(axes, way) for way in WAYS))
    for chunker, rewrite, typed, mode in product(chunkers, axes.rewrite, levels, axes.mode):
        for leg in _legs(axes, mode):
            for ranked in product(*(_fitting_values(axes, axis, mode) for axis in _LATER)):
                yield {
                    "mode": mode,
                    "chunker": chunker,
                    "rewrite": rewrite,
                    **dict(zip(_LATER, ranked, strict=True)),
                    **dict(zip(WAYS, typed, strict=True)),
                    **leg,
                }


def _fitting_values(axes: Axes, axis: str, mode: SearchMode) -> list[Any]:
    """Return the values of an axis, except methods that stacks of the mode cannot have."""
    registry = METHODS.get(axis)
    return [value for value in _values(axes, axis) if registry is None or registry.fits(value.method, mode)]


def _values(axes: Axes, axis: str) -> tuple[Any, ...]:
    """Return the values of an axis; one that may be left open has one value then."""
    values: tuple[Any, ...] = getattr(axes, axis)
    return values or ((None,) if axis == FILTERING else ())


def _legs(axes: Axes, mode: SearchMode) -> Iterator[dict[str, Any]]:
    sparse = [{"bm25": options} for options in axes.bm25]
    encoders = [
        (encoder.name, dim) for encoder in axes.embedder for dim in encoder.dim or axes.dim or (None,)
    ]
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


def _one_factor(axes: Axes, baseline: Point, known: KnownNames) -> Iterator[_Choice]:
    """Yield the baseline, then every other value of every axis put into it alone."""
    firsts: dict[str, Any] = {name: next(iter(getattr(axes, name)), None) for name in _VARIED}
    start = {**firsts, **{name: value for name, value in baseline if value is not None}}
    start["embedder"] = name = baseline.embedder or firsts["embedder"].name
    own = next((encoder for encoder in axes.embedder if encoder.name == name), Encoder(name=name))
    dims = own.dim or axes.dim or (known.default_dim(name),)
    start["dim"] = baseline.dim or dims[0]
    yield start
    for axis in _VARIED:
        for value in getattr(axes, axis):
            if axis == "embedder":
                yield {**start, "embedder": value.name, "dim": _fitting(value, start["dim"], known)}
            else:
                yield {**start, axis: value}


def _fitting(encoder: Encoder, dim: int | None, known: KnownNames) -> int | None:
    """Return the baseline's dimension if the model has it, otherwise the model's own."""
    if encoder.dim:
        return encoder.dim[0]
    dims = known.dims(encoder.name)
    return dim if dim in dims or not dims else None


def _size(axes: Axes) -> int:
    if axes.method == "list":
        return 0
    if axes.method == "one-factor":
        return 1 + sum(len(getattr(axes, name)) for name in _VARIED)
    sparse = len(axes.bm25)
    dims = sum(len(encoder.dim or axes.dim) or 1 for encoder in axes.embedder)
    dense = dims * len(axes.index) * len(axes.metric)
    legs = {"sparse": sparse, "dense": dense, "hybrid": sparse * dense * len(axes.fusion)}
    others = math.prod(len(_values(axes, axis)) for axis in (*WAYS, "rewrite", *_LATER))
    return sum(legs[mode] for mode in axes.mode) * others * (len(axes.chunker) or 1)
