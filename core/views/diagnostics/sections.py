"""Page Diagnostics: how much an embedder depends on names, and what chat-style typing costs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.analysis.cache import cached
from core.analysis.perturbed import Gathered, drops, noise_effects, per_query, rewritten
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.telling import dated, perturbed
from core.analysis.workspace.view import View
from core.diagnostics.names.margins import ModelCheck
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, section
from core.views.diagnostics import asked_names as named
from core.views.diagnostics import drifting, foretold, watching
from core.views.diagnostics import names as page
from core.views.diagnostics import noise_costs as noisy
from core.views.text import plain
from core.views.words.users import in_words

COSINES = "Cosine to the clean query by level of small talk; the paper's is to a restatement of it."

figures = cached("Reading diagnoses…")(page.figures)
OF_P = "Of the Kolmogorov–Smirnov distance, corrected (Holm)."
OF_JUDGED = "Over the judged queries of the window, at the cutoff."
DRIFT = cols.Rows(
    "drift",
    cols.exact("window", help="In the order of time; the first is the reference."),
    cols.text("from", "from (UTC)", "When its first query was asked.", width=130),
    cols.text("to", "to (UTC)", "When its last query was asked.", width=130),
    cols.count("n", help="Queries of which the proxy is known."),
    cols.number("mean", help="Of the proxy.", digits=3),
    cols.number("shift", help="Mean minus that of the first window.", digits=3),
    "shift_low shift_high",
    cols.text("p_said", "p", OF_P, width=80),
    cols.text("verdict", "drifted", "p below 0.05.", width=70),
    more=(
        cols.score("distance", help="Kolmogorov–Smirnov, to the first window."),
        cols.exact("sessions", "groups", "Sessions, or runs of queries where none are known."),
        cols.exact("compared", "n compared", "Queries at hours of the day that the first window has too."),
        *(
            cols.number(f"{name}{end}", f"{name}{end.replace('_', ' ')}", OF_JUDGED, digits=3)
            for name in drifting.JUDGED
            for end in ("", "_low", "_high")
        ),
        *(cols.exact(f"{name}_n", f"{name}: n", "Judged queries.") for name in drifting.JUDGED),
    ),
)
ASKED = cols.Rows(
    "names_asked",
    "stack what clean",
    cols.score("quality", help="Of the questions with other names."),
    "change change_low change_high d_change",
    more=(
        cols.signed("d_low", "signal low, %", "Lower end of its 95 % interval.", digits=1),
        cols.signed("d_high", "signal high, %", "Upper end of its 95 % interval.", digits=1),
        cols.score("d_name", "signal as they are"),
        "rewrite",
        cols.count("n", help="Questions that name something."),
        "d_n",
    ),
    ends="95 % paired interval.",
)
EMBEDDER = cols.text("label", "embedder", width=170)
RANKING = cols.Rows(
    "names_ranking",
    cols.count("rank", help="By the name signal, largest first."),
    EMBEDDER,
    "basis name_topic_ratio d_name",
    more=(
        "d_topic d_both sd runs",
        cols.count("n", help="Bundles over all runs."),
        "gibberish_name edit_distance_near_miss",
    ),
)
CHECKS = cols.Rows(
    "names_checks",
    "result check",
    EMBEDDER,
    "language",
    cols.number("value", "furthest value", digits=3),
    cols.count("n", help="Bundles that it was checked on, over all runs."),
)
NOISE = cols.Rows(
    "noise",
    "stack perturb rewrite",
    cols.score("quality", help="Mean over n queries."),
    cols.signed("change", help="Against the queries as they are."),
    "change_low change_high won",
    more=(
        "won_low won_high",
        cols.share("overlap", "Top-K that stays", "Overlap with the ranking of the query as it is."),
        cols.number("tau", help="Of the passages in both rankings."),
        "rewrite_ms",
        cols.count("n", help="Queries that every run here was asked."),
    ),
    ends="95 % paired interval.",
)
VECTORS = cols.Rows(
    "noise_vectors",
    "model language perturb cosine",
    cols.signed("share", "change, %", "Against level 0.", digits=1),
    cols.count("n"),
    cols.text("source"),
)


@cached("Comparing questions with other names…")
def beside(view: View, quality: Quality) -> pl.DataFrame:
    """Compare the effect of other names in the workspace's questions on D_name and on quality."""
    renamed = named.renamed(view.snapshot, view.scope, quality)
    margins = named.known_margins(view.snapshot, view.scope, renamed) if renamed else pl.DataFrame()
    return named.side_by_side(renamed, margins)


@cached("Embedding perturbed queries…")
def moved(view: View, asked: tuple[str, ...], _runs: Gathered) -> pl.DataFrame:
    """Return how far vectors of perturbed queries move."""
    del asked  # part of the key
    return drops(view.snapshot, _runs)


@section("names", "How much does an embedder go by names instead of content?")
def by_names(view: View, ask: Ask) -> Blocks:
    """Yield how much identity each embedder carries, and the effect of other names in the questions."""
    rows, checks = figures(view.snapshot)
    if rows.is_empty():
        yield Answer(page.NOTHING)
        yield Text(page.WAY_OUT, "guide")
    else:
        yield from measured(page.both(rows), checks, ask)
    yield from in_questions(view)


def measured(rows: pl.DataFrame, checks: Sequence[ModelCheck], ask: Ask) -> Blocks:
    """Yield the measurements on bundles of names, beside the paper's published ones."""
    spoken = {plain(page.spoken(name)): name for name in rows["language"].unique().sort()}
    language = spoken[ask.one("Language", spoken, "spoken")]  # a link holds what the widget shows
    sentence, near = page.answer(rows, language)
    yield Answer(sentence, near, caveats={"how it is measured": page.HOW})
    yield Cards(page.cards(rows, language))
    yield Chart(page.chart(rows, language), "names", sentence)
    table = page.wide(rows, language)
    spreads = [name for name in table.columns if name.startswith("± ")]
    labels = [name for name in table.columns if name not in (*spreads, "condition", "what")]
    shown = cols.Rows(
        "names",
        cols.text("what", "name changed to", width=240),
        *(cols.signed(name, f"{name}, %", digits=1) for name in labels),
        more=(*(cols.points(name, help="Standard deviation between runs.") for name in spreads), "condition"),
    )
    yield Table(table, shown, whole=page.deltas(rows, language))
    ranking = Table(page.ranking(rows, language), RANKING)
    yield Fold("Which embedder goes most by names", [ranking])
    yield Fold(page.checks_line(checks), [Table(page.checked(checks), CHECKS)])


def in_questions(view: View) -> Blocks:
    """Yield the effect of other names in the workspace's questions on D_name and on quality."""
    yield Text("Other names in your questions", "heading")
    quality = Quality(named.MEASURE, view.quality.k)
    table = beside(view, quality)
    if table.is_empty():
        yield Text(named.NO_RUNS, "guide")
        return
    sentence = named.answer(table, quality)
    yield Text(sentence)
    yield Chart(named.chart(table, quality), "names_asked", sentence)
    yield Text(named.linked(table, quality))
    yield Fold("How it is compared", [Text(named.HOW)])
    rows = table.with_columns(what=pl.col("names").replace_strict(named.MEANS))
    yield Table(rows, ASKED.measured(quality.name))


@section("noise", "How much quality do small talk and typing errors cost?", perturbed)
def by_noise(view: View, ask: Ask) -> Blocks:
    """Yield the cost of perturbed queries, and what rewriting recovers."""
    runs, table = noise_effects(view)
    if not runs:
        yield Answer(noisy.NO_RUNS)
        yield Text(noisy.WAY_OUT, "guide")
        return
    sentence, advice = noisy.answer(table, view.quality)
    yield Answer(sentence, advice, caveats={"how it is compared": noisy.HOW})
    if cards := noisy.cards(table, view.quality):
        yield Cards(cards)
    drawn = noisy.chart(table, view.quality)
    if drawn is not None:
        yield Chart(drawn, "noise", sentence)
    perturbs = pl.Series("perturb", noisy.names(table["perturb"].to_list()))
    ways = pl.col("rewrite").map_elements(noisy.way, return_dtype=pl.String)
    yield Table(table.with_columns(perturbs, ways), NOISE.measured(view.quality.name))
    yield from by_query(view, ask, runs, table)
    yield from vectors(view, runs)


def by_query(view: View, ask: Ask, runs: Gathered, table: pl.DataFrame) -> Blocks:
    """Yield which perturbation hurts which query of a stack."""
    compared = table.filter(pl.col("change").is_not_null())
    offered = {rewritten(row["stack"], row["rewrite"]): row for row in compared.iter_rows(named=True)}
    if not offered:
        return
    yield Text("Query by query", "heading")
    row = offered[ask.listed("Stack", offered, "noisy")]
    rows = per_query(runs, row["family"], row["rewrite"], higher_is_better=view.quality.higher_is_better)
    asked = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    levels = [name for name in rows.columns if name not in ("query_id", "clean", "hurt_by", "lost")]
    scores = [cols.score(name, label) for name, label in zip(levels, noisy.names(levels), strict=True)]
    said = pl.col("hurt_by").map_elements(in_words, return_dtype=pl.String)
    texts = rows.with_columns(said).join(asked, on="query_id", how="left", maintain_order="left")
    yield Table(
        texts,
        cols.Rows("noise_queries", cols.text("text", "query", width=330), "hurt_by lost clean", *scores),
    )


def vectors(view: View, runs: Gathered) -> Blocks:
    """Yield how far vectors move for embedders that run here, beside the paper's."""
    rows = moved(view, runs.query_ids, runs)
    if rows.is_empty():
        return
    yield Text("How far the query's vector moves", "heading")
    yield Text(COSINES, "caption")
    language = pl.col("language").str.to_lowercase().map_elements(page.spoken, return_dtype=pl.String)
    shown = rows.with_columns(pl.col("share") * 100, language=language)
    yield Table(shown, VECTORS, whole=rows)


@section(foretold.NAME, "Which sign warns that noisy queries lose recall?", dated)
def with_recall(view: View, ask: Ask) -> Blocks:
    """Yield the correlation of diagnostics and recall, over queries and over stacks."""
    table, quality = foretold.foretold(view), Quality(named.MEASURE, view.quality.k)
    if table.is_empty():
        yield Answer(foretold.NO_RUNS)
        yield Text(foretold.WAY_OUT, "guide")
        return
    sentence, which = foretold.answer(table, quality)
    yield Answer(sentence, which, caveats={"how it is compared": foretold.HOW})
    stacks = table["stack"].unique(maintain_order=True).to_list()
    single = [stack for stack in stacks if stack != foretold.EVERY]
    chosen = ask.listed("Stack", single, "noisy", width=290)
    rows = table.filter(stack=chosen)
    if rows["low"].is_not_null().any():
        yield Chart(foretold.chart(rows), "foretold", sentence)
    every = table.filter(pl.col("stack").is_in([foretold.EVERY, chosen]))
    said = every.with_columns(pl.col("perturb").map_elements(foretold.asked, return_dtype=pl.String))
    yield Table(said, foretold.FORETOLD, whole=table)


@section(drifting.NAME, "Does live traffic still look as it did?", dated)
def live(view: View, ask: Ask) -> Blocks:
    """Yield whether a number that needs no judgement drifts over the time span of imported traces."""
    runs = drifting.timed(view)
    if not runs:
        yield Answer(drifting.NOTHING)
        yield Text(drifting.WAY_OUT, "guide")
        return
    run_id = runs[ask.listed("Traces", runs, "live", width=230)]
    offered = [
        name for name in drifting.proxies(view, run_id).columns if name not in ("query_id", "at", "session")
    ]
    usual = next((name for name in offered if name.startswith("best score")), None)
    proxy = ask.listed("Proxy", offered, "proxy", usual=usual, about=drifting.ABOUT_PROXY, width=230)
    count = int(ask.number("Windows", "wins", 6.0, 2.0, 50.0) or 6)
    rows = drifting.drifted(view, run_id, proxy, count)
    sentence = drifting.answer(rows, proxy)
    yield Answer(sentence, caveats={"how it is compared": drifting.HOW, "limits": drifting.LIMITS})
    if rows.is_empty():
        return
    yield Chart(drifting.chart(rows, proxy), "drift", sentence, drifting.MARKS)
    yield Table(drifting.dated(rows), DRIFT)


SECTIONS = (by_names, by_noise, with_recall, live, watching.live_quality)
