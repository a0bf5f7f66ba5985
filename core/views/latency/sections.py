"""Page Latency: how long queries take, how certain that is, and which stage and K cost the time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.depth import latency_by_depth
from core.analysis.workspace.figures.latencies import PASSES, SHARED, floors_of, modelled_ms
from core.analysis.workspace.scope import Latency
from core.analysis.workspace.telling import seldom, timed_reader
from core.analysis.workspace.view import View
from core.stats.latency import LEAST, Fit
from core.store import Snapshot
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.latency import charts, data, indexes
from core.views.latency.data import PERCENTILES
from core.views.latency.filters import filters
from core.views.latency.index_loss import index_loss, losses
from core.views.legend import colours_of, shown_first

SHAPES = "ECDF: share of the queries answered within so many ms. box: quartiles, whiskers, outliers."
MEDIANS = "Medians of the stages over queries; they need not add up to the median of the whole."
REPEATS = f"{PASSES} {SHARED} Grey: jitter around the first stack's median."
FLOOR = "time of asking"
STAGES: Mapping[str, str] = {
    "embed": "Embedding the query",
    "retrieve": "Searching the vectors",
    "sparse": "Searching by words",
    "rerank": "Reranking",
    "fuse": "Merging the two lists",
}
"""Stages in words; others are named as they are recorded."""
NO_STAGES = "No times of single stages are known for these stacks."
NO_SAMPLES = "No times per query are known for these stacks: there is no distribution to draw."
LINES = (
    "One line per reranker and embedder, for all dimensions. Ringed: off the line by more than the jitter "
    "and 10 % (CLQ paper §5.4)."
)
NO_LINES = "No stack here has a timed reranker."
NO_GENERATOR = (
    "No answer was timed here.",
    "Choose the latency end-to-end in the settings to give the reader's speed, or import timings of the "
    "stages first_token and generate.",
)
MODEL_ONLY = "Modelled from the reader's speed in the settings; no answer was timed."
MODELLED = "Dashed: modelled, without the spread of single answers. Dotted: prompts of the stacks shown."
NOTES, REASONS, ENDS = (
    tuple(f"{percentile}_{of}" for percentile in PERCENTILES for of in kinds)
    for kinds in (("note",), ("reason",), ("low", "high"))
)
SAMPLE = ("n", "basis")

depths = cached()(latency_by_depth)
timed_answers = cached("Fitting the generator's speed…", entries=64)(data.timed_answers)
known_indexes = cached("Reading the indexes…")(indexes.figures)
BY_K = cols.Rows(
    "reranker_lines",
    "reranker embedder slope intercept stacks depths breaks_at worst_ms",
    cols.text("reason", "no line because"),
)


def _any_index(snapshot: Snapshot, collection_id: str) -> bool:
    del collection_id
    return known_indexes(snapshot).height > 0


@cached("Reading the timings…")
def percentiles(view: View) -> pl.DataFrame:
    """Return the percentiles of every stack."""
    return data.percentile_table(view.snapshot, view.table, view.latency)


@cached("Reading the timings…")
def stages_of(view: View, names: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return times per query and stage of some stacks, and their percentiles."""
    runs = view.table.filter(pl.col("name").is_in(names))
    samples = data.stage_samples(view.snapshot, runs, view.latency)
    return samples, data.stage_table(view.snapshot, runs, samples)


def head(
    view: View, ask: Ask, say: Callable[[Mapping[str, Any]], str]
) -> Generator[Block, None, tuple[str, ...]]:
    """Yield the head of the sections about stacks; return the stacks, empty if none is timed."""
    known = percentiles(view)
    if known["p50"].null_count() == known.height:
        yield unknown(known)
        return ()
    usual = data.usual(known, view.table, view.decision)
    names = tuple(ask.stacks(view.table, view.decision, "lats", most=6, **shown_first(view, usual)))
    row, jitter_ms = known.row(by_predicate=pl.col("name") == names[0], named=True), view.decision.jitter_ms
    by_depth = depths(view.snapshot, view.scope, jitter_ms=jitter_ms)
    chosen = None if view.decision.chosen is None else view.table["name"][view.decision.chosen]
    chips = {**floor(view.table, row), **caveats(known, by_depth)}
    yield Answer(say(row), instead(known, names[0], chosen) or f"Of {names[0]}.", caveats=chips)
    yield Cards(cards(row, view.latency))
    return names


@section("where the time goes", "Which stage takes the time of a query?")
def where_the_time_goes(view: View, ask: Ask) -> Blocks:
    """Yield the stages of some stacks: one after another, query by query, and as a table."""

    def say(row: Mapping[str, Any]) -> str:
        return answer(row, data.path_stages(stages_of(view, (row["name"],))[1], view.latency))

    names = yield from head(view, ask, say)
    if not names:
        return
    samples, rows = stages_of(view, names)
    parts = data.path_stages(rows, view.latency)
    if parts.is_empty():
        yield Text(NO_STAGES, "caption")
    else:
        yield Chart(charts.stage_bars(parts, names, view.running_name), "stage_bars", MEDIANS)
    yield Text("Query by query", "heading")
    if samples.is_empty():
        yield Text(NO_SAMPLES, "caption")
    else:
        shape: charts.LatencyShape = ask.one("Drawn as", ("ECDF", "box"), "shape", about=SHAPES)
        looks = (colours_of(view, names), shape, view.decision.jitter_ms, view.running_name)
        drawn = charts.distributions(samples, *looks)
        yield Chart(drawn, "stages", "Latency of every stage of the stacks shown", REPEATS)
    yield Table(rows, cols.Rows("stages", "name stage", *PERCENTILES, *SAMPLE, more=(*ENDS, *REASONS)))
    every = Table(
        percentiles(view), cols.Rows("latency", "name", *PERCENTILES, *SAMPLE, more=(*ENDS, *NOTES))
    )
    yield Fold("p50, p95 and p99 of every stack", [every])


@section("reranker by K", "How much slower does each further candidate make the reranker?", seldom)
def reranker_by_k(view: View, ask: Ask) -> Blocks:
    """Yield how the reranker's time grows with the candidate depth."""
    del ask  # every reranker is drawn
    rows = depths(view.snapshot, view.scope, jitter_ms=view.decision.jitter_ms)
    if rows.is_empty():
        yield Answer(NO_LINES)
        return
    fitted = charts.depth_lines(rows)
    yield Answer(*per_candidate(fitted), caveats={"jumps with K": " ".join(_breaks(rows))})
    yield Chart(charts.by_depth(rows), "reranker_by_depth", "Reranker latency against K", LINES)
    yield Table(fitted, BY_K)


@section("generator", "How long does the answer take after retrieval?", timed_reader)
def generator(view: View, ask: Ask) -> Blocks:
    """Yield the generator's time against its prompt, if it was timed or is modelled."""
    timed, model = timed_answers(view.snapshot, view.scope), view.latency.generation
    if timed.is_empty() and model is None:
        yield Answer(*NO_GENERATOR)
        return
    said = MODEL_ONLY if timed.is_empty() else speed(data.fitted(timed))
    names = yield from head(view, ask, lambda _: said)
    if not names:
        return
    runs = view.table.filter(pl.col("name").is_in(names))
    added = modelled_ms(view.snapshot, runs, model).join(runs.select("run_id", "name"), on="run_id")
    drawn = charts.generator(timed, model, added["prompt"].to_list())
    yield Chart(drawn, "generator", "Generation time against prompt tokens", MODELLED)
    if model is not None:
        first = [model.speed.first_token_ms(prompt) for prompt in added["prompt"]]
        rows = added.with_columns(pl.Series("first", first, dtype=pl.Float64), basis=pl.lit("modelled"))
        yield Table(rows, cols.Rows("generation", "name prompt first added basis"))


@section("indexes", "Which index is fast enough, and what does its speed cost in recall?", _any_index)
def every_index(view: View, ask: Ask) -> Blocks:
    """Yield the recall and speed of every index."""
    known = known_indexes(view.snapshot)
    if known.is_empty():
        yield Answer(indexes.NONE)
        if not (lost := losses(view)).is_empty():
            of = text.count(lost["index"].n_unique(), "kind of index", "kinds of index")
            yield Way("latency", f"What {of} lose here", "index loss")
        yield Text(indexes.HOW)
        return
    benches = indexes.benches(known)
    if len(benches) > 1:
        bench = ask.listed("Measured", benches, "ixat", width=330)
        known = known.filter((pl.col("basis") == indexes.IMPORTED) | (pl.col("where") == bench))
    depths, asking = (known[name].drop_nulls().unique().sort().to_list() for name in ("k", "clients"))
    k = ask.listed("K", depths, "ixk", width=110)
    clients = ask.listed("Clients", asking, "ixc", width=110, about=cols.COLUMNS["clients"].help)
    price = ask.number(
        "Machine, $ per hour", "ixusd", None, 0.0, step=0.05, about=indexes.DOLLARS_HELP, width=180
    )
    busy = ask.number("Utilisation, %", "ixuse", 50.0, 1.0, 100.0, step=5.0, width=150)
    rows = indexes.dollars(known, price, (busy or 50.0) / 100)
    some = rows.filter((pl.col("k") == k) & (pl.col("clients").is_null() | (pl.col("clients") == clients)))
    yield Answer(indexes.answer(some, k, clients))
    speed = indexes.drawn(some, indexes.QPS, "queries per second")
    yield Chart(speed, "indexes_speed", "Recall against queries per second of every index")
    tail = "p50_ms" if some["p50_ms"].null_count() < some.height else "p99_ms"
    slow = indexes.drawn(some, tail, f"latency {tail.removesuffix('_ms')} (ms)").update_layout(
        showlegend=False
    )
    yield Chart(slow, "indexes_latency", "Recall against latency of every index", indexes.SCALES)
    yield Table(rows, indexes.INDEX)


SECTIONS = (where_the_time_goes, reranker_by_k, generator, filters, every_index, index_loss)


def answer(row: Mapping[str, Any], stages: pl.DataFrame) -> str:
    """Say which stage takes the most of a stack's time.

    Takes a row of `percentile_table`, and `path_stages`.
    """
    own = stages.filter(pl.col("name") == row["name"]).sort("p50", descending=True)
    if own.height < 2 or not row["p50"] or row["p50"] < own["p50"][0]:
        return f"{row['name']} answers half of its queries within {text.ms(row['p50'])}."
    longest, whole = own["p50"][0], row["p50"]
    share = f"{text.percent(longest / whole)} of a query's time, {text.ms(longest)}"
    stage = STAGES.get(own["stage"][0], f"Stage {own['stage'][0]}")
    return f"{stage} takes {share} (p50, {text.sample(own['n'][0])})."


def instead(rows: pl.DataFrame, name: str, chosen: str | None) -> str:
    """Say why a stack replaces the chosen one; "" if the chosen one is timed, or there is none."""
    timed = rows.filter(pl.col("p50").is_not_null())["name"]
    return "" if chosen is None or chosen in timed else f"No latency is known of {chosen}: {name} is shown."


def unknown(rows: pl.DataFrame) -> Answer:
    """Return the answer that no latency is known, and why."""
    reasons = rows["p50_note"].drop_nulls().value_counts(sort=True)
    why = f"{reasons['p50_note'][0].capitalize()}. " if reasons.height else ""
    none = "The only stack has no" if rows.height == 1 else f"None of {rows.height:,} stacks has a"
    what = "p50" if "Only a mean" in why else "latency"
    return Answer(f"{none} known {what}.", f"{why}Timings come with runs made here, or with imported files.")


def cards(row: Mapping[str, Any], latency: Latency) -> tuple[tuple[str, str, str], ...]:
    """Return the three percentiles of a stack: label, number, its basis."""
    cards = []
    for percentile in PERCENTILES:
        value, note, low, high = (row[f"{percentile}{end}"] for end in ("", "_note", "_low", "_high"))
        label = latency.name.replace(latency.percentile, percentile).removesuffix(" (ms)")
        if value is None and "too few" in (note or ""):
            cards.append((label, "withheld", f"needs {LEAST[percentile]} queries, {text.sample(row['n'])}"))
            continue
        span = "" if low is None or high is None else f"[{text.ms(low)}, {text.ms(high)}] "
        cards.append((label, text.ms(value), f"{span}{text.sample(row['n'])} · {row['basis']}"))
    return tuple(cards)


def per_candidate(lines: pl.DataFrame) -> tuple[str, str]:
    """Say how much time a further candidate costs most stacks' reranker; takes `charts.depth_lines`."""
    known = lines.filter(pl.col("slope").is_not_null()).sort("stacks", descending=True, maintain_order=True)
    if known.is_empty():
        return "No reranker was timed at enough depths.", "What a further candidate takes is not known."
    first = known.row(0, named=True)
    more = f"; {text.count(known.height - 1, 'more pair')} in the table" if known.height > 1 else ""
    return (
        f"Each further candidate adds {text.ms(first['slope'])} to {first['reranker']} "
        f"({text.count(first['stacks'], 'stack')}, {text.count(first['depths'], 'depth')}).",
        f"Embedder: {first['embedder']}{more}." if first["embedder"] else "",
    )


def caveats(rows: pl.DataFrame, depths: pl.DataFrame) -> dict[str, str]:
    """Return withheld tails and departures from the line by K, keyed by the words of a chip."""
    known = rows.filter(pl.col("p50").is_not_null())
    silent = rows.height - known.height
    unknown = f"{text.count(silent, 'stack has', 'stacks have')} no known latency." if silent else ""
    return {
        "some unknown": unknown,
        "high percentiles": " ".join(_withheld(known)),
        "jumps with K": " ".join(_breaks(depths)),
    }


def floor(table: pl.DataFrame, row: Mapping[str, Any]) -> dict[str, str]:
    """Return the chip on the time of an empty pipeline, where it is a share of a custom pipeline's time."""
    timed = pl.DataFrame({"run_id": [row["run_id"]], "latency_ms": [row["p50"]]})
    said = floors_of(table, timed.drop_nulls())["floor"]
    if said.is_empty():
        return {}
    return {FLOOR: f"{said[0].capitalize()}: a constant, no part of the jitter band."}


def _withheld(known: pl.DataFrame) -> list[str]:
    """Say how many stacks lack a p95 and a p99, and the most frequent reason, once if they agree."""
    reasons = {}
    for percentile in ("p95", "p99"):
        held = known.filter(pl.col(percentile).is_null())
        why = held[f"{percentile}_note"].drop_nulls().value_counts(sort=True)
        reason = f" ({why[f'{percentile}_note'][0]})" if why.height else ""
        if held.height:
            reasons[percentile] = f"unknown for {held.height} of {text.count(known.height, 'stack')}{reason}."
    if len(set(reasons.values())) < len(reasons):
        return [f"p95 and p99 are {reasons['p95']}"]
    return [f"{percentile} is {words}" for percentile, words in reasons.items()]


def _breaks(depths: pl.DataFrame) -> list[str]:
    """Return a sentence per reranker and embedder whose latency leaves its line permanently."""
    groups = depths.filter(pl.col("breaks_at").is_not_null() & pl.col("departs")).group_by(
        "reranker", "embedder", "breaks_at", maintain_order=True
    )
    furthest = pl.col("over_ms").sort_by(pl.col("over_ms").abs()).last()
    return [
        f"{reranker}{f' over {embedder}' if embedder else ''} leaves its line from K = {at} on, by up to "
        f"{text.ms(abs(over))}{' below it' if over < 0 else ''}."
        for reranker, embedder, at, over in groups.agg(furthest).iter_rows()
    ]


def speed(fit: Fit) -> str:
    """Return a fitted speed as a sentence, or why there is none."""
    own = fit.speed
    if own is None:
        return f"No speed can be fitted: {fit.reason}."
    sure = f"R² {fit.r2:.2f}, " if fit.r2 == fit.r2 else ""
    parts = [text.ms(ms) for ms in (own.base_ms, own.ms_per_1k_prompt, own.ms_per_output)]
    return (
        f"Fitted to the timings of all stacks: {parts[0]} + {parts[1]} per 1,000 prompt tokens + {parts[2]} "
        f"per output token ({sure}n = {fit.n})."
    )
