"""What the columns of a foreign table mean: roles found by alias, units by ending, measures by their name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from core.errors import InputError, UnknownNameError
from core.importers.text import shown
from core.metrics.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Role:
    """One meaning that a column can have: its name, what people read, and the names it goes by."""

    name: str
    title: str
    aliases: frozenset[str]


def _role(name: str, title: str, *aliases: str) -> Role:
    return Role(name, title, frozenset((name, *aliases)))


ROLES: Mapping[str, Role] = MappingProxyType(
    {
        role.name: role
        for role in (
            _role("query_id", "Query id", "qid", "q_id", "query", "queryid", "topic", "topic_id",
                  "question_id"),
            _role(
                "passage_id", "Passage id", "did", "d_id", "doc_id", "docid", "doc", "docno", "document_id",
                "passage", "pid", "corpus_id", "chunk_id",
            ),
            _role("rank", "Rank", "position"),
            _role("score", "Score", "sim", "similarity"),
            _role("grade", "Grade of a passage (makes it a table of judgements) or of an answer", "rel",
                  "relevance", "judgement", "judgment", "gain"),
            _role("run", "Run or stack", "run_id", "tag", "system", "stack", "label", "name", "config",
                  "configuration"),
            _role("stage", "Stage (pool or final)", "list"),
            _role("repeat", "Repeat of a timing", "repetition", "trial"),
            _role("judge", "Judge", "judged_by", "judge_name", "judge_id", "annotator", "annotator_id",
                  "assessor", "rater", "grader", "graded_by"),
            _role("answer", "Answer (makes it a table of answers)", "response", "answer_text",
                  "generated_answer", "generated_text", "generation"),
            _role("k", "Passages that an answer was written from", "depth", "top_k", "cutoff"),
            _role("scale", "Scale of an answer's grade, such as 0-1", "grade_scale"),
            _role("n", "Number of queries", "n_queries", "num_q", "num_queries"),
        )
    }
)  # fmt: skip
_OF_ANSWERS = ("answer", "k", "scale")
_OF_RUNS = ("run", "rank", "score", "stage", "repeat", "n")
WHOLE_AXES = frozenset({"dim", "candidates"})
AXES = frozenset({"mode", "sparse", "embedder", "index", "reranker"}) | WHOLE_AXES
_USAGE = re.compile(
    r"(?:(?P<stage>[a-z][a-z0-9_]*?)_)?(?P<unit>input_tokens|output_tokens|search_units|requests|cpu_ms)"
)
_STAGE = r"(?P<stage>[a-z][a-z0-9_]*?)(?:_latency|_time)?"
_UNIT = "(?P<unit>ms|milliseconds|s|sec|secs|seconds)"
_TIMING = re.compile(f"{_STAGE}_{_UNIT}")
_QUANTILE = re.compile(f"{_STAGE}_(?P<q>p50|p95|p99)_{_UNIT}")
_QUANTILE_LAST = re.compile(f"{_STAGE}_{_UNIT}_(?P<q>p50|p95|p99)")
_PRICE = re.compile(r"(?:(?P<stage>[a-z][a-z0-9_]*?)_)?(?:usd|cost_usd)_per_1k(?:_queries)?")
_MEASURE = re.compile(r"(?P<name>[^@()]+)@(?P<k>\d{1,6})(?P<params>\([^()]*\))?")
_UNITLESS = re.compile(r"(?:.*_)?(latency|time|duration|elapsed)")
_MS_PER = {"ms": 1.0, "milliseconds": 1.0, "s": 1000.0, "sec": 1000.0, "secs": 1000.0, "seconds": 1000.0}
_TOTAL = {"latency", "total", "end_to_end", "e2e", "elapsed", "duration", "query", "time", "wall"}
# Names of the field that are not (yet) computed here; compared without case and punctuation.
_CLASSICAL = ("nDCG", "P", "R", "F1", "Success", "RR", "AP", "RBP", "Recall", "Precision", "MRR", "MAP")


@dataclass(frozen=True, slots=True)
class Value:
    """A column of numbers: what it measures, for which stage, at which cutoff, the factor to its unit."""

    column: str
    measure: str
    stage: str | None = None
    k: int | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What every column of a table means.

    Attributes:
        roles: Role → column.
        timings: Columns of latencies; `factor` makes milliseconds of them.
        usage: Columns of usage; `measure` is the unit.
        items: Stage → column that names what is priced.
        aggregates: Columns of results over all queries.
        axes: Stack axis → column.
        ignored: Columns without a meaning, each with the reason.
    """

    roles: dict[str, str] = field(default_factory=dict)
    timings: list[Value] = field(default_factory=list)
    usage: list[Value] = field(default_factory=list)
    items: dict[str, str] = field(default_factory=dict)
    aggregates: list[Value] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str | None:
        """What the table holds: judgements, rankings, answers, costs, aggregates, or None.

        Costs are timings or usage alone.
        """
        has = self.roles.keys()
        if {"query_id", "passage_id"} <= has:
            return "judgements" if "grade" in has else "rankings" if has & {"rank", "score"} else None
        if {"query_id", "answer"} <= has:
            return "answers"
        if "query_id" in has:
            return "costs" if self.timings or self.usage else None
        return "aggregates" if self.aggregates else None


def normal(name: str) -> str:
    """A column name without case, blanks, dashes and dots."""
    return re.sub(r"[\s.\-/]+", "_", name.strip().lower()).strip("_")


def mapped(
    columns: Sequence[str], given: Mapping[str, str], roles: Mapping[str, object], name: str
) -> dict[str, str]:
    """Role → column as the user mapped them.

    Args:
        columns: Names as they stand in the file.
        given: What the user said.
        roles: The roles that there are.
        name: File, for messages.

    Raises:
        InputError: A mapped column does not exist.
        UnknownNameError: A mapped role does not exist.
    """
    for role, column in given.items():
        if role not in roles:
            raise UnknownNameError("role of a column", role, roles, where=name)
        if column not in columns:
            raise no_column(column, columns, name)
    return dict(given)


def roles_by(
    columns: Sequence[str], given: Mapping[str, str], roles: Mapping[str, Sequence[str]], name: str
) -> dict[str, str]:
    """Role → column: as the user mapped them, the others by the names that a role goes by.

    Args:
        columns: Names as they stand in the file.
        given: What the user said.
        roles: The roles that there are, each with its names, the likeliest first.
        name: File, for messages.

    Returns:
        The roles that a column has.

    Raises:
        InputError: A mapped column does not exist.
        UnknownNameError: A mapped role does not exist.
    """
    found = mapped(columns, given, roles, name)
    for role, aliases in roles.items():
        known = {normal(column): column for column in reversed(columns) if column not in found.values()}
        match = next((known[alias] for alias in map(normal, aliases) if alias in known), None)
        if role not in found and match:
            found[role] = match
    return found


def meaning(columns: Sequence[str], given: Mapping[str, str], name: str) -> Meaning:
    """Find out what the columns mean.

    Args:
        columns: Names as they stand in the file.
        given: Role → column as the user mapped them; stands before what is recognised.
        name: File, for messages.

    Raises:
        InputError: A mapped column does not exist.
        UnknownNameError: A mapped role does not exist.
    """
    found = Meaning()
    found.roles.update(mapped(columns, given, ROLES, name))
    for column in columns:
        if column not in found.roles.values():
            _place(found, column)
    if found.kind != "answers":
        for role in (role for role in _OF_ANSWERS if role in found.roles and role not in given):
            found.ignored[found.roles.pop(role)] = f"not recognised: only a table of answers has {role}"
    _judged(found, given)
    if "query_id" not in found.roles:
        return found
    for value in found.aggregates:
        found.ignored[value.column] = "a result over all queries in a table of single queries"
    found.aggregates.clear()
    return found


def _judged(found: Meaning, given: Mapping[str, str]) -> None:
    """Judgements are of no run: their judge may be a model, and what only runs have is left out."""
    if found.kind != "judgements":
        return
    if "judge" not in found.roles and "judge" in found.items:
        found.roles["judge"] = found.items.pop("judge")
    unused = [found.roles.pop(role) for role in _OF_RUNS if role in found.roles and role not in given]
    unused += [each.column for each in (*found.timings, *found.usage)] + [*found.items.values()]
    found.ignored.update(dict.fromkeys(unused, "not of a judgement: a table of judgements has no runs"))
    for each in (found.timings, found.usage, found.items):
        each.clear()


def _place(found: Meaning, column: str) -> None:
    """Give one column its meaning, or the reason why it has none."""
    key = normal(column)
    value = _aggregate(column, key)
    usage, timing = _USAGE.fullmatch(key), _TIMING.fullmatch(key)
    role = next((each.name for each in ROLES.values() if key in each.aliases), None)
    if role and role not in found.roles:
        found.roles[role] = column
    elif key in AXES and key not in found.axes:
        found.axes[key] = column
    elif value:
        found.aggregates.append(value)
    elif usage:
        found.usage.append(Value(column, usage["unit"], usage["stage"] or "total"))
    elif timing:
        stage = "total" if timing["stage"] in _TOTAL else timing["stage"]
        found.timings.append(Value(column, "ms", stage, factor=_MS_PER[timing["unit"]]))
    elif key == "item" or key.endswith(("_item", "_model")):
        found.items["total" if key == "item" else key.rsplit("_", 1)[0]] = column
    elif _UNITLESS.fullmatch(key):
        found.ignored[column] = f"its unit is not known; name it {key}_ms or {key}_s"
    else:
        found.ignored[column] = f"{role} is taken from another column" if role else "not recognised"


def _aggregate(column: str, key: str) -> Value | None:
    quantile = _QUANTILE.fullmatch(key) or _QUANTILE_LAST.fullmatch(key)
    if quantile:
        stage = "total" if quantile["stage"] in _TOTAL else quantile["stage"]
        return Value(column, f"latency_{quantile['q']}", stage, factor=_MS_PER[quantile["unit"]])
    if price := _PRICE.fullmatch(key):
        return Value(column, "usd_per_1k", price["stage"] or "total")
    measured = _MEASURE.fullmatch(column.strip())
    if measured is None or int(measured["k"]) == 0:
        return None
    return Value(column, measure_name(measured["name"]) + (measured["params"] or ""), k=int(measured["k"]))


def measure_name(text: str) -> str:
    """The product's way of writing a measure: ``ra_nwg`` → ``RA-nWG``, ``proc[hit]`` → ``PROC[Hit]``."""
    known = {_bare(name): name for name in (*_CLASSICAL, *REGISTRY)}
    return known.get(_bare(text), text.strip())


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9+%\[\]]", "", name.lower())


def no_column(wanted: str, columns: Sequence[str], name: str, do: str = "") -> InputError:
    """The error for a column that is not there; it lists what is."""
    listed = ", ".join(shown(column, 40) for column in columns[:12])
    more = f" (+{len(columns) - 12} more)" if len(columns) > 12 else ""
    return InputError(f"no column `{shown(wanted)}` in {name}; found: {listed}{more}.", do=do)
