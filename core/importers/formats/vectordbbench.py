"""Results of VectorDBBench: ``result_*.json`` with one entry per database, index and case.

Latencies are seconds of one search request at a time, with ready-made vectors: nothing is embedded.
Recall and nDCG are against the exact nearest neighbours, unless the case searches texts (it then has an MRR).
A 0 from a stage that did not run means missing, not 0. An absent label stands for ":)", done, as in
the tool; entries with another label failed.

A streaming case searches while vectors are inserted: each of its stages, by the percentage loaded, is a run
(above 100: after the index was optimised). Its recall is computed against the neighbours in all vectors.

The data and filter of a case are its collection. What it returns beside ids (its payload) is an
axis of the stack; the concurrencies and stages of its test are not. A database's label says how it is
deployed, which is also an axis, but not the machine that timed it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.errors import InputError
from core.importers.base import Format, Import, LeftOut, Options, merged, summed
from core.importers.read.jsons import Json, amount, expect, number, objects, optional, outline
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.text import shown
from core.importers.report import TAKEN
from core.importers.runs import Figure, Reported, reported_runs
from core.importers.settings import kept
from core.records import canonical_json, short_hash

_DONE = ":)"
_PRICES, _PRICED = "dbPrices", 0.45  # The tool's price file; its resemblance by name alone
_DEFAULT_K = 100
_FAILED = 'entries with another label than ":)": they failed, and their zeros are no results'
_IDLE = "entries without a search (a load, or a capacity case)"
_CASES: Mapping[int, str] = {
    1: "CapacityDim128", 2: "CapacityDim960", 3: "Performance768D100M", 4: "Performance768D10M",
    5: "Performance768D1M", 6: "Performance768D10M1P", 7: "Performance768D1M1P", 8: "Performance768D10M99P",
    9: "Performance768D1M99P", 10: "Performance1536D500K", 11: "Performance1536D5M",
    12: "Performance1536D500K1P", 13: "Performance1536D5M1P", 14: "Performance1536D500K99P",
    15: "Performance1536D5M99P", 50: "Performance1536D50K",
}  # fmt: skip
_SIZED = "Small Cohere (768dim, 100K)"  # The data of a streaming case that does not state them
_FILTERS = {"label_percentage": "Label-Filter", "filter_rate": "Int-Filter"}
_SMALL = {300, 400}  # Cases with a filter that need not state their data either
_STREAMING, _RATE = 200, 500  # Its case_id, and the rows inserted per second if it does not state them
_STAGES = "st_search_stage_list"
_LOADED = 100  # Percent
_STAGED = {
    "serial_latency_p95": "st_serial_latency_p95_list", "serial_latency_p99": "st_serial_latency_p99_list",
    "recall": "st_recall_list", "ndcg": "st_ndcg_list",
}  # fmt: skip
"""Key of an entry → key of its values by stage."""
_PARTLY = (
    "Recall and nDCG before all vectors are loaded miss those that are not there yet: kept in the manifest."
)
_INDEXES = {"FLAT": "flat", "HNSW": "hnsw-f32"}
_LATENCIES = {"serial_latency_p95": "latency_p95", "serial_latency_p99": "latency_p99"}
_QUALITY = {"recall": ("ANN-Recall", "R"), "ndcg": ("ANN-nDCG", "nDCG"), "mrr": ("ANN-RR", "RR")}
"""Key → the measure against exact neighbours, and the one against judgements (cases that search texts)."""
_NOT_INDEX = {"index", "metric_type", "use_partition_key"}
_PAYLOAD, _DATA = "payload_profile", "dataset_with_size_type"
_TESTED = {_PAYLOAD, "concurrencies", "search_stages", "optimize_after_write", "read_dur_after_write"}
"""Parameters of a case that do not affect what is searched."""
_BOARD = (
    "db", "db_name", "db_label", "label", "case", "dataset", "filter_ratio", "qps", "qp$", "latency", "recall"
)  # fmt: skip
_NOTES = (
    "Latencies converted from seconds to milliseconds; they are of one search request at a time.",
    "Recall and nDCG are against the exact nearest neighbours (ANN-…), not against judgements, except in "
    "cases that search texts.",
    "Throughput and latencies under load are kept in the manifest.",
)


class VectorDbBench(Format):
    """Result files of VectorDBBench, one run per finished entry."""

    name, title = "vectordbbench", "VectorDBBench results"
    takes = {"aggregates": "recall, nDCG (MRR) at the case's k, p95 and p99 of the search request, per case"}
    recognised = "JSON with results[{metrics, task_config, label}], or a list of {db, db_name, qps, latency}"
    units = "latencies from seconds to milliseconds"
    untried = "its leaderboards: read by eye, rows of that layout were tried, no whole file"
    traps = (
        'Entries with another label than ":)" failed and hold zeros: they are left out and counted.',
        "An entry without a label is done, as in the tool.",
        "p95 is missing in older files and stays missing; 0 of a stage that did not run is missing too.",
        "Of a leaderboard, rows with another label than 1 failed; a setting that stands twice is numbered.",
        "Throughput and concurrent latencies are kept in the manifest: they are no latency of one query.",
    )

    mixed = True
    known = {
        "": "prices of databases; they are no results",
        "results": dict.fromkeys(("results.metrics", "results.task_config", "results.label"), TAKEN),
        "leaderboard": dict.fromkeys(_BOARD, TAKEN),
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        paths = outline(member).keys()
        if {"results[].metrics", "results[].task_config"} <= paths:
            return "results"
        board = {"[].db", "[].db_name", "[].qps", "[].latency", "[].label"} <= paths
        return "leaderboard" if board and paths & {"[].case", "[].dataset"} else None

    def sniff(self, probe: Archive) -> float:
        return (
            _PRICED if probe.members[0].stem == _PRICES and len(probe.members) == 1 else super().sniff(probe)
        )

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return "it holds prices of databases, no results"

    def mine(self, probe: Archive) -> tuple[Member, ...]:
        """Return results, and price tables for the same databases, which hold no results."""
        results = [member for member in probe.members if self.kind(member)]
        names = {name for member in results for name in re.findall(rb'"db"\s*:\s*"([^"\\]+)"', member.head)}
        return tuple(member for member in probe.members if member in results or _is_prices(member, names))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read the completed entries."""
        reports: list[Reported] = []
        left: list[LeftOut] = []
        for member in members_of(archives):
            if not self.kind(member) and len(archives[0].members) > 1:
                continue
            if self.kind(member) == "leaderboard":
                reports += _board(member, left)
                continue
            for index, (where, entry) in enumerate(objects(member, "results")):
                if (optional(entry, "label", str, where) or _DONE) != _DONE:
                    left.append(LeftOut(1, _FAILED, where))
                    continue
                searches = [search for search in _searches(member, index, entry, where) if search.figures]
                reports += searches
                left += [] if searches else [LeftOut(1, _IDLE, where)]
        if not reports:
            raise InputError("No entry is done and has results of a search.", where=archives[0].name)
        assumed = len({(r.digest, r.decided["entry"]) for r in reports if r.manifest["k_assumed"]})
        default = f"{assumed} entries do not say their k; it is taken to be the tool's default, {_DEFAULT_K}."
        runs = reported_runs(reports, options, importer=self.name, source="VectorDBBench results")
        partly = any("loaded" in report.spec for report in reports)
        notes = (*_NOTES, *[_PARTLY] * partly, *[default] * bool(assumed))
        return merged((runs, Import(left_out=summed(left), notes=notes)))


def _is_prices(member: Member, names: set[bytes]) -> bool:
    seen = outline(member)
    top = {path for path in seen if path and "." not in path}
    known = {name.decode("utf-8", "replace") for name in names}
    flat = all(kinds <= {"object", "number"} for kinds in seen.values())
    return bool(top & known) and flat and all("object" in seen[path] for path in top)


def _reported(member: Member, index: int, entry: Json, where: str) -> Reported:
    task = expect(entry, "task_config", dict, where)
    metrics = expect(entry, "metrics", dict, where)
    case = optional(task, "case_config", dict, where) or {}
    k = optional(case, "k", int, where)
    if k is not None and k < 1:
        raise InputError(f"k is {k}.", where=where)
    config = optional(task, "db_config", dict, where) or {}
    database = optional(task, "db", str, where) or "unnamed database"
    version, label = (optional(config, key, str, where) or "" for key in ("version", "db_label"))
    spec = _spec(
        optional(task, "db_case_config", dict, where) or {}, " ".join((database, version)).strip(), label
    )
    number_ = optional(case, "case_id", int, where)
    custom = optional(case, "custom_case", dict, where) or {}
    payload = custom.get(_PAYLOAD) or case.get(_PAYLOAD)
    spec |= {"payload": shown(payload)} if isinstance(payload, str) and payload else {}
    params = ", ".join(f"{key} {shown(value, 20)}" for key, value in spec.get("index_params", {}).items())
    return Reported(
        label=" ".join(filter(None, (database, label, spec["index"], spec.get("payload"), params))),
        stem=f"{member.stem} {index}",
        digest=member.digest,
        decided={"entry": index},
        spec=spec,
        figures=tuple(_figures(metrics, k or _DEFAULT_K, where)),
        collection=_case(number_, custom),
        manifest={"task": kept(task), "metrics": kept(metrics), "k_assumed": k is None},
    )


def _searches(member: Member, index: int, entry: Json, where: str) -> Iterator[Reported]:
    """Yield the search of an entry, or one search per stage of a streaming case."""
    whole = _reported(member, index, entry, where)
    metrics = expect(entry, "metrics", dict, where)
    stages = optional(metrics, _STAGES, list, where) or []
    if not stages or whole.figures:
        yield whole
        return
    k = int((optional(whole.manifest["task"], "case_config", dict, where) or {}).get("k") or _DEFAULT_K)
    lists = {key: optional(metrics, name, list, where) or [] for key, name in _STAGED.items()}
    for place, stage in enumerate(stages):
        percent = number({_STAGES: stage}, _STAGES, where)
        if percent is None:
            continue
        values = {key: some[place] for key, some in lists.items() if place < len(some)}
        if percent < _LOADED:
            values = {key: value for key, value in values.items() if key in _LATENCIES}
        loaded = "optimised" if percent > _LOADED else f"{percent:g} %"
        yield replace(
            whole,
            label=f"{whole.label}, loaded: {loaded}",
            stem=f"{whole.stem} {place}",
            decided={**whole.decided, "stage": place},
            spec={**whole.spec, "loaded": loaded},
            figures=tuple(_figures(values, k, where)),
        )


def _board(member: Member, left: list[LeftOut]) -> Iterator[Reported]:
    """Yield the rows of a leaderboard: milliseconds at p99, and in newer ones the recall of a filter."""
    times: Counter[tuple[str, str]] = Counter()
    for index, (where, row) in enumerate(objects(member)):
        label = row.get("label")
        latency = amount(row, "latency", where)
        if not latency or (isinstance(label, int) and label != 1):
            left.append(LeftOut(1, _FAILED, where))
            continue
        database = expect(row, "db", str, where)
        deployment = optional(row, "db_label", str, where) or (label if isinstance(label, str) else "")
        ratio = number(row, "filter_ratio", where)
        case = expect(row, "case", str, where) if "case" in row else expect(row, "dataset", str, where)
        case += f", filter {100 * ratio:g} %" if ratio else ""
        name = " ".join(filter(None, (database, deployment)))
        times[name, case] += 1
        again = times[name, case]
        recall = number(row, "recall", where)
        quality = [Figure(measure="ANN-Recall", value=recall, k=_DEFAULT_K)] if recall is not None else []
        yield Reported(
            label=name if again == 1 else f"{name}, setting {again}",
            stem=f"{member.stem} {index}",
            digest=member.digest,
            decided={"entry": index},
            spec=_spec({}, database, deployment) | ({} if again == 1 else {"setting": again}),
            figures=(Figure(measure="latency_p99", value=latency, stage="retrieve"), *quality),
            collection=shown(case, 200),
            manifest={"row": kept(row), "k_assumed": recall is not None},
        )


def _case(number_: int | None, custom: Json) -> str:
    """Return the tool's name for a case, with parameters that are not in the name as a hash."""
    name = "unnamed case" if number_ is None else _CASES.get(number_, f"case {number_}")
    label, data = custom.get("name"), custom.get(_DATA)
    sized = shown(data or _SIZED)
    by = next((key for key in _FILTERS if isinstance(custom.get(key), int | float)), None)
    said = {_DATA}
    if number_ == _STREAMING:
        name, said = (
            f"Streaming-Perf - {sized}, {custom.get('insert_rate') or _RATE} rows/s",
            {*said, "insert_rate"},
        )
    elif by is not None and (data or number_ in _SMALL):
        name, said = f"{_FILTERS[by]}-{100 * float(custom[by]):.1f}% - {sized}", {*said, by}
    elif isinstance(label, str) and label:
        name, said = shown(label), {"name"}
    elif data:
        name = f"{name} - {sized}"
    rest = {key: value for key, value in custom.items() if key not in said | _TESTED}
    return f"{name} {short_hash(canonical_json(kept(rest)))[:6]}" if rest else name


def _figures(metrics: Json, k: int, where: str) -> Iterator[Figure]:
    """Yield the figures of a serial search; 0 seconds mean that it did not run."""
    values = {key: amount(metrics, key, where) for key in _LATENCIES}
    values |= {key: number(metrics, key, where) for key in _QUALITY}
    if not any(values[key] for key in _LATENCIES):
        return
    for key, measure in _LATENCIES.items():
        if seconds := values[key]:
            yield Figure(measure=measure, value=seconds * 1000.0, stage="retrieve")
    judged = bool(values["mrr"])
    for key, names in _QUALITY.items():
        value = values[key]
        if value is not None and (key != "mrr" or judged):
            yield Figure(measure=names[judged], value=value, k=k)


def _spec(case: Json, database: str, label: str) -> Json:
    index = case.get("index")
    name = shown(index) if isinstance(index, str) and index else "default index"
    metric = case.get("metric_type")
    params = {
        shown(key): value
        for key, value in case.items()
        if key not in _NOT_INDEX and isinstance(value, str | int | float | bool) and value != ""
    }
    spec: Json = {"index": _INDEXES.get(name, name), "database": shown(database, 200)}
    spec |= {"deployment": shown(label, 200)} if label else {}
    spec |= {"metric": shown(metric.lower())} if isinstance(metric, str) and metric else {}
    cleaned = kept(params)
    return {**spec, "index_params": cleaned} if cleaned else spec
