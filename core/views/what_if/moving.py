"""Sections of What if on the stack that runs today.

Whether to replace it, the gain of each step, what a move changes query by query, and which of its
models end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.moves.cost import MoveWork
from core.analysis.moves.replaying import Replay, replays
from core.analysis.moves.switching import Switch, moves, switch
from core.analysis.paired import LOSSES, WINS
from core.analysis.sides import look_closer
from core.analysis.workspace.telling import incumbent_known, seldom
from core.analysis.workspace.view import View
from core.choices import Declared, declared
from core.decide.axes import STEPS
from core.decide.held_out import FOLDS
from core.decide.rules import Constraints
from core.decide.switching import SwitchItem, Terms, largest
from core.number_format import duration, interval, ms, signed, usd
from core.providers.ends import End, ends, ends_of
from core.records import is_group
from core.stats.significance import Setup
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Click, Fold, Table, Text, Way, section
from core.views.text import count, percent
from core.views.what_if.charts import by_month, by_step
from core.views.words.moving import (
    STEP_WORDS,
    few_grades,
    few_words,
    paid_back,
    payback_ends,
    sentences,
    shallow,
)

NOTHING = "Mark it: tick it on Decision, in Settings → Runs today, or by the command incumbent NAME."
ITEMS = cols.Rows(
    "move", cols.text("what"), cols.usd("usd", "$", "Once."), cols.text("basis", "how it comes about")
)
WORK = cols.Rows(
    "work",
    cols.text("name", "takes"),
    cols.text("amount"),
    cols.text("basis", "how it comes about"),
)
NO_GAIN = "What each step gains is not known: quality is known on average alone."
BAND = "Bands: 95 % interval over the queries; what the move costs once is taken as it stands."
FRONTIER = "Line: the best quality for each amount."
MOVES = cols.Rows(
    "moves",
    "name",
    cols.text("step", "needs", "The largest step on the way from the stack that runs."),
    cols.signed("difference", "better by", "Than the stack that runs; paired over queries."),
    "difference_low",
    "difference_high",
    cols.share("p_better", "chance that it is better"),
    cols.usd("once_usd", "$ once", "Empty = not known."),
    cols.text("retires", "first end", "When the first of its models ends, as far as announced."),
)
WITH_REPLAYS = cols.Rows(
    "steps",
    *MOVES.columns,
    cols.signed(
        "in_sample", "replayed, in sample", "A fusion that nobody ran, on the queries that chose it."
    ),
)
RULE = (
    "Switch where the candidate is surely better by the margin, or surely within δ and cheaper or faster. "
    "Surely: at 2.5 % on one side, for all candidates together (Holm). "
    "A move for money or time must pay back within the months."
)
REPLAYED = (
    "Replayed fusions were not run: stored rankings were merged in other ways. "
    f"Each was chosen on {FOLDS - 1} fifths of the queries and measured on the rest. "
    "The gain in sample is no promise."
)
AT_FOLDER = "To run one, the command switch prints lines with room for {model}'s folder."
_TO_RUN = 2  # Replayed fusions with a link that runs them
CANDIDATE = "stack_to_run"
"""Session slot of page Run: the workspace, and the specification (JSON) of a stack to start from."""
FIRST = 3
"""Ranks whose passages are compared."""
WORSE = cols.Rows(
    "worse",
    "query_id text delta",
    cols.score("score", "after"),
    cols.score("other", "today"),
    more="overlap tags",
)
BY_TAG = cols.Rows(
    "changing",
    cols.text("tag"),
    cols.count("n", "queries"),
    cols.share("worse", "get worse"),
    cols.share(
        "changed", f"first {FIRST} change", "Share whose first three passages are not the same three."
    ),
)
NO_PARTS = "A custom or imported stack does not say which models it uses."
PARTS = cols.Rows(
    "deadlines",
    cols.text("model"),
    cols.text("retires", "ends", "The day from which it no longer answers, as its vendor says."),
    cols.text("successor", "replaced by", "What the vendor recommends."),
    cols.text("source", "announced at"),
    cols.text("read", "read on"),
)


def asked_terms(view: View, ask: Ask) -> View:
    """Ask for the terms that a move is judged by; terms that the question states hold if none is answered."""
    answers: dict[str, float | None] = {}
    first, *rest = declared(Terms).items()
    answers[first[0]] = _number(ask, first[1])
    with ask.aside("What a move costs"):
        answers |= {name: _number(ask, field) for name, field in rest}
    given = {name: value for name, value in answers.items() if value is not None}
    terms = Terms.of(f"{name}={value:.10g}" for name, value in given.items())
    return view if terms == Terms() else view.replace(terms=terms)


def _number(ask: Ask, field: Declared) -> float | None:
    choice = field.choice
    unsaid = "those of the collection" if choice.key == "corp" else "unknown"
    step = choice.step or 1.0
    low = float(choice.low or 0)
    return ask.number(choice.label, choice.key, field.usual, low, step=step, unsaid=unsaid)


@section("stay or switch", "Is a move from the stack that runs today worth it?", incumbent_known)
def staying(view: View, ask: Ask) -> Blocks:
    """Yield whether to keep the deployed stack, and what a move to the best alternative costs."""
    if view.incumbent is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    move = switch(view)
    yield Answer(*sentences(move, view.quality.name))
    if (few := few_grades(view, move)) is not None:
        yield Text(few_words(view, few))
    yield Cards(_cards(move, view.quality.name))
    if (figure := by_month(move)) is not None:
        yield Chart(figure, "switching", _crossing(move), BAND if move.payback_ends else "")
    yield Table(ITEMS.frame([_line(item) for item in move.move.items]), ITEMS)
    if move.work:
        yield Table(WORK.frame([_taken(each) for each in move.work]), WORK)
    yield Fold("The rule", (Text(RULE, "caption"),))


def _taken(work: MoveWork) -> dict[str, object]:
    if work.amount is None:
        amount = "not known"
    elif work.unit == "GiB":
        amount = f"{work.amount:.3g} GiB"
    else:
        amount = f"{duration(3600 * work.amount)}{work.unit.removeprefix('hours')}"
    return {"name": work.name, "amount": amount, "basis": work.basis}


def _crossing(move: Switch) -> str:
    """Say when switching has cost less than staying."""
    return f"What staying and switching cost by month: {paid_back(move) or 'nothing to pay back'}."


def unmarked() -> Blocks:
    """Yield a notice that no stack is marked as running today, and how to mark one."""
    yield Answer("No stack is marked as running today.", NOTHING)
    yield Way("decision", "Mark it on Decision")


def _cards(move: Switch, measure: str) -> list[tuple[str, str, str]]:
    gain, months, needs = move.move.gain, move.verdict.payback_months, STEP_WORDS[largest(move.needs)]
    chance = "unknown" if gain is None or math.isnan(gain.p_better) else f"{100 * gain.p_better:.1f} %"
    apart = "" if gain is None else f"{interval(gain.low, gain.high)} n = {gain.n}"
    ends = payback_ends(move)
    paid = "unknown" if months is None else "never" if math.isinf(months) else f"{months:.1f} months"
    label, saved = _apart(move.move.saves_usd, usd, "Saves a month", "Costs more a month")
    speed, slower = _apart(move.move.saves_ms, ms, "faster", "slower")
    return [
        (f"{measure}, difference", "unknown" if gain is None else signed(gain.difference), apart),
        ("Chance to be better", chance, f"it needs {needs}"),
        (label, saved, f"costs once: {usd(move.move.once_usd)}"),
        ("Paid back after", paid, ends and f"[{ends}]"),
        ("Latency", slower, "" if slower == "unknown" else speed),
    ]


def _apart(saves: float | None, written: Callable[[float], str], less: str, more: str) -> tuple[str, str]:
    """Return which way two amounts differ, and by how much."""
    if saves is None:
        return less, "unknown"
    return less if saves >= 0 else more, written(abs(saves))


def _line(item: SwitchItem) -> dict[str, object]:
    return {"what": item.name, "usd": item.usd, "basis": item.basis}


@section("steps", "What does each step away from the running stack buy?", incumbent_known)
def steps(view: View, ask: Ask) -> Blocks:
    """Yield the gain of a setting, a new index and re-embedding, stack by stack."""
    now = view.incumbent
    if now is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    found = fusions(view, now, view.terms, view.constraints)
    rows = moves(view, found)
    yield Answer(_best_steps(rows), _best_names(rows, str(view.running_name)))
    if (figure := by_step(view, rows)) is not None:
        line = next((trace.x for trace in figure.data if trace.name == "frontier"), ())
        yield Chart(figure, "steps", _best_steps(rows), FRONTIER if len(line) > 1 else "")
    table = WITH_REPLAYS if found else MOVES
    yield Table(table.frame(in_words(rows).to_dicts()), table)
    yield from _to_run(view, found)


@cached("Replaying fusions…")
def fusions(view: View, incumbent: str, terms: Terms, constraints: Constraints) -> tuple[Replay, ...]:
    """Return the fusions replayed from stored rankings, against the stack that runs today."""
    return replays(view.replace(incumbent=incumbent, terms=terms, constraints=constraints))


def _to_run(view: View, found: Sequence[Replay]) -> Blocks:
    """Yield links that make the best replayed fusions stacks of the next run."""
    if not found:
        return
    yield Text(" ".join(filter(None, (REPLAYED, shallow(found)))), "caption")
    for model in dict.fromkeys(replay.unlisted for replay in found[:_TO_RUN] if replay.unlisted is not None):
        yield Text(AT_FOLDER.format(model=model), "caption")
    for replay in [one for one in found if one.unlisted is None][:_TO_RUN]:
        stack = json.dumps(dict(replay.spec), sort_keys=True)
        where = {CANDIDATE: (view.scope.collection_id, stack)}
        yield Way("run", f"Run {replay.name}", settings=where)


def in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `moves` with the step in words."""
    return rows.with_columns(step=pl.col("step").replace_strict(STEP_WORDS, default=STEP_WORDS[None]))


def _best_steps(rows: pl.DataFrame) -> str:
    said = [f"{STEP_WORDS[row['step']]} {signed(row['difference'])}" for row in _best(rows)]
    if said:
        return f"At best {', '.join(said)}."
    return NO_GAIN if rows["step"].count() else "What a move needs is not known of any stack."


def _best_names(rows: pl.DataFrame, now: str) -> str:
    """Name the best of each step with what it costs once, and the stack that runs."""
    said = [f"{STEP_WORDS[row['step']]}: {row['name']}, {_once(row)}" for row in _best(rows)]
    return f"{now} runs today{'; best ' if said else ''}{'; '.join(said)}."


def _once(row: dict[str, Any]) -> str:
    return "cost not known" if row["once_usd"] is None else f"{usd(row['once_usd'])} once"


def _best(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the best row of each step, the least step first."""
    known = rows.drop_nulls(["step", "difference"]).sort("difference", descending=True)
    found = {row["step"]: row for row in known.unique("step", keep="first", maintain_order=True).to_dicts()}
    return [found[step] for step in STEPS if step in found]


@section("queries that change", "Which queries would a move change, and which make worse?", seldom)
def questions(view: View, ask: Ask) -> Blocks:
    """Yield the share of queries that change and that get worse, by tag, and the questions themselves."""
    if view.incumbent is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    move = switch(view)
    if move.to is None:
        yield Answer("No other stack is within the limits.", "There is no move to look at.")
        return
    now, to = str(move.now["name"]), str(move.to["name"])
    rows = outcomes(view, move.now["run_id"], move.to["run_id"])
    if rows.is_empty():
        yield Answer("Quality is not known query by query for both.", f"{now} and {to} are averages.")
        return
    rows = rows.join(_changed(view, move.now["run_id"], move.to["run_id"]), on="query_id", how="left")
    worse, better = (rows.filter(outcome=outcome).height for outcome in (LOSSES, WINS))
    n, changed = rows.height, rows["changed"].mean()
    yield Answer(
        f"{percent(worse / n)} of queries get worse by {to}, {percent(better / n)} better.",
        f"{now} runs today. {view.quality.name}, n = {n}.",
    )
    yield Cards(
        [
            ("Get worse", f"{worse:,}", f"of {count(n, 'query')}"),
            ("Get better", f"{better:,}", f"of {count(n, 'query')}"),
            (
                f"First {FIRST} change",
                "unknown" if not isinstance(changed, float) else percent(changed),
                "without their order",
            ),
        ]
    )
    losses = rows.filter(outcome=LOSSES)
    side_by_side = Click(losses, {"q": "query_id"}, {"stack": to, "vs": now}, page="queries")
    yield Table(losses, WORSE, click=side_by_side)
    tags = _by_tag(rows)
    if tags.height:
        yield Fold("By tag", [Table(tags, BY_TAG)])


@cached("Comparing query by query…", entries=8)
def outcomes(view: View, now: str, to: str) -> pl.DataFrame:
    """Return the questions that both stacks have a value on, with outcome and scores; losses first."""
    setup = Setup(higher_is_better=view.quality.higher_is_better)
    looked = look_closer(view.snapshot, view.scope, view.quality, view.table, pair=(now, to), setup=setup)
    return looked.queries.filter(pl.col("outcome").is_not_null())


def _changed(view: View, now: str, to: str) -> pl.DataFrame:
    """Return per query whether the first passages differ; a query without rankings is left out."""
    ranked = view.snapshot.rankings([now, to], stage="final").filter(pl.col("rank") <= FIRST)
    sets = ranked.group_by("query_id", "run_id").agg(pl.col("passage_id").unique().sort())
    one, other = (sets.filter(run_id=run_id).drop("run_id") for run_id in (now, to))
    both = one.join(other, on="query_id", how="full", coalesce=True)
    return both.select("query_id", changed=pl.col("passage_id").ne_missing(pl.col("passage_id_right")))


def _by_tag(rows: pl.DataFrame) -> pl.DataFrame:
    """Return n and the shares that get worse and that change, per tag; the worst first."""
    tagged = rows.select("outcome", "changed", tag="tags").explode("tag").drop_nulls("tag")
    tagged = tagged.filter([not is_group(tag) for tag in tagged["tag"]])
    shares = (
        pl.len().cast(pl.Int64).alias("n"),
        (pl.col("outcome") == LOSSES).mean().alias("worse"),
        pl.col("changed").mean().alias("changed"),
    )
    found = tagged.group_by("tag").agg(shares).sort(["worse", "tag"], descending=[True, False])
    return found.select("tag", "n", "worse", "changed")


@section("deadlines", "Which models of the running stack end, and what outlives them?", seldom)
def deadlines(view: View, ask: Ask) -> Blocks:
    """Yield the announced ends of the running stack's models, and the stacks that outlive the first."""
    now = view.running_row
    if now is None:
        yield from unmarked()
        return
    spec = json.loads(view.table["spec"][now])
    found = ends_of(spec)
    if not found:
        known = spec.get("mode") in ("dense", "sparse", "hybrid")
        read = max(end.read for end in ends().values())
        yield Answer(
            f"No model of {view.running_name} has an announced end.", f"As of {read}." if known else NO_PARTS
        )
        return
    view, first = asked_terms(view, ask), found[0]
    rows = moves(view).filter(pl.col("retires").is_null() | (pl.col("retires") > first.retires.isoformat()))
    yield Answer(f"{first.model} ends on {first.retires:%-d %B %Y}.", _outliving(rows))
    yield Table(PARTS.frame([_row(end) for end in found]), PARTS)
    if rows.height:
        yield Table(MOVES.frame(in_words(rows).to_dicts()), MOVES.named("outliving"))


def _outliving(rows: pl.DataFrame) -> str:
    """Say how many stacks outlive the first announced end, and which of them is the best."""
    if rows.is_empty():
        return "No other stack of the workspace would outlive it."
    known = rows.drop_nulls("difference")
    if known.is_empty():
        return f"{count(rows.height, 'stack')} of the workspace would outlive it."
    best = known.row(0, named=True)
    return f"{count(rows.height, 'stack')} would outlive it, the best of them {best['name']}."


def _row(end: End) -> dict[str, object]:
    return {
        "model": end.model,
        "retires": end.retires.isoformat(),
        "successor": end.successor,
        "source": end.source,
        "read": end.read.isoformat(),
    }
