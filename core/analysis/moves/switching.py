"""Keep the running stack or switch: the rule on a workspace, for the rule's choice and for every stack."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.moves.cost import (
    AskedMove,
    Ground,
    MoveWork,
    config_of,
    items_of,
    monthly_embedding,
    work_of,
)
from core.analysis.moves.payback import Monthly, monthly
from core.analysis.moves.replaying import Replay
from core.analysis.workspace.view import View
from core.axes import AxisStep
from core.decide.axes import COST, LATENCY, NEEDED, STEP, SWITCHING
from core.decide.rules import decide
from core.decide.switching import (
    Gain,
    Move,
    SwitchVerdict,
    Terms,
    gains,
    largest,
    needed,
    stay_or_switch,
    total,
)
from core.errors import InputError
from core.providers.ends import ends_of
from core.tables import remembered, schema

_SHOWN = {
    "difference": "difference",
    "difference_low": "low",
    "difference_high": "high",
    "p_better": "p_better",
}
MOVES = schema(
    "run_id name step retires difference:float difference_low:float difference_high:float p_better:float "
    "once_usd:float in_sample:float"
)
NOTHING_RUNS = "Mark it: `incumbent NAME`, or name it: --incumbent NAME."
_NO_MOVE = Move(gain=None, saves_usd=None, saves_ms=None)


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether to switch from the running stack to the best of the others."""

    now: dict[str, Any]  # row of the stack table: the running stack
    to: dict[str, Any] | None  # row of the best other stack; None if none is within the limits
    needs: Mapping[str, AxisStep] | None  # the steps of the move, by the key that differs; None = unknown
    move: Move
    terms: Terms
    verdict: SwitchVerdict
    work: Sequence[MoveWork] = ()  # what the move takes besides money
    monthly: Monthly | None = None  # None if what either costs a month is unknown

    @property
    def payback_ends(self) -> tuple[float, float] | None:
        """The 95 % interval of the months until it is paid back; infinite = never, None = unknown."""
        return None if self.monthly is None else self.monthly.payback(self.move.once_usd)

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `switch --format json`; null = unknown, or never paid back."""
        gain, months, items = self.move.gain, self.verdict.payback_months, self.move.items
        low, high = self.payback_ends or (None, None)
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
            "takes": [asdict(each) for each in self.work],
            "payback_months": None if months is None else _finite(months),
            "payback_low": None if low is None else _finite(low),
            "payback_high": None if high is None else _finite(high),
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
        unjudged = others["quality"].is_null().all()
        stays = SwitchVerdict("stay", "no other stack is within the limits", None)
        stays = SwitchVerdict("unknown", "nothing is judged yet", None) if unjudged else stays
        return Switch(now, None, None, _NO_MOVE, view.terms, stays)
    asked = asked_move(Ground.of(view), now, others.row(chosen, named=True))
    move = _move(view, asked)
    verdict = stay_or_switch(move, view.terms)
    spent, better = None, np.nan if move.gain is None else move.gain.difference
    if move.saves_usd is not None:
        spent = monthly(view, now, asked.to, saved_usd=move.saves_usd, difference=better)
    work = tuple(work_of(asked))
    return Switch(now, asked.to, asked.needs, move, view.terms, verdict, work=work, monthly=spent)


def moves(view: View, replayed: Sequence[Replay] = ()) -> pl.DataFrame:
    """Return the gains and costs of a move to each other stack; errors as of `switch`.

    Args:
        view: As of `switch`.
        replayed: Fusions that nobody ran, which stand among the stacks.

    Returns:
        run_id, name, step (null = unknown), retires (the first announced end of a model), difference with
        its ends, p_better, once_usd, in_sample (of a replayed fusion, whose run_id is null); best first.
    """
    now, others = _running(view)
    rows, ground = [], Ground.of(view)
    for to in others.iter_rows(named=True):
        asked = asked_move(ground, now, to)
        rows.append(_row(asked, _gain(view, asked)))
    for replay in replayed:
        to = {
            "run_id": None,
            "name": replay.name,
            "spec": json.dumps(dict(replay.spec)),
            COST.column: replay.cost,
        }
        rows.append({**_row(asked_move(ground, now, to), replay.gain), "in_sample": replay.in_sample})
    return pl.DataFrame(rows, schema=MOVES).sort("difference", descending=True, nulls_last=True)


def _row(asked: AskedMove, gain: Gain | None) -> dict[str, Any]:
    row = {
        "run_id": asked.to["run_id"],
        "name": asked.to["name"],
        "step": largest(asked.needs),
        "retires": next((end.retires.isoformat() for end in ends_of(asked.spec)), None),
        "once_usd": total(each.usd for each in items_of(asked)),
    }
    for key, of in _SHOWN.items():
        row[key] = None if gain is None else _finite(getattr(gain, of))
    return row


def _running(view: View) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return the row of the running stack, and the rows of the others."""
    if view.incumbent is None:
        raise InputError("No stack is marked as running today.", do=NOTHING_RUNS)
    own = pl.col("run_id") == view.incumbent
    now, others = view.table.row(by_predicate=own, named=True), view.table.filter(~own)
    if others.is_empty():
        raise InputError(f"{now['name']} is the only stack of the workspace.", do="Measure candidates first.")
    return now, others


def with_moves(view: View) -> View:
    """Return a view whose table says what a move to each stack needs and costs, if a stack runs today."""
    if view.running_row is None or view.incumbent is None:
        return view
    return view.replace(given=_with_moves(view.table, view.incumbent, Ground.of(view)))


@remembered
def _with_moves(table: pl.DataFrame, incumbent: str, ground: Ground) -> pl.DataFrame:
    now = table.row(by_predicate=pl.col("run_id") == incumbent, named=True)
    needs, costs = list[AxisStep | None](), list[float | None]()
    for to in table.iter_rows(named=True):
        asked = asked_move(ground, now, to)
        needs.append(largest(asked.needs))
        costs.append(total(each.usd for each in items_of(asked)))
    return table.with_columns(
        pl.Series(NEEDED, needs, dtype=pl.String),
        pl.Series(STEP.column, [STEP.number(step) for step in needs], dtype=pl.Float64),
        pl.Series(SWITCHING.column, costs, dtype=pl.Float64),
    )


def asked_move(ground: Ground, now: dict[str, Any], to: dict[str, Any]) -> AskedMove:
    """Return a move from one row of the stack table to another, with what it needs."""
    before, after = (json.loads(row["spec"]) for row in (now, to))
    model = config_of(str(after.get("embedder")))
    needs = needed(before, after, shortens=model is not None and model.matryoshka)
    return AskedMove(ground=ground, now=now, to=to, needs=needs, was=before, spec=after)


def _move(view: View, asked: AskedMove) -> Move:
    return Move(
        gain=_gain(view, asked),
        saves_usd=_saved(asked),
        saves_ms=_less(asked, LATENCY.column),
        alike_ms=view.decision.jitter_ms,
        items=tuple(items_of(asked)),
    )


def _gain(view: View, asked: AskedMove) -> Gain | None:
    """Return the gain of the new stack, as one of the family of all candidates."""
    return view.once(family).get(str(asked.to["run_id"]))


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


def _less(asked: AskedMove, column: str) -> float | None:
    before, after = asked.now[column], asked.to[column]
    return None if before is None or after is None else float(before - after)


def _saved(asked: AskedMove) -> float | None:
    """Return what the new stack saves a month: by its queries, and by the passages that are added."""
    less, queries = _less(asked, COST.column), asked.terms.queries_per_month
    searching = None if less is None or queries is None else less * queries / 1000
    return total((searching, monthly_embedding(asked)))
