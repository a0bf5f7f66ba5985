"""Collections and runs that imports make: what they are called, and identities that content decides.

Stacks that come as figures only: a run for each, in the collection that it was measured on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import Import, Options, frames_of
from core.importers.read.ordering import Ordered
from core.importers.read.piece import Tree
from core.importers.read.streamed import Streamed
from core.importers.read.text import quoted, shown
from core.records import Collection, JsonMap, Origin, Run, Stack, canonical_json, short_hash
from core.tables import TABLES, Frame, Pieces

_ID_CHARACTERS, _HASH_DIGITS = 60, 8
_PLAIN = re.compile(r"(?![.-])[\w.-]+( [\w.-]+)*(?<![.-])")
_DERIVED = re.compile(rf"[\w.-]+~[0-9a-f]{{{_HASH_DIGITS}}}")
_GENERIC = {"corpus", "queries", "qrels", "test", "train", "dev", "run", "results", "data", "upload", ""}


def slug(text: str, fallback: str = "imported") -> str:
    """A short stable identifier that no other text gives.

    Args:
        text: A name of any characters.
        fallback: Begins the identifier of a text without a letter or a digit.

    Returns:
        The text itself where it is at most 60 letters, digits, dots, dashes, underscores and single blanks,
        no dot or dash at an end; else its readable beginning, ``~`` and a hash of it.
    """
    if _PLAIN.fullmatch(text) and len(text) <= _ID_CHARACTERS:
        return text
    short = re.sub(r"[^\w.-]+", "-", text).strip("-.")
    begin = short[: _ID_CHARACTERS - 1 - _HASH_DIGITS].strip("-.") or fallback
    # Some file names are no valid Unicode; as ASCII they are told apart all the same.
    return f"{begin}~{short_hash(ascii(text))[:_HASH_DIGITS]}"


def chosen_id(text: str, known: Container[str] = frozenset()) -> str:
    """The identifier that a user means: one that is known, or was derived before, is taken as it stands."""
    return text if text in known or _DERIVED.fullmatch(text) else slug(text)


def collection_name(tree: Tree) -> str:
    """What to call the collection of a tree: its name, or its folder's where the name says nothing."""
    return tree.parent if tree.stem.lower() in _GENERIC and tree.parent else tree.stem


def collection_of(options: Options, source: str) -> tuple[Collection, ...]:
    """The record of the collection that an import belongs to; none if the store has it already."""
    chosen = options.collection_id or "imported"
    if chosen in options.known_collections:
        return ()
    name = shown(options.collection_name or chosen, 200)
    return (Collection(collection_id=chosen, name=name, source=source),)


def collection_frames(
    options: Options, queries: pl.DataFrame | None = None, passages: pl.DataFrame | None = None
) -> dict[str, Frame]:
    """Frames of questions and passages of the collection; a text or tags that are not known are empty."""
    made = {"queries": queries, "passages": passages}
    collection = pl.lit(options.collection_id).alias("collection_id")
    given = {
        table: rows.with_columns(collection, pl.col("text").fill_null(""))
        for table, rows in made.items()
        if rows is not None and rows.height
    }
    if "queries" in given and "tags" not in given["queries"].columns:
        untagged = pl.lit([], pl.List(pl.String)).alias("tags")
        given["queries"] = given["queries"].with_columns(untagged)
    return frames_of(**given)


def imported_run(
    options: Options,
    label: str,
    digest: str,
    *,
    importer: str,
    decided: JsonMap,
    spec: JsonMap | None = None,
    pool: str | None = None,
) -> Run:
    """A run with a stable identity: equal content under an equal label gives an equal id."""
    collection = options.collection_id or "imported"
    stack = Stack(spec or {"name": shown(label, 200)})
    changed: JsonMap = {
        **({"strip": dict(options.strip)} if options.strip else {}),
        **({"ties": options.tie_order} if options.tie_order != "file" else {}),
    }
    facts = canonical_json({"decided": decided, "spec": stack.spec, "pool": pool, **changed})
    return Run(
        run_id=f"r-{short_hash(collection, label, digest, facts)}",
        collection_id=collection,
        stack=stack,
        label=shown(label, 200),
        origin=Origin.IMPORT,
        pool=pool,
        manifest={"importer": importer, "content": digest, **decided, **changed},
    )


def run_labels(own: Sequence[tuple[str, str]], options: Options) -> list[str]:
    """Readable names of runs."""
    names = [name or stem for name, stem in own]
    if options.label:
        names = [options.label] if len(own) == 1 else [f"{options.label} · {name}" for name in names]
    times = Counter(names)
    return [
        f"{name} · {stem}" if times[name] > 1 and stem not in ("", name) else name
        for name, (_, stem) in zip(names, own, strict=True)
    ]


def rankings(done: Ordered | Streamed, ids: Mapping[str, str]) -> Import:
    """The table of rankings with the notes of its ordering."""
    named = pl.col("run").replace_strict(ids, return_dtype=pl.String).alias("run_id")
    if isinstance(done, Ordered):
        return Import(frames=frames_of(rankings=done.rows.with_columns(named)), notes=done.notes)
    declared = [pl.col(column).cast(dtype) for column, dtype in TABLES["rankings"].items()]
    pieces = Pieces(tuple(each.with_columns(named).select(declared) for each in done.rows.frames))
    return Import(frames={"rankings": pieces}, notes=done.notes, held=(done.spool,))


MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "ndcg": "nDCG", "map": "AP", "ap": "AP", "mrr": "RR", "rr": "RR", "recall": "R", "r": "R",
        "precision": "P", "p": "P", "hit_rate": "Success", "success": "Success",
    }
)  # fmt: skip
"""What tools call the classical measures → the product's name; their definitions are the tools'."""
ONE_ANSWER = 1  # The cutoff of measures of an answer: one answer is looked at for each question


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One result over all queries: a measure, its cutoff and stage, and the number of queries if known."""

    measure: str
    value: float
    k: int | None = None
    stage: str | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One stack as a tool reported it."""

    label: str  # what people read
    stem: str  # told apart by it where labels are equal
    digest: str  # hash of the content it came from
    decided: JsonMap  # what tells it from others of the same content; part of its identity
    spec: JsonMap  # axes of the stack
    figures: tuple[Figure, ...]  # its results
    collection: str = ""  # name of what it was measured on; empty = the collection of the options
    manifest: JsonMap = field(default_factory=dict)  # kept as it is, for example the tool's configuration
    environment: JsonMap = field(default_factory=dict)  # where it ran


def reported_runs(found: Sequence[Reported], options: Options, *, importer: str, source: str) -> Import:
    """Make runs with aggregates."""
    own: dict[str, list[Reported]] = {}
    for each in found:
        own.setdefault(each.collection, []).append(each)
    names = {name: _collection_id(name, options, several=len(own) > 1) for name in own}
    runs: list[Run] = []
    rows: list[dict[str, Any]] = []
    for name, group in own.items():
        labels = run_labels([(each.label, each.stem) for each in group], options)
        there = replace(options, collection_id=names[name])
        for each, label in zip(group, labels, strict=True):
            _check(each)
            run = _run(each, label, there, importer)
            runs.append(run)
            rows += [
                {
                    "run_id": run.run_id, "measure": figure.measure, "k": figure.k, "stage": figure.stage,
                    "value": figure.value, "n": figure.n, "source": "imported",
                }
                for figure in each.figures
            ]  # fmt: skip
    collections = tuple(
        Collection(collection_id=chosen, name=shown(name or chosen, 200), source=source)
        for name, chosen in names.items()
        if chosen not in options.known_collections
    )
    return Import(collections=collections, runs=tuple(runs), frames=frames_of(aggregates=rows))


def _check(each: Reported) -> None:
    keys = [(figure.measure, figure.k, figure.stage) for figure in each.figures]
    if len(set(keys)) < len(keys):
        raise InputError(f"A figure of {quoted(each.label)} stands twice.")
    wrong = next((figure for figure in each.figures if not isfinite(figure.value)), None)
    if wrong:
        raise InputError(f"The {shown(wrong.measure)} of {quoted(each.label)} is too large a number.")


def _collection_id(own: str, options: Options, *, several: bool) -> str:
    given = options.collection_id or "imported"
    if not own or (options.collection_given and not several):
        return given
    return f"{given}-{slug(own)}" if options.collection_given else slug(own)


def _run(each: Reported, label: str, options: Options, importer: str) -> Run:
    run = imported_run(
        options, label, each.digest, importer=importer, decided=dict(each.decided), spec=dict(each.spec)
    )
    return replace(run, manifest={**each.manifest, **run.manifest}, environment=dict(each.environment))
