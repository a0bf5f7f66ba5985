"""The sentences and small tables of page Add results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from core.importers import Import
from core.importers.read.text import shown
from core.importers.stripping import STAR
from core.jobs import State
from core.store import Snapshot
from core.views import text
from core.views.add.matching import Match, Unmatched

EMPTY = "Tables, TREC, BEIR, ranx, MTEB, AutoRAG, RAGAS, DeepEval, traces…; plain, .gz or .zip."
NOTHING_YET = "Nothing is written before you press the button."
BACKGROUND = "Large files are read in the background; you may leave the page, and cancelling changes nothing."
POLICY: Mapping[Unmatched, str] = {
    "refuse": "stop and say so",
    "own": "make a new workspace",
    "take": "take it as it is",
}
"""What to do where no id exists in the workspace, asked beforehand of what is read in the background."""
STATES: Mapping[State, str] = {
    State.RUNNING: "is under way",
    State.FINISHED: "is finished",
    State.FAILED: "was refused",
    State.CANCELLED: "was cancelled",
    State.KILLED: "ended early",
}
PAGES: Mapping[str, str] = {
    "decision": "See the decision",
    "headroom": "Headroom",
    "queries": "Queries",
    "golden": "Golden sets",
    "library": "Library",
    "add": "Add rankings",
}
_TABLES: Mapping[str, tuple[str, str]] = {
    "collections": ("collection", "collections"),
    "golden sets": ("golden set", "golden sets"),
    "runs": ("stack", "stacks"),
    "queries": ("question", "questions"),
    "passages": ("passage", "passages"),
    "chunks": ("chunk", "chunks"),
    "judgements": ("judgement", "judgements"),
    "spans": ("judged span", "judged spans"),
    "rankings": ("ranked passage", "ranked passages"),
    "timings": ("timing", "timings"),
    "usage": ("usage record", "usage records"),
    "signals": ("figure of one query", "figures of one query each"),
    "aggregates": ("figure over all queries", "figures over all queries"),
    "answers": ("answer", "answers"),
}
"""What the rows of a table are called: one, many."""
_NAMING: Sequence[str] = ("runs", "passages", "queries", "golden sets")
_FIELDS = {
    "as": "Format under Options",
    "label": "Name under Options",
    "collection": "Goes into",
    "golden-set": "Golden set under Options",
    "split": "Split above",
    "sheet": "Sheet above",
    "unmatched": "the buttons below",
    "skip": "Leave out",
    "all-tasks": "Tasks above",
}
"""Option of the command → what the page calls it."""
_OPTION = re.compile(r"\(--([a-z-]+)[^)]*\)")
_QUOTED = re.compile(r"`([^`]*)`")
_SHOWN = 3


def worded(what: str, rows: int) -> str:
    """A number of rows of a table in words: ``1 stack``, ``40 ranked passages``."""
    return text.count(rows, *_TABLES.get(what, (what, what)))


def on_page(message: str) -> str:
    """A message in the words of the page: fields for options of the command, quotation marks for ticks."""

    def field(option: re.Match[str]) -> str:
        name = _FIELDS.get(option[1])
        return f"({name})" if name else f"{option[0][:-1]} on the command line)"

    return _QUOTED.sub(r"“\1”", _OPTION.sub(field, message))


def taken(made: Import) -> pl.DataFrame:
    """What will be taken, per table: what, rows."""
    names = [_TABLES.get(table, ("", table))[1] for table in made.taken]
    return pl.DataFrame({"what": names, "rows": list(made.taken.values())})


def makes(made: Import) -> pl.DataFrame:
    """What the store will list: kind, name, collection, details; runs first."""
    rows = [("stack", run.label, run.collection_id, "") for run in made.runs]
    rows += [
        ("golden set", golden.name, golden.collection_id, f"grades: {golden.mapping}")
        for golden in made.golden_sets
    ]
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("kind", "name", "collection", "details"), pl.String), orient="row"
    )


def left_out(made: Import) -> pl.DataFrame:
    """What will be left out: how many, reason, first place."""
    rows = [(lost.count, on_page(lost.reason), lost.first) for lost in made.left_out]
    schema = {"how_many": pl.Int64, "reason": pl.String, "first": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def things(made: Import) -> str:
    """What people call the whole of an import: ``4 stacks``, ``40 passages, 8 questions, 1 golden set``."""
    return ", ".join(worded(what, made.taken[what]) for what in _whole(made))


def _whole(made: Import) -> list[str]:
    """The kinds that an import is named by; of one with none of them, the first kind that it has."""
    taken = made.taken
    usual = [what for what in _NAMING if what in taken]
    return usual or [what for what in taken if what != "collections"][:1] or list(taken)


def adds(made: Import) -> str:
    """What the button will do, in a sentence, and what is left out, in another."""
    named = {*_whole(made), "collections"}
    more = ", ".join(worded(what, rows) for what, rows in made.taken.items() if what not in named)
    return f"Adds {things(made)}{f' with {more}' if more else ''}.{_left(made)}"


def _left(made: Import) -> str:
    """What is left out, the first few by name."""
    lost = [f"{each.count:,} × {each.reason}" if each.count > 1 else each.reason for each in made.left_out]
    more = f" and {len(lost) - _SHOWN} more kinds" if len(lost) > _SHOWN else ""
    return f" Left out: {on_page('; '.join(lost[:_SHOWN]))}{more}." if lost else ""


def summary(made: Import) -> list[str]:
    """What was read as what, what was left out and what was decided, each a line."""
    read = [f"{each.name}: {each.format}" for each in made.detected[:20]]
    lost = [f"Left out: {each.count:,} {each.reason} ({each.first})" for each in made.left_out[:20]]
    return [on_page(line) for line in (*read, *lost, *made.notes[:20])]


def matched(found: Sequence[Match]) -> dict[str, bool]:
    """How far ids exist, a line for each collection, and whether all do.

    For example ``225 of 225 queries (100 %) · 3,040 of 3,050 passages (99 %) exist in cranfield``.
    """
    places: dict[str, list[Match]] = {}
    for match in found:
        places.setdefault(match.where, []).append(match)
    return {
        f"{' · '.join(match.share for match in some)} {where}": all(not match.foreign for match in some)
        for where, some in places.items()
    }


def sides(match: Match) -> str:
    """Ids of both sides: ``yours: Q1, Q2 · there: 1, 2``."""
    return f"yours: {', '.join(map(shown, match.foreign))} · there: {', '.join(map(shown, match.held))}"


def strip_label(found: Sequence[Match]) -> str:
    """What the button says that takes off what ids have more: ``Strip “Q” (60 match)``."""
    strips = [match for match in found if match.strip]
    marks = " and ".join(f"“{(match.strip or '').replace(STAR, '…').strip('…')}”" for match in strips)
    return f"Strip {marks} ({' + '.join(f'{match.fit:,}' for match in strips)} match)"


def missing_parts(snapshot: Snapshot, made: Import, collection_id: str) -> list[str]:
    """What the store will still lack before every page can show the import, each a clause."""
    if "rankings" not in made.frames:
        return []
    judged = bool(made.golden_sets) or not snapshot.golden_sets(collection_id).is_empty()
    lacks = {
        "judgements (quality stays unknown until you add qrels)": not judged,
        "latencies (on the chart these stacks stand apart)": (
            "timings" not in made.frames and not _reports(made, "latency_p")
        ),
        "usage (their cost stays unknown)": "usage" not in made.frames and "aggregates" not in made.frames,
    }
    return [words for words, lacking in lacks.items() if lacking]


def _reports(made: Import, measure: str) -> bool:
    """Whether results over all queries hold a measure whose name begins so."""
    figures = made.frames.get("aggregates")
    if figures is None:
        return False
    return not figures.lazy().filter(pl.col("measure").str.starts_with(measure)).collect().is_empty()


def next_steps(snapshot: Snapshot, collection_id: str | None, came: int = 1) -> tuple[tuple[str, ...], str]:
    """Pages that show something of a workspace, the best first, and what is still needed or came besides.

    Args:
        snapshot: The store after the import.
        collection_id: The workspace; None if the import has none.
        came: How many collections came with the import.
    """
    runs = snapshot.runs().filter(collection_id=collection_id or "")
    judged = not snapshot.golden_sets(collection_id).is_empty()
    if runs.is_empty():
        hint = "This workspace has no stack yet: add the rankings of one next."
        return ("add", *(("golden",) if judged else ()), "library"), hint
    ranked = bool(runs["has_rankings"].any())
    hint = f"{came} workspaces came; the list in the sidebar has the others." if came > 1 else ""
    between = (*(("headroom",) if ranked and judged else ()), *(("queries",) if ranked else ()))
    return ("decision", *between, "library"), hint
