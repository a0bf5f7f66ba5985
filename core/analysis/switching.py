"""Keep the running stack or switch: the rule on a workspace, and the one-time cost of the move."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
from core.providers.base import Purpose
from core.providers.config import ModelConfig
from core.providers.embed import embedder_config
from core.providers.ends import ends_of
from core.tables import schema


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
            "retires": [
                {"model": end.model, "retires": end.retires.isoformat(), "successor": end.successor}
                for end in ends_of(json.loads(self.now["spec"]))
            ],
            "step": largest(self.needs),
            "needs": None if self.needs is None else dict(self.needs),
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def stay_or_move(view: View) -> Switch | None:
    """Decide like `switch`; None if no stack is marked as running today, or if it is the only one."""
    return None if view.incumbent is None or view.table.height < 2 else view.once(switch)


def switch(view: View) -> Switch:
    """Decide whether to replace the running stack with the rule's choice among the others.

    Args:
        view: The workspace with its limits, the stack that runs today, and the terms of a move.

    Raises:
        InputError: If no stack is marked as running today, or if it is the only one.
    """
    now, others = _running(view)
    chosen = decide(others, view.constraints, view.rule, paired=view.paired, take=view.take).chosen
    if chosen is None:
        stays = Verdict("stay", "no other stack is within the limits", None)
        return Switch(now=now, to=None, needs=None, move=_NO_MOVE, terms=view.terms, verdict=stays)
    asked = _asked(view, now, others.row(chosen, named=True))
    move = _move(asked)
    verdict = stay_or_switch(move, view.terms)
    return Switch(now=now, to=asked.to, needs=asked.needs, move=move, terms=view.terms, verdict=verdict)


def moves(view: View) -> pl.DataFrame:
    """Return the gains and costs of a move to each other stack; arguments and errors as of `switch`.

    Returns:
        run_id, name, step (null = unknown), retires (the first announced end of a model), difference with
        its ends, p_better, once_usd; best first.
    """
    now, others = _running(view)
    rows = []
    for to in others.iter_rows(named=True):
        asked = _asked(view, now, to)
        gain = _gain(asked)
        row = {
            "run_id": to["run_id"],
            "name": to["name"],
            "step": largest(asked.needs),
            "retires": next((end.retires.isoformat() for end in ends_of(asked.spec)), None),
            "once_usd": total(each.usd for each in _items(asked)),
        }
        for key, of in _SHOWN.items():
            row[key] = None if gain is None else _finite(getattr(gain, of))
        rows.append(row)
    return pl.DataFrame(rows, schema=MOVES).sort("difference", descending=True, nulls_last=True)


def _running(view: View) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return the row of the running stack, and the rows of the others."""
    if view.incumbent is None:
        raise InputError("No stack is marked as running today.", do=NOTHING_RUNS)
    own = pl.col("run_id") == view.incumbent
    now, others = view.table.row(by_predicate=own, named=True), view.table.filter(~own)
    if others.is_empty():
        raise InputError(f"{now['name']} is the only stack of the workspace.", do="Measure candidates first.")
    return now, others


_SHOWN = {
    "difference": "difference",
    "difference_low": "low",
    "difference_high": "high",
    "p_better": "p_better",
}
MOVES = schema(
    "run_id name step retires difference:float difference_low:float difference_high:float p_better:float "
    "once_usd:float"
)


NOTHING_RUNS = "Mark it: `incumbent NAME`, or name it: --incumbent NAME."
_NO_MOVE = Move(gain=None, saves_usd=None, saves_ms=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A move under consideration."""

    view: View
    now: dict[str, Any]
    to: dict[str, Any]
    needs: Mapping[str, Step] | None
    spec: Spec  # of the new stack


def _asked(view: View, now: dict[str, Any], to: dict[str, Any]) -> _Asked:
    before, after = (json.loads(row["spec"]) for row in (now, to))
    model = _config(str(after.get("embedder")))
    needs = needed(before, after, shortens=model is not None and model.matryoshka)
    return _Asked(view=view, now=now, to=to, needs=needs, spec=after)


def _move(asked: _Asked) -> Move:
    return Move(
        gain=_gain(asked),
        saves_usd=_saved(asked),
        saves_ms=_less(asked, LATENCY.column),
        alike_ms=asked.view.decision.jitter_ms,
        items=tuple(_items(asked)),
    )


def _gain(asked: _Asked) -> Gain | None:
    """Return the gain of the new stack, as one of the family of all candidates."""
    return asked.view.once(family).get(str(asked.to["run_id"]))


def family(view: View) -> dict[str, Gain]:
    """Compare every stack with the one that runs today, by run_id; empty if nothing is known per query."""
    paired, runs = view.paired, view.table["run_id"]
    if paired is None or view.incumbent is None:
        return {}
    places = dict(zip(runs.to_list(), paired.places(runs).tolist(), strict=True))
    if places[view.incumbent] < 0:
        return {}
    merits = paired.values if view.quality.higher_is_better else -paired.values
    args = (places[view.incumbent], view.terms.margin, view.constraints.delta, paired.clusters)
    found = gains(merits, *args)
    return {run_id: found[place] for run_id, place in places.items() if place in found}


def _less(asked: _Asked, column: str) -> float | None:
    before, after = asked.now[column], asked.to[column]
    return None if before is None or after is None else float(before - after)


def _saved(asked: _Asked) -> float | None:
    less, queries = _less(asked, COST.column), asked.view.terms.queries_per_month
    return None if less is None or queries is None else less * queries / 1000


def _items(asked: _Asked) -> Iterator[Item]:
    """List the one-time costs of the move."""
    view, terms = asked.view, asked.view.terms
    steps = None if asked.needs is None else {*asked.needs.values()}
    passages = asked.view.terms.passages or len(view.snapshot.passages(view.scope.collection_id)) or None
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
    from core.pipeline.sweep.scale import usd_of  # noqa: PLC0415 - loads the engines, which no page waits for

    name, tokens = str(asked.spec["embedder"]), asked.view.terms.tokens_per_passage
    config = _config(name)
    item = name if config is None else config.price_item
    if asked.view.book.find(item, "input_tokens") is None:
        return Item("embed again", None, f"by {name}: no price")
    if tokens is None and config is not None:
        tokens = asked.view.once(_tokens, config.tokenizer, config.prefixes.get(Purpose.PASSAGE, ""))
    if passages is None or tokens is None:
        return Item("embed again", None, "passages or tokens per passage are not given")
    usd = usd_of(asked.view.book, item, "input_tokens", passages * tokens)
    return Item("embed again", usd, f"{passages:,} passages of {tokens:.4g} tokens by {name}")


def _tokens(view: View, tokenizer: str | None, prefix: str) -> float | None:
    """Return the mean tokens of the collection's passages, as a model counts them; None without texts."""
    from core.pipeline.sweep.paid import count_texts  # noqa: PLC0415 - as above

    texts = view.snapshot.passages(view.scope.collection_id)["text"].drop_nulls().to_list()
    counted = count_texts(texts, tokenizer, prefix)
    return counted.tokens / counted.texts if counted.texts else None


def _config(model: str) -> ModelConfig | None:
    """Return the configuration of an embedding model; None if no catalogue has it."""
    with suppress(UnknownNameError):
        return embedder_config(model)
    return None


def _building(asked: _Asked, passages: int | None) -> Item:
    if passages is None:
        return Item("build the index", None, "passages are not given")
    from core.pipeline.sweep.scale import at_scale  # noqa: PLC0415 - as above

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
