"""The decision record as a document: the answer first, then what it rests on and what speaks against it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from core.views import text
from core.views.document.blocks import (
    Block,
    Cell,
    Chart,
    Code,
    Column,
    Document,
    Facts,
    Fold,
    Link,
    Note,
    Notes,
    Say,
    Section,
    Table,
    Tile,
    Tiles,
)
from core.views.record.charts import intervals

FINALISTS = 30
STACKS = 300
"""Rows of the tables at most; the JSON has all."""
Data = Mapping[str, Any]
_RULES = {
    "quality": "the highest quality within the limits",
    "cost": "the lowest cost within the limits",
    "latency": "the lowest latency within the limits",
}
_ORIGINS = {"run": "measured here", "import": "imported", "published": "published"}
_CONSTRAINTS = {"sla": "SLA", "floor": "quality floor"}
_SHARES = (
    ("p_frontier", "on the frontier"),
    ("p_sla", "meets the SLA"),
    ("p_feasible", "within the limits"),
    ("p_best", "best"),
)
_WRITTEN = {"latency": text.ms, "cost": text.usd, "quality": text.score}


def record_document(data: Data, pareto: go.Figure) -> Document:
    """Put a record into words, tables and charts.

    Args:
        data: What `core.views.record.data.record_data` returns.
        pareto: The chart of all stacks with the frontier, limits and choice.

    Returns:
        The document; its texts are plain.
    """
    finalists = _finalists(data)
    sections = [
        Section("All stacks", (_pareto(data, pareto),)),
        Section("The finalists", _finalist_blocks(data, finalists)),
        Section("What would turn the choice", _turns(data)),
        Section("How far to trust it", trust(data)),
        Section("What was asked", (question(data),)),
        Section("Why the others are out", _excluded(data)),
        Section("Prices", prices(data)),
        Section("How to check it", check(data)),
    ]
    return Document(
        kind="Decision record",
        title=f"Decision record: {data['workspace']['name'] or data['collection']}",
        answer=data["answer"]["sentence"],
        lead=tuple(lead(data)),
        sections=tuple(section for section in sections if section.blocks),
        foot=(
            f"Made {moment(data['made_at'])} by {data['made_by']['name']} {data['made_by']['version']}, "
            f"from revision {data['revision']} of the store. The same record as JSON has every stack."
        ),
    )


def moment(written: str) -> str:
    """An ISO time as people read it: ``2026-01-31 09:30 UTC``."""
    day, _, time = written.partition("T")
    return f"{day} {time[:5]} UTC"


def lead(data: Data) -> list[Block]:
    """What follows the answer: how a tie was broken, the three numbers, and what could overturn it."""
    blocks: list[Block] = [Say(data["answer"]["reason"])] if data["answer"]["reason"] else []
    chosen = data["chosen"]
    if chosen is not None:
        blocks.append(tiles(chosen, data["asked"]["measure"], data["asked"]["latency"]))
    doubts = [*data["warnings"], *data["remarks"]]
    if doubts:
        blocks.append(Notes(tuple(Note(words) for words in doubts)))
    return blocks


def tiles(row: Data, measure: str, latency: str) -> Tiles:
    """A stack's three numbers, each with its interval or note and how it was obtained."""
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    spread = (
        f"{text.ms(row['latency_low'])} to {text.ms(row['latency_high'])}"
        if row["latency_low"] is not None
        else ""
    )
    timed = "" if row["latency_n"] is None else text.sample(row["latency_n"])
    return Tiles(
        (
            Tile(
                measure,
                text.score(row["quality"]),
                _joined(interval, text.sample(row["n"])),
                basis(row, "quality"),
            ),
            Tile(
                latency,
                text.ms(row["latency_ms"]),
                _joined(spread, timed, row["latency_note"]),
                basis(row, "latency_ms"),
            ),
            Tile(
                "Cost ($ per 1,000 queries)",
                text.usd(row["cost"], ""),
                _joined(row["cost_note"]),
                basis(row, "cost"),
            ),
        )
    )


def basis(row: Data, name: str) -> str:
    """How a number of a stack was obtained; empty where it is unknown."""
    known = row[name] is not None
    return (row[f"{name.removesuffix('_ms')}_basis"] or "") if known else ""


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def question(data: Data) -> Facts:
    """What was asked, of which workspace."""
    asked, space = data["asked"], data["workspace"]
    golden = space["golden_set"]
    judged = (
        f"{golden['name'] or golden['golden_set_id']}: {golden['judgements']:,} judgements of "
        f"{text.count(golden['queries'], 'query', 'queries')}, "
        f"{'judged by ' + golden['judge'] if golden['judge'] else 'judge not stated'}"
        if golden
        else "none: figures as they were reported"
    )
    origins = ", ".join(f"{count:,} {_ORIGINS[name]}" for name, count in data["runs"]["origins"].items())
    return Facts(
        (
            ("Rule", _RULES[asked["rule"]]),
            ("SLA", _limit(asked["sla_ms"], text.ms, "at most ", asked["latency"])),
            ("Budget", _limit(asked["budget_usd_per_1k"], text.usd, "at most ")),
            ("Quality floor", _limit(asked["min_quality"], text.score, "at least ")),
            ("Latencies count as alike within", text.ms(asked["jitter_ms"])),
            ("Workspace", f"{space['name'] or data['collection']} ({data['collection']})"),
            ("Golden set", judged),
            ("Stacks compared", f"{data['runs']['count']:,} ({origins})"),
            ("Prices", f"price book {data['prices']}"),
        )
    )


def _limit(value: float | None, written: Any, words: str, of: str = "") -> str:  # noqa: ANN401
    if value is None:
        return "no limit"
    return f"{words}{written(value)}" + (f", {of}" if of else "")


def _pareto(data: Data, figure: go.Figure) -> Chart:
    return Chart(
        "pareto",
        figure,
        alt=data["answer"]["sentence"],
        caption="Top left is best. The line is the frontier of what the limits allow; dimmed stacks break a "
        "limit. The ring marks the chosen stack.",
    )


def _finalists(data: Data) -> list[Data]:
    """Chosen, runner-up and the rest of the frontier, each once, with their numbers."""
    rows: dict[str, Data] = {}
    found = [("chosen", data["chosen"]), ("runner-up", data["runner_up"])]
    for status, row in [*found, *(("frontier", each) for each in data["frontier"])]:
        if row is not None and row["run_id"] not in rows:
            rows[row["run_id"]] = {**row, "status": status}
    return list(rows.values())


def _finalist_blocks(data: Data, rows: Sequence[Data]) -> tuple[Block, ...]:
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
        Cell(text.usd(row["cost"], ""), row["cost"], basis(row, "cost")),
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


def _turns(data: Data) -> tuple[Block, ...]:
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


def trust(data: Data) -> tuple[Block, ...]:
    """How sound the evidence is, where it was timed, and what limits the chosen stack."""
    notes = tuple(Note(each["finding"], each["good"]) for each in data["soundness"])
    blocks: list[Block] = [Notes(notes)] if notes else []
    blocks.append(Say(data["environment"]))
    if data["limiting"]:
        blocks.append(Say(f"What limits the chosen stack. {data['limiting']}"))
    return tuple(blocks)


def _excluded(data: Data) -> tuple[Block, ...]:
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
    """Every stack with its three numbers and what became of it.

    Args:
        rows: As `core.views.decision.status_rows` lists them.
        measure: Name of the quality.
    """
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
            Cell(row["status"]),
            Cell(row["stack"]),
            Cell(text.score(row["quality"]), row["quality"]),
            Cell(text.ms(row["latency_ms"]), row["latency_ms"]),
            Cell(text.usd(row["cost"], ""), row["cost"]),
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
    return Cell(_CONSTRAINTS.get(name, name)), Cell(f"{len(rows):,}", len(rows)), Cell(missed)


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


def check(data: Data) -> tuple[Block, ...]:
    """Revision, seed, definition, link and command: what another needs to get the same."""
    made, book = data["revision_made"], data["price_book"]
    written = f", written {moment(made['at'])}: {made['action']}" if made else ""
    facts = (
        ("Revision of the store", f"{data['revision']}{written}"),
        ("Price book", f"{book['name']}, fingerprint {book['digest']}"),
        ("Resampling", f"{data['resamples']:,} resamples, seed {data['seed']}"),
    )
    blocks: list[Block] = [Facts(facts), Say(data["definition"])]
    if data["link"]:
        blocks.append(Link("Open this view of the same data in the dashboard", data["link"]))
    if data["command"]:
        blocks.append(Fold("The same from the command line", (Code(data["command"]),)))
    if data["stack"]:
        made_of = json.dumps(data["stack"], ensure_ascii=False, indent=2)
        blocks.append(Fold("What the chosen stack is made of", (Code(made_of),)))
    return tuple(blocks)
