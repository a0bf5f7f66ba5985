"""Turns spans of traces into questions with passages and answers, and these into a run per project.

A trace is a question. Its ranking is the output of its reranker, or else of its retriever; if several steps
of a trace retrieved (and none is part of another), no single list is the ranking, and it is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.errors import InputError
from core.importers.base import Import, Options, counted, merged
from core.importers.formats.traces.spans import Document, SpanKind, TraceSpan
from core.importers.read.jsons import Json
from core.importers.read.member import Member, digest_of
from core.importers.read.text import shown
from core.importers.samples import ASKED_AT, UNNAMED, AnsweredSamples, FormatSample, answered, assemble
from core.importers.settings import axes_of, kept

_STAGES: Mapping[SpanKind, str] = {"model": "generate", "embedding": "embed", "reranker": "rerank"}
_MOST_STEPS = 1_000
_TIMES = (
    "Times are the lengths of the steps that retrieved, reranked and answered; that of a whole trace is "
    "not taken, because it is that of the application, answering included."
)


@dataclass(kw_only=True)
class _Question:
    sample: FormatSample
    settings: Json
    models: set[str]


def imported(
    spans: Sequence[TraceSpan], members: Sequence[Member], options: Options, *, importer: str, source: str
) -> Import:
    """Make a run of each project's traces."""
    left: Counter[str] = Counter()
    by_trace: dict[str, list[TraceSpan]] = defaultdict(list)
    single = {(span.trace, span.id): span for span in spans}
    left["steps that stand twice: the last counts"] += len(spans) - len(single)
    for span in single.values():
        by_trace[span.trace].append(span)
    projects: dict[str, list[_Question]] = defaultdict(list)
    for steps in by_trace.values():
        if (question := _question(steps, left)) is not None:
            projects[next((span.project for span in steps if span.project), "")].append(question)
    alone = len(projects) == 1
    parts = [_answered("" if alone else name, asked, members) for name, asked in projects.items()]
    if not parts:
        why = "; ".join(+left) or "there are no spans"
        raise InputError(
            f"No trace holds a question and what was found for it: {why}.", where=members[0].name
        )
    notes = [_TIMES]
    if again := sum(part.rows.height - part.rows["text"].n_unique() for part in parts):
        notes.append(f"{again} questions were asked before: each time counts as a question of its own.")
    runs = assemble(parts, options, importer=importer, source=source)
    return merged((runs, Import(left_out=counted(left, members[0].name), notes=tuple(notes))))


def _question(steps: Sequence[TraceSpan], left: Counter[str]) -> _Question | None:
    ids = {span.id for span in steps}
    roots = [span for span in steps if span.parent is None or span.parent not in ids]
    root = min(roots, key=lambda span: (span.parent is not None, span.start or 0.0), default=None)
    if root is None or root.failed:
        left[f"traces {'that ended with an error' if root else 'whose steps have no beginning'}"] += 1
        return None
    retrievers = _outermost_retrievers(steps)
    below = [span for span in steps if span.parent == root.id]
    text = next((span.question for span in (root, *below, *retrievers) if span.question), None)
    if text is None:
        left["traces without a question"] += 1
        return None
    models = [span for span in steps if span.kind == "model"]
    last = max((span for span in models if span.answer), key=lambda span: span.end or 0.0, default=None)
    # The passages that a lone retriever returned are not an answer.
    answers = root.kind not in ("retriever", "reranker", "embedding")
    answer = root.answer or (last.answer if last else None) if answers else None
    rerankers = [span for span in steps if span.kind == "reranker"]
    documents = _documents(retrievers, rerankers, left)
    if documents is None and answer is None:
        left["traces with neither retrieved passages nor an answer"] += 1
        return None
    sample = FormatSample(
        text=text,
        answer=answer,
        first_token_ms=last.first_token_ms if last and len(models) == 1 else None,
        contexts=None if documents is None else [document.text for document in documents],
        context_ids=None if documents is None else [document.id for document in documents],
        scores=[document.score for document in documents or ()],
        values=root.scores or {},
        signals={ASKED_AT: root.start} if root.start is not None else {},
        times=dict(_times({"retrieve": retrievers, "rerank": rerankers, "generate": models})),
        used=_used(steps),
    )
    settings = next((span.settings for span in retrievers if span.settings), {})
    return _Question(sample=sample, settings=settings, models={span.model for span in models if span.model})


def _outermost_retrievers(steps: Sequence[TraceSpan]) -> list[TraceSpan]:
    parents = {span.id: span.parent for span in steps}
    retrievers = [span for span in steps if span.kind == "retriever"]
    chosen = {span.id for span in retrievers}
    return [span for span in retrievers if not chosen.intersection(_above(span, parents))]


def _above(span: TraceSpan, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the steps that a step is part of, from the nearest to the farthest, stopping at a cycle."""
    up = span.parent
    for _ in range(_MOST_STEPS):
        if up is None or up == span.id:
            return
        yield up
        up = parents.get(up)


def _documents(
    retrievers: Sequence[TraceSpan], rerankers: Sequence[TraceSpan], left: Counter[str]
) -> tuple[Document, ...] | None:
    for steps, name in ((rerankers, "reranker"), (retrievers, "retriever")):
        sound = [span for span in steps if not span.failed]
        left[f"steps of a {name} that ended with an error"] += len(steps) - len(sound)
        lists = [span.documents for span in sound if span.documents is not None]
        left[f"steps of a {name} whose passages cannot be told"] += len(sound) - len(lists)
        if len(lists) == 1:
            if name == "reranker":
                left["lists of a retriever before its reranker: the reranked list counts"] += len(retrievers)
            return lists[0]
        if len(lists) > 1:
            left[f"rankings of traces with several {name} steps: none of them is the ranking"] += 1
            return None
    return None


def _times(stages: Mapping[str, Sequence[TraceSpan]]) -> Iterator[tuple[str, float]]:
    """Yield the times of stages that consist of a single step."""
    for stage, spans in stages.items():
        alone = spans[0] if len(spans) == 1 else None
        if alone is not None and not alone.failed and alone.ms is not None:
            yield stage, alone.ms


def _used(steps: Sequence[TraceSpan]) -> dict[tuple[str, str, str], float]:
    """Return (stage, model, unit) → tokens."""
    used: dict[tuple[str, str, str], float] = defaultdict(float)
    for span in steps:
        if stage := _STAGES.get(span.kind):
            for unit, count in span.tokens.items():
                used[stage, shown(span.model or UNNAMED), unit] += count
    return used


def _answered(project: str, questions: Sequence[_Question], members: Sequence[Member]) -> AnsweredSamples:
    settings = next((question.settings for question in questions if question.settings), {})
    models = sorted({model for question in questions for model in question.models})
    return replace(
        answered(members[0], [question.sample for question in questions]),
        label=project,
        digest=digest_of(members),
        spec=axes_of(settings) | ({"generator": shown(models[0])} if len(models) == 1 else {}),
        decided={"project": shown(project), "retriever": kept(settings), "models": kept(models)},
    )
