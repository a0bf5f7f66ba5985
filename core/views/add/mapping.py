"""What the columns of an offered table may mean: the questions of page Add results, in words."""

from __future__ import annotations

from collections.abc import Mapping

from core.importers import ROLES, Preview, Row, TableAs, Value, named, recognised

ROWS: Mapping[Row, str] = {"stack": "a stack", "query": "a query", "passage": "a ranked passage"}
LEFT_OUT = ""
_STACK = (
    "run", "quality@10", "nDCG@10", "RA-nWG@10", "R@10", "P@10", "RR@10", "F1@10", "latency_p50_ms",
    "latency_p50_s", "latency_p95_ms", "latency_p95_s", "latency_p99_ms", "latency_mean_ms", "usd_per_query",
    "usd_per_1k", "usd_per_1m", "n", "embedder", "dim", "mode", "index", "reranker", "candidates",
)  # fmt: skip
_COSTS = ("latency_ms", "latency_s", "retrieve_ms", "rerank_ms", "input_tokens", "output_tokens", "item")
_CHOICES: Mapping[Row, tuple[str, ...]] = {
    "stack": _STACK,
    "query": ("run", "query_id", *_COSTS, "repeat", "answer", "k", "grade", "score", "scale", "judge"),
    "passage": ("run", "query_id", "passage_id", "rank", "score", "grade", "judge", "stage", *_COSTS),
}
_PER = {1000.0: "query", 1.0: "1,000 queries", 0.001: "million queries"}
_ONE = {"run": "name of the stack", "n": "number of queries", "item": "what is priced (model)"}


def choices(row: Row | None, known: Mapping[str, str], column: str) -> list[str]:
    """The meanings to choose from for a column, the recognised one among them; `LEFT_OUT` first.

    Args:
        row: What a row is; None = not known yet.
        known: Column → meaning as recognised.
        column: The column.
    """
    usual = (
        _CHOICES[row] if row else tuple(dict.fromkeys(each for some in _CHOICES.values() for each in some))
    )
    own = known.get(column, LEFT_OUT)
    value = named(own, column) if own else None
    scaled = [own.removesuffix(" %") if own.endswith(" %") else f"{own} %"] if value and value.k else []
    return list(dict.fromkeys((LEFT_OUT, own, *scaled, *usual)))


def words(meaning: str) -> str:
    """A meaning as people read it, with its unit."""
    if not meaning:
        return "left out"
    if meaning in ROLES:
        return _ONE.get(meaning, ROLES[meaning].title.split(" (")[0].lower())
    value = named(meaning, meaning)
    return _ONE.get(meaning, meaning.replace("_", " ")) if value is None else _of_numbers(value)


def _of_numbers(value: Value) -> str:
    stage = "" if value.stage in (None, "total") else f"{value.stage} "
    if value.measure == "ms" or value.measure.startswith("latency_"):
        quantile = value.measure.removeprefix("latency_").replace("ms", "")
        return f"{stage}latency {quantile}, {'s' if value.factor != 1 else 'ms'}".replace(" ,", ",")
    if value.measure == "usd_per_1k":
        return f"{stage}$ per {_PER[value.factor]}"
    name = value.name.removesuffix(" %")
    return (
        f"{'' if name.startswith('quality') else 'quality: '}{name}{', percent' if value.factor != 1 else ''}"
    )


def columns_of(each: Preview, row: Row | None) -> dict[str, str]:
    """Column → meaning as recognised, for rows that are this."""
    if row == each.row:
        return {column: meaning for meaning, column in each.mapping.items()}
    found = recognised(each.columns, each.rows, TableAs(row=row), each.name)
    return {column: meaning for meaning, column in found.items()}


def said(each: Preview, row: Row | None, chosen: Mapping[str, str]) -> TableAs | None:
    """What a visitor said of a table; None where all is as recognised.

    Args:
        each: The table.
        row: What a row is.
        chosen: Column → meaning as it stands on the page.
    """
    known = columns_of(each, row)
    columns = {
        meaning: column for column, meaning in chosen.items() if meaning and known.get(column) != meaning
    }
    without = frozenset(column for column, meaning in chosen.items() if not meaning and column in known)
    if not columns and not without and row == each.row:
        return None
    return TableAs(columns, row, without)


def twice(chosen: Mapping[str, str]) -> list[str]:
    """Meanings that several columns have, in words."""
    meant = [meaning for meaning in chosen.values() if meaning]
    return [words(meaning) for meaning in dict.fromkeys(meant) if meant.count(meaning) > 1]
