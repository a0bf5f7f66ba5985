"""Traces of answered questions into queries, rankings, timings, usage and answers: one run per project.

A trace is a question. Its ranking is what its reranker returned, else its retriever; where several steps of a
trace retrieved (and none is part of another) no single list is the ranking, and it is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, merged
from core.importers.costs import UNNAMED
from core.importers.formats.traces.spans import Document, Kind, Span
from core.importers.read.jsons import Json
from core.importers.read.piece import Piece
from core.importers.read.text import shown
from core.importers.samples import SAMPLE, VALUE, Answered, assemble, with_ids
from core.importers.settings import axes_of, kept
from core.records import Basis

_TIMES = pl.Schema({"query_id": pl.String(), "stage": pl.String(), "ms": pl.Float64()})
_USED = pl.Schema(
    {
        "query_id": pl.String(),
        "stage": pl.String(),
        "item": pl.String(),
        "unit": pl.String(),
        "amount": pl.Float64(),
    }
)
_SCORE = pl.Schema({"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()})
_STAGES: Mapping[Kind, str] = {"model": "generate", "embedding": "embed", "reranker": "rerank"}
_MOST_STEPS = 1_000


@dataclass(kw_only=True)
class _Question:
    """What one trace tells."""

    text: str
    answer: str | None = None
    documents: tuple[Document, ...] | None = None
    times: dict[str, float] = field(default_factory=dict)
    used: dict[tuple[str, str, str], float] = field(default_factory=lambda: defaultdict(float))
    scores: dict[str, float] = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    models: set[str] = field(default_factory=set)


def traced(
    spans: Sequence[Span], pieces: Sequence[Piece], options: Options, *, importer: str, source: str
) -> Import:
    """Make a run of each project's traces."""
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
    parts = [_answered("" if alone else name, found, pieces) for name, found in projects.items()]
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
    out = tuple(LeftOut(count, reason, pieces[0].name) for reason, count in left.items() if count)
    made = assemble(parts, options, importer=importer, source=source)
    return merged((made, Import(left_out=out, notes=tuple(notes))))


def _question(steps: Sequence[Span], left: Counter[str]) -> _Question | None:
    """What a trace tells; None, counted with the reason, if that is nothing."""
    ids = {span.id for span in steps}
    roots = [span for span in steps if span.parent is None or span.parent not in ids]
    root = min(roots, key=lambda span: (span.parent is not None, span.start or 0.0), default=None)
    if root is None:
        left["traces whose steps have no beginning"] += 1
        return None
    if root.failed:
        left["traces that ended with an error"] += 1
        return None
    retrievers = _outermost([span for span in steps if span.kind == "retriever"], steps)
    below = [span for span in steps if span.parent == root.id]
    asked = next((span.question for span in (root, *below, *retrievers) if span.question), None)
    if asked is None:
        left["traces without a question"] += 1
        return None
    models = [span for span in steps if span.kind == "model"]
    last = max((span for span in models if span.answer), key=lambda span: span.end or 0.0, default=None)
    made = _Question(text=asked, answer=_answer(root, last), scores=dict(root.scores))
    rerankers = [span for span in steps if span.kind == "reranker"]
    made.documents = _documents(retrievers, rerankers, left)
    if made.documents is None and made.answer is None:
        left["traces with neither retrieved passages nor an answer"] += 1
        return None
    _measure(made, {"retrieve": retrievers, "rerank": rerankers, "generate": models})
    _count_tokens(made, steps)
    made.settings = next((span.settings for span in retrievers if span.settings), {})
    made.models = {span.model for span in models if span.model}
    return made


def _answer(root: Span, last: Span | None) -> str | None:
    """What was answered; the passages that a lone retriever returned are no answer."""
    if root.kind in ("retriever", "reranker", "embedding"):
        return None
    return root.answer or (last.answer if last else None)


def _outermost(some: Sequence[Span], steps: Sequence[Span]) -> list[Span]:
    """The spans of a kind that are not part of another one of them."""
    parents = {span.id: span.parent for span in steps}
    chosen = {span.id for span in some}
    return [span for span in some if not chosen.intersection(_above(span, parents))]


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
    """The ranking of a trace, if it has just one."""
    for some, name in ((rerankers, "reranker"), (retrievers, "retriever")):
        good = [span for span in some if not span.failed]
        left[f"steps of a {name} that ended with an error"] += len(some) - len(good)
        told = [span for span in good if span.documents is not None]
        left[f"steps of a {name} whose passages cannot be told"] += len(good) - len(told)
        if len(told) == 1:
            if name == "reranker":
                left["lists of a retriever before its reranker: the reranked list counts"] += len(retrievers)
            return told[0].documents
        if len(told) > 1:
            left[f"rankings of traces with several {name} steps: none of them is the ranking"] += 1
            return None
    return None


def _measure(made: _Question, stages: Mapping[str, Sequence[Span]]) -> None:
    """Times of each stage that one step alone made."""
    for stage, spans in stages.items():
        alone = spans[0] if len(spans) == 1 else None
        if alone is not None and not alone.failed and alone.ms is not None:
            made.times[stage] = alone.ms


def _count_tokens(made: _Question, steps: Sequence[Span]) -> None:
    for span in steps:
        stage = _STAGES.get(span.kind)
        if stage is None:
            continue
        for unit, count in span.tokens.items():
            made.used[stage, shown(span.model or UNNAMED), unit] += count


def _answered(project: str, found: Sequence[_Question], pieces: Sequence[Piece]) -> Answered:
    rows = with_ids(pl.DataFrame([_row(each) for each in found], schema=dict(SAMPLE), orient="row"))
    ids = rows["query_id"].to_list()
    pairs = list(zip(ids, found, strict=True))
    times = [(query, stage, ms) for query, each in pairs for stage, ms in each.times.items()]
    used = [(query, *key, count) for query, each in pairs for key, count in each.used.items()]
    values = [(query, name, value) for query, each in pairs for name, value in each.scores.items()]
    settings = next((each.settings for each in found if each.settings), {})
    models = sorted({model for each in found for model in each.models})
    basis = pl.lit(Basis.IMPORTED.value).alias("basis")
    frames = {
        "timings": pl.DataFrame(times, schema=_TIMES, orient="row").with_columns(repeat=pl.lit(1)),
        "usage": pl.DataFrame(used, schema=_USED, orient="row").with_columns(basis),
    }
    return Answered(
        label=project,
        name=pieces[0].name,
        stem=pieces[0].stem,
        digest="-".join(sorted(piece.digest for piece in pieces)),
        rows=rows,
        values=pl.DataFrame(values, schema=VALUE, orient="row"),
        spec=axes_of(settings) | ({"generator": shown(models[0])} if len(models) == 1 else {}),
        decided={"project": shown(project), "retriever": kept(settings), "models": kept(models)},
        frames={name: table for name, table in frames.items() if table.height},
        scores=_scores(pairs),
    )


def _row(each: _Question) -> Json:
    documents = each.documents
    return {
        "text": each.text,
        "answer": each.answer,
        "contexts": None if documents is None else [document.text for document in documents],
        "context_ids": None if documents is None else [document.id for document in documents],
    }


def _scores(pairs: Sequence[tuple[str, _Question]]) -> pl.DataFrame:
    rows = [
        (query, rank, document.score)
        for query, each in pairs
        for rank, document in enumerate(each.documents or (), 1)
    ]
    return pl.DataFrame(rows, schema=_SCORE, orient="row")
