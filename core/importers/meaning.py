"""Meaning of all columns of a table together: what a row is, and what it can and cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from core.errors import InputError
from core.importers.naming import (
    AXES,
    OF_ANSWERS,
    ROLES,
    USD_PER_1K,
    WHOLE_AXES,
    NamedValue,
    is_share,
    named,
    normal,
    once,
    priced_otherwise,
    role_of,
    usage_of,
)
from core.importers.read.number_format import READINGS, NumberKind, Reading
from core.importers.read.text import listed, no_column, shown
from core.importers.report import AS_YOU_WISH, UNKNOWN
from core.importers.words import MODELS, NAMES

RowMeaning = Literal["stack", "query", "passage"]
ROW_OF: Mapping[str, RowMeaning] = {
    "aggregates": "stack", "costs": "query", "answers": "query", "rankings": "passage",
    "judgements": "passage",
}  # fmt: skip
"""Kind of a table → what a row of it is."""
_ONLY_ANSWERS = ("answer", "k", "scale", "reader", "prompt", "temperature", "answer_mode", "pass")
_NUMBERS = ("score", "temperature", "value")
_WHOLE = ("rank", "grade", "n", "k", "repeat", "pass")
_INDEX = re.compile(r"(?:unnamed: \d+|level_\d+)?", re.IGNORECASE)
_OF_COSTS = frozenset({"run", "query_id", "repeat", "measured_at"})
_ROLES_OF: Mapping[str, frozenset[str]] = {
    "aggregates": frozenset({"run", "n", "measure", "value"}),
    "costs": _OF_COSTS | {"measure", "value", "cluster"},
    "answers": _OF_COSTS | {*_ONLY_ANSWERS, "grade", "score", "judge", "cluster"},
    "rankings": _OF_COSTS | {"passage_id", "rank", "score", "stage"},
    "judgements": frozenset({"query_id", "passage_id", "grade", "judge"}),
}
_WORDS: Mapping[str, str] = {
    "aggregates": "results of stacks", "costs": "times and usage of queries", "answers": "answers",
    "rankings": "rankings", "judgements": "judgements",
}  # fmt: skip
_BELOW: Mapping[RowMeaning, tuple[str, ...]] = {
    "stack": ("query_id", "passage_id", "answer", "grade", "rank", "stage"), "query": ("passage_id", "rank"),
    "passage": (),
}  # fmt: skip
"""Roles that a kind of row cannot have, whatever its columns are called."""
_FURTHER = re.compile(r"run [2-9]\d*|run 1\d+")  # Columns that name the stack together with "run"
_USUAL_K = 10
_OF_TREC_EVAL = re.compile(r"recip_rank|(?:ndcg|map)_cut_\d+")  # Columns explained only by its names
_OF_WHOLE_LISTS = {"map", "recip_rank", "ndcg"}  # Its measures over the whole list, without a K
_OFFERED = tuple(role for role in ROLES if role not in _ONLY_ANSWERS)
_SUCH_AS = "nDCG@10, latency_p95_ms, usd_per_query"
_NAMES = {
    "algorithm",
    "experiment",
    "experiment_name",
    "model",
    "model_name",
    "retriever",
    "retriever_name",
    *MODELS,
}
"""Columns that name the stack of a row if no column has that role."""
_ID_WORDS = {name for name in NAMES["query_id"] if name.endswith("_id")}
_WORDS_OF_QUERIES = {*NAMES["query_id"]} - _ID_WORDS
# Columns of texts if another column holds the ids
_TEXTS = frozenset({"query", "question", "user_input", "user_query", "input", "query_text", "question_text",
                    "query_string", "search_query", "utterance", *_WORDS_OF_QUERIES})  # fmt: skip
_TEXTS_OF: Mapping[str, frozenset[str]] = {
    "query_id": _TEXTS | {"text"},
    "passage_id": frozenset({"passage", "passage_text", "doc_text", "document_text", "chunk_text", "content",
                             "context", "text"}),
}  # fmt: skip
"""Columns with the texts of queries, or of passages, if other columns hold the ids; a document may be a
title."""
COMPARED = "its texts are not stored: they are compared with those of the collection"
_CHUNKS = frozenset({"passage_id", "pid", "chunk_id", "passage"})
_DOCUMENTS = frozenset({"doc_id", "docid", "doc", "docno", "document_id", "did", "d_id", "corpus_id",
                        *NAMES["passage_id"]})  # fmt: skip
_IDS = frozenset({"query_id", "qid", "q_id", "queryid", "topic", "topic_id", "question_id", "sample_id",
                  "example_id", "case_id", "test_case", "test_case_id", *_ID_WORDS})  # fmt: skip
_BETTER = {
    "query_id": (_TEXTS, _IDS, "`{}` holds the ids"),
    "passage_id": (_DOCUMENTS, _CHUNKS, UNKNOWN),  # it names the document of the passage
}
"""Role → columns that may hold it, better columns for it, and why the former are left out beside these."""
NUMBERS_ROWS = "numbers the rows"
_OTHER = "{} is taken from another column"
_ANOTHER = _OTHER.format("passage_id")
OF_PLACES = "says where a passage is from; that is used where its id is not known (--match)"
PLACES: Mapping[str, tuple[str, ...]] = {
    "text": ("passage_text", "chunk_text", "text", "content", "page_content", "chunk", "snippet", "quote"),
    "source": ("source", "file", "file_name", "filename", "file_path", "filepath", "path", "url", "document",
               *sorted(_DOCUMENTS)),
    "start": ("start_char", "start", "char_start", "start_index", "start_offset", "begin"),
    "end": ("end_char", "end", "char_end", "end_index", "end_offset", "stop"),
    "heading": ("heading", "section", "section_title", "header"),
}  # fmt: skip
"""Facts about a passage's origin → column names that stand for them."""
PLACE_OF = {
    "source": "source",
    "passage_text": "text",
    "start_char": "start",
    "end_char": "end",
    "heading": "heading",
}
"""What the user calls such a column → the fact about the origin."""
OF_STACKS = "an axis of stacks: a row is not a stack here"
SAME = "the same as `{}`, which is taken"
_IN_OTHER_MONEY = "a price in another currency; dollars are compared"


@dataclass(frozen=True, slots=True)
class TableAs:
    """The user's choices for a table: meaning → column, what a row is, and the columns to leave out."""

    columns: Mapping[str, str] = field(default_factory=dict)
    row: RowMeaning | None = None
    without: frozenset[str] = frozenset()
    numbers: Mapping[str, Reading] = field(default_factory=dict)  # how the numbers of columns are read


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meanings of all columns of a table."""

    row: RowMeaning | None = None  # what a row is, if the user said so
    is_open: bool = False  # whether rows may be stacks or queries
    roles: dict[str, str] = field(default_factory=dict)  # role → column
    # columns with times of single queries; `factor` converts them to milliseconds
    timings: list[NamedValue] = field(default_factory=list)
    usage: list[NamedValue] = field(default_factory=list)  # columns of usage; `measure` is the unit
    items: dict[str, str] = field(default_factory=dict)  # stage → column that names what is priced
    aggregates: list[NamedValue] = field(default_factory=list)  # columns of results over all queries
    scores: list[NamedValue] = field(default_factory=list)  # columns of measures, and prices, per query
    axes: dict[str, str] = field(default_factory=dict)  # stack axis → column
    also: list[str] = field(default_factory=list)  # columns that name the stack along with the role "run"
    settings: list[str] = field(default_factory=list)  # columns of parameters that tell stacks apart
    labels: list[str] = field(default_factory=list)  # columns of grades, one for each judge
    # columns on the origin of ranked passages: text, source, start, end, heading → column
    places: dict[str, str] = field(default_factory=dict)
    # column of a measure → column with its number of queries, if that is not the role "n" for all
    counts: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)  # columns without a meaning, each with the reason
    texts: dict[str, str] = field(default_factory=dict)  # id of a query or passage → column with its text

    @property
    def kind(self) -> str | None:
        """Return what the table holds: judgements, rankings, answers, costs, aggregates, or None.

        Costs are scores, timings or usage of queries, without rankings and answers.
        """
        kind = self._by_roles()
        return kind if kind is not None and self.row in (None, ROW_OF[kind]) else None

    def _by_roles(self) -> str | None:
        has = self.roles.keys()
        if {"query_id", "rank"} <= has and "passage_id" not in has and self.are_placed:
            return "rankings"
        if {"query_id", "passage_id"} <= has:
            judged = "grade" in has or self.labels
            return "judgements" if judged else "rankings" if has & {"rank", "score"} else None
        if {"query_id", "answer"} <= has:
            return "answers"
        if "query_id" in has:
            return "costs" if self.timings or self.usage or self.scores or self.is_long else None
        return "aggregates" if self.aggregates or self.is_long else None

    @property
    def are_placed(self) -> bool:
        """Whether ranked passages can be told apart by their source, without an id."""
        return "text" in self.places or (
            "source" in self.places and bool(self.places.keys() & {"start", "heading"})
        )

    @property
    def is_long(self) -> bool:
        """Whether each row holds one measure, which a column names."""
        has = self.roles.keys()
        return "measure" in has and "passage_id" not in has and bool(has & {"value", "score"})

    @property
    def numbers(self) -> dict[str, NumberKind]:
        """The columns that hold numbers, and their possible kinds."""
        kinds: dict[str, NumberKind] = {}
        for value in (*self.timings, *self.usage, *self.aggregates, *self.scores):
            kind: NumberKind = (
                "price" if value.measure == USD_PER_1K else "share" if is_share(value) else "figure"
            )
            kinds[value.column] = kind
        plain: NumberKind = "any" if self.is_long else "plain"
        kinds |= {self.roles[role]: plain for role in _NUMBERS if role in self.roles}
        kinds |= {self.roles[role]: "whole" for role in _WHOLE if role in self.roles}
        return kinds | {column: "whole" for axis, column in self.axes.items() if axis in WHOLE_AXES}

    @property
    def plain(self) -> bool:
        """Whether the names alone reveal what the table holds, more than by chance."""
        sure = "run" in self.roles or self.axes or any(not aggregate.assumed for aggregate in self.aggregates)
        sure = sure or any(normal(name) in _NAMES for name in self.ignored)
        return self.kind != "aggregates" or bool(sure) or len(self.aggregates) > 1

    @property
    def is_row(self) -> RowMeaning | None:
        """Return what a row is, as the user said or as inferred from the columns; None if unclear."""
        return None if self.is_open else self.row or ROW_OF.get(self.kind or "")

    @property
    def names(self) -> dict[str, str]:
        """Meaning → column name, in the form in which a user might give it."""
        values = (*self.timings, *self.usage, *self.aggregates, *self.scores)
        columns = {**self.roles, **{value.name: value.column for value in values}, **self.axes}
        columns |= {name: self.places[place] for name, place in PLACE_OF.items() if place in self.places}
        items = {"item" if stage == "total" else f"{stage}_item": name for stage, name in self.items.items()}
        return columns | items


def mapped(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return meaning → column; further columns that name the stack together become `run 2` and so on.

    Raises:
        InputError: Several columns are given the same other meaning.
    """
    columns: dict[str, str] = {}
    for meant, column in pairs:
        key = meant
        while meant == "run" and key in columns:
            key = f"run {int(key[4:] or 1) + 1}"
        if columns.setdefault(key, column) != column:
            problem = f"Two columns are said to hold {shown(meant)}: {listed([columns[key], column])}."
            raise InputError(problem, do="Say it of one; only the name of a stack may be in several (run).")
    return columns


def meaning(columns: Sequence[str], said: TableAs, name: str) -> Meaning:
    """Find out what the columns mean."""
    means = Meaning(row=said.row)
    pattern = _pattern(columns, said)
    for meant, column in said.columns.items():
        if column != pattern:
            _as_said(means, columns, meant, column, name)
    mapped = set(said.columns.values())
    for column in columns:
        if column in said.without:
            means.ignored[column] = AS_YOU_WISH
        elif column not in mapped:
            _place(means, column, column)
    if pattern:
        _by_pattern(means, columns, pattern, name)
    below = _BELOW[said.row] if said.row else ()
    for role in [role for role in below if role in means.roles and role not in said.columns]:
        means.ignored[means.roles.pop(role)] = f"a row is a {said.row}"
    _long(means)
    _places(means)
    _documents(means)
    if "query_id" in means.roles:
        _of_queries(means)
    else:
        _of_stacks(means)
    if means.kind == "judgements" and "judge" not in means.roles and "judge" in means.items:
        means.roles["judge"] = means.items.pop("judge")  # the judge may be a model
    _unused(means)
    _beside_ids(means)
    return means


def _beside_ids(means: Meaning) -> None:
    """Find the text columns of queries and passages named by id; "text" belongs to the smaller one."""
    for role in ("passage_id", "query_id"):
        if role in means.roles:
            named = [column for column in means.ignored if normal(column) in _TEXTS_OF[role]]
            taken = {*means.texts.values(), *(means.places.values() if role == "query_id" else ())}
            free = [column for column in named if column not in taken]
            if free and means.ignored[free[0]] != AS_YOU_WISH:
                means.texts[role] = free[0]
                means.ignored[free[0]] = COMPARED


def _pattern(columns: Sequence[str], said: TableAs) -> str | None:
    """Return the pattern of columns that hold a judge's grades each, if the user gave one with a star."""
    wanted = said.columns.get("grade", "")
    return wanted if "*" in wanted and wanted not in columns else None


def _as_said(means: Meaning, columns: Sequence[str], meant: str, column: str, name: str) -> None:
    if column not in columns:
        raise no_column(column, columns, name)
    if meant in PLACE_OF:
        means.places[PLACE_OF[meant]] = column
        return
    if _FURTHER.fullmatch(meant):
        means.also.append(column)
        return
    _place(means, column, meant)
    if column in means.ignored:
        offered = ", ".join((*_OFFERED, *PLACE_OF, *sorted(AXES)))
        do = f"Choose one of: {offered}; or a measure, a time or a price such as {_SUCH_AS}."
        if meant in READINGS:
            do = f"This says how numbers are written (--numbers '{shown(column)}={meant}')."
        raise InputError(f'Unknown meaning "{shown(meant)}".', where=name, do=do)


def _by_pattern(means: Meaning, columns: Sequence[str], pattern: str, name: str) -> None:
    """Take each column that fits a pattern, and has no other meaning, as the grades of one judge."""
    free = {name for name, why in means.ignored.items() if why == UNKNOWN} | {means.roles.get("grade")}
    labels = [column for column in columns if fnmatchcase(column, pattern) and column in free]
    if not labels:
        raise no_column(pattern, columns, name)
    means.roles.pop("grade", None)
    judged_by(means, labels)


def judged_by(means: Meaning, columns: Sequence[str]) -> None:
    """Take columns as the grades of a judge each."""
    means.labels.extend(columns)
    for column in columns:
        means.ignored.pop(column, None)
    means.roles.pop("judge", None)
    _unused(means)


def _place(means: Meaning, column: str, name: str) -> None:
    key = normal(name)
    role = role_of(name)
    usage = usage_of(name, column)
    value = None if usage else named(name, column)
    if role in _BETTER and normal(means.roles.get(role, "")) in _BETTER[role][0] and key in _BETTER[role][1]:
        means.ignored[means.roles[role]] = _BETTER[role][2].format(column)
        means.roles[role] = column
    elif role and role not in means.roles:
        means.roles[role] = column
    elif key in AXES and key not in means.axes:
        means.axes[key] = column
    elif usage:
        means.usage.append(usage)
    elif value:
        (means.timings if value.measure == "ms" else means.aggregates).append(value)
    elif key == "item" or key.endswith(("_item", "_model")):
        means.items["total" if key == "item" else key.rsplit("_", 1)[0]] = column
    elif once(name):
        means.ignored[column] = "spent once, not by each query"
    elif _INDEX.fullmatch(column):
        means.ignored[column] = NUMBERS_ROWS
    elif priced_otherwise(name):
        means.ignored[column] = _IN_OTHER_MONEY
    else:
        means.ignored[column] = (
            UNKNOWN if not role else _ANOTHER if role == "passage_id" else _OTHER.format(role)
        )


def _long(means: Meaning) -> None:
    """Settle long tables, whose rows hold values; other tables lose the roles of a long one."""
    if means.is_long and "value" not in means.roles:
        means.roles["value"] = means.roles.pop("score")
    for role in () if means.is_long else ("measure", "value"):
        if role in means.roles:
            means.ignored[means.roles.pop(role)] = UNKNOWN


def _costs_once(means: Meaning) -> None:
    """Leave out columns whose time or usage another column holds, because it would count twice."""
    for values in (means.timings, means.usage):
        seen: dict[tuple[str, str | None], str] = {}
        for value in list(values):
            first = seen.setdefault((value.measure, value.stage), value.column)
            if first != value.column:
                means.ignored[value.column] = SAME.format(first)
                values.remove(value)


def _of_queries(means: Meaning) -> None:
    """Settle rows of single queries.

    A time has a unit, a price is per query, and measures are scores.
    """
    _without_unit(means, [timing for timing in means.timings if timing.assumed])
    _costs_once(means)
    values = list(means.aggregates)
    means.aggregates.clear()
    if "passage_id" in means.roles:
        columns = [value.column for value in values]
        means.ignored.update(dict.fromkeys(columns, "not stored: a row is a passage"))
        return
    over = [value for value in values if value.measure.startswith("latency_")]
    means.ignored.update({value.column: "over several queries: a row is one query" for value in over})
    means.scores.extend(_once_each(means, [_of_one(value) for value in values if value not in over]))
    names = [name for name, why in means.ignored.items() if why == UNKNOWN and normal(name) in _NAMES]
    if names and not means.roles.keys() & {"run", "answer"}:
        means.roles["run"] = names[0]
        del means.ignored[names[0]]


def _of_one(value: NamedValue) -> NamedValue:
    """Return a price without a number of queries as the price of one query."""
    bare = value.measure == USD_PER_1K and value.assumed
    return replace(value, factor=1000.0, assumed="") if bare else value


def _of_stacks(means: Meaning) -> None:
    """Settle rows of stacks: a time is the median of a stack, and each figure occurs once."""
    _without_unit(means, [timing for timing in means.timings if timing.assumed and timing.stage != "total"])
    _costs_once(means)
    times = [replace(timing, measure="latency_p50") for timing in means.timings]
    values = [*means.aggregates, *times]
    means.timings.clear()
    means.aggregates.clear()
    means.aggregates.extend(_once_each(means, values))


def _once_each(means: Meaning, values: list[NamedValue]) -> list[NamedValue]:
    """Return values without repeats, with a cutoff if they are measures.

    All others are left out.
    """
    has = means.roles.keys()
    if (
        {"run", "score"} <= has
        and not has & {"passage_id", "answer"}
        and all(value.stage for value in values)
    ):
        column = means.roles.pop("score")
        values.insert(0, NamedValue(column, "score", assumed="names no cutoff"))
    cutoffs = {value.k for value in values if value.k}
    common = min(cutoffs) if len(cutoffs) == 1 else _USUAL_K
    by_tool = any(_OF_TREC_EVAL.fullmatch(value.column) for value in values)
    seen: dict[tuple[str, str | None, int | None], str] = {}
    kept = []
    for given in values:
        bare = given.k is None and given.stage is None and not (by_tool and given.column in _OF_WHOLE_LISTS)
        k = 1 if given.measure in OF_ANSWERS and not cutoffs else common
        value = replace(given, k=k, assumed=f"{given.assumed}: taken as @{k}") if bare else given
        key = (value.measure, value.stage, value.k)
        if key in seen:
            means.ignored[value.column] = SAME.format(seen[key])
        else:
            seen[key] = value.column
            kept.append(value)
    return kept


def _places(means: Meaning) -> None:
    """Find the columns on the origin of ranked passages."""
    has = means.roles.keys()
    if "query_id" not in has or not has & {"rank", "score"} or has & {"answer", "grade"} or means.is_long:
        means.ignored.update(dict.fromkeys(means.places.values(), "only a passage of a ranking has a place"))
        means.places.clear()
        return
    free = [column for column, why in means.ignored.items() if why in (UNKNOWN, _ANOTHER)]
    for place, names in PLACES.items():
        known = {normal(column): column for column in reversed(free)}
        column = next((known[name] for name in names if name in known), None)
        if column is not None:
            means.places.setdefault(place, column)
    if "passage_id" not in has and not ("rank" in has and means.are_placed):
        means.ignored.update(dict.fromkeys(means.places.values(), UNKNOWN))
        means.places.clear()
    means.ignored.update(dict.fromkeys(means.places.values(), OF_PLACES))


def _documents(means: Meaning) -> None:
    """Take a column `document` as the ids of ranked or judged passages that nothing else tells apart."""
    has = means.roles.keys()
    if "query_id" in has and has & {"rank", "score", "grade"} and not has & {"passage_id", "answer"}:
        named = [column for column in means.ignored if normal(column) == "document"]
        if named and means.ignored[named[0]] == UNKNOWN:
            means.roles["passage_id"] = named[0]
            del means.ignored[named[0]]


def _without_unit(means: Meaning, timings: Sequence[NamedValue]) -> None:
    for value in timings:
        key = normal(value.column)
        means.ignored[value.column] = f"its unit is not known; name it {key}_ms or {key}_s"
        means.timings.remove(value)


def _unused(means: Meaning) -> None:
    """Leave out, with the reason, what a table of this kind cannot store."""
    kind = means.kind
    if kind is None:
        return
    _unused_roles(means, kind)
    if kind == "judgements":
        unused = [timing.column for timing in (*means.timings, *means.usage)] + [*means.items.values()]
        means.ignored.update(dict.fromkeys(unused, "not of a judgement: a table of judgements has no runs"))
        for columns in (means.timings, means.usage, means.items):
            columns.clear()
    counted = {value.stage for value in means.usage}
    for stage in [item for item in means.items if item not in counted and not (item == "total" and counted)]:
        means.ignored[means.items.pop(stage)] = "it names what is priced, but nothing of it is counted"
    if kind != "aggregates":
        means.ignored.update(dict.fromkeys(means.axes.values(), OF_STACKS))
        means.axes.clear()


def _unused_roles(means: Meaning, kind: str) -> None:
    roles = means.roles
    if kind == "costs" and "pass" in roles:
        roles.setdefault("repeat", roles["pass"])
        if roles["repeat"] == roles["pass"]:
            del roles["pass"]
    for role in [role for role in roles if role not in _ROLES_OF[kind]]:
        only = f"only a table of answers has {role}" if role in _ONLY_ANSWERS else None
        means.ignored[roles.pop(role)] = f"not recognised: {only or f'{_WORDS[kind]} have no {role}'}"
    if "measured_at" in roles and not means.timings:
        means.ignored[roles.pop("measured_at")] = "no column holds times whose order it would say"
    if kind == "answers" and not roles.keys() & {"grade", "score"}:
        for role in roles.keys() & {"judge", "scale"}:
            means.ignored[roles.pop(role)] = "it is about grades, and no column holds them"
