"""Keep the running stack or switch: the rule on a workspace, and the one-time cost of the move."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.view import View
from core.axes import Spec, Step
from core.decide.axes import COST, LATENCY
from core.decide.rules import decide
from core.decide.switching import (
    WEEKS_PER_MONTH,
    Gain,
    Item,
    Move,
    Terms,
    Verdict,
    gains,
    largest,
    needed,
    stay_or_switch,
    total,
)
from core.errors import InputError, UnknownNameError
from core.pipeline.sweep.scale import at_scale, usd_of
from core.providers.embed import embedder_config
from core.tables import schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Sizes to embed and index again; None = the collection's, or unknown."""

    passages: int | None = None
    tokens_per_passage: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Whether to switch from the running stack to the best of the others."""

    now: dict[str, Any]  # row of the stack table: the running stack
    to: dict[str, Any] | None  # row of the best other stack; None if none is within the limits
    needs: Mapping[str, Step] | None  # the steps of the move, by the key that differs; None = unknown
    move: Move
    terms: Terms
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `switch --format json`; null = unknown, or never paid back."""
        gain, months, items = self.move.gain, self.verdict.payback_months, self.move.items
        return {
            "answer": self.verdict.answer,
            "why": self.verdict.why,
            "incumbent": self.now["name"],
            "to": None if self.to is None else self.to["name"],
            "difference": None if gain is None else gain.difference,
            "low": None if gain is None else _finite(gain.low),
            "high": None if gain is None else _finite(gain.high),
            "n": None if gain is None else gain.n,
            "p_better": None if gain is None else _finite(gain.p_better),
            "saves_ms": self.move.saves_ms,
            "one_time_usd": self.move.once_usd,
            "one_time": [{"what": each.name, "usd": each.usd, "basis": each.basis} for each in items],
            "monthly_usd": None if self.move.saves_usd is None else -self.move.saves_usd,
            "payback_months": None if months is None else _finite(months),
            "pays_back": None if months is None else bool(np.isfinite(months)),
            "step": largest(self.needs),
            "needs": None if self.needs is None else dict(self.needs),
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def switch(view: View, incumbent: str, terms: Terms, corpus: Corpus) -> Switch:
    """Decide whether to replace the running stack with the best of the others within the limits.

    Args:
        view: The workspace with its limits.
        incumbent: Name, label or run_id of the running stack.
        terms: Criteria for a move.
        corpus: Sizes to embed and index again.

    Raises:
        UnknownNameError: If no stack of the workspace has this name.
        InputError: If it is the only stack.
    """
    table = view.table
    run_id = found(table, incumbent)
    others = table.filter(pl.col("run_id") != run_id)
    if others.is_empty():
        raise InputError(f"{incumbent} is the only stack of the workspace.", do="Measure candidates first.")
    now = table.row(by_predicate=pl.col("run_id") == run_id, named=True)
    chosen = decide(others, view.constraints, view.rule, paired=view.paired).chosen
    if chosen is None:
        stays = Verdict("stay", "no other stack is within the limits", None)
        return Switch(now=now, to=None, needs=None, move=_NO_MOVE, terms=terms, verdict=stays)
    to = others.row(chosen, named=True)
    before, after = (json.loads(_spec(view, row["run_id"])) for row in (now, to))
    needs = needed(before, after, shortens=_shortens(after))
    asked = _Asked(view=view, now=now, to=to, needs=needs, spec=after, terms=terms, corpus=corpus)
    move = _move(asked)
    return Switch(now=now, to=to, needs=needs, move=move, terms=terms, verdict=stay_or_switch(move, terms))


def moves(view: View, incumbent: str, terms: Terms, corpus: Corpus) -> pl.DataFrame:
    """Return the gains and costs of a move to each other stack.

    Returns:
        name, step (null = unknown), difference with its ends, p_better, once_usd; best first.
    """
    run_id, rows = found(view.table, incumbent), []
    now = view.table.row(by_predicate=pl.col("run_id") == run_id, named=True)
    before = json.loads(_spec(view, run_id))
    for to in view.table.filter(pl.col("run_id") != run_id).iter_rows(named=True):
        after = json.loads(_spec(view, to["run_id"]))
        needs = needed(before, after, shortens=_shortens(after))
        asked = _Asked(view=view, now=now, to=to, needs=needs, spec=after, terms=terms, corpus=corpus)
        gain = _gain(asked)
        row = {
            "name": to["name"],
            "step": largest(needs),
            "once_usd": total(each.usd for each in _items(asked)),
        }
        for key, of in _SHOWN.items():
            row[key] = None if gain is None else _finite(getattr(gain, of))
        rows.append(row)
    return pl.DataFrame(rows, schema=MOVES).sort("difference", descending=True, nulls_last=True)


_SHOWN = {
    "difference": "difference",
    "difference_low": "low",
    "difference_high": "high",
    "p_better": "p_better",
}
MOVES = schema(
    "name step difference:float difference_low:float difference_high:float p_better:float once_usd:float"
)


_NO_MOVE = Move(gain=None, saves_usd=None, saves_ms=None)


def found(table: pl.DataFrame, name: str) -> str:
    """Return the run_id of the stack with a name, label or run_id.

    Raises:
        UnknownNameError: If no stack, or more than one, has it.
    """
    for column in ("run_id", "name", "label"):
        if column in table.columns and len(rows := table.filter(pl.col(column) == name)) == 1:
            return str(rows["run_id"][0])
    raise UnknownNameError("stack", name, table["name"].to_list())


def _spec(view: View, run_id: str) -> str:
    return str(view.snapshot.runs(view.scope.collection_id).filter(run_id=run_id)["spec"][0])


def _shortens(spec: Spec) -> bool:
    """Return whether the vectors of a stack's model can be cut to fewer dimensions."""
    try:
        return embedder_config(str(spec.get("embedder"))).matryoshka
    except UnknownNameError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A move under consideration."""

    view: View
    now: dict[str, Any]
    to: dict[str, Any]
    needs: Mapping[str, Step] | None
    spec: Spec  # of the new stack
    terms: Terms
    corpus: Corpus


def _move(asked: _Asked) -> Move:
    return Move(
        gain=_gain(asked),
        saves_usd=_saved(asked),
        saves_ms=_less(asked, LATENCY.column),
        alike_ms=asked.view.decision.jitter_ms,
        items=tuple(_items(asked)),
    )


def _gain(asked: _Asked) -> Gain | None:
    """Compare the two stacks as part of the family of all candidates."""
    view, paired = asked.view, asked.view.paired
    if paired is None:
        return None
    now, to = (int(place) for place in paired.places(pl.Series([asked.now["run_id"], asked.to["run_id"]])))
    if min(now, to) < 0:
        return None
    merits = paired.values if view.quality.higher_is_better else -paired.values
    return gains(merits, now, asked.terms.margin, view.constraints.delta, paired.clusters).get(to)


def _less(asked: _Asked, column: str) -> float | None:
    before, after = asked.now[column], asked.to[column]
    return None if before is None or after is None else float(before - after)


def _saved(asked: _Asked) -> float | None:
    less, queries = _less(asked, COST.column), asked.terms.queries_per_month
    return None if less is None or queries is None else less * queries / 1000


def _items(asked: _Asked) -> Iterator[Item]:
    """List the one-time costs of the move."""
    view, terms = asked.view, asked.terms
    steps = None if asked.needs is None else {*asked.needs.values()}
    passages = asked.corpus.passages or len(view.snapshot.passages(view.scope.collection_id)) or None
    if steps is None:
        yield Item("rebuild", None, "what the move needs is not known of a custom or imported stack")
    elif "embed" in steps:
        yield _embedding(asked, passages)
    if steps and steps != {"none"} and asked.spec.get("dim"):
        yield _building(asked, passages)
    if terms.weeks_both:
        yield _both(asked.to[COST.column], terms)
    if terms.engineering_days is None or terms.engineering_days > 0:
        yield _engineering(terms)
    if terms.evaluation_usd != 0:
        yield Item("evaluation", terms.evaluation_usd, "as given")


def _embedding(asked: _Asked, passages: int | None) -> Item:
    name, tokens = str(asked.spec["embedder"]), asked.corpus.tokens_per_passage
    if passages is None or tokens is None:
        return Item("embed again", None, "passages or tokens per passage are not given")
    usd = usd_of(asked.view.book, name, "input_tokens", passages * tokens)
    basis = f"{passages:,} passages of {tokens:g} tokens by {name}"
    return Item("embed again", usd, basis if usd is not None else f"{basis}: no price")


def _building(asked: _Asked, passages: int | None) -> Item:
    if passages is None:
        return Item("build the index", None, "passages are not given")
    size = at_scale([dict(asked.spec)], passages, asked.view.book)[0]
    return Item("build the index", size.build_usd, f"{size.build_s:.0f} s of one core, {size.index}")


def _both(cost_per_1k: float | None, terms: Terms) -> Item:
    basis = f"{terms.weeks_both:g} weeks of the new one beside the old"
    if terms.queries_per_month is None:
        return Item("both run", None, "queries per month are not given")
    if cost_per_1k is None:
        return Item("both run", None, f"{basis}: cost not known")
    month = cost_per_1k * terms.queries_per_month / 1000
    return Item("both run", month * terms.weeks_both / WEEKS_PER_MONTH, basis)


def _engineering(terms: Terms) -> Item:
    if terms.engineering_days is None or terms.usd_per_day is None:
        return Item("engineering", None, "days or dollars per day are not given")
    basis = f"{terms.engineering_days:g} days at ${terms.usd_per_day:,.0f}"
    return Item("engineering", terms.engineering_days * terms.usd_per_day, basis)
