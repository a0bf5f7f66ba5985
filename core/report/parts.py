"""The tables of a record: finalists, what would turn the choice, why others are out, prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.decide.axes import LIMITS, axes
from core.report.charts import intervals
from core.report.document.blocks import Block, Cell, Chart, Column, Fold, Note, Notes, Say, Table
from core.views import text
from core.views.decision.near import broken, way_in

FINALISTS = 30
STACKS = 300
"""Rows of the tables at most; the JSON has all."""
Data = Mapping[str, Any]
_SHARES = (
    ("p_frontier", "on the frontier"),
    ("p_sla", "meets the SLA"),
    ("p_feasible", "within the limits"),
    ("p_best", "best"),
)
_WRITTEN = {axis.key: axis.written for axis in axes()}


def _finalists(data: Data) -> list[Data]:
    """Chosen, runner-up and the rest of the frontier, each once, with their numbers."""
    rows: dict[str, Data] = {}
    found = [("chosen", data["chosen"]), ("runner-up", data["runner_up"])]
    for status, row in [*found, *(("frontier", each) for each in data["frontier"])]:
        if row is not None and row["run_id"] not in rows:
            rows[row["run_id"]] = {**row, "status": status}
    return list(rows.values())


def finalists(data: Data) -> tuple[Block, ...]:
    """Chosen, runner-up and frontier with intervals, n and chances, as a table and a chart."""
    rows = _finalists(data)
    if not rows:
        return ()
    measure = data["asked"]["measure"]
    shares = [(key, name) for key, name in _SHARES if any(row.get(key) is not None for row in rows)]
    columns = (
        Column("status"),
        Column("stack", wide=True),
        Column(measure, number=True),
        Column("95 % interval", number=True),
        Column("n", number=True),
        Column("latency", number=True),
        Column("$ / 1k", number=True),
        *(Column(name, number=True) for _, name in shares),
    )
    cells = tuple(
        (*_numbers(row), *(Cell(text.percent(row[key]), row[key]) for key, _ in shares))
        for row in rows[:FINALISTS]
    )
    table = Table(
        columns,
        cells,
        strong=frozenset({0} if rows[0]["status"] == "chosen" else ()),
        left_out=max(0, len(rows) - FINALISTS),
        sortable=True,
    )
    blocks: list[Block] = [table, Say(_sureness(data, bool(shares)), quiet=True), *_footnotes(rows)]
    figure = intervals(rows, measure)
    if figure is not None:
        alt = f"{measure} of {text.count(len(rows), 'finalist')} with 95 % intervals."
        blocks.append(Chart("finalists", figure, alt, "Stacks whose intervals overlap widely may be alike."))
    return tuple(blocks)


def _numbers(row: Data) -> tuple[Cell, ...]:
    interval = text.interval(row["quality_low"], row["quality_high"]).strip() or text.NOT_APPLICABLE
    return (
        Cell(row["status"]),
        Cell(row["stack"]),
        Cell(text.score(row["quality"]), row["quality"], basis(row, "quality")),
        Cell(interval, row["quality_low"]),
        Cell(text.UNKNOWN if row["n"] is None else f"{row['n']:,}", row["n"]),
        Cell(text.ms(row["latency_ms"]), row["latency_ms"], basis(row, "latency_ms")),
        Cell(text.cost_of(row, ""), row["cost"], basis(row, "cost")),
    )


def _footnotes(rows: Sequence[Data]) -> list[Block]:
    """What the latencies and costs of the finalists cover, where that is not everything."""
    kinds = (("Latency", "latency_note"), ("Cost", "cost_note"))
    found = [(what, dict.fromkeys(row[note] for row in rows if row[note])) for what, note in kinds]
    return [Say(f"{what}: {'; '.join(notes)}.", quiet=True) for what, notes in found if notes]


def _sureness(data: Data, known: bool) -> str:
    if not known:
        return "How sure the choice is, is unknown: there are no results per query to resample."
    return (
        f"Percentages: share of {data['resamples']:,} joint resamples of the queries (seed {data['seed']}) "
        "in which the stack is so. “Best” is without ties."
    )


def near(data: Data) -> tuple[Block, ...]:
    """What stands just outside a limit, what it would give, and the limit that lets it in."""
    if not data["near_misses"]:
        return ()
    columns = (
        Column("stack", wide=True),
        Column(data["asked"]["measure"], number=True),
        Column("gain", number=True),
        Column("latency", number=True),
        Column("$ / 1k", number=True),
        Column("excluded because"),
        Column("is let in by"),
    )
    rows = tuple(
        (
            Cell(row["stack"]),
            Cell(text.score(row["quality"]), row["quality"]),
            _gain(row),
            Cell(text.ms(row["latency_ms"]), row["latency_ms"]),
            Cell(text.cost_of(row, ""), row["cost"]),
            Cell(broken(row)),
            Cell(way_in(row)),
        )
        for row in data["near_misses"]
    )
    return (Table(columns, rows),)


def promising(data: Data) -> tuple[Block, ...]:
    """What breaks no limit but lacks a number that is required, and what to measure."""
    rows: list[Data] = data["promising"]
    if not rows:
        return ()
    columns = (
        Column("stack", wide=True),
        Column(data["asked"]["measure"], number=True),
        Column("gain", number=True),
        Column("is"),
        Column("so", wide=True),
    )
    cells = tuple(
        (
            Cell(row["stack"]),
            Cell(text.score(row["quality"]), row["quality"]),
            _gain(row),
            Cell(row["missing"]),
            Cell(row["measure"]),
        )
        for row in rows[:FINALISTS]
    )
    return (Table(columns, cells, left_out=max(0, len(rows) - FINALISTS), sortable=True),)


def _gain(row: Data) -> Cell:
    """By how much a stack would be better than the chosen one."""
    return Cell(text.NOT_APPLICABLE if row["gain"] is None else f"{row['gain']:+.3f}", row["gain"])


def turns(data: Data) -> tuple[Block, ...]:
    """What would have to be true for another stack to be chosen."""
    if not data["would_turn"]:
        return ()
    rows = tuple(_turn(turn) for turn in data["would_turn"])
    columns = (
        Column("stack", wide=True),
        Column("number"),
        Column("now", number=True),
        Column("turns at", number=True),
        Column("the choice is then", wide=True),
    )
    return (
        Say("Each number by itself, everything else as it is, the whole rule applied again."),
        Table(columns, rows),
    )


def _turn(turn: Data) -> tuple[Cell, ...]:
    written = _WRITTEN[turn["of"]]
    now, then = written(turn["now"]), text.NOT_APPLICABLE
    result = f"as it is: {turn['reason']}" if turn["reason"] else turn["winner"] or "no stack at all"
    if turn["then"] is not None:
        then = written(turn["then"])
        if then == now:
            then = f"a trace {'higher' if turn['by'] > 0 else 'lower'}"
    return (
        Cell(turn["stack"]),
        Cell(turn["of"]),
        Cell(now, turn["now"]),
        Cell(then, turn["then"]),
        Cell(result),
    )


def excluded(data: Data) -> tuple[Block, ...]:
    """Which limits exclude how many, and on demand every stack."""
    kinds: dict[str, list[Data]] = {}
    for row in data["excluded"]:
        kinds.setdefault(row["constraint"], []).append(row)
    summary = tuple(_kind(name, rows) for name, rows in sorted(kinds.items(), key=lambda each: -len(each[1])))
    columns = (Column("constraint"), Column("stacks", number=True), Column("nearest miss", wide=True))
    said = Table(columns, summary) if summary else Say("No stack breaks a limit.")
    every: list[Data] = data["stacks"]
    return said, Fold(
        f"All {text.count(len(every), 'stack')}", (all_stacks(every, data["asked"]["measure"]),)
    )


def all_stacks(rows: Sequence[Data], measure: str) -> Table:
    """Every stack with its three numbers and what became of it."""
    columns = (
        Column("status"),
        Column("stack", wide=True),
        Column(measure, number=True),
        Column("latency", number=True),
        Column("$ / 1k", number=True),
        Column("excluded because"),
    )
    cells = tuple(
        (
            Cell(status(row)),
            Cell(row["stack"]),
            Cell(text.score(row["quality"]), row["quality"]),
            Cell(text.ms(row["latency_ms"]), row["latency_ms"]),
            Cell(text.cost_of(row, ""), row["cost"]),
            Cell(row["reason"] or ""),
        )
        for row in rows[:STACKS]
    )
    strong = frozenset(place for place, row in enumerate(rows[:1]) if row["status"] == "chosen")
    return Table(columns, cells, strong=strong, left_out=max(0, len(rows) - STACKS), sortable=True)


def _kind(name: str, rows: Sequence[Data]) -> tuple[Cell, ...]:
    known = [row for row in rows if row["by"] is not None]
    nearest = min(known, key=lambda row: row["by"]) if known else None
    missed = (
        f"{nearest['stack'] or nearest['run_id']}: {nearest['reason']}" if nearest else text.NOT_APPLICABLE
    )
    return (
        Cell(LIMITS[name].limit_word if name in LIMITS else name),
        Cell(f"{len(rows):,}", len(rows)),
        Cell(missed),
    )


def prices(data: Data) -> tuple[Block, ...]:
    """The prices that the costs rest on, with source and day, and what has none."""
    columns = (
        Column("item"),
        Column("unit"),
        Column("price", number=True),
        Column("looked up"),
        Column("confirmed"),
        Column("chosen uses it"),
        Column("stacks", number=True),
        Column("source", wide=True),
    )
    rows = tuple(
        (
            Cell(entry["item"]),
            Cell(entry["unit"].replace("_", " ")),
            Cell(f"{entry['price']:.10g} {entry['currency']} / {entry['per']:,.10g}", entry["price"]),
            Cell(entry["looked_up"] or text.UNKNOWN),
            Cell("yes" if entry["confirmed"] else " ".join(filter(None, ("no.", entry["note"])))),
            Cell("yes" if entry["of_chosen"] else "no"),
            Cell(f"{entry['runs']:,}", entry["runs"]),
            Cell(entry["source"]),
        )
        for entry in data["price_entries"]
    )
    blocks: list[Block] = [Table(columns, rows)] if rows else []
    missing = ", ".join(f"{each['item']} ({each['unit'].replace('_', ' ')})" for each in data["unpriced"])
    if missing:
        blocks.append(Notes((Note(f"Without a price in {data['prices']}: {missing}."),)))
    if not blocks:
        blocks.append(Say("No recorded usage: costs are as they were reported, or unknown."))
    return tuple(blocks)


def basis(row: Data, name: str) -> str:
    """How a number of a stack was obtained; empty where it is unknown."""
    known = row[name] is not None
    return (row[f"{name.removesuffix('_ms')}_basis"] or "") if known else ""


def status(row: Data) -> str:
    """What became of a stack, in one word."""
    return str(row["status"]).replace("within the limits", "feasible")
