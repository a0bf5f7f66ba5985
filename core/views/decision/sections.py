"""Page Decision: the stack that the limits select, the near misses, all stacks, and its export."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.identical import identical, kept, merged
from core.analysis.moves.switching import stay_or_move
from core.analysis.workspace.comparable import environment
from core.analysis.workspace.figures.beside import ENDS
from core.analysis.workspace.figures.latencies import assumed, jitter_words
from core.analysis.workspace.noise import noise_effect
from core.analysis.workspace.sure import drawn
from core.analysis.workspace.view import View
from core.decide.axes import BESIDE, COST, HARM, LATENCY
from core.decide.rules import Decision
from core.paths import PROGRAM
from core.pipeline.own.config import OWN
from core.pipeline.shippable import FLAT, KINDS, missing
from core.store import Snapshot
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks, Chart, Control, Fold, Table, Text, Way, section
from core.views.decision import words
from core.views.decision.charts import ParetoView, parallel, pareto_of
from core.views.decision.marks import COLOURS, SIZES
from core.views.decision.tiles import blocks, sides, tiles
from core.views.text import count
from core.views.words import choice as choice_of
from core.views.words.advice import JUDGE, first_step, found_again, objection, roles, second_row
from core.views.words.bills import rented_words
from core.views.words.facts import caveats
from core.views.words.judging import check_first, provenance
from core.views.words.moving import RUNS_TODAY, few_grades, few_words, line, needs_words
from core.views.words.near import (
    HEADING,
    PROMISING,
    lacking_table,
    least_first,
    near_rows,
    near_table,
    own_scope,
    promising_rows,
)
from core.views.words.stacks import stack_columns
from core.views.words.trade import PAIR, difference, pass_mark, side_by_side, trade
from core.views.words.users import hurts
from core.views.words.verdict import BAR

PARTS = "This prints its parts and settings, to rebuild it."
WRITTEN = "It cannot be written as a folder that runs: {}."
ALTERNATIVES = "Cheaper or faster"
PRICES = "What more quality costs"
OFFERED = cols.Rows(
    "alternatives",
    cols.text("stack", width=190),  # a popover is narrow
    cols.text("gap", "difference [95 %]", f"Mean over the queries of both, {PAIR}.", width=165),
    "p_within_delta saves",
)
STEPS = cols.Rows(
    "price_of_quality",
    "paid",
    cols.text("stack", width=160),
    cols.text("than", "instead of", width=160),
    "step_gain step_more per_step",
)
VIEWS = {"latency × quality": LATENCY, "cost × quality": COST, "harm × quality": HARM, "parallel axes": None}
PARALLEL = (
    "Each line is a stack. Drag along an axis to keep those that cross it there; the bar on “limits” keeps "
    "what meets them."
)
MORE = (
    "quality_low quality_high",
    cols.text("quality_basis", "quality is"),
    "params calls latency_basis cost_basis cost_note latency_note",
)
LACKS = ("lacks", "lacks_low", "lacks_high")
STANDING = tuple(axis.column + end for axis in BESIDE for end in ("", *ENDS))
"""Columns of numbers other than quality, if known; shown at once if they are limited."""


@dataclass(frozen=True)
class Shipping:
    """How a stack is exported."""

    # Writes it as the first of `kinds`; without kinds, prints its components; None = it already runs
    command: str | None
    kinds: tuple[str, ...]  # the formats it can be written in
    sentence: str


def is_own(spec: str) -> bool:
    """Return whether a stack's specification (JSON) is a custom pipeline's."""
    return bool(json.loads(spec).get("mode") == OWN)


def shipping(snapshot: Snapshot, row: Mapping[str, Any]) -> Shipping:
    """Return how the stack of a run is exported; takes a row of the stack table."""
    spec = json.loads(row["spec"])
    if is_own(row["spec"]):
        place = spec.get("call") or spec.get("url")
        settings = f" with {row['params']}" if row.get("params") else ""
        return Shipping(None, (), f"It is your own pipeline and runs already: {place}{settings}.")
    lacking = {kind: missing(spec, kind) for kind in KINDS}
    kinds = tuple(kind for kind, parts in lacking.items() if not parts)
    held = dict(snapshot.collections().select("collection_id", "passages").iter_rows())
    if row["chunking"] is not None:
        why = "it searches chunks of documents"
    elif not kinds:
        why = f"no adapter carries out {', '.join(next(iter(lacking.values())))}"
    elif not held.get(row["collection_id"]):
        why = "the store has no passages of its collection"
    else:
        command = shlex.join(["export", "stack", row["run_id"], "--as", kinds[0]])
        others = f"; --as {', '.join(kinds[1:])} writes it for these" if kinds[1:] else ""
        sentence = f"As a folder that runs without this program{others}."
        return Shipping(f"{PROGRAM} {command}", kinds, sentence)
    return Shipping(None, (), WRITTEN.format(why))


def all_handed(view: View, table: pl.DataFrame, decision: Decision) -> dict[str, Shipping]:
    """Return how each stack that the heading names is exported, by its name; see `handed`."""
    rows = [decision.chosen or 0, *([] if (second := second_row(view)) is None else [second])]
    return {str(table["name"][row]): handed(view, table, replace(decision, chosen=row)) for row in rows}


def handed(view: View, table: pl.DataFrame, decision: Decision) -> Shipping:
    """Return how the chosen stack is exported, or an equivalent one, or which kinds could be.

    Stacks that tie with it come first, then its twin with an index that searches every vector.
    """
    chosen = decision.chosen or 0
    how = shipping(view.snapshot, table.row(chosen, named=True))
    if how.command or is_own(table["spec"][chosen]):
        return how
    twins = [place for place in _twins(table, chosen) if decision.feasible[place]]
    for place in dict.fromkeys([*decision.ties, *twins]):
        row = table.row(place, named=True)
        other = shipping(view.snapshot, row)
        if other.command:
            which = "ties with it" if place in decision.ties else "searches every vector instead"
            numbers = words.numbers(row, view.quality, view.latency)
            return replace(other, sentence=f"{row['name']}, which {which}, runs by itself: {numbers}.")
    told = f"{PROGRAM} {shlex.join(['manifest', 'show', str(table['run_id'][chosen])])}"
    return Shipping(told, (), f"{PARTS} {how.sentence}")


def _twins(table: pl.DataFrame, chosen: int) -> list[int]:
    """Return rows of stacks that differ from one only in their index, which is exact."""
    specs = [json.loads(spec) for spec in table["spec"]]
    wanted = {**specs[chosen], "index": FLAT}
    same = table["chunking"].eq_missing(table["chunking"][chosen])
    return [place for place, spec in enumerate(specs) if spec == wanted and same[place]]


@cached(entries=64)
def reranker_only(view: View) -> str:
    """Say why published stacks are better compared by their reranker's latency."""
    return own_scope(view.snapshot, view.table, view.latency)


@section(question="Which stack should I ship?")
def which_to_ship(view: View, ask: Ask) -> Blocks:
    """Yield the answer with its numbers, near misses, and every stack as a chart and as a table."""
    for part in (answered, choice, moving, alternatives, outside):
        yield from view.once(_whole, part)
    yield from stacks(view, ask)
    yield from view.once(_whole, hurting)
    yield from ship_it(view)


def _whole(view: View, part: Callable[[View], Blocks]) -> Sequence[Block]:
    return tuple(part(view))


def answered(view: View) -> Blocks:
    """Yield the answer, and links to judgements if there are none."""
    saved = "" if second_row(view) is None else rented_words(view)
    said = " ".join(filter(None, (words.why(view), saved, words.late_words(view))))
    yield Answer(words.title(view), said, objection(view))
    first = view.once(first_step).do
    if todo := first.removesuffix(" first") if first.startswith(JUDGE) else check_first(view):
        yield Way("golden", todo, "judge", first=True)
    if choice_of.undecided(view.table):
        yield Way("golden", "Judge by hand", "judge")
        yield Way("golden", "Generate with an LLM", "build")
        yield Way("add", "Import qrels")


def choice(view: View) -> Blocks:
    """Yield the numbers of the stacks that the heading names, the confidence in them, and the caveats."""
    if view.decision.chosen is None:
        return
    of, named = tiles(view), sides(view)
    lead = list(filter(None, words.lead_words(view)))
    doubts = caveats(view.table, view.decision, view)
    given_by = provenance(view.snapshot, view.scope)
    notes = [row[note] for row in named for note in ("latency_note", "cost_note")]
    notes = [note for note in (*notes, environment(view.table), given_by) if note]
    if said := assumed(view.table, view.decision, view.constraints):
        notes.append(said)
    sentences = [words.sure_words(view), *doubts.values()]
    sentences += [*lead, choice_of.decided_by(view.decision), "" if view.sure.ahead else found_again(view)]
    sentences += [f"{check}. {pass_mark(view)}"] if (check := check_first(view)) else []
    sentences += [view.decision.note, noise_said(view), BAR if view.sure.pgs is not None else ""]
    sentences = list(filter(None, sentences))

    def written() -> Blocks:
        yield blocks(of, [row["name"] for row in named])
        yield from (Text(sentence) for sentence in sentences)
        yield from (Text(note, "caption") for note in notes)

    given: dict[str, Any] = {"tiles": of, "sentences": sentences, "notes": notes}
    given |= {"label": next(iter(doubts), "what it rests on"), "several": len(doubts)}
    yield Control("choice", given, written)


def hurting(view: View) -> Blocks:
    """Yield what hurts the users of the chosen stack, each with the way to its page."""
    for hurt in view.once(hurts):
        yield Text(hurt.sentence)
        if hurt.label:
            yield Way(hurt.page, hurt.label, hurt.section)


def moving(view: View) -> Blocks:
    """Yield whether to stay with the stack that runs today, if one is marked as running."""
    move = stay_or_move(view)
    if move is not None:
        yield Text(line(move, view.quality.name), label=f"{move.now['name']} runs today.")
        if (few := few_grades(view, move)) is not None:
            yield Text(few_words(view, few))
        yield Way("what_if", "Is the move worth it?", "stay or switch")
        if move.verdict.answer == "unknown" or few is not None:
            yield Way("what_if", "Few grades decide", "few grades")


def ship_it(view: View) -> Blocks:
    """Yield the runnable export of each stack that the heading names, or why there is none."""

    def written() -> Blocks:
        handing = all_handed(view, view.table, view.decision)
        for name, how in handing.items():
            yield Text(how.sentence, label=f"{name}:" if len(handing) > 1 else "")
            if how.command:
                yield Text(how.command, "code")

    if view.decision.chosen is not None:
        yield Fold("Ship it", written(), late=True)


def noise_said(view: View) -> str:
    """Say that another judge's grades are in the confidence, or return "" if none are."""
    noise = drawn(view, view.noise)
    return "" if noise is None else noise_effect(view.table, view.decision, noise, view.quality)


def alternatives(view: View) -> Blocks:
    """Yield cheaper or faster stacks, each with its cost in quality, and the price of quality."""
    if not view.sure.alternatives and not any(view.sure.prices.values()):
        return

    traded = view.once(trade)

    def written() -> Blocks:
        rows, steps = alternative_rows(view), price_rows(view)
        if traded is not None:
            yield Text(traded.sentence)
            yield side_by_side(view, traded)
        rows = rows if second_row(view) is None else rows[1:]  # both stand side by side already
        if rows.height:
            yield Text(ALTERNATIVES, "heading")
            yield Table(rows, OFFERED)
            if second_row(view) is None and (said := rented_words(view)):
                yield Text(said, "caption")
        if steps.height:
            yield Fold(PRICES, [Table(steps, STEPS)])

    yield Control("alternatives", {"view": view}, written)


def alternative_rows(view: View, most: int | None = None) -> pl.DataFrame:
    """Return up to `most` alternatives with their numbers in words, the most likely to be as good first."""
    rows = [
        {
            "run_id": view.table["run_id"][other.row],
            "stack": f"{view.table['name'][other.row]}{words.also(twins)}",
            "gap": difference(other),
            "difference": other.difference,
            "low": other.low,
            "high": other.high,
            "p_within_delta": other.p_within_delta,
            "saves": words.savings(other, view).removeprefix("saves "),
            "in_words": words.price_words(other, view),
        }
        for other, twins in view.sure.offered[:most]
    ]
    return OFFERED.frame(rows, "run_id in_words difference:float low:float high:float")


def price_rows(view: View) -> pl.DataFrame:
    """Return the cost of each step up the frontiers: paid (cost or latency), stack, gain, more, per_step."""
    axes = {axis.key: axis for axis in view.constraints.axes}
    rows = [
        {
            "paid": axes[key].word,
            "stack": view.table["name"][step.row],
            "than": view.table["name"][step.than],
            "step_gain": step.gain,
            "step_more": axes[key].written(step.more),
            "per_step": axes[key].written(step.per_step),
        }
        for key, steps in view.sure.prices.items()
        for step in steps
    ]
    return STEPS.frame(rows)


def outside(view: View) -> Blocks:
    """Yield the stacks just outside the limits, and those that lack a number."""
    ranked = near_rows(view.table, view.decision, view.constraints, view.rule, paired=view.paired)
    misses = least_first(ranked, view.decision.delta)
    lacking = promising_rows(view.table, view.decision)
    own = reranker_only(view)

    def written() -> Blocks:
        if misses:
            yield Text(HEADING, "heading")
            yield near_table(misses)
        if lacking.height:
            yield Text(PROMISING, "heading")
            yield lacking_table(lacking)
        if own:
            yield Text(own)

    yield Control("near misses", {"view": view, "misses": misses, "lacking": lacking, "own": own}, written)


def stacks(view: View, ask: Ask) -> Blocks:
    """Yield the stacks as a chart and as a table."""
    way = ask.one("View", VIEWS, "view", quiet=True)
    band = words.band(view.table, view.decision, jitter_words(view.table, view.decision, view.constraints))
    with ask.aside("Chart"):
        colour = ask.listed("Colour", COLOURS, "colour", about=band)
        size = ask.listed("Size", SIZES, "size")
        form = ask.listed("Frontier", words.FORMS, "form", about=words.FORMS_HELP)
        selected = ask.stack(view.table, view.decision, "Selected stack")
    weak = form == words.FORMS[1]
    across = VIEWS[way] or LATENCY
    marked = view.once(pareto_of, across, colour=colour, size=size, weak=weak, selected=selected)
    chosen = None if view.decision.chosen is None else view.table["run_id"][view.decision.chosen]
    clicked = None if selected == chosen else selected
    if VIEWS[way] is None:
        yield lines(view, marked, selected)
    elif not marked.drawn.is_empty():
        said = words.note(marked.rows, marked.across, clicked)
        yield drawn_live(view, marked, said, band if marked.across.key == LATENCY.key else "")
    if clicked is not None:
        row = view.table.row(by_predicate=pl.col("run_id") == selected, named=True)
        said = words.numbers(row, view.quality, view.latency)
        yield Control(
            "stack", {"view": view, "run_id": selected}, lambda: iter([Text(said, label=f"{row['name']}:")])
        )
        yield Way("queries", "Its queries")
    yield view.once(every_stack, marked)
    if not marked.undrawn.is_empty():
        unknown = f"Of unknown quality, so not on the chart: {count(marked.undrawn.height, 'stack')}."
        yield Text(unknown, "caption")


def drawn_live(view: View, marked: ParetoView, note: str, band: str) -> Control:
    """Return the stacks by latency or cost and quality; in a browser the chart follows a dragged limit."""
    alt = words.answer(view).sentence
    caption = f"{note} {band}".strip()
    given = {"view": view, "drawn": marked, "alt": alt, "note": caption}
    return Control("pareto", given, lambda: iter([Chart(marked.figure, "pareto", alt, caption)]))


def lines(view: View, marked: ParetoView, selected: str | None) -> Chart | Text:
    """Return the stacks on parallel axes."""
    figure = parallel(marked.rows, view.decision, view.quality, selected)
    if figure is None:
        return Text(f"No stack has a known {view.quality.name}.", "info")
    alt = words.answer(view).sentence
    return Chart(figure, "parallel", alt, PARALLEL)


def every_stack(view: View, marked: ParetoView) -> Control:
    """Return the stacks as a table, with checkboxes for a comparison."""
    alike = identical(view.table)[marked.rows["row"]]
    stay = kept(view.decision.chosen, view.running_row, second_row(view))
    rows = choice_of.listed(merged(marked.rows, stay, alike), roles(view))
    if view.running_row is not None:
        said = pl.when(row=view.running_row).then(pl.format(f"{RUNS_TODAY}; {{}}", "outcome"))
        rows = rows.with_columns(outcome=said.otherwise("outcome"))
    asked = [axis.column for axis in BESIDE if view.constraints.of(axis) is not None]
    limited = {*asked, *(f"{name}_n" for name in asked)}
    shown = [name for name in STANDING if name in rows.columns]
    missing = LACKS if rows.get_column("lacks", default=pl.Series([None])).count() else ()
    rows, of_a_move = needs_words(rows)
    columns = (*stack_columns(view), *of_a_move, *missing, *(name for name in shown if name in limited))
    more: cols.Columns = (*MORE, *(name for name in shown if name not in limited))
    table = Table(rows, cols.Rows("stacks", *columns, more=more), whole=marked.rows)
    return Control("stacks", {"view": view, "table": table}, lambda: iter([table]))


SECTIONS = (which_to_ship,)
