"""Page K curves: how quality grows with the passages sent, where it stops, and what a deeper K costs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from core.analysis import prompt_tokens
from core.analysis.cache import cached
from core.analysis.families import without_depth
from core.analysis.stack_cost import models
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.comparable import about_pools
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.gaps import UNTESTED, gap
from core.analysis.workspace.pools import stack_of
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.axes import SAID_K
from core.decide.axes import quality_axis
from core.decide.marginal import GAIN, MAY_BE_CHANCE, NO_GAIN, marginal
from core.stats.intervals import Sample, paired_rows
from core.stats.significance import Setup, bounds
from core.store import Snapshot
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, section
from core.views.curves import cuts, page
from core.views.curves.cuts import cut_off_table
from core.views.legend import colours_of, shown_first
from core.views.text import cost_unit
from core.views.within import CHIP, beyond, told, with_limits

PAYS = (
    "A step pays where quality rises, by more than chance where results per query are known, and the larger "
    "K is within your limits."
)
NO_GENERATOR = "no generator"
POINTS = cols.Rows(
    "curves",
    "name measure k value low high n tokens",
    cols.usd("usd_per_1k", "$ / 1k", "What the reader charges for them."),
    more="facts_per_100 basis tokens_low tokens_high counted",
)
OWN_PROC = "What the best order of the candidates read would score; the next column names the pool."
DEPTHS = cols.Rows(
    "depths",
    "name candidates quality",
    cols.score("proc", "PROC of its pool", OWN_PROC),
    "proc_pool latency_ms cost beyond",
)
STEPS = cols.Rows(
    "steps",
    "family from_k to_k",
    cols.signed("d_quality", "quality"),
    "d_ms d_usd pays",
    cols.text("reason", "why not", width=200),
    more=(
        "gain_low gain_high",
        "per_100_ms per_usd",
    ),
)
CUT = cols.Rows(
    "cut_offs",
    cols.text("way", "keeps", cuts.WAYS, width=150),
    "kept f1",
    cols.signed("gain", "against the cutoff", "F1 less that of the cutoff for all."),
    "gain_low gain_high",
    cols.signed("lead", "against the best K", "F1 less that of the best fixed depth."),
    cols.count("tokens", "tokens sent", "Of what is kept, mean over the queries."),
    more=(
        "precision",
        cols.score("recall", help="Share of what is relevant that is kept."),
        "f1_low f1_high",
        "lead_low lead_high",
        "n",
    ),
)


def deeper_steps(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, *, quality: Quality, latency: Latency
) -> pl.DataFrame:
    """Compute the gain of each step to the next K of the same stack in the table's quality, latency and cost.

    Returns:
        The columns of `core.decide.marginal.marginal`; series is the specification without K. A K that
        nothing reads has no steps.
    """
    axis = quality_axis(higher_is_better=quality.higher_is_better)
    series = [None if stack_of(spec) else without_depth(spec) for spec in table["spec"]]
    rows = table.with_columns(pl.Series("series", series, dtype=pl.String))
    rows = rows.with_row_index("row").drop_nulls("series").sort("series", "candidates", "cost", "run_id")
    rows = rows.unique(["series", "candidates"], keep="first", maintain_order=True)
    rows = rows.with_columns(pl.col("row").cast(pl.Int64).shift(1).over("series").alias("before"))
    sample = joint_sample(snapshot, table, scope, quality=quality, latency=latency)
    pairs = rows.filter(pl.col("before").is_not_null()).select("run_id", "row", "before")
    if sample is None or pairs.is_empty():
        return marginal(rows, quality=axis)
    one, other = paired_rows(Sample.means(sample.quality, sample.clusters), pairs["row"], pairs["before"])
    ends = np.sort(axis.merit(np.column_stack(bounds(other, one, Setup()))), axis=1)
    gains = pairs.select("run_id").with_columns(
        pl.Series(name, ends[:, end]).fill_nan(None) for end, name in enumerate(GAIN)
    )
    return marginal(rows.join(gains, on="run_id", how="left", maintain_order="left"), quality=axis)


def step_rows(steps: pl.DataFrame, table: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Name the families of `deeper_steps` in the column family (without K), the best quality first."""
    names = table.select("run_id", "name", "quality")
    best = pl.col("quality").max() if higher_is_better else pl.col("quality").min()
    return (
        steps.join(names, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.col("name").fill_null("").str.replace_all(SAID_K, "").alias("family"),
            best.over("series").alias("best"),
        )
        .sort(["best", "series", "to_k"], descending=[higher_is_better, False, False], maintain_order=True)
    )


def within_limits(rows: pl.DataFrame, reasons: Mapping[str, str]) -> pl.DataFrame:
    """Mark steps as not worthwhile if they end in a stack that breaks a limit; takes `step_rows`.

    Args:
        reasons: The limits that stacks break, by name; see `core.views.within.beyond`.
    """
    broken = pl.Series([reasons.get(name) for name in rows["name"]], dtype=pl.String)
    return rows.with_columns(
        pays=pl.col("pays") & broken.is_null(),
        reason=pl.when(pl.col("pays") & broken.is_not_null()).then(broken).otherwise("reason"),
    )


def said(rows: pl.DataFrame, quality: Quality, n: object) -> tuple[str, str]:
    """Say how many of the steps are worth it, and which is worth most; takes `step_rows`."""
    sample = f"({quality.name}, {text.sample(n)})"
    paying = rows.filter("pays")
    if paying.is_empty():
        if not (rows["d_quality"].abs() > 0).any():
            return f"A larger K changes nothing here {sample}.", ""
        if rows["series"].n_unique() > 1:
            return f"None of {rows.height:,} steps to a larger K pays off {sample}.", ""
        more = f"Reranking more than {min(rows['from_k'].to_list())} candidates does not"
        if rows["reason"].is_in([NO_GAIN, MAY_BE_CHANCE]).all():
            return f"{more} measurably improve {quality.name} ({text.sample(n)}).", ""
        return f"{more} pay off within your limits {sample}.", ""
    best = paying.sort("d_quality", descending=quality.higher_is_better).row(0, named=True)
    low, high = best.get("gain_low"), best.get("gain_high")
    sure = UNTESTED
    if low is not None and high is not None:
        sure = f"95 % CI {text.signed(low)} to {text.signed(high)}"
    return (
        f"A larger K pays off in {paying.height} of {text.count(rows.height, 'step')} {sample}.",
        f"Most for {best['family']} from K = {best['from_k']} to {best['to_k']}: "
        f"{text.signed(best['d_quality'])} ({sure}).",
    )


@cached("Scoring every cutoff…")
def points(view: View, names: tuple[str, ...], generator: str | None) -> pl.DataFrame:
    """Return every measure of some stacks at every cutoff, with the prompt tokens of Top(K)."""
    named = runs_in(view.snapshot, view.scope).filter(pl.col("name").is_in(names))
    runs = page.as_deep(view.snapshot, named, view.scope.golden_set_id)
    measure = view.quality.measure
    bare = None if measure is None else measure.at(None)
    only = among(view.snapshot, view.scope)
    alike = groups(view.snapshot, view.scope)
    rows = page.curve_table(view.snapshot, runs, view.scope.golden_set_id, bare, only, alike=alike)
    weights = prompt_tokens.tokens_sent(
        view.snapshot, runs, generator, view.book, depth=page.MAX_DEPTH, only=only, alike=alike.labels
    )
    return page.against(rows, weights)


@cached("Cutting every ranking…")
def cut(view: View, run_id: str, counts: str) -> cuts.Cuts:
    """Return the rankings of a stack, cut by every method."""
    return cuts.cuts(view.snapshot, view.scope, run_id, counts=counts, fixed=view.quality.k)


def ask_generator(view: View, ask: Ask) -> str | None:
    """Ask which generator reads the passages sent."""
    offered = [NO_GENERATOR, *models([view.book])["generator"]]
    picked = ask.listed("Reader", offered, "kgen", about=cuts.GENERATOR)
    return None if picked == NO_GENERATOR else picked


@section("by cutoff", "How does quality change with the number of passages you send?")
def by_cutoff(view: View, ask: Ask) -> Blocks:
    """Yield every measure of some stacks against the cutoff, or against the tokens sent."""
    names = ask.stacks(view.table, view.decision, "curves", **shown_first(view))
    generator = ask_generator(view, ask)
    axes = {title: name for name, title in page.X_AXES.items() if generator or name != "usd_per_1k"}
    x = axes[ask.one("Against", axes, "kx", usual=page.X_AXES["k"])]
    rows = points(view, tuple(names), generator)
    best, *others = [*page.leaders(view.table, view.quality, names), None]
    ahead = (
        f"{view.quality.name} against {others[0]}: {gap(view, best, others[0])}."
        if best and others and others[0]
        else ""
    )
    looks = (colours_of(view, names), x, cost_unit(view.table))
    curves = page.curves(rows, view.quality, *looks, today=view.running_name)
    ceilings = view.table.filter(pl.col("name").is_in(names), pl.col("proc").is_not_null())
    chips = page.unjudged(rows, best or names[0]) if names else {}
    chips |= {"how to read": page.HOW, "several pools": about_pools(ceilings["proc_pool"])}
    yield Answer(curves.answer, " ".join(filter(None, (curves.details, ahead))), caveats=chips)
    if curves.main.data:
        yield Chart(curves.main, "curves", curves.answer)
    else:
        yield Text(page.nothing(rows, view.quality, x), "info")
    if curves.beside.data:
        yield Text("Every other measure", "heading")
        yield Chart(curves.beside, "measures", "Every other measure of the same stacks")
        yield Text(page.OTHER_MEASURES, "caption")
    else:
        yield Text(page.NO_OTHERS, "caption")
    if facts := page.new_facts(rows, best or names[0], view.quality.k):
        yield Text(facts, "caption")
    own_first = rows.sort(pl.col("measure") != view.quality.bare, maintain_order=True)
    yield Table(own_first, POINTS)


@cached("Pricing every step in K…", entries=16)
def steps(view: View) -> pl.DataFrame:
    """Return the gain of every step to the next K; see `step_rows`."""
    found = deeper_steps(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)
    return step_rows(found, view.table, higher_is_better=view.quality.higher_is_better)


@section("by candidate depth", "Is it worth reranking more candidates (a larger K)?")
def by_candidate_depth(view: View, ask: Ask) -> Blocks:
    """Yield what a deeper candidate pool gains and costs, overall and step by step."""
    depths = page.depth_table(view.table)
    if depths.is_empty():
        yield Answer(page.NO_DEPTHS)
        return
    first = shown_first(view)
    if not depths["name"].is_in(first["usual"]).any():
        first["unsaid"] = page.DEEPER
    names = ask.stacks(view.table, view.decision, "curves", **first)
    shown = page.families_of(depths, names)
    family = depths.filter(pl.col("family") == shown[0])["name"]
    by_step = within_limits(steps(view), beyond(view))
    sentence, most = said(by_step, view.quality, view.table["n"].drop_nulls().max())
    chosen = view.table.filter(pl.col("name").is_in(names[:1]))
    unread = [name for name, spec in chosen.select("name", "spec").iter_rows() if stack_of(spec) is not None]
    reasons = {name: why for name, why in beyond(view).items() if name in set(family)}
    details = f"{most} {page.UNREAD.format(unread[0])}" if unread else most
    yield Answer(sentence, details.strip(), caveats={CHIP: told(reasons), "when a step pays": PAYS})
    yield Text(f"{shown[0]}, by the number of candidates:", "caption")
    yield Cards(page.depth_cards(depths, shown[0], view.quality, gap(view, family[-1], family[0])))
    yield Chart(page.depth_figure(depths, shown, view.quality), "depths", "Quality, latency and cost by K")
    yield Table(with_limits(depths, view), DEPTHS.measured(view.quality.name))
    paying = pl.when(pl.col("pays")).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("pays")
    yield Fold("Step by step", [Table(by_step.with_columns(paying), STEPS.measured(view.quality.name))])


@section("cutoff methods", "Is a cutoff chosen query by query better than one for all?", seldom)
def cut_off_methods(view: View, ask: Ask) -> Blocks:
    """Yield the quality of what each cutoff keeps of a stack's rankings, beside fixed depths."""
    run_id = ask.stack(view.table, view.decision, "Stack", "cutof")
    generator = ask_generator(view, ask)
    if run_id is None:
        yield Answer("No stack is chosen.")
        return
    compared = cut(view, run_id, prompt_tokens.vocabulary(generator, view.book))
    sentence = cuts.cuts_answer(compared, view.quality.k)
    left_out = compared.left_out if compared.rows.height else ""
    chips = {"how to read": cuts.HOW, "not all queries": left_out}
    yield Answer(sentence, cuts.details(compared, view.quality), caveats=chips)
    if lacking := cuts.lacking():
        yield Text(lacking, "caption")
    if compared.rows.height:
        yield Chart(cuts.figure(compared.rows), "cut_offs", sentence)
        yield Table(compared.rows, CUT)


SECTIONS = (by_cutoff, by_candidate_depth, cut_off_methods, cut_off_table)
