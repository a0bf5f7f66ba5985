"""context-grid results: a run per configuration with measures, latencies, costs and per-query values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.errors import InputError
from core.importers.base import Format, Import, LeftOut, Options, counted, frames_of, merged, summed
from core.importers.naming import NamedValue, measure_name, named
from core.importers.read.jsons import (
    Json,
    at,
    expect,
    mapping,
    number,
    optional,
    outline,
    read_json,
    text,
    whatever,
)
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, keys_of
from core.importers.read.text import quoted, shown
from core.importers.report import TAKEN
from core.importers.runs import MEASURES, collection_of, imported_run, run_labels
from core.importers.samples import text_id
from core.importers.settings import axes_of, kept
from core.records import Run

_NO_PLACE = "of another kind than p50 and p95 in a known unit or USD per 1,000 queries: in the manifest only"
_FAILED = ("failed", "error", "errored", "skipped")
_ENDS = (("low", "high"), ("lower", "upper"), ("ci_low", "ci_high"))
_MODES = {"dense": "dense", "bm25": "sparse", "sparse": "sparse", "hybrid": "hybrid"}
"""Kind of index → its mode of retrieval."""
_MOST_QUERIES = 1 << 31
_QUERY = ("query_id", "qid", "id")
_TEXT = ("query", "question", "text")
_LISTS = ("retrieved_ids", "retrieved_doc_ids", "retrieved", "doc_ids", "passage_ids")
_RUN: Fields = {
    "label": ("label", text), "status": ("status", text), "error": ("error", whatever),
    "config": ("config!", mapping), "metrics": ("metrics", mapping), "timings": ("timings", mapping),
    "cost": ("cost", mapping),
    "per_query": ("per_query", whatever), "limits": ("confidence_interval", mapping),
    "scored": ("scored_queries", number), "by_type": ("by_type", whatever),
}  # fmt: skip


class ContextGrid(Format):
    """``results.json`` of context-grid."""

    name, title = "context-grid", "context-grid results (JSON)"
    takes = {
        "aggregates": "metrics with their intervals, p50 and p95 latency, USD per 1,000 queries",
        "signals": "numbers of per_query",
        **dict.fromkeys(("rankings", "queries"), ""),
    }
    recognised = "runs with config and metrics beside timings, cost or per_query"
    units = "times in seconds to milliseconds"
    traps = (
        "Failed runs are left out and counted.",
        "Metrics without a cutoff stand at the configuration's top_k.",
        "Costs and times of building an index stay in the manifest.",
    )
    known = {"results": dict.fromkeys(keys_of(_RUN, "runs."), TAKEN)}
    names_collection = 1

    def kind(self, member: Member) -> str | None:
        shape = outline(member)
        beside = any(f"runs[].{name}" in shape for name in ("timings", "cost", "per_query"))
        known = all("object" in shape.get(f"runs[].{name}", ()) for name in ("config", "metrics"))
        return "results" if known and beside else None

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        parts = [Import(collections=collection_of(options, "imported: context-grid"))]
        parts += [_file(member, options) for member in members_of(archives)]
        imported = merged(parts)
        if not imported.runs:
            raise InputError("It holds no run that succeeded.", where=archives[0].name)
        if "queries" not in imported.frames:
            return imported
        queries = imported.frames["queries"].lazy().unique("query_id", keep="first", maintain_order=True)
        return replace(imported, frames={**imported.frames, "queries": queries.collect()})


def _file(member: Member, options: Options) -> Import:
    held = expect(read_json(member), "runs", list, member.name)
    done, own = [], []
    for index, entry in enumerate(held):
        run = PathRow(entry, _RUN, at(member.name, "runs", index))
        if (run["status"] or "").lower() not in _FAILED and not run["error"]:
            done.append((index, run))
            own.append((run["label"] or "", f"{member.stem} {index}"))
    imported = merged(
        _run(run, label, index, member, options)
        for (index, run), label in zip(done, run_labels(own, options), strict=True)
    )
    failed = counted({"runs that failed": len(held) - len(done)}, member.name)
    return replace(imported, left_out=(*summed(imported.left_out), *failed))


def _run(entry: PathRow, label: str, index: int, member: Member, options: Options) -> Import:
    config = entry["config"]
    axes = _axes(config)
    depth = axes.get("chunks_sent")
    run = imported_run(
        options, label, member.digest, importer=ContextGrid.name,
        decided={"config": kept(config), "place": index, "timings": kept(entry["timings"]),
                 "cost": kept(entry["cost"])}, spec={**axes, "name": shown(label, 200)},
    )  # fmt: skip
    # The measure in `per_query` is the only one given by type of question.
    by_type = entry["by_type"]
    headline = shown(next(iter(by_type)), 80) if isinstance(by_type, dict) and len(by_type) == 1 else None
    rows, left = _figures(entry, depth, headline)
    frames = frames_of(aggregates=[{"run_id": run.run_id, **row} for row in rows])
    notes = (
        (f"{member.name}: measures without a cutoff stand at the configuration's top_k.",) if depth else ()
    )
    plain = Import(runs=(run,), frames=frames, left_out=tuple(left), notes=notes)
    return merged((plain, _per_query(entry["per_query"], run, entry.where, options, headline or "score")))


def _axes(config: Mapping[str, object]) -> Json:
    """Return axes of a stack.

    The tool's kind of index says how it retrieves, and its chunker includes the size.
    """
    axes = axes_of(config)
    index = axes.get("index")
    if "mode" not in axes and index in _MODES:
        axes["mode"] = _MODES[index]
        axes |= {"sparse": "bm25"} if axes["mode"] != "dense" else {}
        axes = {name: value for name, value in axes.items() if name != "index"}
        if axes["mode"] == "sparse":
            axes.pop("embedder", None)
    chunker = config.get("chunker")
    method, mark, size = chunker.partition(":") if isinstance(chunker, str) else ("", "", "")
    if method and mark and size.isdecimal() and len(size) < 8:
        axes["chunker"] = {"method": shown(method), "size": int(size)}
    return axes


def _counts(entry: PathRow) -> dict[str, int | None]:
    """Return the number of queries behind each group of figures; measures may omit some timed queries."""
    asked = entry["per_query"]
    n = len(asked) if isinstance(asked, list | dict) and asked else None
    scored = entry["scored"]
    if scored is None:
        return {"metrics": n, "timings": n, "cost": n}
    return {"metrics": int(scored) if 0 < scored < _MOST_QUERIES else n}


def _column(group: str, key: str, depth: int | None) -> NamedValue | None:
    """Return the meaning of a figure's name; a measure without a cutoff has the depth of retrieval."""
    value = named(key, key)
    if group == "metrics":
        return value if value and value.k else NamedValue(key, measure_name(key), k=depth)
    return value if value and value.measure != "ms" and not value.assumed else None


def _figures(entry: PathRow, depth: int | None, headline: str | None) -> tuple[list[Json], list[LeftOut]]:
    rows: list[Json] = []
    left: list[LeftOut] = []
    limits = entry["limits"] or {}
    if headline and any(set(ends) <= limits.keys() for ends in _ENDS):
        limits = {headline: limits}
    counts = _counts(entry)
    for group in ("metrics", "timings", "cost"):
        spot = f"{entry.where}, {group}"
        given = entry[group] or {}
        for key in given:
            if group != "metrics" and isinstance(given[key], bool):
                continue  # whether costs were metered: kept in the manifest
            value = None if isinstance(given[key], dict | list | str) else number(given, key, spot)
            column = _column(group, key, depth)
            if value is None or column is None:
                why = "without a number: missing, not 0" if value is None else _NO_PLACE
                left.append(LeftOut(1, f"{group} {why}", f"{spot}.{shown(key)}"))
                continue
            low, high = _interval(limits, key, entry.where)
            name = shown(MEASURES.get(column.measure.lower(), column.measure))
            rows.append(
                {
                    "measure": name, "k": column.k, "n": counts.get(group), "low": low, "high": high,
                    "stage": "total" if column.stage == "query" else column.stage,
                    "value": value * column.factor, "source": "imported",
                }
            )  # fmt: skip
    once = {(row["measure"], row["k"], row["stage"]): row for row in rows}
    if len(once) < len(rows):
        left.append(LeftOut(len(rows) - len(once), "figures under two names: the last counts", entry.where))
    return list(once.values()), left


def _interval(limits: Mapping[str, object], key: str, where: str) -> tuple[float | None, float | None]:
    value = limits.get(key)
    if isinstance(value, list) and len(value) == 2:
        value = {"low": value[0], "high": value[1]}
    if not isinstance(value, dict):
        return None, None
    ends = next((ends for ends in _ENDS if ends[0] in value and ends[1] in value), None)
    spot = f"{where}, confidence_interval.{shown(key)}"
    return (number(value, ends[0], spot), number(value, ends[1], spot)) if ends else (None, None)


def _per_query(asked: object, run: Run, where: str, options: Options, headline: str) -> Import:
    """Return per-query values as signals, the retrieved ids as a ranking, and the query's text.

    A query may have only one value: the measure whose differences the tool tests.
    """
    texts: dict[str, str] = {}
    signals: list[Json] = []
    rankings: list[Json] = []
    unnamed, of_run = 0, {"run_id": run.run_id}
    entries = (
        asked.items() if isinstance(asked, dict) else enumerate(asked if isinstance(asked, list) else ())
    )
    for key, result in entries:
        spot = f"{where}, per_query {shown(key)}"
        alone = isinstance(result, int | float) and not isinstance(result, bool)
        entry = {headline: result} if alone else result
        query, words = _named(key, entry)
        if not query or not isinstance(entry, dict):
            unnamed += 1
            continue
        if query in texts:
            raise InputError(f"The query {quoted(query)} stands twice.", where=spot)
        texts[query] = words
        of_query = {**of_run, "query_id": query}
        signals += [{**of_query, "signal": name, "value": value} for name, value in _values(entry, spot)]
        ids: list[object] = next((entry[name] for name in _LISTS if isinstance(entry.get(name), list)), [])
        once = dict.fromkeys(
            str(passage_id) for passage_id in ids if isinstance(passage_id, str | int) and str(passage_id)
        )
        rankings += [
            {**of_query, "stage": "final", "rank": rank, "passage_id": passage_id}
            for rank, passage_id in enumerate(once, 1)
        ]
    queries: list[Json] = [
        {"collection_id": options.collection_id, "query_id": query, "text": words, "tags": []}
        for query, words in texts.items()
        if words
    ]
    return Import(
        frames=frames_of(queries=queries, signals=signals, rankings=rankings),
        left_out=counted({"values of queries without an id or a text": unnamed}, where),
    )


def _values(entry: Json, where: str) -> Iterator[tuple[str, float]]:
    numbers = {**entry, **(optional(entry, "metrics", dict, where) or {})}
    for name, value in numbers.items():
        if name not in _QUERY and isinstance(value, int | float) and not isinstance(value, bool):
            known = number(numbers, name, where)
            if known is not None:
                yield shown(name, 80), known


def _named(key: str | int, entry: object) -> tuple[str, str]:
    """Return id and text of a query, both "" if it has neither."""
    if not isinstance(entry, dict):
        return "", ""
    words = next((entry[name] for name in _TEXT if isinstance(entry.get(name), str)), "")
    own = key if isinstance(key, str) else next((entry[name] for name in _QUERY if name in entry), "")
    named = str(own) if isinstance(own, str | int) else ""
    return named or (text_id(words, "q") if words else ""), words
