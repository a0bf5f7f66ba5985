"""The decision record as a document: the answer first, then what it rests on and what speaks against it."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from core.report.document.blocks import (
    Block,
    Chart,
    Code,
    Document,
    Facts,
    Fold,
    Link,
    Note,
    Notes,
    Say,
    Section,
    Tile,
    Tiles,
)
from core.report.parts import Data, basis, excluded, finalists, near, prices, promising, turns
from core.views import text
from core.views.decision.near import HEADING
from core.views.decision.promising import HEADING as PROMISING
from core.views.theme import best_corner

_RULES = {
    "quality": "the best quality within the limits",
    "cost": "the lowest cost within the limits",
    "latency": "the lowest latency within the limits",
}
_FORMS = {
    "usual": "usual: no other stack is at least as good in cost, latency and quality and better in one",
    "weak": "weak: no other stack is better in cost, latency and quality (CLQ paper §3.3)",
}
_ORIGINS = {"run": "measured here", "import": "imported", "published": "published"}


def record_document(data: Data, pareto: go.Figure) -> Document:
    """Put a record into words, tables and charts."""
    sections = [
        Section("All stacks", (_pareto(data, pareto),)),
        Section(HEADING, near(data)),
        Section(PROMISING, promising(data)),
        Section("The finalists", finalists(data)),
        Section("What would turn the choice", turns(data)),
        Section("How far to trust it", trust(data)),
        Section("What was asked", (question(data),)),
        Section("Why the others are out", excluded(data)),
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
                text.cost_of(row, ""),
                _joined(row["cost_note"]),
                basis(row, "cost"),
            ),
        )
    )


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
            _quality_limit(asked),
            ("Harm cap", _limit(asked["max_harm"], text.score, "at most ", asked["harm"] or "")),
            ("Latencies count as alike within", asked["jitter"]),
            ("Frontier", _FORMS[asked["frontier"]]),
            ("Workspace", f"{space['name'] or data['collection']} ({data['collection']})"),
            ("Golden set", judged),
            ("Stacks compared", f"{data['runs']['count']:,} ({origins})"),
            ("Prices", f"price book {data['prices']}"),
        )
    )


def _quality_limit(asked: Data) -> tuple[str, str]:
    """The floor, or the cap of a measure that is better the lower."""
    if asked["better"] == "higher":
        return "Quality floor", _limit(asked["min_quality"], text.score, "at least ")
    return "Quality cap", _limit(asked["min_quality"], text.score, "at most ")


def _limit(value: float | None, written: Any, words: str, of: str = "") -> str:  # noqa: ANN401
    if value is None:
        return "no limit"
    return f"{words}{written(value)}" + (f", {of}" if of else "")


def _pareto(data: Data, figure: go.Figure) -> Chart:
    return Chart(
        "pareto",
        figure,
        alt=data["answer"]["sentence"],
        caption=f"{best_corner(higher=data['asked']['better'] == 'higher')} The line is the frontier of what "
        "the limits allow; dimmed stacks break a limit. The ring marks the chosen stack.",
    )


def trust(data: Data) -> tuple[Block, ...]:
    """How sound the evidence is, where it was timed, and what limits the chosen stack."""
    notes = tuple(Note(each["finding"], each["good"]) for each in data["soundness"])
    blocks: list[Block] = [Notes(notes)] if notes else []
    blocks.append(Say(data["environment"]))
    if data["limiting"]:
        blocks.append(Say(f"What limits the chosen stack. {data['limiting']}"))
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
