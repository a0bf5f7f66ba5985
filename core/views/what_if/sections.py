"""Page What if: other limits and latency targets, K query by query, and how few grades decide."""

from __future__ import annotations

import math
from functools import partial

import polars as pl

from core.analysis.between import Between, between
from core.analysis.deciding import DELTA, Contest
from core.analysis.families import Signal
from core.analysis.moves.switching import stay_or_move
from core.analysis.workspace.figures.beside import measure_of
from core.analysis.workspace.gaps import gap
from core.analysis.workspace.scope import MEAN
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.decide.axes import BESIDE, MOVING
from core.decide.near import conditioned
from core.errors import ClqError, InputError
from core.views import columns as cols
from core.views.ask import Ask, run_of
from core.views.blocks import Answer, Blocks, Cards, Chart, Control, Fold, Table, Text, section
from core.views.text import cost_unit, percent, score
from core.views.what_if import data, routing, simulator, words
from core.views.what_if.data import ask_options, way_of
from core.views.what_if.moving import deadlines, questions, staying, steps
from core.views.what_if.routing import Bounds, Routable
from core.views.what_if.scenarios import MOST, YOURS, choices, measures, parse
from core.views.what_if.simulator import AXES, WAYS, Simulation
from core.views.what_if.targets import panels, read_targets, target_rows, thinning
from core.views.what_if.words import WORTH
from core.views.within import with_limits
from core.views.words.advice import ROLES, second_row
from core.views.words.deciding import changed, errs, mean, stands
from core.views.words.trade import trade

TOO_FEW = "Two stacks with rankings are needed."
MOST_QUESTIONS = 200  # Questions in the table
TABLE = cols.Rows(
    "differences",
    "query_id text",
    cols.share("overlap", "shared", "Share of the passages that stand in both Top-K."),
    cols.score("rbo", "RBO", "Rank-biased overlap: how alike two rankings are; first ranks weigh most."),
    cols.text("other_first", "first passage", "Whether another passage comes first."),
    cols.count("only_now", "only today's", "Passages that only today's stack shows."),
    cols.count("only_to", "only candidate's", "Passages that only the candidate shows."),
)
KINDS = cols.Rows(
    "kinds_changed",
    cols.text("kind"),
    cols.count("n", "queries"),
    *(column for column in TABLE.columns if column.name in ("overlap", "rbo")),
    cols.share("other_first", "another first passage"),
)
BY_HAND = "by hand, in cards"
HOW = (
    "Only passages that one Top-K has and the other has not decide on Precision4+. "
    "Queries are drawn with a chance in proportion to their number. "
    "The interval holds at every look with 95 %, so that you may stop at any time. "
    "A skipped passage counts as not useful. A smaller K takes fewer grades for each query."
)
OWN = "scen"  # The setting with custom scenarios
ABOUT_SCENARIOS = (
    "NAME: rule (quality, cost or latency), then sla_ms, budget, min_quality, "
    f"{', '.join(axis.limit for axis in (*BESIDE, *MOVING))}, dim (at most) "
    "and K (at least), each with a number; a budget per 1,000 or per million: 2.5per1k, 0.2per1M. "
    f"A semicolon between scenarios, {MOST} at most."
)
EFFICIENCY = "Efficiency: quality per second of median latency (CLQ paper, Table 9)"
SHORTLIST = "For shortlisting only: a ratio favours small K and knows no latency target."
BOARDS = (("Retrieval-local: the reranker's latency", False), ("End to end: the whole retrieval path", True))
"""The leaderboards: title and whether the whole path's latency divides."""
NO_FRONTIER = "No stack has both a cost and a quality, so there is no frontier to draw."
ABOUT_SIGNALS = (
    "What the router looks at, of the shallowest depth. Small margins and gaps and high entropy ask for a "
    "deeper K (CLQ paper §6)."
)
ABOUT_MOST = "The rule sends no more of the queries that it learns from to a slower stack or a larger K."
LEARNT, MY_OWN = "learnt", "my own"
ABOUT_THRESHOLDS = (
    "learnt: from other queries than those it is judged on. my own: shown besides, and "
    "optimistic, as you choose it while you see the queries that it is judged on."
)
CONFIGURATION = ("rerank_ms embedder dim reranker", "candidates")
LEADERS = cols.Rows(
    "efficiency",
    "rank name efficiency average latency_ms",
    "reason beyond",
    more="average_basis",
)
TARGETS = cols.Rows(
    "targets",
    "sla_ms",
    cols.text("chosen", ROLES[0], width=270),
    "quality latency_ms cost feasible",
    more="quality_low quality_high n frontier runner_up",
)


@section("few grades", "How few grades decide between two stacks?", seldom)
def few_grades(view: View, ask: Ask) -> Blocks:
    """Yield what two stacks show differently, and the way to judge only what decides between them."""
    ranked = view.table.filter("has_rankings")["name"].to_list()
    if len(ranked) < 2:
        yield Answer("No two stacks have rankings.", TOO_FEW)
        return
    decision, running = view.decision, view.running_name in ranked
    leading = (view.table["name"][row] for row in (decision.chosen, decision.runner_up) if row is not None)
    first_two = [name for name in leading if name in ranked]
    usual = view.running_name if running else next(iter(first_two), None)
    now = ask.listed("Runs today" if running else "One stack", ranked, "from", usual=usual)
    others = [name for name in ranked if name != now]
    move = stay_or_move(view) if running and now == view.running_name else None
    rivals = [str(move.to["name"])] if move is not None and move.to is not None else first_two
    usual = next((name for name in rivals if name in others), None)
    to = ask.listed("Candidate" if running else "Another", others, "to", usual=usual)
    with ask.aside("What decides"):
        first = ask.number("Passages compared (K)", "fewk", float(view.quality.k), 1.0, 100.0, step=1.0)
        margin = ask.number("Better by at least", "marg", 0.0, 0.0, step=0.01)
        delta = ask.number("Alike below", "alike", DELTA, 0.0, 1.0, step=0.01)
        sets = view.snapshot.golden_sets(view.scope.collection_id)["golden_set_id"].to_list()
        graded = ask.listed("Grades", [BY_HAND, *sets], "gby") if sets else BY_HAND
    contest = Contest(
        now=run_of(view.table, now),
        to=run_of(view.table, to),
        k=int(first or view.quality.k),
        margin=margin or 0.0,
        delta=DELTA if delta is None else delta,
    )
    try:
        found = between(view, contest, None if graded == BY_HAND else graded)
    except InputError as error:
        yield Answer(str(error), "")
        return
    rows = found.questions
    yield Answer(*changed(found))
    yield Cards(_cards(rows))
    if found.by is None or found.standing is None:
        yield Control("judge between", {"scope": view.scope, "contest": contest}, partial(_standing, found))
    else:
        yield from _standing(found)
    questions = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    said = pl.when("other_first").then(pl.lit("another")).otherwise(pl.lit("the same"))
    shown = (
        rows.head(MOST_QUESTIONS).join(questions, on="query_id", how="left").with_columns(other_first=said)
    )
    yield Table(TABLE.frame(shown.to_dicts()), TABLE)
    if found.kinds.height:
        yield Fold("By kind of query", (Table(found.kinds, KINDS),))
    yield Fold("How it decides", (Text(HOW, "caption"),))


def _standing(found: Between) -> Blocks:
    """Yield what the grades decide so far."""
    if found.standing is not None:
        yield Text(" ".join((stands(found.standing), errs(found))).rstrip())


def _cards(rows: pl.DataFrame) -> list[tuple[str, str, str]]:
    of, of_all = f"n = {rows.height}", mean(rows)
    apart = rows.filter(pl.col("only_now") + pl.col("only_to") > 0)
    passages = int(apart.select(pl.col("only_now", "only_to").sum()).sum_horizontal().item())
    return [
        ("Another first passage", percent(of_all["other_first"]), of),
        ("Shared passages", percent(of_all["overlap"]), of),
        ("Rank-biased overlap", score(of_all["rbo"]), of),
        ("Passages that differ", f"{passages:,}", f"on {apart.height} of {rows.height} queries"),
    ]


@section("scenarios", "Which stack would other priorities choose?")
def scenarios(view: View, ask: Ask) -> Blocks:
    """Yield the choices of the paper's, the product's and custom scenarios."""
    line = ask.text(
        "Your scenarios, saved in the link",
        OWN,
        unsaid="none yet; for example Cheap: cost, min_quality 0.7",
        about=ABOUT_SCENARIOS,
    )
    own = []
    try:
        own = parse(line)
    except ClqError as error:
        yield Text(f"Your scenarios are left out. {error}", "warning")
    known = tuple(axis for axis in BESIDE if measure_of(view.table, axis) is not None)
    yield Control("new scenario", {"key": OWN, "beside": known, "said": cost_unit(view.table)})
    shipped = None if view.decision.chosen is None else str(view.table["run_id"][view.decision.chosen])
    chosen = choices(view.table, data.named(view), own, view.constraints, paired=view.paired, chosen=shipped)
    rows = with_limits(data.matrix(view, tuple(chosen)), view)
    sentence, details = words.answer(rows, view.quality)
    yield Answer(sentence, details, caveats={"where they come from": words.legend(rows)})
    if second_row(view) is not None and (traded := view.once(trade)):
        yield Text(traded.sentence, label=f"{YOURS}:")
    first, *others = (
        cols.text(f"{measure.name} in words", measure.name, "With 95 % interval and n.", width=175)
        for measure in sorted(measures(view.quality), key=lambda quality: quality.name != view.quality.name)
    )
    latency = cols.number("latency_ms", help=f"{view.latency.name}.")
    yield Table(
        rows,
        cols.Rows(
            "scenarios",
            cols.text("scenario", width=120),
            cols.text("asked", "asked for", width=190),
            cols.text("name", "stack", width=360),
            first,
            latency,
            "cost beyond",
            more=(*others, *CONFIGURATION, "latency_low latency_high latency_n cost_note"),
        ),
    )
    yield Fold(EFFICIENCY, _boards(view))


def _boards(view: View) -> Blocks:
    yield Text(SHORTLIST, "caption")
    for title, end_to_end in BOARDS:
        yield Text("", label=title)
        board = with_limits(data.leaders(view, end_to_end), view)
        yield Table(board, LEADERS.named(f"efficiency_{end_to_end}"))


@section("latency targets", "Which stack does each latency target allow?")
def latency_targets(view: View, ask: Ask) -> Blocks:
    """Yield what each of several latency targets leaves and selects."""
    targets = read_targets("", view.table, view.constraints)
    line = ask.text(
        "Targets (ms), in place of the SLA",
        "slas",
        unsaid=", ".join(f"{target:g}" for target in targets),
        about="Numbers between commas. Budget and floor hold; the SLA does not.",
    )
    try:
        targets = read_targets(line, view.table, view.constraints)
    except ClqError as error:
        yield Text(str(error), "warning")
    by_target = conditioned(view.table, targets, view.constraints, view.rule, paired=view.paired)
    rows = target_rows(view.table, by_target)
    sentence, real = words.target_words(rows, view.quality, partial(gap, view))
    thin = thinning(view.table)
    sparse = f"Marks: one stack in {thin}. Frontier and choice are those of all."
    yield Answer(sentence, real, caveats={"not all are drawn": sparse if thin > 1 else ""})
    drawn = panels(view.table, by_target, view.quality)
    yield Text(NO_FRONTIER, "caption") if drawn is None else Chart(drawn, "targets", sentence)
    yield Table(rows, TARGETS.measured(view.quality.name))


@section("routing", "Is it worth sending only the hard queries to the slower stack?")
def route(view: View, ask: Ask) -> Blocks:
    """Yield whether a per-query K beats one K for all, and at what price."""
    if not view.table["has_rankings"].any():
        yield Answer(f"No stack here has rankings to route {view.quality.name} by.", simulator.NEEDS)
        return
    family, options = ask_options(view, ask)
    if family is not None and family.refused:
        yield Text(f"Smaller K are not replayed: {family.refused}.", "caption")
    if len(options) < 2:
        yield Answer(f"Choose two or three depths to route {view.quality.name} between.", simulator.NEEDS)
        return
    with ask.aside("How it routes"):
        known = {signal.label: signal for signal in data.signals(view, options[0])}
        signal = known[ask.listed("Signal", known, "sig", about=ABOUT_SIGNALS, width=230)] if known else None
        (most,) = ask.slide(words.AT_MOST, "most", (50,), 0, 100, step=5, about=ABOUT_MOST)
        found = None if signal is None else data.routable(view, tuple(options), way_of(family, signal.known))
        obstacle = simulator.nothing(found) if signal else f"No signal to route {view.quality.name} by."
        if signal is None or found is None or obstacle:
            result, axis = None, ""
        else:
            quality = routing.quality(options[-1], view.quality)
            routed = partial(
                simulator.simulate, found, signal, quality, most=most / 100,
                jitter_ms=view.decision.jitter_ms, bounds=Bounds.of(view, options),
            )  # fmt: skip
            result = routed()
            own = () if signal.tags else own_thresholds(found, signal, result.thresholds, ask)
            result = routed(own=own) if own else result
            axis = _axis(view, result, ask)
    if result is None or found is None:
        yield Answer(str(obstacle), simulator.NO_SIGNAL)
        return
    quality = routing.quality(options[-1], view.quality)
    yield Answer(result.sentence, caveats=result.details)
    if not found.depths.same:
        yield Cards(words.cards(result.rows, quality))
    if axis:
        behind = view.table.clear() if options[0].sent else view.table
        said = cost_unit(view.table)
        drawn = simulator.chart(result.rows, result.path, behind, quality, axis, said=said)
        yield Chart(drawn, "routing", result.sentence)
    every = Table(result.rows, WAYS.named("routing").measured(quality.name))
    worth = result.sentence.startswith(WORTH)
    yield every if worth else Fold("Every way of answering, with latency and cost", [every])


def _axis(view: View, result: Simulation, ask: Ask) -> str:
    """Ask for the x axis; return its key, or "" if none is known for every way."""
    axes = {AXES[axis]: axis for axis in simulator.drawable(result.rows)}
    if not axes:
        return ""
    usual = AXES.get("mean_ms" if view.latency.percentile == MEAN else view.latency.percentile, "")
    return axes[ask.listed("Across", axes, "rx", usual=usual if usual in axes else None)]


def own_thresholds(
    routable: Routable, signal: Signal, learnt: tuple[float, ...], ask: Ask
) -> tuple[float, ...]:
    """Ask for one or two custom thresholds, in the signal's unit; none if the learnt ones are used."""
    by = ask.one("Threshold", (LEARNT, MY_OWN), "thrby", about=ABOUT_THRESHOLDS)
    known = sorted(signal.values[name] for name in routable.query_ids if name in signal.values)
    if by != MY_OWN or not known:
        return ()
    low, high, step = marked_off(known[0], known[-1])
    inside = sorted(min(max(value, low), high) for value in learnt)
    several = len(inside) > 1
    label = f"{'Thresholds' if several else 'Threshold'} of the {signal.label}"
    ends = (inside[0], inside[-1]) if several else inside
    return ask.slide(label, "thr2" if several else "thr", ends, low, high, step=step)


def marked_off(low: float, high: float) -> tuple[float, float, float]:
    """Return ends and step of a slider, rounded to few digits: a value from a URL lies within the ends."""
    digits = 2 - math.floor(math.log10(high - low)) if high > low else 4
    step = 10.0**-digits
    return round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits), step


SECTIONS = (scenarios, latency_targets, route, staying, steps, deadlines, questions, few_grades)
