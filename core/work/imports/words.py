"""The sentences and small tables of page Add results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from core.importers import (
    ROLES,
    Import,
    NamedValue,
    Preview,
    RowMeaning,
    TableAs,
    named,
    recognised,
    stacks_of,
)
from core.importers.meaning import PLACE_OF, mapped
from core.importers.read.number_format import Open, OpenNumbersError, Reading
from core.importers.read.text import shown
from core.importers.rewriting import ADD, STAR, in_words
from core.jobs import State
from core.number_format import count
from core.store import Snapshot
from core.tables import frame
from core.work.imports.matching import Match, Unmatched

EMPTY = "Tables, TREC, BEIR, ranx, MTEB, AutoRAG, RAGAS, DeepEval, traces…; plain or packed."
DROP = "Drop files of results below: nothing is stored before you confirm."
NOTHING_YET = "Nothing is written before you press the button."
BACKGROUND = "Large files are read in the background; you may leave the page, and cancelling changes nothing."
POLICY: Mapping[Unmatched, str] = {
    "refuse": "stop and say so",
    "own": "make a new workspace",
    "take": "take it as it is",
}
"""Choices if no id exists in the workspace, requested in advance for files read in the background."""
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
    "criteria": ("criterion of a reranker", "criteria of rerankers"),
    "ratings": ("rating of a passage", "ratings of passages"),
    "signals": ("figure of one query", "figures of one query each"),
    "aggregates": ("figure over all queries", "figures over all queries"),
    "answers": ("answer", "answers"),
    "answer_scores": ("score of an answer", "scores of answers"),
    "gold_answers": ("right answer", "right answers"),
    "passage_metadata": ("passage with metadata", "passages with metadata"),
    "query_filters": ("filter of a question", "filters of questions"),
    "fields": ("declared field", "declared fields"),
    "clusters": ("group of a question", "groups of questions"),
    "diagnostics": ("figure of a diagnosis", "figures of diagnoses"),
}
"""Names of the rows of a table: one, many."""
_NAMING: Sequence[str] = ("runs", "passages", "queries", "golden sets")
_FIELDS = {
    "as": "Format under Options",
    "label": "Name under Options",
    "collection": "Import into",
    "golden-set": "Golden set under Options",
    "split": "Split above",
    "sheet": "Sheet above",
    "unmatched": "the buttons below",
    "match": "the button below",
    "skip": "Leave out",
    "all-tasks": "Tasks above",
    "column": "the list above the column",
    "without": "choose “left out” above it",
    "numbers": "choose its measure with “percent” above it",
    "if-changed": "asked below",
    "row": "One row is, above",
}
"""Option of the command → its name on the page."""
_OPTION = re.compile(r"\(--([a-z-]+)[^)]*\)")
_QUOTED = re.compile(r"`([^`]*)`")
_ASSUMED = ": taken as "
_SHOWN = 3
ROWS: Mapping[RowMeaning, str] = {"stack": "a stack", "query": "a query", "passage": "a ranked passage"}
LEFT_OUT = ""
_OF = " of "
_QUALITY = "quality: "
_STACK = (
    "run", "quality@10", "nDCG@10", "RA-nWG@10", "R@10", "P@10", "RR@10", "F1@10", "latency_p50_ms",
    "latency_p50_s", "latency_p95_ms", "latency_p95_s", "latency_p99_ms", "latency_mean_ms", "usd_per_query",
    "usd_per_1k", "usd_per_1m", "n", "embedder", "dim", "mode", "index", "reranker", "candidates",
)  # fmt: skip
_COSTS = ("latency_ms", "latency_s", "retrieve_ms", "rerank_ms", "input_tokens", "output_tokens", "item")
_CHOICES: Mapping[RowMeaning, tuple[str, ...]] = {
    "stack": _STACK,
    "query": ("run", "query_id", *_COSTS, "repeat", "answer", "k", "grade", "score", "scale", "judge"),
    "passage": (
        "run",
        "query_id",
        "passage_id",
        "rank",
        "score",
        "grade",
        "judge",
        "stage",
        *PLACE_OF,
        *_COSTS,
    ),
}
_PER = {1000.0: "query", 1.0: "1,000 queries", 0.001: "million queries"}
_ONE = {
    "run": "name of the stack", "n": "number of queries", "item": "what is priced (model)",
    "source": "document of the passage", "passage_text": "text of the passage",
    "start_char": "its first character", "end_char": "its end", "heading": "its heading",
}  # fmt: skip
OF_QUERIES = ("nDCG@10", "RA-nWG@10", "R@10", "P@10", "RR@10", "latency_ms", "latency_s", "usd_per_query")
"""Meanings offered for the cells of a table with a column for each stack."""


def worded(what: str, rows: int) -> str:
    """Return a number of rows of a table in words: ``1 stack``, ``40 ranked passages``."""
    return count(rows, *_TABLES.get(what, (what, what)))


def on_page(message: str) -> str:
    """Rephrase a message for the page.

    It refers to fields instead of options of the command, and uses quotation marks instead of backticks.
    """

    def field(option: re.Match[str]) -> str:
        name = _FIELDS.get(option[1])
        return f"({name})" if name else f"{option[0][:-1]} on the command line)"

    return _QUOTED.sub(r"“\1”", _OPTION.sub(field, message))


def open_numbers(problem: OpenNumbersError) -> str:
    """Ask how to read ambiguous numbers."""
    which = "these columns" if len(problem.columns) > 1 else "this column"
    return f"How are the numbers of {which} of {problem.name} written?"


def read_as(column: Open, way: Reading) -> str:
    """Return the label of the button that reads a column in one way: its first cells in that reading."""
    return f"Read as {' · '.join(column.ways[way])} ({column.says(way)})"


def taken(imported: Import) -> pl.DataFrame:
    """Count the rows to import, per table: what, rows."""
    names = [_TABLES.get(table, ("", table))[1] for table in imported.taken]
    return pl.DataFrame({"what": names, "rows": list(imported.taken.values())})


def makes(imported: Import) -> pl.DataFrame:
    """List the resulting items in the store: kind, name, collection, details; runs first."""
    rows = [("stack", run.label, run.collection_id, "") for run in imported.runs]
    rows += [
        ("golden set", golden.name, golden.collection_id, f"grades: {golden.mapping}")
        for golden in imported.golden_sets
    ]
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("kind", "name", "collection", "details"), pl.String), orient="row"
    )


def left_out(imported: Import) -> pl.DataFrame:
    """List what will be left out: count, reason, first place."""
    rows = [(lost.count, on_page(lost.reason), lost.first) for lost in imported.left_out]
    schema = {"how_many": pl.Int64, "reason": pl.String, "first": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def things(imported: Import) -> str:
    """Summarise an import: ``4 stacks``, ``40 passages, 8 questions, 1 golden set``."""
    return ", ".join(worded(what, imported.taken[what]) for what in _whole(imported))


def _whole(imported: Import) -> list[str]:
    """Return the kinds that describe an import; without any of them, the first kind that it has."""
    taken = imported.taken
    usual = [what for what in _NAMING if what in taken]
    return usual or [what for what in taken if what != "collections"][:1] or list(taken)


def adds(imported: Import) -> str:
    """Describe the button's effect in a sentence, and what is left out in another."""
    named = {*_whole(imported), "collections"}
    more = ", ".join(worded(what, rows) for what, rows in imported.taken.items() if what not in named)
    adding = f"Adds {things(imported)}{f' with {more}' if more else ''}."
    lost = [
        f"{loss.count:,} × {loss.reason}" if loss.count > 1 else loss.reason for loss in imported.left_out
    ]
    more = f" and {count(len(lost) - _SHOWN, 'more kind')}" if len(lost) > _SHOWN else ""
    return f"{adding} Left out: {on_page('; '.join(lost[:_SHOWN]))}{more}." if lost else adding


def assumptions(imported: Import) -> str:
    """List assumptions about gaps in the files, in the notes' words, or return "" if there are none."""
    notes = [note for note in imported.notes if _ASSUMED in note]
    more = f" And {count(len(notes) - _SHOWN, 'more assumption')}." if len(notes) > _SHOWN else ""
    return on_page(" ".join(notes[:_SHOWN])) + more


def waits(files: Sequence[str], *, changed: bool) -> str:
    """Return the question to answer before anything can be added, or "" if none is open."""
    if files:
        verb = "wait" if len(files) > 1 else "waits"
        return f" {', '.join(files)} {verb} for you."
    return " First say what becomes of what the store has already." if changed else ""


def summary(imported: Import) -> list[str]:
    """Describe how the files were read, what was left out and what was decided, one line each."""
    read = [f"{file.name}: {file.format}" for file in imported.detected[:20]]
    lost = [f"Left out: {loss.count:,} {loss.reason} ({loss.first})" for loss in imported.left_out[:20]]
    return [on_page(line) for line in (*read, *lost, *imported.notes[:20])]


def matched(matches: Sequence[Match]) -> dict[str, bool]:
    """Describe how far ids exist, a line for each collection, and whether all do.

    For example ``225 of 225 queries (100 %) · 3,040 of 3,050 passages (99 %) exist in cranfield``.
    """
    places: dict[str, list[Match]] = {}
    for match in matches:
        places.setdefault(f"{match.where}{match.alike}", []).append(match)
    return {
        f"{' · '.join(match.share for match in some)} {where}": all(not match.foreign for match in some)
        for where, some in places.items()
    }


def sides(match: Match) -> str:
    """Return ids of both sides: ``yours: Q1, Q2 · there: 1, 2``; for an id on both sides the two texts."""
    if match.other_text:
        return match.other_text
    return f"yours: {', '.join(map(shown, match.foreign))} · there: {', '.join(map(shown, match.held))}"


def strip_label(matches: Sequence[Match]) -> str:
    """Return the label of the button that adapts ids to the workspace: ``Strip “Q” (60 match)``."""
    strips = [match for match in matches if match.strip]
    plain = all(STAR in (match.strip or "") and not (match.strip or "").startswith(ADD) for match in strips)
    said = [in_words(match.strip or "") for match in strips]
    marks = " and ".join(word.removeprefix("without ") if plain else word for word in said)
    how = "Strip" if plain else "Write ids"
    return f"{how} {marks} ({' + '.join(f'{match.fit:,}' for match in strips)} match)"


def missing_parts(snapshot: Snapshot, imported: Import, collection_id: str) -> list[str]:
    """List what the store will still lack before every page can show the import, each as a clause."""
    if "rankings" not in imported.frames:
        return []
    judged = bool(imported.golden_sets) or not snapshot.golden_sets(collection_id).is_empty()
    figures = imported.frames.get("aggregates", frame("aggregates", [])).lazy()
    timed = not figures.filter(pl.col("measure").str.starts_with("latency_p")).collect().is_empty()
    lacks = {
        "judgements (quality stays unknown until you add qrels)": not judged,
        "latencies (on the chart these stacks stand apart)": "timings" not in imported.frames and not timed,
        "usage (their cost stays unknown)": "usage" not in imported.frames
        and "aggregates" not in imported.frames,
    }
    return [words for words, lacking in lacks.items() if lacking]


def unranked(imported: Import) -> str:
    """Warn of results of stacks without any quality, or return "" if they have one."""
    figures = imported.frames.get("aggregates")
    if figures is None or imported.frames.keys() & {"rankings", "signals", "answer_scores"}:
        return ""
    measures = figures.lazy().select(pl.col("measure").unique()).collect()["measure"]
    if any(not measure.startswith(("latency_", "usd_")) for measure in measures):
        return ""
    return (
        "No quality column: Decision cannot rank these stacks. Add one, such as nDCG@10, or choose it above."
    )


def next_steps(snapshot: Snapshot, collection_id: str | None, came: int = 1) -> tuple[tuple[str, ...], str]:
    """List pages with something to show for a workspace, the best first, and what else is needed or came.

    Args:
        collection_id: The workspace; None if the import has none.
        came: Number of collections in the import.
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


def choices(row: RowMeaning | None, known: Mapping[str, str], column: str) -> list[str]:
    """Return the meanings to choose from for a column, the recognised one among them; `LEFT_OUT` first.

    Args:
        row: Meaning of a row; None = unknown yet.
    """
    usual = (
        _CHOICES[row]
        if row
        else tuple(dict.fromkeys(choice for some in _CHOICES.values() for choice in some))
    )
    own = known.get(column, LEFT_OUT)
    value = named(own, column) if own else None
    scaled = [own.removesuffix(" %") if own.endswith(" %") else f"{own} %"] if value and value.k else []
    return list(dict.fromkeys((LEFT_OUT, own, *scaled, *usual)))


def words(meaning: str) -> str:
    """Describe a meaning for people, with its unit."""
    if not meaning:
        return "left out"
    if meaning in ROLES:
        return _ONE.get(meaning, ROLES[meaning].title.split(" (")[0].lower())
    measure, of, stack = meaning.partition(_OF)
    if of and named(measure, measure):
        return f"{words(measure).removeprefix(_QUALITY)}{_OF}{stack}"
    value = named(meaning, meaning)
    return _ONE.get(meaning, meaning.replace("_", " ")) if value is None else _of_numbers(value)


def meant(typed: str, options: Sequence[str]) -> str:
    """Return the option that a typed text matches, by its words or a part of them; otherwise the text."""
    asked = typed.strip().casefold()
    said = {option: (option.casefold(), words(option).casefold()) for option in options}
    same = [option for option, of in said.items() if asked in of]
    near = [option for option, of in said.items() if any(asked in each for each in of)]
    if typed in same or (not same and named(typed, typed) is not None):
        return typed
    return next(iter([*same, *near]), typed)


def _of_numbers(value: NamedValue) -> str:
    stage = "" if value.stage in (None, "total") else f"{value.stage} "
    if value.measure == "ms" or value.measure.startswith("latency_"):
        quantile = value.measure.removeprefix("latency_").replace("ms", "")
        return f"{stage}latency {quantile}, {'s' if value.factor != 1 else 'ms'}".replace(" ,", ",")
    if value.measure == "usd_per_1k":
        return f"{stage}$ per {_PER[value.factor]}"
    name = value.name.removesuffix(" %")
    return f"{'' if name.startswith('quality') else _QUALITY}{name}{', percent' if value.factor != 1 else ''}"


def columns_of(preview: Preview, row: RowMeaning | None) -> dict[str, str]:
    """Return column → recognised meaning, for rows of this kind."""
    if row == preview.row:
        known = {column: meaning for meaning, column in preview.mapping.items()}
        return known | {column: f"{measure}{_OF}{stack}" for column, (measure, stack) in preview.grid.items()}
    meanings = recognised(preview.columns, preview.rows, TableAs(row=row), preview.name)
    return {column: meaning for meaning, column in meanings.items()}


def stack_columns(preview: Preview, row: RowMeaning | None) -> list[str]:
    """Find columns of a table that may each hold a stack's results, or [] if it isn't such a table."""
    if row not in (None, "query") or preview.format != "table" or preview.grid:
        return []
    return stacks_of(preview.columns, preview.rows, preview.name)


def said(
    preview: Preview, row: RowMeaning | None, chosen: Mapping[str, str], cells: str | None = None
) -> TableAs | None:
    """Compare a visitor's choices for a table with the recognised ones; None if all are the same.

    Args:
        chosen: Column → meaning, as selected on the page.
        cells: Content of the columns without a meaning, one stack each; None = they are not stacks.
    """
    known = columns_of(preview, row)
    columns = {
        meaning: column for column, meaning in chosen.items() if meaning and known.get(column) != meaning
    }
    runs = [column for column, meaning in chosen.items() if meaning == "run"]
    if len(runs) > 1:
        columns |= mapped(("run", column) for column in runs)
    without = frozenset(column for column, meaning in chosen.items() if not meaning and column in known)
    if cells:
        columns[cells] = "*"
    if not columns and not without and row == preview.row:
        return None
    return TableAs(columns, row, without)


def twice(chosen: Mapping[str, str]) -> list[str]:
    """Return meanings that several columns have, in words; a stack's name may be in several columns."""
    meant = [meaning for meaning in chosen.values() if meaning not in (LEFT_OUT, "run")]
    return [words(meaning) for meaning in dict.fromkeys(meant) if meant.count(meaning) > 1]
