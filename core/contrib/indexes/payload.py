"""What Qdrant's client and its engine share: options of a graph, sizes, payloads and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.only import HELD, NotAll, Only, OnlyTest, held_by

_INDEXED: Mapping[Kind, str] = {
    Kind.TEXT: "keyword",
    Kind.NUMBER: "float",
    Kind.DATE: "integer",
    Kind.BOOL: "keyword",
    Kind.TEXTS: "keyword",
}


DISTANCES = {"cosine": "Cosine", "ip": "Dot", "l2": "Euclid"}
GRAPH = (
    Param(name="m", default=16, low=4, high=512, text="Neighbours per vector."),
    Param(name="ef_construction", default=100, low=4, high=10_000, text="Looked at per vector added."),
    Param(name="ef_search", default=128, low=1, high=100_000, text="Looked at per search."),
)
_ROW = 24.0  # bytes beside a vector


def vector_bytes(dim: int, options: ParamOptions) -> float:
    """Return the bytes that a vector takes with its neighbours in the graph."""
    number = {"float32": 4.0, "float16": 2.0, "int8": 5.0}[str(options["type"])]
    return 1.5 * number * dim + 8.0 * whole(options, "m") + _ROW


def plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return a value as it is stored: yes and no as words, which the engine's binding takes for numbers."""
    return str(value).lower() if isinstance(value, bool) else value


def indexed(kinds: Sequence[Kind]) -> dict[str, str]:
    """Return the type of the payload index of each column."""
    return {**{f"f{number}": _INDEXED[kind] for number, kind in enumerate(kinds)}, HELD: "keyword"}


def payload_of(row: Sequence[object]) -> dict[str, Any]:
    """Return what is stored of a passage's fields; which of them it has, too, as an empty list is a value."""
    return {
        **{f"f{number}": plain(value) for number, value in enumerate(row) if value is not None},
        HELD: held_by(row),
    }


def filter_of(models: Any, only: Only | None) -> Any:  # noqa: ANN401 - an optional package
    """Return a filter of the payload, made of a package's own classes; None without one."""
    if only is None:
        return None
    held = [_matches(models, HELD, name) for name in only.columns]
    return models.Filter(must=[*held, *_conditions(models, only.parts)])


def _matches(models: Any, column: str, value: Any) -> Any:  # noqa: ANN401 - an optional package
    return models.FieldCondition(key=column, match=models.MatchValue(value=value))


def _between(models: Any, column: str, **ends: Any) -> Any:  # noqa: ANN401 - an optional package
    between = models.Range if hasattr(models, "Range") else models.RangeFloat
    return models.FieldCondition(key=column, range=between(**ends))


def _conditions(models: Any, parts: Sequence[OnlyTest | NotAll]) -> list[Any]:  # noqa: ANN401 - an optional package
    return [
        models.Filter(must_not=[models.Filter(must=_conditions(models, part.parts))])
        if isinstance(part, NotAll)
        else _condition(models, part)
        for part in parts
    ]


def _condition(models: Any, part: OnlyTest) -> Any:  # noqa: ANN401 - an optional package
    column, values = part.column, [plain(value) for value in part.values]
    if part.operator not in ("in", "any", "all"):
        return _between(models, column, **{part.operator: values[0]})
    if part.operator == "all":
        return models.Filter(must=[_matches(models, column, value) for value in values])
    if not values:
        return models.Filter(must_not=[models.Filter()])
    if part.kind is Kind.NUMBER:  # which Qdrant has no equality for
        return models.Filter(should=[_between(models, column, gte=value, lte=value) for value in values])
    return models.FieldCondition(key=column, match=models.MatchAny(any=values))
