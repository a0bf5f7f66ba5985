"""How far the ids in an import match its target collection's.

An id on both sides with different texts does not mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

import polars as pl

from core.errors import InputError
from core.importers import Import
from core.importers.read.text import shown
from core.importers.rewriting import ADD, STAR, WRITINGS, all_rewritten, in_words
from core.importers.runs import ID_COLUMNS
from core.number_format import count
from core.store import Snapshot
from core.store.rules import RULES
from core.tables import TABLES
from core.work.imports.shelf import AMONG, ImportShelf, Reference, some_of

_FEW, _TRIED, _LONGEST, _PAIRS = 3, 200, 40, 400  # ids shown; ids tried, how long they are, pairs of cuts
_MOST, _HALF = 0.95, 0.5  # Shares of ids from which on a stripped pattern, or a collection, fits
_JUDGED = 0.05  # The same for a pattern if only judged or ranked ids are known: most ranked ones are unjudged
_OWNED = ("rankings", "judgements", "timings", "answers", "answer_scores", "signals", "usage")
Unmatched = Literal["refuse", "take", "own"]
"""Handling of runs and judgements that name nothing in their collection."""
_NAMES = {"queries": ("query", "queries"), "passages": ("passage", "passages")}
_MOST_TRIED = 50  # collections, the latest ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The number of ids of one kind that exist in a collection."""

    collection_id: str  # the collection
    what: str  # "queries" or "passages"
    among: str  # table with the ids of the collection: its own, otherwise its judgements or rankings
    offered: int  # distinct ids in the import
    known: int  # how many of them exist, except those with another text there
    strangers: tuple[str, ...]  # labels of the runs and golden sets without any existing id
    foreign: tuple[str, ...]  # examples of missing ids
    held: tuple[str, ...]  # examples of ids that the collection has
    # Pattern (`core.importers.runs`) with which nearly all exist if none does without; or None
    strip: str | None = None
    fit: int = 0  # how many exist with the pattern
    # Whether the list of ids comes with the same import, and nothing of it is stored
    own: bool = False
    # Number of rows checked if the import is larger than memory; None = all of them
    sampled: int | None = None
    differ: int = 0  # how many exist there with another text
    compared: int | None = None  # number of compared texts, if there were too many; otherwise None
    other_text: str = ""  # one that differs, with both texts

    @property
    def defined(self) -> bool:
        """Whether the collection's own table defines its ids."""
        return self.among == self.what

    def __str__(self) -> str:
        """Return in words: ``222 of 225 queries (98 %) exist in cranfield``."""
        return f"{self.share} {self.where}{self.alike}"

    @property
    def where(self) -> str:
        """State where the existing ids are: ``exist in cranfield``."""
        sample = "" if self.sampled is None else f", in a sample of {self.sampled:,} rows"
        return f"{AMONG.get(self.among, 'exist in')} {shown(self.collection_id)}{sample}"

    @property
    def share(self) -> str:
        """How many exist: ``222 of 225 queries (98 %)``; for ids with another text ``55 of 80 query ids``."""
        there, names = self.known + self.differ, _NAMES[self.what]
        share = f" ({100 * there // self.offered} %)" if self.offered > _FEW else ""
        names = (f"{names[0]} id", f"{names[0]} ids") if self.differ else names
        return f"{there:,} of {count(self.offered, *names)}{share}"

    @property
    def alike(self) -> str:
        """State how many have the same text, if some have another: ``, 0 with the same text``."""
        few = "" if self.compared is None else f" by {self.compared:,} that were compared"
        return f", {self.known:,} with the same text{few}" if self.differ else ""

    @property
    def examples(self) -> str:
        """Ids of both sides, or one with both texts; "" if all exist."""
        if self.other_text or not self.foreign:
            return self.other_text
        ours, theirs = (", ".join(map(shown, ids)) for ids in (self.foreign, self.held))
        how = (
            f" Written {in_words(self.strip)}, {self.fit:,} of {self.offered:,} match." if self.strip else ""
        )
        return f"The files name {self.what} such as {ours}; the collection has {theirs}.{how}"


class UnmatchedError(InputError):
    """An import names nothing that its collection has, and nobody has confirmed that this is intended.

    Attributes:
        matches: The matches without any existing id.
    """

    most = 1_000  # it lists ids of both sides, each of them short

    def __init__(self, matched: Sequence[Match], more: Sequence[str] = ()) -> None:
        who = ", ".join(map(shown, matched[0].strangers[:_FEW]))
        said = f"{'; '.join(map(str, matched))}: nothing of {who}."
        super().__init__(" ".join([said, *(match.examples for match in matched)]), do=ways(matched, more))
        self.matches = tuple(matched)


def ways(matched: Sequence[Match], more: Sequence[str] = ()) -> str:
    """List the options of the command line that resolve refused matches, and further ones."""
    strips = " ".join(f"--strip '{match.what}={match.strip}'" for match in matched if match.strip)
    return "; or ".join(
        [
            "Name the right collection (--collection)",
            *([f"write the ids as the collection does ({strips})"] if strips else []),
            *more,
            "make a collection of its own (--unmatched own)",
            "take it all the same (--unmatched take).",
        ]
    )


def matches(snapshot: Snapshot, imported: Import, into: str | None = None) -> tuple[Match, ...]:
    """Compare the ids in an import with its collections' ids.

    Args:
        into: A collection that everything goes into; None = those that the import names.

    Returns:
        One for each collection and kind of id with known ids; none for a new collection that
        comes without queries, passages and judgements.
    """
    stored = snapshot.collections(parts=True).drop_nulls("part_of").select("collection_id", "part_of")
    wholes = dict(stored.iter_rows())  # part with the chunks of a collection → that collection
    wholes |= {
        collection.collection_id: collection.part_of
        for collection in imported.collections
        if collection.part_of
    }
    owners = _owners(imported, into, wholes)
    matched = []
    for what, column in ID_COLUMNS.items():
        named, sampled = _named(imported, column)
        rows = named.join(owners, on="owner")
        for (name,), some in rows.partition_by("collection", as_dict=True).items():
            shelf = ImportShelf(snapshot, imported, str(name), wholes)
            if of := shelf.reference(what):
                matched += _match(
                    shelf, of, what, some.filter("ranks") if of.own_judgements else some, sampled
                )
    # A pattern for queries is useless if not a single passage would exist anyway.
    lost = {
        match.collection_id for match in matched if match.what == "passages" and not match.known + match.fit
    }
    useful = [
        replace(match, strip=None, fit=0)
        if match.what == "queries" and match.collection_id in lost
        else match
        for match in matched
    ]
    return tuple(sorted(useful, key=lambda match: match.collection_id))


def refused(matched: Sequence[Match]) -> list[Match]:
    """Return the matches without any existing id: among the collection's own ids, or else all known ones.

    If only judged ids are known, runs may well rank none of them; if a pattern finds some, they are
    the same ids in another notation.
    """
    weak = [match for match in matched if not match.defined]
    foreign = {match.collection_id for match in weak} - {match.collection_id for match in weak if match.known}
    weak_ones = [match for match in weak if match.collection_id in foreign and not match.known]
    return [
        match
        for match in matched
        if match.strangers and (match.defined or match.strip is not None or match in weak_ones)
    ]


def fits(matched: Sequence[Match]) -> bool:
    """Return whether an import may belong to a collection: at least half of its ids exist there.

    Without passages, only a collection's judged or ranked ids are known; one of them is enough. A collection
    without any known ids fits nothing: the import's own ids prove nothing.
    """
    return any(not match.own for match in matched) and all(
        match.known >= _HALF * match.offered if match.defined or match.what == "queries" else match.known > 0
        for match in matched
    )


def suggested(snapshot: Snapshot, imported: Import) -> tuple[Match, ...]:
    """Return a new collection's matches with the stored collection that it fits best."""
    return next(iter(_fitting(snapshot, imported)), ())


def _fitting(snapshot: Snapshot, imported: Import) -> list[tuple[Match, ...]]:
    """Return a new collection's matches with each stored collection that it may belong to, best first."""
    if not belongs_anywhere(imported, frozenset(snapshot.collections()["collection_id"])):
        return []
    tried = [matches(snapshot, imported, name) for name in _latest(snapshot)]
    return sorted((matched for matched in tried if fits(matched)), key=_share, reverse=True)


def _share(matched: Sequence[Match]) -> float:
    return sum(match.known / match.offered for match in matched)


def _latest(snapshot: Snapshot) -> list[str]:
    return snapshot.collections()["collection_id"].to_list()[-_MOST_TRIED:]


def _names(imported: Import) -> set[str]:
    return {run.collection_id for run in imported.runs} | {
        golden_set.collection_id for golden_set in imported.golden_sets
    }


def belongs_anywhere(imported: Import, known: frozenset[str]) -> bool:
    """Return whether an import names ids of one collection only, which neither it nor the store defines."""
    named = _names(imported)
    return (
        len(named) == 1
        and not named & known
        and not {"queries", "passages", "chunks"} & imported.frames.keys()
    )


def follows(snapshot: Snapshot, imported: Import, workspace: str | None) -> str | None:
    """Find the stored collection that an import belongs to if nobody named one; None for a new one.

    It is the open workspace if at least half of the ids exist there, or of the ids in use there come with
    their texts. Without an open one it is the only collection of which that is true, or the one that has
    more of the ids than any other; and for a table of queries alone the only one that has nearly all of them.
    """
    if _names(imported) & frozenset(snapshot.collections(parts=True)["collection_id"]):
        return None  # It says itself where it belongs, such as a sheet of judgements of chunks.
    known = frozenset(snapshot.collections()["collection_id"])
    if workspace and belongs_anywhere(imported, known) and fits(matches(snapshot, imported, workspace)):
        return workspace
    users = [name for name in ([workspace] if workspace else _latest(snapshot))
             if _are_texts_of(snapshot, imported, name, known)]  # fmt: skip
    if len(users) == 1:
        return users[0]
    if {"rankings", "judgements", "spans"} & imported.frames.keys():
        return None if workspace else _best(_fitting(snapshot, imported))
    if not belongs_anywhere(imported, known):
        return None
    tried = {name: matches(snapshot, imported, name) for name in _latest(snapshot)}
    whole = [
        name
        for name, matched in tried.items()
        if matched and all(match.known >= _MOST * match.offered for match in matched)
    ]
    return whole[0] if len(whole) == 1 else None


def _best(fitting: Sequence[Sequence[Match]]) -> str | None:
    """Return the collection that has more of the ids than any other, or None."""
    if not fitting or (len(fitting) > 1 and _share(fitting[1]) == _share(fitting[0])):
        return None
    return fitting[0][0].collection_id


def _are_texts_of(snapshot: Snapshot, imported: Import, workspace: str, known: frozenset[str]) -> bool:
    """Return whether an import has the texts of queries or passages that a collection uses but lacks."""
    named = {collection.collection_id for collection in imported.collections}
    if imported.runs or len(named) != 1 or named & known or "chunks" in imported.frames:
        return False
    shelf = ImportShelf(snapshot, Import(), workspace, {})
    brought = [what for what in ID_COLUMNS if what in imported.frames]
    return bool(brought) and all(_is_covered(shelf, imported, what) for what in brought)


def _is_covered(shelf: ImportShelf, imported: Import, what: str) -> bool:
    """Return whether texts come for at least half of the used ids, none of which has its text."""
    column, used = ID_COLUMNS[what], shelf.used(what)
    if used is None or shelf.stored(what):
        return False
    ids = shelf.existing(Reference(used), column, None)
    rows, _ = some_of(imported.frames[what])
    come = set(rows.select(column).unique().collect().to_series())
    return bool(ids) and len(come.intersection(ids)) >= _HALF * len(ids)


def _owners(imported: Import, into: str | None, wholes: Mapping[str, str]) -> pl.DataFrame:
    """Return runs and golden sets of an import: owner, label, collection, ranks (whether it is a run)."""
    named = [(run.run_id, run.label, run.collection_id, True) for run in imported.runs]
    named += [
        (golden_set.golden_set_id, golden_set.name, golden_set.collection_id, False)
        for golden_set in imported.golden_sets
    ]
    rows = [(*who, into or wholes.get(name, name), ranks) for *who, name, ranks in named]
    columns = {"owner": pl.String, "label": pl.String, "collection": pl.String, "ranks": pl.Boolean}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _named(imported: Import, column: str) -> tuple[pl.DataFrame, int | None]:
    """Return owner and id of everything that runs and golden sets name, without duplicates.

    If the rows are a sample, their number is returned too.
    """
    parts, sampled = [pl.DataFrame(schema={"owner": pl.String, "id": pl.String})], None
    for table in _OWNED:
        if table not in imported.frames or column not in TABLES[table]:
            continue
        rows, some = some_of(imported.frames[table])
        sampled = some if some is not None else sampled
        named = rows.select(pl.col(RULES[table].owner).alias("owner"), pl.col(column).alias("id"))
        parts.append(named.drop_nulls().unique().collect())
    return pl.concat(parts).unique(maintain_order=True), sampled


def _match(
    shelf: ImportShelf, of: Reference, what: str, rows: pl.DataFrame, sampled: int | None
) -> list[Match]:
    """Return the match of some ids; none if there are no ids."""
    column = ID_COLUMNS[what]
    ids = rows["id"].unique().sort()
    if ids.is_empty():
        return []
    found = shelf.existing(of, column, ids.to_list())
    texts = shelf.texts(what, found)
    if differ := texts.differ:  # new ids say nothing about a collection that means others by them
        found = shelf.existing(Reference(what), column, found, stored=True)
        if texts.compared is not None and 2 * len(differ) >= texts.compared:
            differ = set(found)
    there = pl.Series("there", sorted({*found} - differ), dtype=pl.String)
    named = [*there, *(shelf.brings(what, column) if differ else ())]  # of an imported collection, too
    marked = rows.with_columns(pl.col("id").is_in(named).alias("known"))
    lost = marked.group_by("owner", "label", maintain_order=True).agg(pl.col("known").any())
    foreign = ids.filter(~ids.is_in(there.implode())).to_list()
    least = _MOST if of.table == what else _JUDGED
    strip = (
        None
        if found
        else (_pattern(shelf, of, column, foreign, least) or _rule(shelf, of, column, foreign, least))
    )
    fit = shelf.existing(of, column, sorted(set(all_rewritten(foreign, strip)))) if strip else []
    if strip and shelf.texts(what, fit, strip).unlike:
        strip, fit = None, []
    return [
        Match(
            collection_id=shelf.name,
            what=what,
            among=of.table,
            offered=len(ids),
            known=len(there),
            strangers=tuple(lost.filter(~pl.col("known"))["label"]),
            foreign=tuple(foreign[:_FEW]),
            held=tuple(shelf.existing(of, column, None, _FEW)) if foreign else (),
            strip=strip,
            fit=len(fit),
            own=of.own_judgements or not shelf.stored(of.table),
            sampled=sampled,
            differ=len(differ),
            compared=texts.compared if differ else None,
            other_text=texts.example(differ, shelf.name) if differ else "",
        )
    ]


def _even(ids: Sequence[str], least: float) -> Sequence[str]:
    """Return some ids, evenly spread; the fewer of them need to exist, the more are returned."""
    most = int(_TRIED / least)
    return ids[:: max(1, len(ids) // most)][:most]


def _enough(found: int, of: int, least: float) -> bool:
    return found >= max(least * of, min(of, _FEW))


def _pattern(
    shelf: ImportShelf, of: Reference, column: str, foreign: Sequence[str], least: float
) -> str | None:
    """Find the common beginning or end of all foreign ids without which a least share of them exists."""
    tried = _even(foreign, least)
    begin, end = _common(foreign), _common([name[::-1] for name in foreign])[::-1]
    heads, tails = range(1, len(begin) + 1), range(1, len(end) + 1)
    cuts = {(head, 0) for head in heads} | {(0, tail) for tail in tails}
    cuts |= {(head, tail) for head in heads for tail in tails} if len(begin) * len(end) < _PAIRS else set()
    kept = {
        cut: {name[cut[0] : len(name) - cut[1]] for name in tried} - {""}
        for cut in cuts
        if all(len(name) > sum(cut) and not _inside_number(name, *cut) for name in foreign)
    }
    asked = sorted(set().union(*kept.values()))
    there = set(shelf.existing(of, column, asked)) if asked else set()
    best = max(kept, key=lambda cut: (len(kept[cut] & there), -sum(cut)), default=None)
    if best is None or not _enough(len(kept[best] & there), len(kept[best]), least):
        return None
    head, tail = begin[: best[0]], end[len(end) - best[1] :]
    return None if STAR in head + tail else f"{head}{STAR}{tail}"


def _rule(shelf: ImportShelf, of: Reference, column: str, foreign: Sequence[str], least: float) -> str | None:
    """Find the rule by which a least share of the foreign ids exists, without duplicates."""
    held = shelf.existing(of, column, None, _TRIED)
    begin, end = _common(held or [""]), _common([name[::-1] for name in held or [""]])[::-1]
    added = {f"{ADD}{begin.rstrip('0123456789')}{STAR}", f"{ADD}{begin}{STAR}", f"{ADD}{STAR}{end}"} - {
        f"{ADD}{STAR}"
    }
    padded = {f"pad{len(name)}" for name in held if name.isdecimal() and len(name) < _LONGEST}
    for rule in (*WRITINGS, *sorted(padded), *sorted(added)):
        made = all_rewritten(foreign, rule)
        tried = sorted(_even(made, least))
        other = len(set(made)) == len(foreign) and made != list(foreign) and rule.count(STAR) < 2
        if other and _enough(len(shelf.existing(of, column, tried)), len(tried), least):
            return rule
    return None


def _inside_number(name: str, head: int, tail: int) -> bool:
    """Return whether a cut would remove digits from a number, which makes it another number."""
    ends = [place for place in (head, len(name) - tail) if 0 < place < len(name)]
    return any(name[place - 1].isdigit() and name[place].isdigit() for place in ends)


def _common(ids: Sequence[str]) -> str:
    pairs = zip(min(ids)[:_LONGEST], max(ids), strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
