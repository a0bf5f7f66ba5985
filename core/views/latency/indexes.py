"""Indexes: recall and speed of each, measured or imported, and the cost of a thousand queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.records import JsonMap
from core.store import Snapshot
from core.views import columns as cols
from core.views import text, theme
from core.work.names.stored import diagnosed

RECALL, QPS = "recall", "queries_per_second"
LATENCIES = ("p50_ms", "p95_ms", "p99_ms")
MEASURED, IMPORTED = "measured", "imported"
_DIAGNOSIS = "indexes"
DOLLARS_HELP = "$ per 1,000 = 1000 · $ per hour / (3600 · queries per second · utilisation)."
INDEX = cols.Rows(
    "indexes",
    "index basis effort",
    cols.count("k", "K", "Neighbours asked for."),
    "clients recall",
    cols.count("n", help="Queries behind the recall."),
    "p50_ms p95_ms p99_ms queries_per_second",
    cols.usd("usd_per_1k", "$ / 1k", DOLLARS_HELP),
    more="recall_low recall_high searches build_s bytes passages where",
)
_MADE = "queries_per_second:float bytes:float"
"""One row per index, effort, K and number of clients; unknown values are null."""
_MS_PER_S = 1000.0
NEARLY_ALL = 0.95
_MOST = f"{100 * NEARLY_ALL:.0f} %"


_Reader = Callable[[Mapping[str, Any], JsonMap], Iterator[JsonMap]]
NONE = "No stand-alone index benchmark yet."
HOW = (
    "Measure some with the command indexes bench, or add results of VectorDBBench or ann-benchmarks "
    "(page Add results)."
)
SCALES = "Dotted and hollow: imported, measured elsewhere on other machines and vectors."


def figures(snapshot: Snapshot) -> pl.DataFrame:
    """Read all known index measurements of the store.

    Returns:
        index, basis ("measured" or "imported"), where (collection), effort, k, clients, recall, recall_low,
        recall_high, n (queries), p50_ms, p95_ms, p99_ms, queries_per_second, searches, build_s, bytes,
        passages; sorted.
    """
    names = dict(snapshot.collections().select("collection_id", "name").iter_rows())
    here = measured(diagnosed(snapshot, _DIAGNOSIS), names)
    other = INDEX.frame(list(_imported(snapshot, names)), _MADE)
    return pl.concat([here, other]).sort(
        "basis", "where", "index", "effort", "k", "clients", descending=[True, *[False] * 5]
    )


def measured(rows: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """Return rows of the table "diagnostics" as one row per point; see `figures`."""
    points = []
    for (collection, condition), part in rows.group_by("collection_id", "condition", maintain_order=True):
        setting = json.loads(str(condition))
        values = {row["measure"]: row for row in part.iter_rows(named=True)}
        recall, speed, size = values.get(RECALL, {}), values.get(QPS, {}), values.get("build_s", {})
        params = ", ".join(f"{key} {value}" for key, value in setting["params"].items() if key != "url_env")
        points.append(
            {
                "index": f"{setting['index']} ({params})" if params else setting["index"],
                "basis": MEASURED,
                "where": names.get(str(collection), str(collection)),
                **{key: setting[key] for key in ("effort", "k", "clients")},
                "recall_low": recall.get("low"),
                "recall_high": recall.get("high"),
                "n": recall.get("n"),
                "searches": speed.get("n"),
                "passages": size.get("n"),
                **{name: values[name]["value"] for column in INDEX.every if (name := column.name) in values},
            }
        )
    return INDEX.frame(points, _MADE)


def _imported(snapshot: Snapshot, names: Mapping[str, str]) -> Iterator[JsonMap]:
    tools: dict[str, _Reader] = {
        "vectordbbench": _of_vectordbbench,
        "ann-benchmarks": partial(_of_annbenchmarks, snapshot),
    }
    runs = snapshot.runs().filter(pl.col("manifest").str.contains_any([f'"{name}"' for name in tools]))
    for run in runs.iter_rows(named=True):
        manifest = json.loads(run["manifest"])
        common = {
            "index": run["label"],
            "basis": IMPORTED,
            "where": names.get(run["collection_id"], run["collection_id"]),
        }
        read = tools.get(manifest.get("importer"))
        if read is not None:
            yield from ({**common, **row} for row in read(run, manifest))


def _of_vectordbbench(_: Mapping[str, Any], manifest: JsonMap) -> Iterator[dict[str, Any]]:
    """Yield the serial search, and a row per number of clients if they were measured."""
    metrics = manifest.get("metrics", {})
    case = manifest.get("task", {}).get("case_config") or {}
    common = {
        "k": case.get("k") or 100,
        RECALL: _positive(metrics.get("recall")),
        "build_s": _positive(metrics.get("load_duration")),
    }
    serial = {f"p{at}_ms": _positive(metrics.get(f"serial_latency_p{at}"), _MS_PER_S) for at in (95, 99)}
    yield {**common, **serial, "clients": 1}
    at_once, speeds = metrics.get("conc_num_list") or [], metrics.get("conc_qps_list") or []
    tails = {f"p{at}_ms": metrics.get(f"conc_latency_p{at}_list") or [] for at in (95, 99)}
    for place, (clients, speed) in enumerate(zip(at_once, speeds, strict=False)):
        tail_ms = {
            name: _positive(many[place], _MS_PER_S) for name, many in tails.items() if place < len(many)
        }
        yield {**common, **tail_ms, "clients": clients, QPS: _positive(speed)}
    if not speeds and (most := _positive(metrics.get("qps"))):
        yield {**common, QPS: most}  # the best over several numbers of clients


def _of_annbenchmarks(snapshot: Snapshot, run: Mapping[str, Any], manifest: JsonMap) -> Iterator[JsonMap]:
    """Yield a row for one client, as in the tool's benchmark.

    It has recall if the exact neighbours were imported beside the result.
    """
    attributes = manifest.get("attributes", {})
    ms = snapshot.timings([run["run_id"]])["ms"].to_numpy()
    row: dict[str, Any] = {
        "clients": 1,
        "build_s": _positive(attributes.get("build_time")),
        "bytes": _positive(attributes.get("index_size"), 1024.0),
    }
    if len(ms) and ms.mean() > 0:
        row |= {name: float(np.percentile(ms, at)) for name, at in zip(LATENCIES, (50, 95, 99), strict=True)}
        row |= {QPS: _MS_PER_S / float(ms.mean()), "searches": len(ms)}
    yield {**row, **_neighbours(snapshot, run)}


def _neighbours(snapshot: Snapshot, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return K, recall and n of a run whose collection has one golden set, made of the exact neighbours."""
    ranked = snapshot.rankings([run["run_id"]]).select("query_id", "passage_id")
    k = max(ranked.group_by("query_id").len()["len"].to_list(), default=0)
    golden = snapshot.golden_sets(run["collection_id"])["golden_set_id"].to_list()
    exact = snapshot.judgements(golden[0]) if len(golden) == 1 else None
    if exact is None or exact.is_empty():
        return {"k": k}
    wanted = exact.group_by("query_id").len().with_columns(pl.col("len").clip(upper_bound=k))
    hits = ranked.join(exact, on=["query_id", "passage_id"], how="semi").group_by("query_id").len("hits")
    shares = wanted.join(hits, on="query_id", how="left").select(
        (pl.col("hits").fill_null(0) / pl.col("len")).clip(upper_bound=1)
    )
    return {"k": k, RECALL: shares["hits"].mean(), "n": shares.height}


def _positive(value: object, factor: float = 1.0) -> float | None:
    """Return a number above 0, otherwise None: the tools write 0 if something did not run."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) * factor if known and isinstance(value, int | float) else None


def dollars(rows: pl.DataFrame, usd_per_hour: float | None, utilisation: float = 0.5) -> pl.DataFrame:
    """Add usd_per_1k, the cost of a thousand queries on a machine that is busy for a share of the hour.

    $ per 1,000 = 1000 · $ per hour / (3600 · queries per second · utilisation).
    """
    price = pl.lit(usd_per_hour, pl.Float64)
    return rows.with_columns(usd_per_1k=1000 * price / (3600 * pl.col(QPS) * utilisation))


def drawn(rows: pl.DataFrame, against: str, title: str) -> go.Figure:
    """Draw recall against latency or queries per second, a line per index, like ann-benchmarks.

    Args:
        rows: From `figures`, for one K.
        against: The column on the y axis.
        title: Its name, with its unit.
    """
    fig = theme.figure(x="recall of the exact neighbours", y=title, height=420)
    known = rows.drop_nulls([RECALL, against])
    groups = known.partition_by("index", "where", "basis", maintain_order=True)
    labels = [_label(group.row(0, named=True)) for group in groups]
    colours = theme.colours_for(labels)
    for place, (label, group) in enumerate(zip(labels, groups, strict=True)):
        line = group.sort(RECALL, against)
        imported = group["basis"][0] == IMPORTED
        symbol = theme.SYMBOLS[place % len(theme.SYMBOLS)] + ("-open" if imported else "")
        look = {"color": colours[label], "dash": "dot" if imported else "solid"}
        notes = [text.escape(_note(row)) for row in line.iter_rows(named=True)]
        hover = {"customdata": notes, "hovertemplate": "%{fullData.name}<br>%{customdata}<extra></extra>"}
        traced = theme.scatter(
            text.escape(text.shorten(label, 70)),
            line[RECALL].to_list(),
            line[against].to_list(),
            mode="lines+markers",
            marker={"symbol": symbol, "size": 10},
            line=look,
            **hover,
        )
        fig.add_trace(traced)
    fig.update_yaxes(type="log")
    return fig


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['index']} · {row['where']} (imported)" if row["basis"] == IMPORTED else str(row["index"])


def benches(rows: pl.DataFrame) -> list[str]:
    """Return where indexes were measured, latest first: measurements made together are comparable."""
    return sorted(rows.filter(basis=MEASURED)["where"].unique().to_list(), reverse=True)


def _note(row: Mapping[str, Any]) -> str:
    effort = "" if row["effort"] is None else f", ef or probes {row['effort']}"
    speed = "" if row[QPS] is None else f", {row[QPS]:,.0f} queries/s"
    return f"recall@{row['k']} {text.score(row[RECALL])}{effort}{speed}"


def answer(rows: pl.DataFrame, k: int, clients: int | None) -> str:
    """Say which index is fastest among those that find nearly all, for one K and number of clients."""
    here = rows.filter(basis=MEASURED)  # other machines and vectors aren't comparable
    good = (
        (here if here.height else rows)
        .filter(pl.col(RECALL) >= NEARLY_ALL)
        .drop_nulls(QPS)
        .sort(QPS, descending=True)
    )
    if good.is_empty():
        return f"No index is known to find {_MOST} of the exact {k} neighbours at a known speed."
    first = good.row(0, named=True)
    asking = "" if clients is None else f" with {text.count(clients, 'client')}"
    return (
        f"{first['index']} answers {first[QPS]:,.0f} queries per second{asking} at recall@{k}"
        f" {text.score(first[RECALL])}: the most of those that find {_MOST}."
    )
