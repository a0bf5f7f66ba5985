"""Collections and runs made by imports: their names, and identities that depend on content.

Stacks that come only as figures become a run each, in the collection on which they were measured. Affixes
that the ids of their collection lack are stripped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers.base import Import, Options, counted, frames_of
from core.importers.read.member import Archive
from core.importers.read.ordering import Ordered
from core.importers.read.streamed import Streamed
from core.importers.read.text import quoted, shown
from core.importers.rewriting import STAR, fits, rewritten
from core.records import Collection, JsonMap, Origin, Run, Stack, canonical_json, short_hash
from core.tables import TABLES, Frame, Pieces, altered

ID_COLUMNS: Mapping[str, str] = {"queries": "query_id", "passages": "passage_id"}
"""Kind of ids that can be stripped → their column."""
_OF_PAGE = re.compile(r"table \d+ \(line ")  # Tables of a page, as named by `read.markdown`
REPEATED = "passages that a list repeats: the first place counts"
# Tables that define the ids of a collection, or say more of them
_OWN = {"queries", "passages", "chunks", "passage_metadata", "query_filters"}
_ID_CHARACTERS, _HASH_DIGITS = 60, 8
_PLAIN = re.compile(r"(?![.-])[\w.-]+( [\w.-]+)*(?<![.-])")
_DERIVED = re.compile(rf"[\w.-]+~[0-9a-f]{{{_HASH_DIGITS}}}")
_GENERIC = {"corpus", "queries", "qrels", "test", "train", "dev", "run", "results", "data", "upload", ""}
MEASURES: Mapping[str, str] = {
    "ndcg": "nDCG", "map": "AP", "ap": "AP", "mrr": "RR", "rr": "RR", "recall": "R", "r": "R",
    "precision": "P", "p": "P", "hit_rate": "Success", "success": "Success",
}  # fmt: skip
"""Name of a classical measure in tools → the product's name; the definitions are the tools'."""
_OF_TREC_EVAL = re.compile(
    r"(?P<name>ndcg|map|recip_rank|mrr|recall|P|success)(?:_cut)?(?:[_@.](?P<k>[1-9]\d{0,5}))?", re.IGNORECASE
)
_OF_IR_MEASURES = re.compile(r"(?P<name>[A-Za-z]+)(?P<params>\([^()]*\))?(?:@(?P<k>[1-9]\d{0,5}))?")
ONE_ANSWER = 1  # Cutoff of measures of answers: each question has one answer


def slug(text: str, fallback: str = "imported") -> str:
    """Return a short, stable identifier, unique to the text.

    Args:
        text: Any string.
        fallback: First part of the identifier of a text without a letter or a digit.

    Returns:
        The text itself if it is at most 60 letters, digits, dots, dashes, underscores and single blanks,
        no dot or dash at an end; otherwise its readable beginning, ``~`` and a hash of it.
    """
    if _PLAIN.fullmatch(text) and len(text) <= _ID_CHARACTERS:
        return text
    short = re.sub(r"[^\w.-]+", "-", text).strip("-.")
    begin = short[: _ID_CHARACTERS - 1 - _HASH_DIGITS].strip("-.") or fallback
    # Some file names are not valid Unicode; as ASCII they remain distinguishable.
    return f"{begin}~{short_hash(ascii(text))[:_HASH_DIGITS]}"


def chosen_id(text: str, known: Container[str] = frozenset()) -> str:
    """Return the identifier that a user means; a known or already derived one is left unchanged."""
    return text if text in known or _DERIVED.fullmatch(text) else slug(text)


def collection_name(archive: Archive) -> str:
    """Name the collection of an archive after it, or after its folder if the name is generic."""
    plain = archive.stem.lower() in _GENERIC or _OF_PAGE.match(archive.stem)
    return archive.parent if plain and archive.parent else archive.stem


def collection_of(options: Options, source: str) -> tuple[Collection, ...]:
    """Return the record of the collection that an import belongs to, or () if the store has it."""
    chosen = options.collection_id or "imported"
    if chosen in options.known_collections:
        return ()
    name = shown(options.collection_name or chosen, 200)
    return (Collection(collection_id=chosen, name=name, source=source),)


def collection_frames(
    options: Options, queries: pl.DataFrame | None = None, passages: pl.DataFrame | None = None
) -> dict[str, Frame]:
    """Return frames of questions and passages of the collection.

    Unknown texts or tags are empty.
    """
    if queries is not None and "tags" not in queries.columns:
        queries = queries.with_columns(tags=pl.lit([], pl.List(pl.String)))
    given = {"queries": queries, "passages": passages}
    own = pl.lit(options.collection_id).alias("collection_id")
    return frames_of(
        **{
            table: rows.with_columns(own, pl.col("text").fill_null(""))
            for table, rows in given.items()
            if rows is not None
        }
    )


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
    """Return a run with a stable identity: equal content under an equal label gives an equal id."""
    collection = options.collection_id or "imported"
    stack = Stack(spec or {"name": shown(label, 200)})
    changed: dict[str, Any] = {"strip": dict(options.strip)} if options.strip else {}
    changed |= {"ties": options.tie_order} if options.tie_order != "file" else {}
    changed |= {"own_ids": options.own_ids} if options.own_ids != "keep" else {}
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
    """Return readable names of runs."""
    names = [name or stem for name, stem in own]
    if options.label:
        names = [options.label] if len(own) == 1 else [f"{options.label} · {name}" for name in names]
    times = Counter(names)
    return [
        f"{name} · {stem}" if times[name] > 1 and stem not in ("", name) else name
        for name, (_, stem) in zip(names, own, strict=True)
    ]


def rankings(done: Ordered | Streamed, ids: Mapping[str, str]) -> Import:
    """Return the table of rankings with notes on its ordering, and the passages that lists repeat."""
    left = counted({REPEATED: done.repeats.count}, done.repeats.where)
    named = pl.col("run").replace_strict(ids, return_dtype=pl.String).alias("run_id")
    if isinstance(done, Ordered):
        frames = frames_of(rankings=done.rows.with_columns(named))
        return Import(frames=frames, notes=done.notes, left_out=left)
    declared = [pl.col(column).cast(dtype) for column, dtype in TABLES["rankings"].items()]
    members = Pieces(tuple(frame.with_columns(named).select(declared) for frame in done.rows.frames))
    return Import(frames={"rankings": members}, notes=done.notes, left_out=left, held=(done.spool,))


def of_tool(measure: str) -> tuple[str, int | None]:
    """Parse name and cutoff of a measure of trec_eval or ir_measures: ``P_10``, ``AP(rel=2)``."""
    known = _OF_TREC_EVAL.fullmatch(measure) or _OF_IR_MEASURES.fullmatch(measure)
    if known is None:
        return shown(measure), None
    name = known["name"].lower().replace("recip_rank", "mrr")
    params = known.groupdict().get("params") or ""
    return MEASURES.get(name, shown(known["name"])) + shown(params), int(known["k"]) if known["k"] else None


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
    """One stack, as a tool reported it."""

    label: str  # its name for people
    stem: str  # what distinguishes it if labels are equal
    digest: str  # hash of the content it came from
    decided: JsonMap  # what distinguishes it from runs with the same content; part of its identity
    spec: JsonMap  # axes of the stack
    figures: tuple[Figure, ...]  # its results
    collection: str = ""  # name of the measured data; empty = the collection of the options
    manifest: JsonMap = field(default_factory=dict)  # stored unchanged, for example the tool's configuration
    environment: JsonMap = field(default_factory=dict)  # where it ran


def reported_runs(reports: Sequence[Reported], options: Options, *, importer: str, source: str) -> Import:
    """Make runs with aggregates."""
    own: dict[str, list[Reported]] = {}
    for report in reports:
        own.setdefault(report.collection, []).append(report)
    names = {name: _collection_id(name, options, several=len(own) > 1) for name in own}
    runs: list[Run] = []
    rows: list[dict[str, Any]] = []
    for name, group in own.items():
        labels = run_labels([(report.label, report.stem) for report in group], options)
        there = replace(options, collection_id=names[name])
        for report, label in zip(group, labels, strict=True):
            _check(report)

            run = imported_run(
                there, label, report.digest, importer=importer, decided=report.decided, spec=report.spec
            )
            manifest = {**report.manifest, **run.manifest}
            runs.append(replace(run, manifest=manifest, environment=report.environment))
            fixed = {"run_id": run.run_id, "source": "imported"}
            rows += [{**fixed, **asdict(figure)} for figure in report.figures]
    collections = tuple(
        Collection(collection_id=chosen, name=shown(name or chosen, 200), source=source)
        for name, chosen in names.items()
        if chosen not in options.known_collections
    )
    return Import(collections=collections, runs=tuple(runs), frames=frames_of(aggregates=rows))


def _check(report: Reported) -> None:
    keys = [(figure.measure, figure.k, figure.stage) for figure in report.figures]
    if len(set(keys)) < len(keys):
        raise InputError(f"A figure of {quoted(report.label)} stands twice.")
    wrong = next((figure for figure in report.figures if not isfinite(figure.value)), None)
    if wrong:
        raise InputError(f"The {shown(wrong.measure)} of {quoted(report.label)} is too large a number.")


def _collection_id(own: str, options: Options, *, several: bool) -> str:
    given = options.collection_id or "imported"
    if not own or (options.collection_given and not several):
        return given
    return f"{given}-{slug(own)}" if options.collection_given else slug(own)


def stripped(imported: Import, patterns: Mapping[str, str]) -> Import:
    """Rewrite the ids in rankings, judgements, answers and costs by patterns or rules."""
    frames, texts = dict(imported.frames), dict(imported.texts)
    for what, pattern in patterns.items():
        if what not in ID_COLUMNS:
            raise UnknownNameError("ids to strip", what, ID_COLUMNS)
        column, known = ID_COLUMNS[what], pl.col(ID_COLUMNS[what])
        made = rewritten(known, pattern)
        named = {
            table: rows.lazy()
            for table, rows in frames.items()
            if column in TABLES[table] and table not in _OWN
        }
        # Judgements of the same import may be written as the collection is: they are left unchanged.
        fit = {
            table: rows.filter(fits(known, pattern)).select(column).head(1).collect().height > 0
            for table, rows in named.items()
        }
        for table, ids in named.items():
            if any(fit.values()) and not fit[table]:
                continue
            other = ids.filter(~fits(known, pattern)).select(column).head(1).collect()
            if other.height:
                problem = f"{quoted(other.item())} does not fit {quoted(pattern)}."
                raise InputError(problem, do="Give a pattern that all ids fit.")
            _refuse_same(ids.select(id=known, made=made), pattern)
            frames[table] = altered(frames[table], made)
        if what in texts:
            texts[what] = texts[what].with_columns(rewritten(pl.col("id"), pattern))
    return replace(imported, frames=frames, texts=texts)


def _refuse_same(ids: pl.LazyFrame, pattern: str) -> None:
    """Refuse a rule that merges several ids into one; a pattern of fixed affixes cannot."""
    if STAR in pattern:
        return
    alike = ids.unique().group_by("made").agg("id").filter(pl.col("id").list.len() > 1).sort("made")
    rows = alike.select(pl.col("id").list.sort().list.head(2)).collect()
    if rows.height:
        first, second = rows.row(0)[0]
        problem = f"By {quoted(pattern)} ids become the same: {quoted(first)} and {quoted(second)}."
        raise InputError(problem, do="Map the ids in the files.")


def patterns(pairs: Sequence[str]) -> dict[str, str]:
    """Parse patterns that are written as ``passages=doc-*``.

    Raises:
        InputError: One is not written like this.
    """
    bad = next((pair for pair in pairs if "=" not in pair), None)
    if bad is not None:
        raise InputError(f"{quoted(bad)} is not what=pattern.", do=f"For example passages=doc-{STAR}.")
    return {what.strip(): pattern for what, _, pattern in (pair.partition("=") for pair in pairs)}
