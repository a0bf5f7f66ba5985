"""The folder of a set of questions: the files for evaluations, golden sets and imports, and its origin.

``queries.jsonl`` and ``corpus.jsonl`` make a BEIR collection, ``quotes.csv`` is a golden set of judged spans,
``evaluation.toml`` a specification that runs stacks on them; ``set.json`` records how the set was made, and
every draft with its outcome.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from core.analysis.workspace.clusters import WORDS_IN_QUOTE
from core.errors import InputError
from core.files import read_json, replacing, write_json, write_text
from core.pipeline.index.terms import Analyzer
from core.records import JsonMap
from core.toml_text import toml_text
from core.work.questions.drafts import Draft, DraftMaterial, Quote
from core.work.questions.overlap import overlap

CORPUS, QUERIES, QUOTES = "corpus.jsonl", "queries.jsonl", "quotes.csv"
EVALUATION, ABOUT = "evaluation.toml", "set.json"
GRADE = 5  # Grade of the passage that a question was made from
_FILES = frozenset({CORPUS, QUERIES, QUOTES, EVALUATION, ABOUT})
_COLUMNS = ("query_id", "source", "start_char", "end_char", "quote", "grade")
REJECTED = "rejected by a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionEntry:
    """A draft of a set, with its outcome."""

    query_id: str
    draft: Draft
    reason: str = ""  # Why it was dropped; "" = it was kept
    reviews: tuple[JsonMap, ...] = ()  # People's reviews of it: by, act, text, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """A set of questions."""

    about: JsonMap  # How it was made
    entries: tuple[QuestionEntry, ...]

    @property
    def asked(self) -> tuple[QuestionEntry, ...]:
        """The kept questions."""
        return tuple(entry for entry in self.entries if not entry.reason)

    def counts(self) -> dict[str, int]:
        """Count the dropped drafts by reason."""
        reasons = [entry.reason for entry in self.entries if entry.reason]
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def numbered(kept: Sequence[Draft], dropped: Sequence[tuple[Draft, str]]) -> tuple[QuestionEntry, ...]:
    """Return numbered entries: q001… for kept questions, x001… for dropped ones."""
    width = max(3, len(str(max(len(kept), len(dropped)))))
    entries = [QuestionEntry(query_id=f"q{at:0{width}}", draft=draft) for at, draft in enumerate(kept, 1)]
    entries += [
        QuestionEntry(query_id=f"x{at:0{width}}", draft=draft, reason=reason)
        for at, (draft, reason) in enumerate(dropped, 1)
    ]
    return tuple(entries)


def refuse_taken(folder: Path) -> None:
    """Refuse a folder with any content other than a set of questions.

    Raises:
        InputError: If it is a file, or holds other files.
    """
    if not folder.exists():
        return
    others = [] if folder.is_dir() else [folder.name]
    others += [path.name for path in folder.iterdir() if path.name not in _FILES] if folder.is_dir() else []
    if others:
        raise InputError(
            f"The folder holds other things: {', '.join(sorted(others)[:3])}.",
            where=str(folder),
            do="Name a folder that does not exist.",
        )


def write(folder: Path, made: QuestionSet, material: DraftMaterial, collection: JsonMap) -> None:
    """Write a set whole or not at all; an earlier one in the same folder is replaced.

    Args:
        collection: The documents, as a specification names them.
    """
    refuse_taken(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing(folder) as draft:
        draft.mkdir()
        (draft / CORPUS).write_text("".join(_corpus(material)), encoding="utf-8")
        name = str(made.about["name"])
        (draft / EVALUATION).write_text(_evaluation(name, collection, folder), encoding="utf-8")
        save(draft, made)


def _corpus(material: DraftMaterial) -> Iterator[str]:
    for source, title, text in material.documents.select("source", "title", "text").iter_rows():
        yield _line({"_id": source, "title": title or "", "text": text, "metadata": {"source": source}})


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def save(folder: Path, made: QuestionSet) -> None:
    """Write the kept questions, the locations of their answers, and their origin into an existing folder."""
    analyzer, method = Analyzer(str(made.about["language"])), str(made.about["method"])
    rows = []
    for entry in made.asked:
        draft, share = entry.draft, overlap(entry.draft, analyzer)
        about = {"type": draft.kind, "method": method}
        about |= {"document": draft.quotes[0].source} if draft.quotes else {}
        about |= {} if share is None else {WORDS_IN_QUOTE: f"{share:.0%}"}
        about |= {"traffic": draft.part} if draft.part else {}
        rows.append(_line({"_id": entry.query_id, "text": draft.text, "metadata": about}))
    write_text(folder / QUERIES, "".join(rows))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in made.asked:
        for quote in entry.draft.quotes:
            writer.writerow((entry.query_id, quote.source, quote.start, quote.end, quote.text, GRADE))
    write_text(folder / QUOTES, table.getvalue())
    entries = [_plain(entry) for entry in made.entries]
    write_json(folder / ABOUT, {**made.about, "thrown_out": made.counts(), "questions": entries})


def _plain(entry: QuestionEntry) -> JsonMap:
    usual = {field.name: field.default for field in fields(Draft)}
    draft = {name: value for name, value in asdict(entry.draft).items() if value != usual[name]}
    rest = {"reason": entry.reason, "reviews": list(entry.reviews)}
    return {"query_id": entry.query_id, **draft, **{name: value for name, value in rest.items() if value}}


def _evaluation(name: str, collection: JsonMap, folder: Path) -> str:
    """Return a specification that runs stacks on the questions; paths are absolute."""
    named = {f"collection.{key}": value for key, value in collection.items()}
    head = {"name": name, "preset": "quick-local", **named}
    folder = folder.absolute()
    golden = folder / QUOTES
    return toml_text(("", {**head, "queries": str(folder / QUERIES), "golden_set": str(golden)}))


def read(folder: Path) -> QuestionSet:
    """Read a set.

    Raises:
        InputError: If there is none.
    """
    about = read_json(folder / ABOUT)
    if about is None or not isinstance(about.get("questions"), list):
        problem = "This is not a set of questions."
        raise InputError(problem, where=str(folder), do="Make one: golden questions.")
    entries = tuple(_entry(row) for row in about.pop("questions"))
    return QuestionSet(about=about, entries=entries)


def _entry(row: dict[str, Any]) -> QuestionEntry:
    own = {name: row.pop(name) for name in ("query_id", "reason") if name in row}
    reviews, quotes = tuple(row.pop("reviews", ())), tuple(Quote(**each) for each in row.pop("quotes", ()))
    return QuestionEntry(**own, draft=Draft(**row, quotes=quotes), reviews=reviews)
