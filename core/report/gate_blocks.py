"""The output of a gate: whether a decision holds, before and after, what changed it, what changed since."""

from __future__ import annotations

import polars as pl

from core.decide.selection import DECIDED_BY
from core.report.gate import Held
from core.report.gate_runs import today
from core.report.old_rule import NAMED
from core.report.page import kept
from core.views import columns as cols
from core.views.blocks import Answer, Blocks, Table, Text
from core.views.decision.sections import outside
from core.views.text import percent

_FINDINGS = cols.Rows(
    "findings", cols.text("check"), cols.text("was"), cols.text("now"), cols.text("reason", "because")
)
_CHANGES = cols.Rows(
    "changes", cols.text("kind", "of"), cols.text("what"), cols.text("was"), cols.text("now")
)
_BESIDE = ("quality", "latency_ms", "cost", "n")


def gate_blocks(held: Held) -> Blocks:
    """Yield the output of a gate for a recorded decision."""
    yield Answer(held.sentence)
    quality, latency = held.view.quality.name, f"{held.view.latency.percentile} ms"
    shown = cols.Rows(
        "before_and_after",
        *(cols.text("when"), "stack", cols.score("quality", quality), cols.number("latency_ms", latency)),
        "cost n",
    )
    yield Table(beside(held), shown)
    if held.given is not None:
        yield Text(held.given.sentence)
        if (stale := _stale(held)) is not None:
            yield Text(stale)
    if not held.holds:
        yield Text("What flipped it", "heading")
        yield Table(held.findings, _FINDINGS)
    yield Text("What changed since", "heading")
    if held.changes.is_empty():
        yield Text("Nothing that the record knows: neither limits, measure and prices nor data.")
    else:
        yield Table(held.changes, _CHANGES)
    yield from kept(outside(held.view))
    if held.waived:
        names = ", ".join(axis.limit_word for axis in held.waived)
        yield Text(f"Waived, as nothing is known of it for this stack: {names}.")
    yield Text(_fails(held), "caption")


def _stale(held: Held) -> str | None:
    """Say that the results contain nothing of the recorded stack, and when its numbers were made; or None."""
    row = today(held.was, held.view)
    if row is None or held.view.table["run_id"][row] in held.was.given:
        return None
    made = held.view.table["created_at"][row]
    when = "" if made is None else f": its numbers are of {made:%Y-%m-%d}"
    return f"The results bring nothing of {held.was.chosen.stack}{when}."


def _fails(held: Held) -> str:
    """Say what fails the gate, apart from the limits."""
    if held.was.decided_by < DECIDED_BY:
        return f"Judged {NAMED}; another stack fails it from a probability of {percent(held.share)} on."
    asked = f", or a probability of good selection below {percent(held.least_pgs)}" * (held.least_pgs > 0)
    return f"It fails where the stack is surely worse by more than {held.view.constraints.delta:.3g}{asked}."


def beside(held: Held) -> pl.DataFrame:
    """Return the chosen stack as recorded, the same stack today, and today's choice.

    Returns:
        when, stack, quality, latency_ms, cost and n; an unknown number is null.
    """
    table, chosen = held.view.table, held.view.decision.chosen
    row = today(held.was, held.view)
    then = held.was.data.get("chosen") or {}
    rows = [("recorded", held.was.chosen.stack, *(then.get(name) for name in _BESIDE))]
    for when, at in (("the same today", row), ("chosen today", chosen)):
        if at is None:
            rows.append((when, "none", *(None for _ in _BESIDE)))
        else:
            now = table.row(at, named=True)
            rows.append((when, now["name"], *(now[name] for name in _BESIDE)))
    schema = {"when": pl.String, "stack": pl.String, **dict.fromkeys(_BESIDE, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")
