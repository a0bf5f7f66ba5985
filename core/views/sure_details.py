"""What a choice hangs on: the number that would turn it, what the limits exclude, the frontier's shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.clq.front_shape import hypervolume, knee
from core.clq.rules import Decision
from core.clq.turning import Turn
from core.views import text
from core.views.decision import frontier_rows


def turn_rows(table: pl.DataFrame, turns: list[Turn]) -> pl.DataFrame:
    """What would have to be true: one row per number, each changed by itself.

    Args:
        table: The stack table.
        turns: From `core.clq.turning.turns` on the same table.

    Returns:
        stack, number ("cost", "latency" or "quality"), now, then and change in words with their unit, winner
        (what is chosen then) and reason (why nothing turns the choice).
    """
    names = {"cost": "cost", "latency_ms": "latency", "quality": "quality"}
    rows = [
        {
            "stack": table["name"][turn.of],
            "number": names[turn.axis],
            "now": _amount(turn.now, turn.axis),
            "then": None if turn.then is None else _amount(turn.then, turn.axis),
            "change": _change(turn),
            "winner": _winner(table, turn),
            "reason": turn.reason or None,
        }
        for turn in turns
    ]
    columns = ("stack", "number", "now", "then", "change", "winner", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))


def _winner(table: pl.DataFrame, turn: Turn) -> str | None:
    if turn.then is None:
        return None
    return "no stack" if turn.winner is None else str(table["name"][turn.winner])


def _amount(value: float | None, axis: str) -> str:
    return {"cost": text.usd, "latency_ms": text.ms}.get(axis, text.score)(value)


def _change(turn: Turn) -> str | None:
    if turn.change is None or turn.now is None:
        return None
    sign = "+" if turn.change >= 0 else "−"
    share = f" ({sign}{abs(turn.change) / turn.now:.1%})".replace("%", " %") if turn.now else ""
    return f"{sign}{_amount(abs(turn.change), turn.axis)}{share}"


def turning_words(turned: pl.DataFrame) -> str:
    """The first half of `turn_rows`, the runner-up's, as a sentence."""
    if turned.is_empty():
        return "There is no runner-up within the limits, so nothing is near to winning."
    mine = turned.head(3)
    found = mine.filter(pl.col("then").is_not_null())
    name = mine["stack"][0]
    if found.is_empty():
        return f"No change of one number alone lets the runner-up {name} win."
    ways = [f"{number} {now} → {then}" for number, now, then in found.select("number", "now", "then").rows()]
    return f"The runner-up {name} would win with one of: {'; '.join(ways)}."


def excluded_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Every excluded stack with the first constraint that excludes it, the nearest misses first.

    Returns:
        run_id, name, constraint, by (in unit; null where the value is unknown), unit, reason, quality,
        latency_ms, cost.
    """
    numbers_of = table.select("run_id", "name", "quality", "latency_ms", "cost")
    return (
        decision.excluded()
        .join(numbers_of, on="run_id", how="left", maintain_order="left")
        .sort("constraint", "by", nulls_last=True, maintain_order=True)
        .select("run_id", "name", "constraint", "by", "unit", "reason", "quality", "latency_ms", "cost")
    )


@dataclass(frozen=True)
class Front:
    """The frontier of the feasible stacks in two numbers.

    Attributes:
        size: Stacks on it.
        volume: Share of the box between the worst stack and the ideal that it dominates.
        of_all: The same for all stacks, limits or not; at the same worst corner.
        knee: The stack beyond which more quality is bought dearest; None where it bends nowhere.
    """

    size: int
    volume: float
    of_all: float
    knee: str | None


def front(table: pl.DataFrame, decision: Decision) -> Front | None:
    """Size, hypervolume and knee of the frontier; None where neither cost nor latency is known."""
    arrays = {
        name: table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in ("cost", "latency_ms", "quality")
    }
    known = {name: not np.isnan(values).all() for name, values in arrays.items()}
    if not known["quality"] or not (known["cost"] or known["latency_ms"]):
        return None
    cost, latency = (arrays[name] if known[name] else None for name in ("cost", "latency_ms"))
    quality = np.where(decision.feasible, arrays["quality"], np.nan)
    complete = ~np.isnan(np.column_stack([arrays[name] for name in arrays if known[name]])).any(axis=1)
    if not complete.any():
        return None
    corner = (
        None if cost is None else float(cost[complete].max()),
        None if latency is None else float(latency[complete].max()),
        float(arrays["quality"][complete].min()),
    )
    bend = knee(cost, latency, quality)
    return Front(
        size=len(frontier_rows(table, decision)),
        volume=hypervolume(cost, latency, quality, reference=corner),
        of_all=hypervolume(cost, latency, arrays["quality"], reference=corner),
        knee=None if bend is None else str(table["name"][bend]),
    )


def excluded_words(excluded: pl.DataFrame) -> str:
    """How many stacks each limit excludes, in words."""
    if excluded.is_empty():
        return "Nothing: every stack is within the limits."
    words = {"sla": "the SLA", "budget": "the budget", "floor": "the quality floor"}
    counts = excluded.group_by("constraint", maintain_order=True).len().rows()
    return (
        f"{text.count(excluded.height, 'stack')}: "
        + ", ".join(f"{n} by {words.get(name, name)}" for name, n in counts)
        + "."
    )


def front_cards(front: Front) -> dict[str, tuple[str, str]]:
    """Label → number and meaning."""
    return {
        "On the frontier": (
            f"{front.size:,}",
            "stacks within the limits that no other one beats on all axes",
        ),
        "Hypervolume": (
            f"{front.volume:.3f}",
            f"share of the box from the worst stack to the ideal (free, at once, quality 1) that they beat; "
            f"{front.of_all:.3f} without limits",
        ),
        "Knee": (
            text.shorten(front.knee, 40) if front.knee else "none",
            "beyond it more quality is bought dearest",
        ),
    }
