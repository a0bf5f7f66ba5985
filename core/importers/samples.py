"""Questions with what was retrieved for them and what was answered, as evaluation tools write them.

Such files carry texts rather than ids: a passage without an id is named by a hash of its text (blanks do not
count), so that the same text is the same passage in every file; a question without an id likewise.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import polars as pl

from core.answers import GRADE, IMPORTED, KEY
from core.importers.base import Import, Options, counted, frames_of, merged
from core.importers.judgements import golden_set
from core.importers.read.piece import Piece
from core.importers.read.text import shown
from core.importers.runs import collection_frames, collection_of, imported_run, run_labels
from core.records import Basis, JsonMap, Run
from core.tables import frame

_LISTS = ("contexts", "context_ids", "references", "reference_ids")
SAMPLE = pl.Schema(
    {
        **dict.fromkeys(("query_id", "text", "answer"), pl.String()),
        **dict.fromkeys(_LISTS, pl.List(pl.String)),
    }
)
"""One row per question. query_id null = named by its text; ids and texts of a list belong together by place;
references are the passages that are known to be relevant."""
VALUE = pl.Schema({"query_id": pl.String(), "signal": pl.String(), "value": pl.Float64()})
_TIME = pl.Schema({"query_id": pl.String(), "stage": pl.String(), "ms": pl.Float64()})
_USED = pl.Schema(
    {**dict.fromkeys(("query_id", "stage", "item", "unit"), pl.String()), "amount": pl.Float64()}
)
_SCORE = pl.Schema({"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()})
UNNAMED = "not named"
"""Item of usage of which it is not said what was used; it has no price."""
_PLACE = pl.Schema(
    {"query_id": pl.String(), "rank": pl.Int64(), "passage_id": pl.String(), "text": pl.String()}
)

_CORRECTNESS = (
    r"answer_?correctness", r"correctness.*", r"factual_?correctness.*", r"(nv_?|answer_?)accuracy",
    r"sem_?score", r"g_?eval", r"(answer_|semantic_)similarity", r"exact_?match", r"f1", r"rouge.*",
    r"meteor", r"bleu.*",
)  # fmt: skip
"""Measures that compare an answer with a reference, the closest to correctness first."""


@dataclass(kw_only=True)
class Sample:
    """One question with what is known of it; the fields of `SAMPLE`, and what was measured."""

    text: str
    query_id: str | None = None
    answer: str | None = None
    contexts: Sequence[str | None] | None = None
    context_ids: Sequence[str | None] | None = None
    references: Sequence[str | None] | None = None
    reference_ids: Sequence[str | None] | None = None
    scores: Sequence[float | None] = ()  # of the contexts
    values: Mapping[str, float | None] = field(default_factory=dict)  # measure → value
    times: dict[str, float] = field(default_factory=dict)  # stage → milliseconds
    used: dict[tuple[str, str, str], float] = field(default_factory=dict)  # (stage, item, unit) → amount


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one stack retrieved and answered."""

    piece: Piece  # its file, or the first of them
    rows: pl.DataFrame  # columns of `SAMPLE`, as `completed` gives them
    label: str = ""  # its own name
    stem: str = ""  # tells it from others without a label; empty = that of its file
    digest: str = ""  # hash of its content; empty = that of its file
    # columns of `VALUE`: measures of each question; null and NaN = not measured
    values: pl.DataFrame = field(default_factory=VALUE.to_frame)
    spec: JsonMap = field(default_factory=dict)  # axes of the stack, as far as they are known
    # what tells it from others of the same content, and what is kept of its configuration
    decided: JsonMap = field(default_factory=dict)
    # more tables with `query_id` and without `run_id`
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    scores: pl.DataFrame = field(default_factory=_SCORE.to_frame)  # query_id, rank, score of passages
    figures: Sequence[Mapping[str, object]] = ()  # aggregates besides the means of `values`, without run_id
    rest: Import = field(default_factory=Import)  # what else its file gives: counts, notes, accounts


def answered(piece: Piece, samples: Sequence[Sample]) -> Answered:
    """What one stack did, from its questions one by one."""
    rows = [{name: getattr(each, name) for name in SAMPLE} for each in samples]
    table = completed(pl.DataFrame(rows, schema=dict(SAMPLE), orient="row"))
    pairs = list(zip(table["query_id"].to_list(), samples, strict=True))
    values = [(query, name, value) for query, each in pairs for name, value in each.values.items()]
    times = [(query, stage, ms) for query, each in pairs for stage, ms in each.times.items()]
    used = [(query, *key, amount) for query, each in pairs for key, amount in each.used.items()]
    scores = [(query, rank, score) for query, each in pairs for rank, score in enumerate(each.scores, 1)]
    frames = {
        "timings": pl.DataFrame(times, schema=_TIME, orient="row").with_columns(repeat=pl.lit(1)),
        "usage": pl.DataFrame(used, schema=_USED, orient="row").with_columns(
            basis=pl.lit(Basis.IMPORTED.value)
        ),
    }
    return Answered(
        piece=piece,
        rows=table,
        values=pl.DataFrame(values, schema=VALUE, orient="row"),
        frames={name: found for name, found in frames.items() if found.height},
        scores=pl.DataFrame(scores, schema=_SCORE, orient="row"),
    )


def text_id(text: str, prefix: str) -> str:
    """The id of something that is known by its text only."""
    plain = " ".join(text.split())
    return f"{prefix}-{hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()}"


def completed(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows the columns of samples, and every question an id of its own, however often it is asked."""
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in SAMPLE.items() if name not in rows.columns]
    rows = rows.with_columns(missing)
    ids = [own or text_id(text, "q") for own, text in rows.select("query_id", "text").iter_rows()]
    again = pl.int_range(1, pl.len() + 1).over("query_id")
    numbered = pl.when(again > 1).then(pl.format("{}-{}", "query_id", again)).otherwise("query_id")
    named = rows.with_columns(pl.Series("query_id", ids, dtype=pl.String))
    return named.with_columns(numbered.alias("query_id"))


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
        *(part.rest for part in parts),
    ]
    return merged(made)


def _own_names(parts: Sequence[Answered]) -> list[tuple[str, str]]:
    """Labels and stems; the file's name with its ending where stems do not tell parts apart."""
    stems = [part.stem or part.piece.stem for part in parts]
    return [
        (part.label, stem if stems.count(stem) == 1 else PurePosixPath(part.piece.name).name)
        for part, stem in zip(parts, stems, strict=True)
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
    name, digest = part.piece.name, part.digest or part.piece.digest
    decided = {**part.decided, "name": label}
    run = imported_run(options, label, digest, importer=importer, decided=decided, spec=spec)
    ranked, repeats = _ranked(run, places, part.scores)
    given = part.rows.select(
        "query_id",
        pl.col("answer").alias("text"),
        pl.max_horizontal(pl.col("contexts", "context_ids").list.len()).alias("k"),
    ).with_columns(pl.when(pl.col("k") > 0).then("k"))
    deepest = given["k"].max()
    k = deepest if isinstance(deepest, int) else None
    own = frame("aggregates", [{"run_id": run.run_id, **each} for each in part.figures])
    more = {table: rows.with_columns(run_id=pl.lit(run.run_id)) for table, rows in part.frames.items()}
    figures = pl.concat([means(part.values, run.run_id, k), own])
    left = {
        "passages that a list repeats: the first place counts": repeats,
        "questions without retrieved passages": part.rows.height - places["query_id"].n_unique(),
    }
    plain = Import(
        runs=(run,),
        frames=frames_of(rankings=ranked, aggregates=figures, **more),
        notes=(f"{name}: measures stand at K = {k}, the longest list of passages.",) if k else (),
        left_out=counted(left, name),
    )
    return merged(
        (plain, graded_by(given, part.values, run.run_id, name, wanted=options.columns.get("grade")))
    )


def _ranked(run: Run, places: pl.DataFrame, scores: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Rankings of a run, and how many repeats are not in them."""
    once = places.unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    rows = once.join(scores, on=["query_id", "rank"], how="left", maintain_order="left").with_columns(
        run_id=pl.lit(run.run_id), stage=pl.lit("final"), rank=pl.int_range(1, pl.len() + 1).over("query_id")
    )
    return rows, places.height - once.height


def _collection(
    parts: Sequence[Answered], lists: Sequence[pl.DataFrame], known: Mapping[str, str], options: Options
) -> Import:
    """Questions and passages of all stacks, each once."""
    asked = pl.concat([part.rows.select("query_id", "text") for part in parts])
    queries = asked.unique("query_id", keep="first", maintain_order=True)
    sides = [_placed(part.rows, "references", "reference_ids", known) for part in parts]
    texts = pl.concat([*lists, *sides]).drop_nulls("text").select("passage_id", "text")
    passages = texts.unique("passage_id", keep="first", maintain_order=True)
    frames = collection_frames(options, queries, passages)
    own = any((part.rows["context_ids"].list.len() > 0).any() for part in parts)
    notes = [] if own or passages.is_empty() else ["Passages have no ids: each is named by its text."]
    other = texts.unique()["passage_id"].is_duplicated().sum() if own else 0
    if other:
        notes.append(f"{other} texts stand under a passage id that has another text too: the first is kept.")
    return Import(frames=frames, notes=tuple(notes))


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
        return Import(left_out=counted({why: pairs.height}, parts[0].piece.name))
    graded = pairs.with_columns(grade=pl.lit("1"), line=pl.int_range(1, pl.len() + 1))
    judge = f"{importer} reference contexts"
    made = golden_set(graded, parts[0].piece.name, "references", options, judge)
    note = (
        f"Reference contexts count as relevant: {found.height} of {pairs.height} are passages that were "
        "retrieved for some question; every other passage counts as unjudged."
    )
    return merged((made, Import(notes=(note,))))


def grade_measure(names: list[str], wanted: str | None) -> str | None:
    """Which measure stands for how good an answer is; None if none compares it with a reference."""
    if wanted is not None:
        return wanted if wanted in names else None
    bare = {name: re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names}
    for pattern in _CORRECTNESS:
        found = next((name for name, short in bare.items() if re.fullmatch(pattern, short)), None)
        if found:
            return found
    return None


def graded_by(
    answers: pl.DataFrame,
    values: pl.DataFrame,
    run_id: str,
    where: str,
    *,
    wanted: str | None,
    judges: pl.DataFrame | None = None,
) -> Import:
    """Answers with the measures of each query as their scores.

    Args:
        answers: query_id, text, k, and what else is known of each.
        values: Columns of `VALUE`.
        wanted: The measure that the user calls the grade.
        judges: query_id, signal, judge: the model that measured, where one did.
    """
    values = values.with_columns(pl.col("signal").map_elements(lambda name: shown(name, 80), pl.String))
    known = values.filter(pl.col("value").is_finite())
    chosen = grade_measure(known["signal"].unique(maintain_order=True).to_list(), wanted)
    said = answers.filter(pl.col("text").is_not_null()).with_columns(run_id=pl.lit(run_id))
    keys = said.select(name for name in KEY if name in said.columns)
    measured = keys.join(known.drop("k", strict=False), on="query_id", maintain_order="left")
    if judges is not None:
        measured = measured.join(judges, on=["query_id", "signal"], how="left", maintain_order="left")
    signals = known.with_columns(run_id=pl.lit(run_id))
    lacking = {
        "measures without a value: missing, not 0": values.height - known.height,
        "queries without an answer": answers.height - said.height,
    }
    return Import(
        frames=frames_of(answers=said, answer_scores=scores_of(measured, chosen), signals=signals),
        notes=(_grade_note(chosen, where),) if said.height else (),
        left_out=counted(lacking, where),
    )


def scores_of(values: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Values (signal, value) as scores of their answers; `chosen` is the one that says how good these are."""
    share = pl.col("value").is_between(0, 1).all().over("signal")
    return values.with_columns(
        pl.col("signal").alias("scorer"),
        pl.when(share).then(pl.lit("0-1")).alias("scale"),
        pl.when(pl.col("signal") == (chosen or ""))
        .then(pl.lit(GRADE))
        .otherwise(pl.lit(IMPORTED))
        .alias("source"),
    )


def _grade_note(chosen: str | None, where: str) -> str:
    if chosen is None:
        return f"{where}: no measure compares answers with a reference, so that answers have no grade."
    return (
        f"{where}: `{chosen}` is taken as the grade of answers; --column grade=NAME of the command takes "
        "another."
    )


def means(values: pl.DataFrame, run_id: str, k: int | None) -> pl.DataFrame:
    """Means over the queries that have a value, as aggregates with their n."""
    found = (
        values.filter(pl.col("value").is_finite())
        .group_by("signal", maintain_order=True)
        .agg(pl.col("value").mean(), pl.len().alias("n"))
        .with_columns(
            pl.col("signal").map_elements(lambda name: shown(name, 80), pl.String).alias("measure"),
            run_id=pl.lit(run_id), k=pl.lit(k, pl.Int32), source=pl.lit("imported"),
        )
    )  # fmt: skip
    return frame("aggregates", found.to_dict())
