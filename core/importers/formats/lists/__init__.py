"""Lists of passages by query, as tools for search and evaluation write them: runs, judgements, measures.

Each tool recognises its files and reads their contents (`Lists.gather`); the rest happens here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.judgements import golden_set
from core.importers.read.member import Archive, Member, members_of
from core.importers.runs import collection_frames, collection_of
from core.importers.samples import FormatSample, answered, assemble

_JUDGED = pl.Schema({"query_id": pl.String(), "passage_id": pl.String(), "grade": pl.String()})
_AGAIN = "judgements that stand again with the same grade"


@dataclass(kw_only=True)
class ListedResults:
    """Contents of a file."""

    samples: dict[str, list[FormatSample]] = field(default_factory=dict)  # name of the run → its queries
    # query, passage and grade; a grade of None was not given
    judged: list[tuple[str, str, object]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # query → its text, for queries that are only judged
    specs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # name of the run → axes
    figures: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)  # → aggregates
    left: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def unseen(tool: str, built: str = "built from the documentation") -> str:
    """Return the note that no real file of a tool was available (`Format.untried`)."""
    return f"{built}: no file that {tool} wrote was tried"


def scored(each: str) -> dict[str, str]:
    """Describe how measures given per query are imported (`Format.takes`)."""
    return {"signals": each, "aggregates": "the mean of these"}


class ResultLists(Format):
    """Files with lists of passages by query."""

    names_collection = 1

    @abstractmethod
    def gather(self, member: Member, options: Options) -> ListedResults:
        """Return the contents of a file."""

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every file: its runs, and its judgements as a separate golden set."""
        held = [(member, self.gather(member, options)) for member in members_of(archives)]
        source = f"imported: {self.title}"
        parts = [
            replace(
                answered(member, samples),
                label=label,
                decided={"run": label} if label else {},
                spec=dict(listed.specs.get(label, {})),
                figures=listed.figures.get(label, ()),
            )
            for member, listed in held
            for label, samples in listed.samples.items()
        ]
        if not parts and not any(listed.judged for _, listed in held):
            raise InputError("It holds no list of passages and no judgement.", where=archives[0].name)
        runs = assemble(parts, options, importer=self.name, source=source) if parts else Import()
        alone = Import() if parts else Import(collections=collection_of(options, source))
        return merged([runs, alone, *(_rest(member, listed, options) for member, listed in held)])


def _rest(member: Member, listed: ListedResults, options: Options) -> Import:
    """Return the judgements of a file, and what was left out."""
    left = Import(left_out=counted(listed.left, member.name), notes=tuple(listed.notes))
    if not listed.judged:
        return left
    cells = [
        (query, passage, None if grade is None else str(grade)) for query, passage, grade in listed.judged
    ]
    rows = pl.DataFrame(cells, schema=_JUDGED, orient="row")
    once = rows.unique(maintain_order=True).with_columns(line=pl.int_range(1, pl.len() + 1))
    again = Import(left_out=counted({_AGAIN: rows.height - once.height}, member.name))
    asked = pl.DataFrame(list(listed.texts.items()), schema=["query_id", "text"], orient="row")
    texts = Import() if asked.is_empty() else Import(frames=collection_frames(options, asked))
    return merged((left, again, texts, golden_set(once, member.name, member.stem, options, from_zero=True)))
