"""Questions with what was retrieved for them and what was answered, as evaluation tools write them.

Such files carry texts rather than ids: a passage without an id is named by a hash of its text (blanks do not
count), so that the same text is the same passage in every file; a question without an id likewise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import polars as pl

from core.importers.base import Import, LeftOut, Options, collection_of, imported_run, merged, run_labels
from core.importers.judgements import golden_set
from core.importers.outcomes import graded_by, means
from core.importers.read.text import shown
from core.records import JsonMap, Run
from core.tables import frame

SAMPLE = pl.Schema(
    {
        "query_id": pl.String(),
        "text": pl.String(),
        "answer": pl.String(),
        "contexts": pl.List(pl.String),
        "context_ids": pl.List(pl.String),
        "references": pl.List(pl.String),
        "reference_ids": pl.List(pl.String),
    }
)
"""One row per question. query_id null = named by its text; ids and texts of a list belong together by place;
references are the passages that are known to be relevant."""
VALUE = pl.Schema({"query_id": pl.String(), "signal": pl.String(), "value": pl.Float64()})
_PLACE = pl.Schema(
    {"query_id": pl.String(), "rank": pl.Int64(), "passage_id": pl.String(), "text": pl.String()}
)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one stack retrieved and answered."""

    label: str  # its own name; may be empty
    name: str  # file, for messages; its name without ending; hash of the content
    stem: str
    digest: str
    rows: pl.DataFrame  # columns of `SAMPLE`, `query_id` as `with_ids` gives it
    values: pl.DataFrame  # columns of `VALUE`: measures of each question; null and NaN = not measured
    spec: JsonMap = field(default_factory=dict)  # axes of the stack, as far as they are known
    # what tells it from others of the same content, and what is kept of its configuration
    decided: JsonMap = field(default_factory=dict)
    # more tables with `query_id` and without `run_id`
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    scores: pl.DataFrame | None = None  # query_id, rank, score of the retrieved passages, where they have any
    figures: Sequence[Mapping[str, object]] = ()  # aggregates besides the means of `values`, without run_id


def text_id(text: str, prefix: str) -> str:
    """The id of something that is known by its text only."""
    plain = " ".join(text.split())
    return f"{prefix}-{hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()}"


def with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Give every question an id; one that stands several times counts as another question each time."""
    named = pl.Series(
        "query_id",
        [own or text_id(text, "q") for own, text in rows.select("query_id", "text").iter_rows()],
        dtype=pl.String,
    )
    again = pl.int_range(1, pl.len() + 1).over("query_id")
    numbered = pl.when(again > 1).then(pl.format("{}-{}", "query_id", again)).otherwise("query_id")
    return rows.with_columns(named).with_columns(numbered.alias("query_id"))


def assemble(parts: Sequence[Answered], options: Options, *, importer: str, source: str) -> Import:
    """Make runs of everything that was offered together."""
    labels = run_labels(_own_names(parts), options)
    known = _names(parts)
    lists = [_placed(part.rows, "contexts", "context_ids", known) for part in parts]
    runs = [
        _run(part, label, places, options, importer)
        for part, label, places in zip(parts, labels, lists, strict=True)
    ]
    made = [
        Import(collections=collection_of(options, source)),
        _collection(parts, lists, known, options),
        _relevant(parts, lists, known, options, importer),
        *runs,
    ]
    return merged(made)


def _own_names(parts: Sequence[Answered]) -> list[tuple[str, str]]:
    """Labels and stems; the file's name with its ending where stems do not tell parts apart."""
    stems = [part.stem for part in parts]
    return [
        (part.label, part.stem if stems.count(part.stem) == 1 else PurePosixPath(part.name).name)
        for part in parts
    ]


def _names(parts: Sequence[Answered]) -> dict[str, str]:
    """Text → id of the passages that have both, so that a text alone finds its id."""
    known: dict[str, str] = {}
    for part in parts:
        for texts, ids in (("contexts", "context_ids"), ("references", "reference_ids")):
            for each, named in part.rows.select(texts, ids).drop_nulls().iter_rows():
                if len(each) == len(named):
                    for text, own in zip(each, named, strict=True):
                        if text and own:
                            known.setdefault(" ".join(text.split()), own)
    return known


def _placed(rows: pl.DataFrame, texts: str, ids: str, known: Mapping[str, str]) -> pl.DataFrame:
    """Passages of every question at their places: query_id, rank, passage_id, text (repeats included)."""
    made: list[tuple[str, int, str, str | None]] = []
    for query, some, named in rows.select("query_id", texts, ids).iter_rows():
        count = max(len(some or ()), len(named or ()))
        fits = not some or not named or len(some) == len(named)
        for place in range(count):
            text = some[place] if some and place < len(some) else None
            own = named[place] if named and fits else None
            if text is not None and not own:
                own = known.get(" ".join(text.split())) or text_id(text, "t")
            if own:
                made.append((query, place + 1, own, text))
    return pl.DataFrame(made, schema=_PLACE, orient="row")


def _run(part: Answered, label: str, places: pl.DataFrame, options: Options, importer: str) -> Import:
    spec = {**part.spec, "name": shown(label, 200)}
    run = imported_run(
        options, label, part.digest, importer=importer, decided={**part.decided, "name": label}, spec=spec
    )
    ranked, repeats = _ranked(run, places, part.scores)
    given = part.rows.select(
        "query_id",
        pl.col("answer").alias("text"),
        pl.max_horizontal(pl.col("contexts", "context_ids").list.len()).alias("k"),
    ).with_columns(pl.when(pl.col("k") > 0).then("k"))
    deepest = given["k"].max()
    k = deepest if isinstance(deepest, int) else None
    figures = means(part.values, run.run_id, k)
    if part.figures:
        own = frame("aggregates", [{"run_id": run.run_id, **each} for each in part.figures])
        figures = pl.concat([figures, own])
    frames = {"rankings": ranked, "aggregates": figures} | {
        table: frame(table, rows.with_columns(run_id=pl.lit(run.run_id)).to_dict())
        for table, rows in part.frames.items()
    }
    notes = [f"{part.name}: measures stand at K = {k}, the longest list of passages."] if k else []
    left = [LeftOut(repeats, "passages that a list repeats: the first place counts", part.name)]
    silent = part.rows.height - places["query_id"].n_unique()
    left.append(LeftOut(silent, "questions without retrieved passages", part.name))
    own_grade = options.columns.get("grade")
    outcome = graded_by(given, part.values, run.run_id, part.name, own_grade)
    plain = Import(
        runs=(run,),
        frames={table: rows for table, rows in frames.items() if rows.height},
        notes=tuple(notes),
        left_out=tuple(each for each in left if each.count),
    )
    return merged((plain, outcome))


def _ranked(run: Run, places: pl.DataFrame, scores: pl.DataFrame | None) -> tuple[pl.DataFrame, int]:
    """Rankings of a run, and how many repeats are not in them."""
    if scores is None:
        scores = pl.DataFrame(schema={"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()})
    once = places.unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    rows = once.join(scores, on=["query_id", "rank"], how="left", maintain_order="left").with_columns(
        run_id=pl.lit(run.run_id), stage=pl.lit("final"), rank=pl.int_range(1, pl.len() + 1).over("query_id")
    )
    return frame("rankings", rows.to_dict()), places.height - once.height


def _collection(
    parts: Sequence[Answered], lists: Sequence[pl.DataFrame], known: Mapping[str, str], options: Options
) -> Import:
    """Questions and passages of all stacks, each once."""
    collection = pl.lit(options.collection_id).alias("collection_id")
    asked = pl.concat([part.rows.select("query_id", "text") for part in parts])
    queries = asked.unique("query_id", keep="first", maintain_order=True).with_columns(
        collection, pl.lit([], pl.List(pl.String)).alias("tags")
    )
    sides = [_placed(part.rows, "references", "reference_ids", known) for part in parts]
    texts = pl.concat([*lists, *sides]).drop_nulls("text").select("passage_id", "text")
    passages = texts.unique("passage_id", keep="first", maintain_order=True)
    frames = {
        "queries": frame("queries", queries.to_dict()),
        "passages": frame("passages", passages.with_columns(collection).to_dict()),
    }
    own = any((part.rows["context_ids"].list.len() > 0).any() for part in parts)
    notes = [] if own or passages.is_empty() else ["Passages have no ids: each is named by its text."]
    other = texts.unique()["passage_id"].is_duplicated().sum() if own else 0
    if other:
        notes.append(f"{other} texts stand under a passage id that has another text too: the first is kept.")
    return Import(frames={table: rows for table, rows in frames.items() if rows.height}, notes=tuple(notes))


def _relevant(
    parts: Sequence[Answered],
    lists: Sequence[pl.DataFrame],
    known: Mapping[str, str],
    options: Options,
    importer: str,
) -> Import:
    """References as judgements, where they are the passages that were searched and not texts of their own."""
    sides = [_placed(part.rows, "references", "reference_ids", known) for part in parts]
    pairs = pl.concat(sides).unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    if pairs.is_empty():
        return Import()
    retrieved = set(pl.concat(list(lists))["passage_id"])
    found = pairs.filter(pl.col("passage_id").is_in(list(retrieved)))
    if found.is_empty():
        why = "reference contexts: none of them is, word for word or by id, a passage that was retrieved"
        return Import(left_out=(LeftOut(pairs.height, why, parts[0].name),))
    made = golden_set(
        pairs.with_columns(grade=pl.lit("1"), line=pl.int_range(1, pl.len() + 1)),
        parts[0].name,
        "references",
        options,
        f"{importer} reference contexts",
    )
    note = (
        f"Reference contexts count as relevant: {found.height} of {pairs.height} are passages that were "
        "retrieved for some question; every other passage counts as unjudged."
    )
    return merged((made, Import(notes=(note,))))
