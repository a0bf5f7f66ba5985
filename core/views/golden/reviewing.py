"""Review of a set of questions by people: the next question, the decisions, and whether two agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Literal, get_args

from core.errors import InputError
from core.files import locked
from core.records import JsonMap
from core.views.text import count
from core.work.questions.folder import REJECTED, QuestionEntry, QuestionSet, read, save

Act = Literal["accept", "edit", "reject", "skip", "undo"]
_DECIDES = ("accept", "edit", "reject")
_LOCK = ".review.lock"
_WORDS = {"accept": "accepted", "edit": "edited", "reject": "rejected"}


def following(made: QuestionSet, name: str) -> QuestionEntry | None:
    """Return the next question a person hasn't decided, postponed ones last, or None if none is left."""
    left = [entry for entry in made.entries if _open(entry) and not _decided(entry, name)]
    return min(left, key=lambda entry: sum(one["by"] == name for one in entry.reviews), default=None)


def _decided(entry: QuestionEntry, name: str) -> str:
    """Return the reviewer's latest decision on a question, or "" if there is none."""
    return next(
        (str(one["act"]) for one in entry.reviews[::-1] if one["by"] == name and one["act"] in _DECIDES), ""
    )


def decide(folder: Path, name: str, query_id: str, act: str, *, text: str = "", seconds: float = 0.0) -> str:
    """Record a person's decision, and rewrite the set.

    Raises:
        InputError: If there is no such question, or an edited one is empty.
    """
    if act not in get_args(Act):
        raise InputError(f"There is no way to {act!r} a question.")
    with locked(folder.with_name(f"{folder.name}{_LOCK}"), wait=lambda: None):
        made = read(folder)
        review = {"by": name, "act": act, "seconds": round(seconds, 1)}
        changed = (
            _undone(made, name) if act == "undo" else _after(made, query_id, review, " ".join(text.split()))
        )
        save(folder, changed)
    return ""


def _after(made: QuestionSet, query_id: str, review: JsonMap, text: str) -> QuestionSet:
    """Return the set after one question was reviewed."""
    if review["act"] == "edit" and not text:
        raise InputError("The question has no words.", do="Write some, or reject it.")
    entries = list(made.entries)
    places = [at for at, entry in enumerate(entries) if entry.query_id == query_id and _open(entry)]
    if not places:
        raise InputError(f"No question {query_id!r} is asked.")
    entry = entries[places[0]]
    entries[places[0]] = replace(
        entry,
        draft=replace(entry.draft, text=text) if review["act"] == "edit" else entry.draft,
        reason=REJECTED if review["act"] == "reject" else entry.reason,
        reviews=(*entry.reviews, {**review, "before": entry.draft.text}),
    )
    last = [*_last(made), [str(review["by"]), query_id]]
    return replace(made, entries=tuple(entries), about={**made.about, "last": last})


def _open(entry: QuestionEntry) -> bool:
    return entry.reason in ("", REJECTED)


def _last(made: QuestionSet) -> list[list[str]]:
    return [list(map(str, one)) for one in made.about.get("last", ())]


def _undone(made: QuestionSet, name: str) -> QuestionSet:
    """Return the set without the person's latest decision."""
    last = _last(made)
    at = next((at for at in range(len(last) - 1, -1, -1) if last[at][0] == name), None)
    if at is None:
        return made
    entries = [
        _without_last(entry, name) if entry.query_id == last[at][1] else entry for entry in made.entries
    ]
    return replace(made, entries=tuple(entries), about={**made.about, "last": [*last[:at], *last[at + 1 :]]})


def _without_last(entry: QuestionEntry, name: str) -> QuestionEntry:
    at = max(at for at, one in enumerate(entry.reviews) if one["by"] == name)
    gone, kept = entry.reviews[at], (*entry.reviews[:at], *entry.reviews[at + 1 :])
    draft = replace(entry.draft, text=str(gone["before"])) if gone["act"] == "edit" else entry.draft
    rejected = any(one["act"] == "reject" for one in kept)
    return replace(entry, draft=draft, reason=REJECTED if rejected else "", reviews=kept)


def progress(made: QuestionSet, name: str) -> str:
    """State a person's progress and pace."""
    own = [entry for entry in made.entries if _decided(entry, name)]
    whole = sum(map(_open, made.entries))
    spent = [float(one["seconds"]) for entry in own for one in entry.reviews if one["by"] == name]
    pace = f", {median(spent):.0f} s each" if spent else ""
    return f"{len(own)} of {count(whole, 'question')} reviewed by {name}{pace}. {agreement(made)}".rstrip()


def over(made: QuestionSet, name: str) -> str:
    """State the result of a review."""
    acts = [act for entry in made.entries if (act := _decided(entry, name))]
    said = ", ".join(f"{acts.count(act)} {word}" for act, word in _WORDS.items())
    return f"All reviewed: {said}. The files of the set are as you left them."


def agreement(made: QuestionSet) -> str:
    """State how often two reviewers of the same questions agree on keeping them, or return ""."""
    names = sorted({str(one["by"]) for entry in made.entries for one in entry.reviews})
    pairs = [
        (_decided(entry, one) == "reject", _decided(entry, other) == "reject")
        for entry in made.entries
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if _decided(entry, one) and _decided(entry, other)
    ]
    if not pairs:
        return ""
    same = sum(one == other for one, other in pairs)
    return f"Two people agree on {same} of {count(len(pairs), 'question')}."
