"""What is known of a collection's ids and texts: in the store, and in an import."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from core.importers import Import
from core.importers.read.text import shown
from core.importers.rewriting import rewritten
from core.importers.runs import ID_COLUMNS
from core.store import Snapshot
from core.store.rules import RULES
from core.tables import TABLES, Frame, Pieces, frame

AMONG = {"judgements": "are judged in", "rankings": "are ranked in", "signals": "are scored in"}
"""Tables that use ids of a collection without defining them, and what they say of those."""
_SAMPLE = 2_000_000  # Number of rows checked in a table larger than memory
_COMPARED, _PART, _QUOTED = 10_000, 20, 60  # texts compared; least part of one, characters; of an example
_BOTH = {"id": pl.String, "ours": pl.String, "theirs": pl.String}
_BLANKS = re.compile(r"\s+")


def some_of(rows: Frame) -> tuple[pl.LazyFrame, int | None]:
    """Return the rows, or an even sample if they are larger than memory, and the sample's size."""
    if not isinstance(rows, Pieces):
        return rows.lazy(), None
    whole = int(rows.lazy().select(pl.len()).collect().item())
    if whole <= _SAMPLE:
        return rows.lazy(), None
    share = max(1, _SAMPLE // len(rows.frames))
    some = [head.head(share) for head in rows.frames]
    return pl.concat(some), sum(head.select(pl.len()).collect().item() for head in some)


@dataclass(frozen=True, slots=True)
class Reference:
    """The table that defines a collection's ids, and whether it holds only judgements of the import."""

    table: str
    own_judgements: bool = False


class ImportShelf:
    """Known ids of one collection: those in the store, and those in the import."""

    def __init__(self, snapshot: Snapshot, imported: Import, name: str, wholes: Mapping[str, str]) -> None:
        self._snapshot, self._made, self.name = snapshot, imported, name
        self._mine = [name, *(part for part, whole in wholes.items() if whole == name)]
        stored = snapshot.collections(parts=True)["collection_id"]
        whole: Mapping[str, list[str]] = {
            "collection": stored.filter(stored.is_in(self._mine)).to_list(),
            "golden_set": snapshot.golden_sets(name, parts=True)["golden_set_id"].to_list(),
            "run": snapshot.runs(name)["run_id"].to_list(),
        }
        self._owners = {table: whole[rules.kind] for table, rules in RULES.items()}

    def reference(self, what: str) -> Reference | None:
        """Return the collection's own table, or its judgements or rankings, or imported judgements."""
        if self.stored(what) or self._brought(what).head(1).collect().height:
            return Reference(what)
        if table := self.used(what):
            return Reference(table)
        return Reference("judgements", own_judgements=True) if "judgements" in self._made.frames else None

    def used(self, what: str) -> str | None:
        """Find a table with ids of a kind that are not the collection's own; None if there is none."""
        tables = (table for table in AMONG if ID_COLUMNS[what] in TABLES[table])
        return next((table for table in tables if self.stored(table)), None)

    def _brought(self, table: str) -> pl.LazyFrame:
        """Return the import's rows of queries or passages for this collection."""
        rows = self._made.frames.get(table, frame(table, [])).lazy()
        return rows.filter(pl.col("collection_id").is_in(self._mine))

    def brings(self, what: str, column: str) -> list[str]:
        """Return ids of the import's queries or passages for this collection."""
        return self._brought(what).select(column).unique().collect().to_series().to_list()

    def stored(self, table: str) -> bool:
        """Return whether the store has rows of a table for this collection."""
        return not self._snapshot.sizes(table).filter(pl.col("id").is_in(self._owners[table])).is_empty()

    def texts(self, what: str, ids: Sequence[str], strip: str | None = None) -> SharedTexts:
        """Return the texts of some ids that both the import and the store have; an even sample if many.

        Args:
            strip: How the import's ids are rewritten, those for another collection too; None = as they are.
        """
        column = ID_COLUMNS[what]
        if not ({what} & {*self._made.frames, *self._made.texts} and self.stored(what)):
            return SharedTexts(what)
        some = ids if len(ids) <= _COMPARED else ids[:: -(-len(ids) // _COMPARED)]
        rows = self._brought(what) if strip is None else self._made.frames.get(what, frame(what, [])).lazy()
        brought = [rows.select(id=column, ours="text")]
        if what in self._made.texts:
            brought.append(self._made.texts[what].lazy().select("id", ours="text"))
        asked = pl.Series(some, dtype=pl.String).implode()
        mine = pl.concat(brought)
        mine = mine if strip is None else mine.with_columns(rewritten(pl.col("id"), strip))
        ours = mine.filter(pl.col("id").is_in(asked), pl.col("ours") != "").collect()
        there = [
            self._snapshot.queries(owner)
            if what == "queries"
            else self._snapshot.passages(owner, ours["id"].to_list())
            for owner in self._owners[what]
        ]
        theirs = pl.concat(rows.select(id=column, theirs="text") for rows in there)
        pairs = ours.unique("id").join(theirs.filter(pl.col("theirs") != "").unique("id"), on="id").sort("id")
        return SharedTexts(what, pairs, None if len(some) == len(ids) else pairs.height)

    def existing(
        self,
        of: Reference,
        column: str,
        asked: Sequence[str] | None,
        most: int = 0,
        *,
        stored: bool = False,
    ) -> list[str]:
        """Return existing ids: those in the store or the import, or in the store alone if `stored`."""
        owners = self._owners[of.table]
        existing = set(self._snapshot.existing(of.table, owners, column, asked, most=most))
        if stored:
            return sorted(existing)
        if of.own_judgements or of.table in ID_COLUMNS:
            rows = self._made.frames[of.table].lazy() if of.own_judgements else self._brought(of.table)
            ids = rows.select(column).unique().collect().to_series()
            existing |= set(ids if asked is None else ids.filter(ids.is_in(list(asked))))
        return sorted(existing)[: most or None]


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Ids with texts in both an import and a collection."""

    what: str  # "queries" or "passages"
    pairs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_BOTH))  # id, ours, theirs
    compared: int | None = None  # number of compared ids, if not all

    @property
    def differ(self) -> set[str]:
        """The ids whose texts differ; a passage may be the beginning or a part of the other."""
        ours, theirs = (_plain(pl.col(side)) for side in ("ours", "theirs"))
        rows = self.pairs.select("id", ours, theirs).filter(pl.col("ours") != pl.col("theirs"))
        if self.what == "queries":
            return set(rows["id"])
        return {
            name for name, one, other in rows.iter_rows()
            if min(len(one), len(other)) < _PART or (one not in other and other not in one)
        }  # fmt: skip

    @property
    def unlike(self) -> bool:
        """Whether most of the ids mean something else on either side, and so are alike by chance."""
        return self.pairs.height > 0 and 2 * len(self.differ) >= self.pairs.height

    def example(self, differ: set[str], collection_id: str) -> str:
        """Describe the two meanings of one id."""
        row = self.pairs.filter(pl.col("id").is_in(sorted(differ)[:1])).row(0, named=True)
        ours, theirs = (shown(_BLANKS.sub(" ", row[side]), _QUOTED) for side in ("ours", "theirs"))
        return f"{shown(row['id'])} is “{ours}” in the files, and “{theirs}” in {shown(collection_id)}."


def _plain(text: pl.Expr) -> pl.Expr:
    """Return texts without irrelevant differences: case, blanks, and marks at the end."""
    return text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars(" .?!…")
