"""The words shared by record and snapshot: tiles, the question, how to check it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from core.analysis.stack_cost import ASSUMED_PRICE
from core.analysis.workspace.answers import as_name
from core.analysis.workspace.comparable import clock
from core.analysis.workspace.noise import OFF
from core.analysis.workspace.query_sets import WORDS
from core.analysis.workspace.question import Question
from core.analysis.workspace.stacks import runs_in
from core.choices import declared
from core.decide.axes import BESIDE, MOVING
from core.records import BASES
from core.report.page import laid_out
from core.report.summary import changes
from core.report.tables import (
    FINALISTS,
    Data,
    basis,
    costs,
    counted,
    finalists,
    places,
    priced,
    record_tables,
    roles,
    said_in,
    waiting,
)
from core.views import text
from core.views.decision.tiles import Number, Tile
from core.views.words.choice import RULE_WORDS
from core.views.words.judging import graded
from core.views.words.near import HEADING, PROMISING, lacking_table, near_table

if TYPE_CHECKING:
    from core.analysis.workspace.view import View


_COUNT = re.compile(r"(?<![\w.,])\d+(?![\w.,])")
"""A whole number in a note."""
_FORMS = {
    "usual": "usual: no other stack is as good in cost, latency and quality, and better in one beyond noise",
    "weak": "weak: no other stack is better in cost, latency and quality (CLQ paper §3.3)",
}
NO_NOISE = {"in_words": "Not in the percentages: the judge's grades count as the truth."}
DEFAULTS: Mapping[str, object] = {
    name: field.usual
    for name, field in declared(Question).items()
    if field.usual is not None and name != "prices"  # elsewhere the default book may differ
}
"""Default values of the options; others have none."""


def context(data: Data, kind: str, title: str) -> dict[str, Any]:
    """Return the data for the templates of record and snapshot, except charts and further tables."""
    best = finalists(data)
    kinds = (("Latency", "latency_note"), ("Cost", "cost_note"))
    promising = pl.DataFrame(data["promising"], infer_schema_length=None)
    notes = [words for what, note in kinds for words in _noted(best, what, note)]
    return {
        "data": data,
        "heading": data["summary"][0],
        "kind": kind,
        "title": title,
        "tables": {
            **record_tables(data),
            "near": laid_out(near_table(data["near_misses"])) if data["near_misses"] else None,
            "promising": laid_out(lacking_table(promising), FINALISTS) if promising.height else None,
        },
        "tiles": _tiles(data),
        "places": places(data),
        "remarks": [{"finding": words, "good": False} for words in data["remarks"]],
        "doubts": [{"finding": words, "good": False} for words in data["warnings"]],
        "changes": changes(data),
        **_each(data, data["trade"]["called"] if roles(data) else None),
        "ground": _ground(data),
        "asked": _asked(data),
        "checks": _checks(data),
        "made_at": _moment(data["made_at"]),
        "shares": any(row.get("p_best") is not None or row.get("p_sla") is not None for row in best),
        "footnotes": notes,
        "unpriced": ", ".join(
            f"{entry['item']} ({entry['unit'].replace('_', ' ')})" for entry in data["unpriced"]
        ),
        "near_heading": HEADING,
        "promising_heading": PROMISING,
    }


def _each(data: Data, called: Sequence[str] | None) -> dict[str, Any]:
    """Return what is said of the chosen stack, or of both that the heading names, the advised one first.

    Args:
        called: Both in a sentence; None = the heading names one.

    Returns:
        limits (sentences), sound (findings), made_of (heading, components) and ships (begin of its sentence,
        how it is shipped).
    """
    each = [(called[1], "_second"), (called[0], "")] if called else [("", "")]
    shared = [one for one in data["soundness"] if all(one in data[f"soundness{end}"] for _, end in each)]
    # the lead of one over the other stands above, with its interval
    level = (
        [{"good": False, "finding": "Neither of the two is surely better than the other."}] if called else []
    )
    pair = [f"nearest rival, {data['trade'][side]['stack']};" for side in ("chosen", "other") if called]
    own = [
        {**one, "finding": f"{text.capital(words)}: {one['finding'][:1].lower()}{one['finding'][1:]}"}
        for words, end in each
        for one in data[f"soundness{end}"]
        if one not in shared and not any(name in one["finding"] for name in pair)
    ]
    it = {end: f"the stack {words}".replace("stack with the ", "") for words, end in each}
    it |= {} if called else {"": "the chosen stack"}
    held = {name: [end for _, end in each if data[f"{name}{end}"]] for name in ("limiting", "stack", "ship")}
    return {
        "limits": [f"What limits {it[end]}. {data[f'limiting{end}']}" for end in held["limiting"]],
        "sound": [*level, *shared, *own],
        "made_of": [(f"What {it[end]} is made of", data[f"stack{end}"]) for end in held["stack"]],
        "ships": [(f"{text.capital(words)}. " * bool(words), data[f"ship{end}"])
                  for words, end in each if end in held["ship"]],
    }  # fmt: skip


def _noted(rows: Sequence[Data], what: str, note: str) -> Iterator[str]:
    """Yield notes on some stacks, each with the stacks it applies to; those that differ in counts are one."""
    alike: dict[tuple[str, ...], list[Data]] = {}
    for row in rows:
        if row[note]:
            alike.setdefault(tuple(_COUNT.split(row[note])), []).append(row)
    for around, some in alike.items():
        counts = zip(*(map(int, _COUNT.findall(row[note])) for row in some), strict=True)
        spans = [f"{min(n)} to {max(n)}" if min(n) < max(n) else f"{n[0]}" for n in counts]
        words = "".join(f"{words}{span}" for words, span in zip(around, [*spans, ""], strict=True))
        names = text.count(len(some), "stack") if len(some) > 1 else some[0]["stack"]
        yield f"{what} of {names}: {words}."


def _moment(written: str) -> str:
    """Format an ISO time for people: ``2026-01-31 09:30 UTC``."""
    day, _, time = written.partition("T")
    return f"{day} {time[:5]} UTC"


def _tiles(data: Data) -> list[Tile]:
    """Return the numbers of the stacks that the heading names."""
    if data["chosen"] is None:
        return []
    each = [_side(data, data["chosen"], data["slow"])]
    if roles(data):
        each.append(_side(data, data["trade"]["other"], data["slow_second"]))
    return [Tile.of(told) for told in zip(*each, strict=True)]


def _side(data: Data, row: Data, slow: Data | None) -> list[Number]:
    """Return the numbers of a stack.

    Args:
        slow: The duration of its slow searches; None = not asked for.
    """
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    spread = ""
    if row["latency_low"] is not None:
        spread = f"{text.ms(row['latency_low'])} to {text.ms(row['latency_high'])}"
    timed = "" if row["latency_n"] is None else text.sample(row["latency_n"])
    asked, said = data["asked"], said_in(data)
    expected = row["expected_quality"]
    new = text.score(expected), (text.interval(row["expected_low"], row["expected_high"]).strip(),)
    of = clock(data["stack"]["environment"].get("reported"))
    return [
        (
            asked["measure"],
            text.score(row["quality"]),
            (interval, text.sample(row), data["meaning"] or ""),
            basis(row, "quality"),
        ),
        *([] if expected is None else [(f"{asked['measure']} expected on new queries", *new, "")]),
        (
            asked["latency"],
            text.ms(row["latency_ms"]),
            (spread, timed, of, "" if spread and roles(data) else row["latency_note"] or ""),
            basis(row, "latency_ms"),
        ),
        *_slow(slow, "no interval" if roles(data) else ""),
        (
            f"Cost per {said.many} {counted(data)}",
            f"{'≈ ' * (priced(data) == ASSUMED_PRICE and row['cost'] is not None)}{costs(row, said)}",
            (row["cost_note"] or "", waiting(data)),
            priced(data),
        ),
        ("Confidence (PGS)", _share(row["pgs"]), (_repeats(data),), ""),
    ]


def _slow(slow: Data | None, without: str) -> Iterator[Number]:
    """Yield the duration of slow searches, beside the typical one.

    Args:
        without: What stands in place of an interval; "" = why there is none.
    """
    if slow is not None:
        ends = "" if slow["low"] is None else f"{text.ms(slow['low'])} to {text.ms(slow['high'])}"
        rest = text.sample(slow["n"]) if ends else without or slow["note"] or ""
        yield "Latency p95 (one in 20 takes longer)", text.ms(slow["ms"]), (ends, rest), ""


def _ground(data: Data) -> str:
    """Describe the comparison: ``Python documentation: 18 stacks compared, 12 within the limits.``."""
    stacks = data["stacks"]
    left = sum(row["status"] != "excluded" for row in stacks)
    space = data["workspace"]["name"] or data["collection"]
    golden = data["workspace"]["golden_set"]
    held = data["workspace"]["passages"]
    space += f" ({text.count(held, 'passage')})" if held else ""
    said = f"{space}: {text.count(len(stacks), 'stack')} compared, {left:,} within the limits."
    if not golden:
        return said
    check = data.get("check_grades")
    return " ".join(filter(None, (said, graded(golden), check and f"{check}.", data.get("pass_mark"))))


def _share(value: float | None) -> str:
    return text.UNKNOWN if value is None else text.percent(value)


def _repeats(data: Data) -> str:
    """Say which resamples a PGS counts, or why there is none."""
    if data["chosen"]["pgs"] is None:
        return str(data["chosen"]["pgs_unknown"])
    return f"{data['resamples']:,} resamples"


def _asked(data: Data) -> tuple[tuple[str, str], ...]:
    """Return the question, and its workspace."""
    asked, space = data["asked"], data["workspace"]
    origins = ", ".join(f"{count:,} {BASES[name]}" for name, count in data["runs"]["origins"].items())
    floor = ("Quality floor", "at least ") if asked["better"] == "higher" else ("Quality cap", "at most ")
    return (
        ("Rule", RULE_WORDS[asked["rule"]]),
        ("SLA", _limit(asked["sla_ms"], text.ms, "at most ", asked["latency"])),
        (
            "Budget",
            _limit(asked["budget_usd_per_1k"], said_in(data).usd, "at most ", _costed(data["question"])),
        ),
        (floor[0], _limit(asked["min_quality"], text.score, floor[1])),
        *(
            (
                axis.limit_word.capitalize(),
                _limit(asked[axis.limit], text.score, f"at {axis.side} ", asked[axis.key] or ""),
            )
            for axis in BESIDE
        ),
        *(
            (
                axis.limit_word.capitalize(),
                _limit(axis.number(asked.get(axis.limit)), axis.written, "at most "),
            )
            for axis in MOVING
            if asked.get(axis.limit) is not None
        ),
        ("Latencies count as alike within", asked["jitter"]),
        ("Frontier", _FORMS[asked["frontier"]]),
        ("Workspace", f"{space['name'] or data['collection']} ({data['collection']})"),
        ("Golden set", _judged(space["golden_set"])),
        ("Judge noise", (data["judge_noise"] or NO_NOISE)["in_words"]),
        ("Stacks compared", f"{data['runs']['count']:,} ({origins})"),
        ("Prices", f"price book {data['prices']}"),
    )


def _costed(question: Data) -> str:
    """Return the unit that the cost is per, if it isn't a query."""
    per = question.get("cost_per", "query")
    if per == "query":
        return ""
    right = f" (scored {question['correct_from']:g} or more)" if per == "correct answer" else ""
    return f"per {per}{right}"


def _judged(golden: Data | None) -> str:
    if golden is None:
        return "none: figures as they were reported"
    return (
        f"{golden['name'] or golden['golden_set_id']}: {golden['judgements']:,} judgements of "
        f"{text.count(golden['queries'], 'query')}, "
        f"{'judged by ' + golden['judge'] if golden['judge'] else 'judge not stated'}"
    )


def _limit(value: float | None, written: Any, words: str, of: str = "") -> str:  # noqa: ANN401
    if value is None:
        return "no limit"
    return f"{words}{written(value)}" + (f", {of}" if of else "")


def _checks(data: Data) -> tuple[tuple[str, str], ...]:
    """Return revision, prices and seed: what is needed to reproduce the result."""
    revision, book, drawn = data["revision_made"], data["price_book"], data["resamples"]
    written = f", written {_moment(revision['at'])}: {revision['action']}" if revision else ""
    return (
        ("Revision of the store", f"{data['revision']}{written}"),
        ("Price book", f"{book['name']}, fingerprint {book['digest']}"),
        (
            "Resampling",
            f"{drawn:,} resamples, seed {data['seed']}" if drawn else "none: no results per query",
        ),
    )


def question(view: View) -> dict[str, object]:
    """Return a workspace's question."""
    limits = view.constraints
    model = view.latency.generation
    return {
        "collection": view.scope.collection_id,
        "golden_set": view.scope.golden_set_id,
        "run": list(named(view, "run_id")),
        "measure": view.quality.name,
        "sla_ms": limits.sla_ms,
        "on": view.latency.percentile,
        "latency": view.latency.scope,
        "budget": limits.budget,
        "min_quality": limits.min_quality,
        **limits.beside,
        "rule": view.rule,
        "reader": as_name(view.scope.answering.reader),
        "scorer": as_name(view.scope.answering.scorer),
        "cost_per": view.scope.answering.per,
        "correct_from": view.scope.answering.least,
        "judged": WORDS.get(view.scope.judging.least, DEFAULTS["judged"]),
        "jitter_ms": limits.jitter_ms,
        "indifference": view.indifference,
        "take": view.take,
        "incumbent": view.incumbent,
        "move": view.terms.said(),
        "prices": view.book.name,
        "price": list(view.book.changes),
        "seed": view.seed,
        "every_golden_set": view.scope.judging.everywhere,
        "cluster_by": view.scope.cluster_by,
        "judge_noise": view.noise or OFF,
        "together": bool(view.compared.sentences and not narrowed(view)),
        "generation": None if model is None else asdict(model),
    }


def narrowed(view: View) -> bool:
    """Return whether incomparable parts of the workspace were left out."""
    scope = view.scope
    return bool(scope.apart or scope.shared or scope.judging or view.latency.machine)


def named(view: View, column: str) -> tuple[str, ...]:
    """Return a workspace's chosen runs from a column of the run table; empty if all of the collection are."""
    chosen = set(view.scope.run_ids)
    whole = view.snapshot.runs(view.scope.collection_id)
    if not chosen or chosen == set(whole["run_id"]):
        return ()
    return tuple(runs_in(view.snapshot, view.scope)[column])
