"""Traces of answered questions into queries, rankings, timings, usage and answers: one run per project.

A trace is a question. Its ranking is what its reranker returned, else its retriever; where several steps of a
trace retrieved (and none is part of another) no single list is the ranking, and it is left out.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from core.errors import InputError
from core.importers.account import Parts
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.formats.traces.spans import Document, Kind, Span
from core.importers.read.jsons import Json, json_rows, kind_of_value, outline, parsed, read_json
from core.importers.read.piece import Piece, Tree, digest_of, per_piece, pieces_of
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.read.text import place, shown
from core.importers.samples import UNNAMED, Answered, Sample, answered, assemble
from core.importers.settings import axes_of, kept

_STAGES: Mapping[Kind, str] = {"model": "generate", "embedding": "embed", "reranker": "rerank"}
_MOST_STEPS = 1_000


class TraceFormat(Format):
    """A tool that records traces: every row of what it exports is a span, or holds several."""

    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "rankings": "documents of the reranker of each trace, else of its retriever",
        "timings": "retrieve, rerank and generate from start and end of their steps",
        "usage": "input (prompt) and output (completion) tokens of each model",
        "answers": "",
    }
    units = "start and end to milliseconds"
    traps: tuple[str, ...] = (
        "Traces that ended with an error are left out and counted.",
        "Where several retrievers ran in a trace, none of their lists is the ranking.",
    )
    names_collection = 1
    source: str
    keys: Parts  # what is read of a row

    @abstractmethod
    def is_mine(self, paths: frozenset[str]) -> bool:
        """Whether columns or keys (nested ones joined by dots) are those of this tool."""

    @abstractmethod
    def spans(self, row: Json, where: str) -> Iterator[Span]:
        """The spans of a row."""

    def kind(self, piece: Piece) -> str | None:
        return "spans" if self.is_mine(_paths(piece)) else None

    def parts(self, piece: Piece, options: Options) -> Parts:  # noqa: ARG002
        """Return the parts read of a row, also where rows stand under one of the keys that may hold them."""
        places = ("", *(f"{wrapper}." for wrapper in _WRAPPERS))
        return {f"{place}{name}": why for place in places for name, why in self.keys.items()}

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read all spans, which may stand within others; a run is made of each project's traces."""
        pieces = pieces_of(trees)
        rows = (entry for piece in pieces for entry in _entries(piece))
        spans = [span for where, row in rows for span in self.spans(row, where)]
        return _traced(spans, pieces, options, importer=self.name, source=self.source)


@dataclass(kw_only=True)
class _Question:
    sample: Sample
    settings: Json = field(default_factory=dict)
    models: set[str] = field(default_factory=set)


def _traced(
    spans: Sequence[Span], pieces: Sequence[Piece], options: Options, *, importer: str, source: str
) -> Import:
    left: Counter[str] = Counter()
    by_trace: dict[str, list[Span]] = defaultdict(list)
    single = {(span.trace, span.id): span for span in spans}
    left["steps that stand twice: the last counts"] += len(spans) - len(single)
    for span in single.values():
        by_trace[span.trace].append(span)
    projects: dict[str, list[_Question]] = defaultdict(list)
    for steps in by_trace.values():
        if (question := _question(steps, left)) is not None:
            projects[next((span.project for span in steps if span.project), "")].append(question)
    alone = len(projects) == 1
    parts = [_answered("" if alone else name, questions, pieces) for name, questions in projects.items()]
    if not parts:
        why = "; ".join(+left) or "there are no spans"
        raise InputError(f"No trace holds a question and what was found for it: {why}.", where=pieces[0].name)
    again = sum(part.rows.height - part.rows["text"].n_unique() for part in parts)
    notes = [
        "Times are the lengths of the steps that retrieved, reranked and answered; that of a whole trace is "
        "not taken, because it is that of the application, answering included."
    ]
    if again:
        notes.append(f"{again} questions were asked before: each time counts as a question of its own.")
    imported = assemble(parts, options, importer=importer, source=source)
    return merged((imported, Import(left_out=counted(left, pieces[0].name), notes=tuple(notes))))


def _question(steps: Sequence[Span], left: Counter[str]) -> _Question | None:
    ids = {span.id for span in steps}
    roots = [span for span in steps if span.parent is None or span.parent not in ids]
    root = min(roots, key=lambda span: (span.parent is not None, span.start or 0.0), default=None)
    if root is None:
        left["traces whose steps have no beginning"] += 1
        return None
    if root.failed:
        left["traces that ended with an error"] += 1
        return None
    retrievers = _outermost_retrievers(steps)
    below = [span for span in steps if span.parent == root.id]
    asked = next((span.question for span in (root, *below, *retrievers) if span.question), None)
    if asked is None:
        left["traces without a question"] += 1
        return None
    models = [span for span in steps if span.kind == "model"]
    last = max((span for span in models if span.answer), key=lambda span: span.end or 0.0, default=None)
    # The passages that a lone retriever returned are no answer.
    answers = root.kind not in ("retriever", "reranker", "embedding")
    answer = root.answer or (last.answer if last else None) if answers else None
    rerankers = [span for span in steps if span.kind == "reranker"]
    documents = _documents(retrievers, rerankers, left)
    if documents is None and answer is None:
        left["traces with neither retrieved passages nor an answer"] += 1
        return None
    sample = Sample(
        text=asked,
        answer=answer,
        first_token_ms=last.first_token_ms if last and len(models) == 1 else None,
        contexts=None if documents is None else [document.text for document in documents],
        context_ids=None if documents is None else [document.id for document in documents],
        scores=[document.score for document in documents or ()],
        values=root.scores,
        times=dict(_times({"retrieve": retrievers, "rerank": rerankers, "generate": models})),
        used=_used(steps),
    )
    settings = next((span.settings for span in retrievers if span.settings), {})
    return _Question(sample=sample, settings=settings, models={span.model for span in models if span.model})


def _outermost_retrievers(steps: Sequence[Span]) -> list[Span]:
    """The retrievers that are not part of another one."""
    parents = {span.id: span.parent for span in steps}
    retrievers = [span for span in steps if span.kind == "retriever"]
    chosen = {span.id for span in retrievers}
    return [span for span in retrievers if not chosen.intersection(_above(span, parents))]


def _above(span: Span, parents: Mapping[str, str | None]) -> Iterator[str]:
    """The steps that a step is part of, from near to far; a circle ends."""
    up = span.parent
    for _ in range(_MOST_STEPS):
        if up is None or up == span.id:
            return
        yield up
        up = parents.get(up)


def _documents(
    retrievers: Sequence[Span], rerankers: Sequence[Span], left: Counter[str]
) -> tuple[Document, ...] | None:
    for some, name in ((rerankers, "reranker"), (retrievers, "retriever")):
        good = [span for span in some if not span.failed]
        left[f"steps of a {name} that ended with an error"] += len(some) - len(good)
        listed = [span for span in good if span.documents is not None]
        left[f"steps of a {name} whose passages cannot be told"] += len(good) - len(listed)
        if len(listed) == 1:
            if name == "reranker":
                left["lists of a retriever before its reranker: the reranked list counts"] += len(retrievers)
            return listed[0].documents
        if len(listed) > 1:
            left[f"rankings of traces with several {name} steps: none of them is the ranking"] += 1
            return None
    return None


def _times(stages: Mapping[str, Sequence[Span]]) -> Iterator[tuple[str, float]]:
    """Times of each stage that one step alone made."""
    for stage, spans in stages.items():
        alone = spans[0] if len(spans) == 1 else None
        if alone is not None and not alone.failed and alone.ms is not None:
            yield stage, alone.ms


def _used(steps: Sequence[Span]) -> dict[tuple[str, str, str], float]:
    """(stage, model, unit) → tokens."""
    used: dict[tuple[str, str, str], float] = defaultdict(float)
    for span in steps:
        if stage := _STAGES.get(span.kind):
            for unit, count in span.tokens.items():
                used[stage, shown(span.model or UNNAMED), unit] += count
    return used


def _answered(project: str, questions: Sequence[_Question], pieces: Sequence[Piece]) -> Answered:
    settings = next((question.settings for question in questions if question.settings), {})
    models = sorted({model for question in questions for model in question.models})
    return replace(
        answered(pieces[0], [question.sample for question in questions]),
        label=project,
        digest=digest_of(pieces),
        spec=axes_of(settings) | ({"generator": shown(models[0])} if len(models) == 1 else {}),
        decided={"project": shown(project), "retriever": kept(settings), "models": kept(models)},
    )


_WRAPPERS = (
    "data",
    "runs",
    "observations",
    "spans",
    "traces",
)  # Keys under which an export may hold its list
_LITERAL_BYTES = 1_000_000
_BROKEN = (ValueError, SyntaxError, MemoryError, RecursionError)


@per_piece
def _paths(piece: Piece) -> frozenset[str]:
    """Names of columns, or keys of the first objects (nested ones joined by dots), from the head."""
    seen = outline(piece)
    if not seen:
        return frozenset(columns(piece))
    roots = ("[]", *(f"{name}[]" for name in _WRAPPERS), "")
    root = next((prefix for prefix in roots if "object" in seen.get(prefix, ())), None)
    if root is None:
        return frozenset()
    return frozenset(path[len(root) :].lstrip(".") for path in seen if path.startswith(root))


def _entries(piece: Piece) -> Iterator[tuple[str, Json]]:
    """The rows of an export with where each stands, in order."""
    kind = kind_of(piece)
    head = piece.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"[", b"{"):
        first, _, rest = head.partition(b"\n")  # an object of its own, and another one follows
        lines = kind == "jsonl" and first.rstrip().endswith(b"}") and rest.lstrip()[:1] in (b"{", b"")
        yield from _from_json(piece, lines=lines)
        return
    if kind is None:
        raise InputError("This is neither JSON nor a table.", where=piece.name)
    table = read_table(piece, kind)
    for line, row in zip(table.lines, table.rows.iter_rows(named=True), strict=True):
        yield place(piece.name, line), {key: _cell(value) for key, value in row.items()}


def _from_json(piece: Piece, *, lines: bool) -> Iterator[tuple[str, Json]]:
    if lines:
        rows = ((place(piece.name, line), entry) for line, row in json_rows(piece) for entry in _held(row))
    else:
        rows = ((f"{piece.name}, entry {at}", entry) for at, entry in enumerate(_held(read_json(piece)), 1))
    for where, entry in rows:
        if not isinstance(entry, dict):
            raise InputError(f"It is {kind_of_value(entry)}, not an object.", where=where)
        yield where, entry


def _held(value: object) -> list[object]:
    """The list in an object that does nothing but hold it (and where the next page is); else the value."""
    if isinstance(value, list):
        return value
    holder = value if isinstance(value, dict) and "id" not in value else {}
    lists = [holder[key] for key in _WRAPPERS if isinstance(holder.get(key), list)]
    return lists[0] if len(lists) == 1 else [value]


def _cell(value: object) -> object:
    """A text cell that holds JSON, or what Python prints of lists and maps, as the value it was."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"') or len(value) > _LITERAL_BYTES:
        return value
    with suppress(InputError):
        return parsed(value, "cell")
    try:
        literal: object = ast.literal_eval(value)
    except _BROKEN:
        return value
    return literal if isinstance(literal, dict | list) else value
