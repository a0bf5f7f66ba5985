"""Keep the running stack or switch: the rule on a workspace, for the rule's choice and for every stack.

Amounts that vary with the queries: what staying and switching cost a month, and the payback.
"""

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
from core.analysis.moves.replaying import Replay
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.costs import retrieval
from core.analysis.workspace.query_sets import scores_by_query
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.axes import AxisStep
from core.decide.axes import COST, LATENCY, NEEDED, STEP, SWITCHING
from core.decide.joint import means_drawn
from core.decide.rules import decide
from core.decide.switching import (
    LEVEL,
    Gain,
    Move,
    SwitchVerdict,
    Terms,
    gains,
    largest,
    needed,
    payback,
    stay_or_switch,
    total,
)
from core.errors import InputError
from core.prices.cost import cost_per_1k
from core.providers.ends import ends_of
from core.stats.intervals import RESAMPLES, query_weights
from core.tables import remembered, schema

_ALIKE = 1e-6  # Share of a cost by which the mean over queries may differ from it
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


@dataclass(frozen=True, slots=True, eq=False)
class Monthly:
    """Dollars a month of staying and of switching, less what the quality gained is worth."""

    stay: float
    switch: float
    stays: Floats  # [R], the same in resamples of the queries
    switches: Floats  # [R]

    def payback(self, once_usd: float | None) -> tuple[float, float] | None:
        """Return the 95 % interval of the months until a move has paid for itself; infinite = never.

        It is None if the one-time cost is unknown or nothing, or if nothing varies with the queries.
        """
        saved = self.stays - self.switches
        if not once_usd or np.ptp(saved) == 0:
            return None
        months = [payback(once_usd, float(each)) for each in saved]
        low, high = np.quantile(np.array(months), [LEVEL, 1 - LEVEL], method="inverted_cdf").tolist()
        return float(low), float(high)

    def band(self, months: Floats, once_usd: float, *, moved: bool) -> tuple[Floats, Floats]:
        """Return the ends of the 95 % interval of the dollars spent by each month."""
        low, high = np.quantile(self.switches if moved else self.stays, [LEVEL, 1 - LEVEL])
        return once_usd * moved + low * months, once_usd * moved + high * months


def monthly(
    view: View, now: Mapping[str, Any], to: Mapping[str, Any], *, saved_usd: float, difference: float
) -> Monthly:
    """Return what staying and switching cost a month, and how that varies with the queries.

    Args:
        view: The workspace, with queries per month among its terms.
        now: Row of the stack table: the running stack, whose cost is known.
        to: Row of the stack that would replace it.
        saved_usd: What it saves a month, but for quality.
        difference: By how much its quality is better; NaN = unknown, which counts for nothing.
    """
    per = (view.terms.queries_per_month or 0.0) / 1000
    worth = 1000 * per * (view.terms.value_usd or 0.0)  # of a whole point of quality, in a month
    stay = per * now[COST.column]
    switch = stay - saved_usd - worth * (0.0 if np.isnan(difference) else difference)
    query_ids, values = _drawn_from(view, (now, to))
    if len(query_ids) < 2:
        return Monthly(stay, switch, np.array([stay]), np.array([switch]))
    labels = groups(view.snapshot, view.scope).labels(query_ids)
    told = np.array([now[COST.column], to[COST.column], 0.0, difference if worth else 0.0])
    means = means_drawn(values, told, query_weights(len(query_ids), RESAMPLES, view.seed, labels))
    embedding = saved_usd - per * (now[COST.column] - to[COST.column])
    gained = np.nan_to_num(means[3] - means[2])
    return Monthly(stay, switch, per * means[0], per * means[1] - embedding - worth * gained)


def _drawn_from(view: View, pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> tuple[list[str], Floats]:
    """Return queries, and on them the costs of two stacks and the merits of both [4, Q]; NaN = unknown."""
    known = [_by_query(view, row) for row in pair]
    both = pl.DataFrame([dict(row) for row in pair], schema=view.table.schema)
    scores = None
    if view.terms.value_usd:
        scores = scores_by_query(view.snapshot, both, view.scope, view.quality)
    sign = 1 if view.quality.higher_is_better else -1
    for row in pair:
        merits: dict[str, float] = {}
        if scores is not None and row["run_id"] in scores.run_ids:
            line = sign * scores.values[list(scores.run_ids).index(row["run_id"])]
            merits = dict(zip(scores.query_ids, line.tolist(), strict=True))
        known.append(merits)
    every = sorted(set().union(*known))
    values = [[row.get(query_id, np.nan) for query_id in every] for row in known]
    return every, np.array(values, dtype=np.float64)


def _by_query(view: View, row: Mapping[str, Any]) -> dict[str, float]:
    """Return the cost of each query of a stack, $ per 1,000; empty if its cost does not come from usage."""
    runs = view.snapshot.runs(view.scope.collection_id).filter(run_id=row["run_id"])
    usage = retrieval(runs, view.snapshot.usage([row["run_id"]])).drop_nulls("query_id")
    priced = cost_per_1k(usage.with_columns(run_id="query_id"), view.book)
    whole = pl.when(~pl.col("usd_per_1k").has_nulls()).then(pl.col("usd_per_1k").sum())
    costs = priced.group_by("run_id").agg(whole).drop_nulls()
    mean = costs["usd_per_1k"].mean()
    apart = None if mean is None else abs(float(mean) - row[COST.column])  # type: ignore[arg-type]
    if apart is None or apart > _ALIKE * abs(row[COST.column]):
        return {}
    return dict(costs.iter_rows())


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
