"""The latency of every run: measured, published or imported, per query, and the band of its jitter."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from core.analysis.workspace.answers import taken
from core.analysis.workspace.comparable import environment
from core.analysis.workspace.figures.costs import basis
from core.analysis.workspace.scope import MEAN, Ids, Latency
from core.analysis.workspace.scores import mean, places
from core.decide.rules import Constraints, Decision
from core.decide.ties import JITTER_MS, jitter, pass_differences
from core.number_format import count, ms
from core.prices.cost import mean_usage
from core.records import Origin
from core.stats.intervals import Alike, singly
from core.stats.latency import (
    AFTER_RETRIEVAL,
    TOTAL,
    Generation,
    inflation,
    per_query,
    per_repeat,
    summary,
    totals,
)
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import GENERATE, remembered

MEAN_SAID = "a mean, which few slow queries raise"
LEAST_FLOOR = 0.01
"""Share of a latency from which the time of an empty pipeline is stated beside it."""
_NO_MODEL = "generation was not timed: give its speed in Settings"
_MODELLED = "retrieval {}, generation modelled"
_NONE = Ids()
COLUMNS = ("latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis", "latency_note")


PASSES = "A query counts once, by the median of its passes."
SHARED = "Stages that stacks share were timed once, for all of them."
_NAMES = ["run_id", "query_id", "ms"]
_LOCAL = ("cpu_ms", "gpu_ms")  # Units of stages that call no other machine
UNSURE = 0.1
"""Upper bound of the share of a cost that its timing leaves uncertain."""
_ASSUMED = "the paper's for published and remote stacks, and where no pass was repeated (CLQ paper §3.2)"


@remembered
def how_timed(table: pl.DataFrame, k: int) -> str:
    """Say where and how the latencies of a stack table were measured, and what a reranker cannot do.

    Args:
        k: The cutoff of the measure.
    """
    said = [environment(table)]
    if "jitter_note" in table.columns and (table["jitter_note"] != _ASSUMED).any():
        said += [PASSES, *([SHARED] if table.height > 1 else [])]
    reranked = pl.col("reranker").fill_null("none") != "none"
    if table.filter(reranked, pl.col("candidates") <= k).height:
        said.append(f"Reranking {k} or fewer candidates cannot change which passages the Top-{k} holds.")
    return " ".join(said)


def empty_pipeline(floor_ms: float) -> str:
    """Say how long a pipeline that does nothing takes if it is asked like the custom one."""
    return f"an empty pipeline takes {ms(floor_ms)}"


def latencies(
    snapshot: Snapshot, runs: pl.DataFrame, latency: Latency, alike: Alike = singly
) -> pl.DataFrame:
    """Return one latency per run; a mean is labelled as one.

    Args:
        alike: Numbers the queries by their groups, which the interval of a mean treats as one.
    """
    sources = [_measured(snapshot, runs, latency, alike), _reported(snapshot, runs, latency)]
    # A percentile withheld here does not hide a reported one for the same run.
    known = [source.filter(pl.col("latency_ms").is_not_null()) for source in sources]
    untimed = latency.scope == "end-to-end" and latency.generation is None
    needless = pl.lit(latency.scope == "rerank") & (pl.col("reranker").fill_null("none") == "none")
    without = pl.when(needless).then(pl.lit("this stack has no reranker"))
    why = pl.coalesce(
        pl.lit(_NO_MODEL if untimed else None, pl.String),
        "other_note",
        "latency_note",
        without.otherwise(pl.lit("no timings recorded")),
    )
    of_mean = [pl.lit(MEAN_SAID)] if latency.percentile == MEAN else []
    both = pl.concat([*known, *sources], how="vertical_relaxed").unique("run_id", keep="first")
    floors = floors_of(runs, known[0].select("run_id", "latency_ms"))
    return (
        runs.select("run_id", "reranker")
        .join(both, on="run_id", how="left", maintain_order="left")
        .join(_other(snapshot, runs, latency), on="run_id", how="left", maintain_order="left")
        .join(floors, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("latency_ms").is_not_null()).then(pl.col("latency_basis")).alias("latency_basis"),
            pl.when(pl.col("latency_ms").is_null())
            .then(why)
            .otherwise(pl.concat_str([*of_mean, "latency_note", "floor"], separator="; ", ignore_nulls=True))
            .replace("", None)
            .alias("latency_note"),
        )
        .select("run_id", *COLUMNS)
    )


def floors_of(runs: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """Say how long an empty pipeline took in a custom one's process, if that is a share of its time.

    It is constant, and no part of the band of jitter.

    Args:
        runs: run_id and manifest.
        measured: run_id and latency_ms.

    Returns:
        run_id and floor, in words.
    """
    told = runs.filter(pl.col("manifest").str.contains('"floor_ms"', literal=True))
    floor = pl.col("manifest").str.json_path_match("$.own.floor_ms").cast(pl.Float64, strict=False)
    known = told.select("run_id", floor.alias("ms")).join(measured, on="run_id")
    share = known.filter(pl.col("ms") >= LEAST_FLOOR * pl.col("latency_ms"))
    words = [empty_pipeline(value) for value in share["ms"]]
    return share.select("run_id", pl.Series("floor", words, dtype=pl.String))


def _other(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Note runs whose source reported a mean although a percentile is requested, or a p50 instead of a mean.

    Returns:
        run_id and other_note; neither replaces the other.
    """
    of = "p50" if latency.percentile == MEAN else MEAN
    figures = snapshot.aggregates(runs["run_id"].to_list())
    total = figures.filter((pl.col("measure") == f"latency_{of}") & (pl.col("stage") == TOTAL))
    words = f"only a {of} was reported: {{}} ms a query"
    return total.unique("run_id", keep="first").select(
        "run_id", pl.format(words, pl.col("value").round(1)).alias("other_note")
    )


def _measured(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency, alike: Alike) -> pl.DataFrame:
    p = latency.percentile
    rows = sample(snapshot, runs, latency)
    if p == MEAN:
        return _measured_mean(runs, rows, alike)
    table = summary(rows.with_columns(stage=pl.lit(TOTAL))).join(
        rows.group_by("run_id").agg(pl.col("modelled").any()), on="run_id"
    )
    table = table.join(runs.select("run_id", basis()), on="run_id")
    modelled = pl.col("modelled")
    return table.select(
        "run_id",
        pl.col(p).alias("latency_ms"),
        pl.col(f"{p}_low").alias("latency_low"),
        pl.col(f"{p}_high").alias("latency_high"),
        pl.col("n").cast(pl.Int32).alias("latency_n"),
        pl.when(modelled).then(pl.lit("modelled")).otherwise("basis").alias("latency_basis"),
        pl.coalesce(f"{p}_reason", pl.when(modelled).then(pl.format(_MODELLED, "basis"))).alias(
            "latency_note"
        ),
    )


def _measured_mean(runs: pl.DataFrame, rows: pl.DataFrame, alike: Alike) -> pl.DataFrame:
    """Return the mean over the queries that were timed, with its interval."""
    run_ids, query_ids = (rows[name].unique(maintain_order=True).to_list() for name in _NAMES[:2])
    values = np.full((len(run_ids), len(query_ids)), np.nan)
    if rows.height:
        run, query = places(rows, run_id=run_ids, query_id=query_ids)
        values[run, query] = rows["ms"].to_numpy()
    means, n = mean(values)
    ends = mean_interval(values, "amounts", clusters=alike(query_ids)) if rows.height else (means, means)
    serial = dict(rows.group_by("run_id").agg(pl.col("serial").max().fill_null(0.0)).iter_rows())
    wider = np.sqrt(inflation([serial[run_id] for run_id in run_ids], None))
    low, high = (means + wider * (end - means) for end in ends)
    columns = dict(zip(COLUMNS[:4], (means, low, high, n.astype(np.int32)), strict=True))
    table = pl.DataFrame({"run_id": pl.Series(run_ids, dtype=pl.String), **columns})
    modelled = pl.col("modelled")
    return (
        table.with_columns(pl.col(pl.Float64).fill_nan(None))
        .join(rows.group_by("run_id").agg(modelled.any()), on="run_id")
        .join(runs.select("run_id", basis()), on="run_id")
        .select(
            *table.columns,
            pl.when(modelled).then(pl.lit("modelled")).otherwise("basis").alias("latency_basis"),
            pl.when(modelled).then(pl.format(_MODELLED, "basis")).alias("latency_note"),
        )
    )


def _reported(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return latencies from aggregates; end-to-end combines the reported path and the modelled generation."""
    if latency.scope != "end-to-end":
        return _reported_path(snapshot, runs, latency)
    path = _reported_path(snapshot, runs, Latency(latency.percentile))
    added = modelled_ms(snapshot, runs, latency.generation)
    whole = path.join(added, on="run_id", how="left")
    note = pl.format(
        "retrieval {}{}, generation modelled",
        "latency_basis",
        pl.concat_str(pl.lit(" ("), "latency_note", pl.lit(")")).fill_null(""),
    )
    path_known = pl.col("latency_ms").is_not_null()
    return whole.select(
        "run_id",
        *(pl.col(name) + pl.col("added") for name in COLUMNS[:3]),
        "latency_n",
        latency_basis=pl.lit("modelled"),
        latency_note=pl.when(path_known & pl.col("added").is_not_null())
        .then(note)
        .otherwise(pl.when(path_known).then(pl.lit(_NO_MODEL)).otherwise("latency_note")),
    )


def _reported_path(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return latencies from aggregates: the reported total, otherwise the sum over the stages of the stack.

    Only medians or means are summed; high percentiles of stages do not add up to one of the whole path, so
    several of them stay unknown.
    """
    figures = (
        snapshot.aggregates(runs["run_id"].to_list())
        .filter(pl.col("measure") == f"latency_{latency.percentile}")
        .unique(["run_id", "stage"], keep="first", maintain_order=True)
    )
    total = figures.filter((pl.col("stage") == "total") & pl.lit(latency.scope == "path"))
    summed = (
        _needed_stages(runs, latency, figures)
        .join(figures.select("run_id", "stage", "value", "n"), on=["run_id", "stage"], how="left")
        .group_by("run_id")
        .agg(
            pl.col("value").sum().alias("sum"),
            pl.col("n").min().alias("n_sum"),
            pl.col("stage").filter(pl.col("value").is_null()).sort().str.join(", ").alias("missing"),
            pl.len().alias("stages"),
        )
        .with_columns(_why_unknown(latency).alias("unknown"))
    )
    there = pl.col("value").is_not_null()
    published = pl.col("origin") == "published"
    kinds = pl.col("stages")
    of = "means" if latency.percentile == MEAN else "medians"
    summed_up = pl.when(kinds > 1).then(pl.format(f"sum of {{}} stage {of}", kinds))
    return (
        runs.select("run_id", "origin")
        .join(total.select("run_id", "value", "n", "low", "high"), on="run_id", how="left")
        .join(summed, on="run_id", how="left")
        .select(
            "run_id",
            latency_ms=pl.coalesce("value", pl.when(pl.col("unknown").is_null()).then("sum")),
            latency_low="low",
            latency_high="high",
            latency_n=pl.when(there).then("n").otherwise("n_sum"),
            latency_basis=pl.when(published).then(pl.lit("published")).otherwise(pl.lit("imported")),
            latency_note=pl.when(~there).then(pl.coalesce("unknown", summed_up)),
        )
    )


def _why_unknown(latency: Latency) -> pl.Expr:
    missing = pl.when(pl.col("missing") != "").then(pl.format("not reported: {}", "missing"))
    several = pl.lit(latency.percentile not in ("p50", MEAN)) & (pl.col("stages") > 1)
    return pl.coalesce(
        missing, pl.when(several).then(pl.lit(f"{latency.percentile} of single stages do not add up"))
    )


def _needed_stages(runs: pl.DataFrame, latency: Latency, figures: pl.DataFrame) -> pl.DataFrame:
    """Return the stages that make up the latency of each run: run_id, stage."""
    reranked = pl.col("reranker").fill_null("none") != "none"
    if latency.scope == "rerank":
        return runs.filter(reranked).select("run_id", pl.lit("rerank").alias("stage"))
    dense, sparse = pl.col("mode").is_in(["dense", "hybrid"]), pl.col("mode").is_in(["sparse", "hybrid"])
    # a run without a mode did search in some way, so its reranker alone isn't the path
    searched = dense | (pl.col("mode").is_null() & pl.col("run_id").is_in(figures["run_id"].to_list()))
    stages = {"embed": dense, "retrieve": searched, "sparse": sparse, "rerank": reranked}
    return pl.concat(
        runs.filter(there).select("run_id", pl.lit(stage).alias("stage")) for stage, there in stages.items()
    )


def sample(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return one latency per run and query: run_id, query_id, ms, serial (see `totals`), modelled."""
    timings = snapshot.timings(runs["run_id"].to_list())
    if latency.scope != "end-to-end":
        rows = totals(timings, latency.scope)
        return rows.select(*_NAMES, "serial", pl.lit(False).alias("modelled"))
    path = totals(timings).select(*_NAMES, "serial")
    answered = _answered(snapshot, timings, latency)
    both = path.join(answered.select("run_id", "query_id", pl.col("ms").alias("answer")), on=_NAMES[:2])
    added = modelled_ms(snapshot, runs, latency.generation)
    rest = path.join(answered.select("run_id").unique(), on="run_id", how="anti").join(added, on="run_id")
    of = (*_NAMES[:2], "serial")
    measured = both.select(*of, pl.col("ms") + pl.col("answer"), pl.lit(False).alias("modelled"))
    modelled = rest.select(*of, pl.col("ms") + pl.col("added"), pl.lit(True).alias("modelled"))
    return pl.concat([measured, modelled])


def _answered(snapshot: Snapshot, timings: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """Return answering times: run_id, query_id, ms; requested answers override recorded stages."""
    recorded = per_query(timings, stages=[GENERATE]).filter(pl.col("stage") == GENERATE).select(_NAMES)
    if latency.answers is None:
        return recorded
    rows = taken(snapshot, timings["run_id"].unique().to_list(), latency.answers).drop_nulls("ms")
    rest = recorded.join(rows, on="run_id", how="anti")
    return pl.concat([rows.select(_NAMES), rest])


def modelled_ms(snapshot: Snapshot, runs: pl.DataFrame, generation: Generation | None) -> pl.DataFrame:
    """Model the latency that generation adds to each run.

    Args:
        generation: The model; None = none.

    Returns:
        run_id, prompt (tokens), added (ms); no rows without a model. The prompt is the run's recorded
        generator input, otherwise its chunks sent × tokens per chunk.
    """
    schema = {"run_id": pl.String, "prompt": pl.Float64, "added": pl.Float64}
    if generation is None:
        return pl.DataFrame(schema=schema)
    recorded = dict(prompt_tokens(snapshot, runs["run_id"].to_list()).iter_rows())
    rows = []
    for run_id, spec in runs.select("run_id", "spec").iter_rows():
        sent = json.loads(spec).get("chunks_sent")
        prompt = recorded.get(run_id, generation.prompt(sent if isinstance(sent, int) else None))
        rows.append((run_id, prompt, generation.ms(prompt)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def prompt_tokens(snapshot: Snapshot, run_ids: list[str]) -> pl.DataFrame:
    """Return the mean tokens of the prompts that runs recorded: run_id, amount."""
    usage = snapshot.usage(run_ids).filter((pl.col("stage") == GENERATE) & (pl.col("unit") == "input_tokens"))
    return mean_usage(usage).drop_nulls("amount").group_by("run_id").agg(pl.col("amount").sum())


def jitters(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency, apart: Ids = _NONE) -> pl.DataFrame:
    """Return the jitter band of every run.

    It is measured for runs timed here, on this machine alone, in several passes: one band for all such
    runs of the collection, shown or not, except incomparable ones: the 95th percentile of
    the differences of the requested percentile between the passes of a run. For the others it is the paper's.
    """
    held = snapshot.runs(runs["collection_id"][0]) if runs.height else runs
    compared = ~pl.col("run_id").is_in(list(apart.ids))
    timed = held.filter(pl.col("origin") == Origin.RUN.value, compared)
    here = timed["run_id"].to_list()
    called = timed.filter(pl.col("spec").str.json_path_match("$.call").is_not_null())["run_id"].to_list()
    remote = _remote(snapshot, here, called, latency)
    timings = snapshot.timings([run_id for run_id in here if run_id not in remote])
    differences = pass_differences(
        per_repeat(timings, scope="rerank" if latency.scope == "rerank" else "path"), latency.percentile
    )
    band, stacks = jitter(differences["ms"]), differences["run_id"].n_unique()
    words = (
        f"measured: 95th percentile of {count(differences.height, 'difference')} of the {latency.percentile} "
        f"between passes of the same questions, {count(stacks, 'timed run')} of the collection"
    )
    measured = pl.col("run_id").is_in(differences["run_id"].unique().to_list())
    return runs.select(
        "run_id",
        pl.when(measured).then(pl.lit(band, pl.Float64)).otherwise(JITTER_MS).alias("jitter_ms"),
        pl.when(measured).then(pl.lit(words)).otherwise(pl.lit(_ASSUMED)).alias("jitter_note"),
    )


def with_noise(table: pl.DataFrame) -> pl.DataFrame:
    """Add cost_noise to a stack table: the share of a machine-time cost that is uncertain from its timing.

    It is the measured jitter band's share of the latency, at most `UNSURE`: one band serves all stacks,
    and slow ones widen it. Null if another machine is paid, or answers are, or no pass was repeated.
    """
    measured = (pl.col("jitter_note") != _ASSUMED) & pl.col("cost_per").is_null()
    share = pl.min_horizontal(pl.col("jitter_ms") / pl.col("latency_ms"), UNSURE)
    return table.with_columns(cost_noise=pl.when(measured & pl.col("latency_ms").is_not_null()).then(share))


def _remote(snapshot: Snapshot, run_ids: list[str], called: list[str], latency: Latency) -> set[str]:
    """Return the runs with a stage in the latency that calls another machine.

    Args:
        called: Runs of custom functions; costs they report are not requests that they send.
    """
    stages = pl.col("stage").is_in(AFTER_RETRIEVAL)
    within = pl.lit(latency.scope == "end-to-end") | ~stages
    said = (pl.col("unit") == "requests") | (pl.col("basis") == "modelled")
    used = snapshot.usage(run_ids).filter(
        ~pl.col("unit").is_in(_LOCAL), within, ~(pl.col("run_id").is_in(called) & said)
    )
    return set(used["run_id"])


def jitter_words(table: pl.DataFrame, decision: Decision, constraints: Constraints) -> str:
    """Describe the chosen stack's band and its source: ``0.017 ms (measured: …)``, or as typed."""
    if constraints.jitter_ms is not None:
        return f"{decision.jitter_ms:.3g} ms (as typed)"
    known = table.height and "jitter_note" in table.columns
    words = table.item(decision.chosen or 0, "jitter_note") if known else None
    if words is None:
        return _band(JITTER_MS, _ASSUMED)
    return _band(table.item(decision.chosen or 0, "jitter_ms"), words)


def assumed(table: pl.DataFrame, decision: Decision, constraints: Constraints) -> str:
    """State that a tie relies on an unmeasured jitter band, and how to replace it, or return ""."""
    if constraints.jitter_ms is not None or decision.chosen is None or "jitter_note" not in table.columns:
        return ""
    tied = table["latency_ms"].gather(list(decision.ties))
    if tied.n_unique() < 2 or table.item(decision.chosen, "jitter_note") != _ASSUMED:
        return ""
    return (
        f"Latencies less than {decision.jitter_ms:.3g} ms apart count as alike here: assumed, not measured "
        "(CLQ paper §3.2); the setting Jitter replaces it."
    )


def _band(ms: float, words: str) -> str:
    return f"{ms:.3g} ms ({words})"


@remembered
def jitter_kinds(table: pl.DataFrame) -> list[str]:
    """Return every band of a stack table with its source, the narrowest first."""
    if "jitter_note" not in table.columns:
        return []
    kinds = table.select("jitter_ms", "jitter_note").unique().drop_nulls().sort("jitter_ms")
    return [_band(ms, words) for ms, words in kinds.iter_rows()]
