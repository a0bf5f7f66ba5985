"""Several test collections in one import, distinguished by the judgements that match a run's passages.

Ids alone do not decide: two collections may both number queries and passages from 1. A run belongs to the
judgements with the most hits among its first ten passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.errors import InputError
from core.importers.base import Import, Options
from core.importers.read.text import quoted, shown
from core.importers.runs import slug
from core.records import Collection, GoldenSet
from core.tables import altered

_PAIR = ("query_id", "passage_id")
_OF_COLLECTIONS = {"queries", "passages", "chunks", "gold_answers", "clusters"} | {
    "passage_metadata",
    "query_filters",
    "fields",
}
"""Tables that define what a collection holds; if present, everything belongs to that collection."""
_TOP = 10
_ALIKE = 0.1  # Share of common pairs, relative to the smaller one, in golden sets of one collection
_NEARLY = 0.2  # Fraction of the largest share of judged pairs in a run's first ten


@dataclass(frozen=True, slots=True)
class _Part:
    golden_sets: tuple[GoldenSet, ...]
    run_ids: frozenset[str]


def apart(imported: Import, options: Options) -> Import:
    """Split an import so that every test collection becomes a separate collection.

    Raises:
        InputError: A run ranks nothing that is judged, while it could belong to several collections.
    """
    parts = _parts(imported, options)
    if len(parts) < 2:
        return imported
    names = [_name(part.golden_sets[0].golden_set_id, options) for part in parts]
    of_run = {run: name for part, name in zip(parts, names, strict=True) for run in part.run_ids}
    of_set = {
        golden_set.golden_set_id: name
        for part, name in zip(parts, names, strict=True)
        for golden_set in part.golden_sets
    }
    ids = {name: _own_id(name, of, options) for name, of in of_set.items()}
    judged = {table: imported.frames[table] for table in ("judgements", "spans") if table in imported.frames}
    renamed = pl.col("golden_set_id").replace(ids)
    source = next((collection.source for collection in imported.collections), "imported")
    said = ", ".join(f"{shown(name)} ({count})" for name, count in Counter(of_run.values()).items())
    note = (
        f"The judgements are of {len(parts)} test collections; each run is where it ranks what is judged: "
        f"{said}. Import one after the other to keep them together (--collection)."
    )
    return replace(
        imported,
        collections=tuple(
            Collection(collection_id=name, name=name, source=source)
            for name in names
            if name not in options.known_collections
        ),
        golden_sets=tuple(
            _moved(golden_set, of_set[golden_set.golden_set_id], ids) for golden_set in imported.golden_sets
        ),
        runs=tuple(replace(run, collection_id=of_run[run.run_id]) for run in imported.runs),
        frames={**imported.frames, **{table: altered(rows, renamed) for table, rows in judged.items()}},
        notes=(note, *imported.notes),
    )


def _name(golden_set_id: str, options: Options) -> str:
    """Name a collection after its judgements, prefixed with the user's name for it, if any."""
    base = options.collection_id or "imported"
    own = golden_set_id.removeprefix(f"{base}-")
    if options.collection_given:
        return slug(f"{base}-{own}")
    return base if own == "qrels" else slug(own)


def _own_id(golden_set_id: str, collection_id: str, options: Options) -> str:
    """Return the id of a golden set within its collection, as if that had been imported alone."""
    own = golden_set_id.removeprefix(f"{options.collection_id}-")
    chosen = options.golden_set_id or own == golden_set_id
    return golden_set_id if chosen else f"{collection_id}-{'qrels' if own == collection_id else own}"


def _moved(golden: GoldenSet, collection_id: str, ids: Mapping[str, str]) -> GoldenSet:
    new = ids[golden.golden_set_id]
    name = new if golden.name == golden.golden_set_id else golden.name
    return replace(golden, collection_id=collection_id, golden_set_id=new, name=name)


def _parts(imported: Import, options: Options) -> Sequence[_Part]:
    """Return the test collections; none if nothing distinguishes several."""
    base = options.collection_id
    ids = [golden_set.golden_set_id for golden_set in imported.golden_sets]
    one = {run.collection_id for run in imported.runs} | {
        of.collection_id for of in imported.golden_sets
    } == {base}
    new = not (options.collection_given and base in options.known_collections)
    texts = _OF_COLLECTIONS & imported.frames.keys()
    if (
        not (one and new and len(ids) > 1 and len(imported.runs) > 1)
        or texts
        or "rankings" not in imported.frames
    ):
        return ()
    pairs = imported.frames["judgements"].lazy().select("golden_set_id", *_PAIR).unique().collect()
    links = _links(imported, pairs)
    group = _grouped(ids, [*_neighbours(links), *_common(pairs)])
    runs = {run: group[some[0]] for run, some in links.items()}
    if len(set(runs.values())) < 2:
        return ()
    runs |= _by_queries(imported, pairs, group, {run.run_id for run in imported.runs} - runs.keys())
    return [
        _Part(
            tuple(golden_set for golden_set in imported.golden_sets if group[golden_set.golden_set_id] == of),
            frozenset(run for run, own in runs.items() if own == of),
        )
        for of in dict.fromkeys(group.values())
    ]


def _links(imported: Import, pairs: pl.DataFrame) -> dict[str, list[str]]:
    """Return, for each run, the golden sets that judge its first passages."""
    top = imported.frames["rankings"].lazy().filter(pl.col("rank") <= _TOP, pl.col("stage") == "final")
    matches = top.select("run_id", *_PAIR).join(pairs.lazy(), on=_PAIR)
    sizes = pairs.group_by("golden_set_id").agg(judged=pl.len())
    counts = (
        matches.group_by("run_id", "golden_set_id").agg(pl.len()).collect().join(sizes, on="golden_set_id")
    )
    shares = counts.with_columns(share=pl.col("len") / pl.col("judged"))
    near = shares.filter(pl.col("share") >= _NEARLY * pl.col("share").max().over("run_id"))
    return dict(near.sort("golden_set_id").group_by("run_id").agg("golden_set_id").iter_rows())


def _neighbours(links: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(some[0], other) for some in links.values() for other in some[1:]]


def _common(pairs: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the golden sets that have many judged pairs in common."""
    sizes = dict(pairs.group_by("golden_set_id").len().iter_rows())
    sharing = pairs.group_by(_PAIR).agg(pl.col("golden_set_id").sort()).filter(
        pl.col("golden_set_id").list.len() > 1
    )  # fmt: skip
    times: Counter[tuple[str, str]] = Counter()
    for some, count in sharing.group_by("golden_set_id").len().iter_rows():
        for place, first in enumerate(some):
            times.update({(first, second): count for second in some[place + 1 :]})
    return [both for both, count in times.items() if count >= _ALIKE * min(sizes[name] for name in both)]


def _grouped(names: Sequence[str], links: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Map each name to the first name it is connected to."""
    group = {name: name for name in names}
    for first, second in links:
        ends = sorted((group[first], group[second]), key=names.index)
        group = {name: ends[0] if of == ends[1] else of for name, of in group.items()}
    return group


def _by_queries(
    imported: Import, pairs: pl.DataFrame, group: Mapping[str, str], run_ids: set[str]
) -> dict[str, str]:
    """Match runs without judged passages among their first to the only judgements of their queries."""
    asked = imported.frames["rankings"].lazy().filter(pl.col("run_id").is_in(list(run_ids)))
    judged = pairs.lazy().select("golden_set_id", "query_id").unique()
    rows = asked.select("run_id", "query_id").unique().join(judged, on="query_id").collect()
    groups: dict[str, set[str]] = {run: set() for run in run_ids}
    for run, name in rows.select("run_id", "golden_set_id").unique().iter_rows():
        groups[run].add(group[name])
    lost = [entry.label for entry in imported.runs if len(groups.get(entry.run_id, "1")) != 1]
    if lost:
        names = ", ".join(map(quoted, lost[:3])) + (f" (+{len(lost) - 3})" if lost[3:] else "")
        said = (
            f"The judgements are of {len(set(group.values()))} test collections, of which {names} ranks none."
        )
        raise InputError(said, do="Import it with its own (--collection), or leave it out (--skip).")
    return {run: next(iter(some)) for run, some in groups.items()}
