"""Makes a set of questions in its folder, or resumes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from core.pipeline.evaluate.identity import billed_by
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, work_through
from core.work.questions.drafts import LOG, Draft
from core.work.questions.folder import QuestionEntry, QuestionSet, numbered, refuse_taken, write
from core.work.questions.job import QuestionsJob, clustered, documents_named
from core.work.questions.known import HEADINGS, headings, known_items
from core.work.questions.logs import strata
from core.work.questions.overlap import mean_overlap
from core.work.questions.rules import CLOSED_BOOK, UNUSABLE, Screened, screen
from core.work.questions.writing import DRAFT, KNOWN, TWIN, Writing, of_each_kind

SET = "set"  # Folder of the result within the work's folder
_SPARE = 2  # Queries drawn by rule for each requested one, because near copies are dropped
_TWIN = "-twin"
_EXAMPLES = 3  # Questions shown once they are made


def run_job(job: QuestionsJob, *, site: Site) -> Result:
    """Make the set; result and errors as in `session.work_through`."""
    if job.spec.out is not None:
        refuse_taken(job.spec.out)
    model = job.spec.model
    order = WorkOrder(
        work_id=job.job_id,
        name=job.spec.name,
        collection_id=job.collection_id,
        spec={**job.spec.plain(), "collection": documents_named(job.spec)},
        manifest=job.manifest(),
        models=job.spec.models,
        book=job.book,
        budget_usd=job.spec.budget_usd,
        billed=billed_by("chat", model, job.spec.models) if model else [],
    )
    return work_through(order, partial(made, job), site)


def made(job: QuestionsJob, session: Session) -> str:
    """Make a set in a session, and write it.

    Returns:
        The folder that holds it.
    """
    writing = Writing(job, session) if job.spec.model else None
    stages = {DRAFT: 1, **({KNOWN: int(job.spec.closed_book), TWIN: int(job.spec.twins)} if writing else {})}
    session.tracker.expect(stages)
    if writing is None:
        session.tracker.begin(DRAFT, "draw queries")
        kept, dropped = drawn(job)
        session.tracker.end()
    else:
        kept, dropped = _written(job, writing)
    folder = job.spec.out or session.folder.path / SET
    entries = numbered(kept, dropped)
    spent = session.budget.usd
    _write(job, folder, entries, spent)
    twins = _twins(job, writing, entries, folder, spent) if writing and job.spec.twins else 0
    facts: dict[str, Any] = {
        "folder": str(folder.absolute()),
        "questions": len(kept),
        "documents": len({quote.source for draft in kept for quote in draft.quotes}),
        "thrown_out": QuestionSet(about={}, entries=entries).counts(),
        "overlap": mean_overlap(kept, job.material.analyzer),
        "twins": twins,
    }
    session.tracker.tell(facts={**facts, "examples": [draft.text for draft in kept[:_EXAMPLES]]})
    session.log.write("made", **facts)
    return str(folder.absolute())


def drawn(job: QuestionsJob) -> tuple[list[Draft], list[tuple[Draft, str]]]:
    """Return queries by rule, and the dropped ones."""
    material, seed, count = job.material, job.spec.seed, job.spec.count
    if job.spec.method == LOG and job.asked is not None:
        topics = clustered([text for text, _ in job.asked.questions])
        drafts = strata(job.asked, _SPARE * count, material.analyzer, seed, topics)
    else:
        draw = headings if job.spec.method == HEADINGS else known_items
        drafts = list(islice(draw(material, seed), _SPARE * count))
    screened = _until(drafts, count, lambda some: screen(some, material))
    return screened.kept, screened.dropped


def _until(drafts: Sequence[Draft], count: int, parts: Callable[[Sequence[Draft]], Screened]) -> Screened:
    """Split only as many drafts as leave `count`, so that superfluous ones do not count as dropped."""
    whole = parts(drafts)
    if len(whole.kept) <= count:
        return whole
    last = whole.kept[count - 1].text
    looked = next(at for at, draft in enumerate(drafts, 1) if " ".join(draft.text.split()) == last)
    return parts(drafts[:looked])


def _written(job: QuestionsJob, writing: Writing) -> tuple[list[Draft], list[tuple[Draft, str]]]:
    """Return a model's usable questions, and the dropped ones."""
    drafts = writing.drafts()
    unread = [(draft, UNUSABLE) for draft in drafts if not draft.text]
    screened = screen([draft for draft in drafts if draft.text], job.material)
    kept, dropped = screened.kept, [*unread, *screened.dropped]
    if job.spec.closed_book:
        known = writing.known(kept)
        dropped += [(draft, CLOSED_BOOK) for draft, knows in zip(kept, known, strict=True) if knows]
        kept = [draft for draft, knows in zip(kept, known, strict=True) if not knows]
    taken, _ = of_each_kind(kept, job.spec.count)
    return taken, dropped


def _write(job: QuestionsJob, folder: Path, entries: tuple[QuestionEntry, ...], usd: float) -> None:
    about = {
        "name": job.spec.name,
        "method": job.spec.method,
        "language": job.material.language,
        "seed": job.spec.seed,
        "usd": usd,
        "one_known_passage": all(len(entry.draft.quotes) == 1 for entry in entries if not entry.reason),
        "manifest": job.manifest(),
    }
    if job.asked is not None:
        about["log"] = {
            "rows": job.asked.rows,
            "different": len(job.asked.questions),
            "head": job.asked.head(),
            "masked": job.asked.masked,
        }
    write(folder, QuestionSet(about=about, entries=entries), job.material, documents_named(job.spec))


def _twins(
    job: QuestionsJob, writing: Writing, entries: tuple[QuestionEntry, ...], folder: Path, usd: float
) -> int:
    """Write paraphrases of the questions beside the set; return their number."""
    asked = {entry.query_id: entry.draft for entry in entries if not entry.reason}
    said = {draft.twin_of: draft for draft in writing.twins(list(asked.items()))}
    screened = screen(said.values(), job.material)
    kept = {draft.twin_of: draft for draft in screened.kept}
    twins = tuple(
        QuestionEntry(query_id=name, draft=replace(kept[name], twin_of=name))
        for name in asked
        if name in kept
    )
    dropped = tuple(
        QuestionEntry(query_id=f"x{draft.twin_of}", draft=draft, reason=reason)
        for draft, reason in screened.dropped
    )
    _write(job, folder.with_name(f"{folder.name}{_TWIN}"), (*twins, *dropped), usd)
    return len(twins)
