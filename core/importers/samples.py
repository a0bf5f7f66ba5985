"""Questions with their retrieved passages and answers, from evaluation tools.

Such files carry texts rather than ids: a passage without an id is named by a hash of its text (ignoring
blanks), so that the same text is the same passage in every file; likewise a question without an id.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from core.importers.base import Import, Options, counted, frames_of, merged, placed
from core.importers.judgements import VALUE, golden_set, graded_by, means
from core.importers.ranged import in_ranges, notes_of
from core.importers.read.member import Member
from core.importers.read.text import place, quoted, shown
from core.importers.report import AS_YOU_WISH, FileReport
from core.importers.runs import REPEATED, collection_frames, collection_of, imported_run, run_labels
from core.records import Basis, JsonMap
from core.tables import GENERATE, frame, schema

SAMPLE = pl.Schema(
    {
        **dict.fromkeys(("query_id", "text", "answer"), pl.String()),
        **dict.fromkeys(
            ("contexts", "context_ids", "references", "reference_ids", "right"), pl.List(pl.String)
        ),
        "first_token_ms": pl.Float64(),
    }
)
"""One row per question. A null query_id is derived from the text; ids and texts of a list correspond by
position; references are the passages known to be relevant, `right` the texts of right answers."""
_JUDGED = pl.Schema(dict.fromkeys(("query_id", "signal", "judge"), pl.String()))
ASKED_AT = "asked_at"  # Signal of the time when a question was asked; seconds since 1970 (UTC)
_TIME = pl.Schema({"query_id": pl.String(), "stage": pl.String(), "ms": pl.Float64()})
_USED = pl.Schema(
    {**dict.fromkeys(("query_id", "stage", "item", "unit"), pl.String()), "amount": pl.Float64()}
)
_SCORE = pl.Schema({"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()})
UNNAMED = "not named"  # Unspecified item of usage; it has no price
_LONGEST, _NO_LIST = "the longest list of passages", "as no list of passages says more"
_PLACE = schema("query_id rank:int64 passage_id text")


@dataclass(kw_only=True)
class FormatSample:
    """One question with all its facts: the fields of `SAMPLE`, and measures."""

    text: str
    query_id: str | None = None
    answer: str | None = None
    contexts: Sequence[str | None] | None = None
    context_ids: Sequence[str | None] | None = None
    references: Sequence[str | None] | None = None
    reference_ids: Sequence[str | None] | None = None
    right: Sequence[str] | None = None
    first_token_ms: float | None = None  # time to the first token of the answer
    scores: Sequence[float | None] = ()  # scores of the contexts
    values: Mapping[str, float | None] = field(default_factory=dict)  # measure → value
    judges: Mapping[str, str] = field(default_factory=dict)  # measure → the model that judged
    signals: dict[str, float] = field(
        default_factory=dict
    )  # figures for the table "signals", such as when it was asked
    times: dict[str, float] = field(default_factory=dict)  # stage → milliseconds
    used: dict[tuple[str, str, str], float] = field(default_factory=dict)  # (stage, item, unit) → amount


@dataclass(frozen=True, kw_only=True)
class AnsweredSamples:
    """Passages and answers of one stack."""

    member: Member  # its file, or the first of several
    rows: pl.DataFrame  # columns of `SAMPLE`, from `completed`
    label: str = ""  # its own name
    digest: str = ""  # hash of its content; empty = the file's hash
    # columns of `VALUE`: measures of each question; null and NaN = not measured
    values: pl.DataFrame = field(default_factory=VALUE.to_frame)
    # columns of `_JUDGED`: the model behind a measure of a question, if one is named
    judges: pl.DataFrame = field(default_factory=_JUDGED.to_frame)
    temperature: float | None = None  # temperature of the generator
    spec: JsonMap = field(default_factory=dict)  # axes of the stack, if known
    # what distinguishes it from runs with the same content, and the part of its configuration that is kept
    decided: JsonMap = field(default_factory=dict)
    # further tables with `query_id` and without `run_id`
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    scores: pl.DataFrame = field(default_factory=_SCORE.to_frame)  # query_id, rank, score of passages
    figures: Sequence[Mapping[str, object]] = ()  # aggregates besides the means of `values`, without run_id
    rest: Import = field(default_factory=Import)  # what else its file provides: counts, notes, reports


def answered(member: Member, samples: Sequence[FormatSample]) -> AnsweredSamples:
    """Combine a stack's questions into its passages and answers."""
    rows = [{name: getattr(sample, name) for name in SAMPLE} for sample in samples]
    table = completed(pl.DataFrame(rows, schema=dict(SAMPLE), orient="row"))

    def collected(
        schema: pl.Schema, of: Callable[[FormatSample], Iterable[tuple[object, ...]]]
    ) -> pl.DataFrame:
        """Return a frame of one kind of fact over all samples, each row after its query id."""
        pairs = zip(table["query_id"], samples, strict=True)
        return pl.DataFrame(
            [(query, *row) for query, sample in pairs for row in of(sample)], schema, orient="row"
        )

    times = collected(_TIME, lambda sample: sample.times.items())
    told = collected(VALUE, lambda sample: sample.signals.items())
    began = told.filter(signal=ASKED_AT).select("query_id", at="value")
    if began.height:
        times = placed(
            times.join(began, on="query_id", how="left").sort("at", maintain_order=True).drop("at")
        )
    used = collected(_USED, lambda sample: ((*key, amount) for key, amount in sample.used.items()))
    return AnsweredSamples(
        member=member,
        rows=table,
        values=collected(VALUE, lambda sample: sample.values.items()),
        judges=collected(_JUDGED, lambda sample: sample.judges.items()),
        frames={
            "timings": times.with_columns(repeat=pl.lit(1)),
            "usage": used.with_columns(basis=pl.lit(Basis.IMPORTED.value)),
            "signals": told,
        },
        scores=collected(_SCORE, lambda sample: enumerate(sample.scores, 1)),
    )


def text_id(text: str, prefix: str) -> str:
    """Return the id of something that is identified only by its text."""
    plain = " ".join(text.split())
    return f"{prefix}-{hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()}"


def completed(rows: pl.DataFrame) -> pl.DataFrame:
    """Add missing columns to samples, and make the id of every question unique, even if asked repeatedly."""
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in SAMPLE.items() if name not in rows.columns]
    rows = rows.with_columns(missing)
    ids = [own or text_id(text, "q") for own, text in rows.select("query_id", "text").iter_rows()]
    again = pl.int_range(1, pl.len() + 1).over("query_id")
    numbered = pl.when(again > 1).then(pl.format("{}-{}", "query_id", again)).otherwise("query_id")
    return rows.with_columns(pl.Series("query_id", ids, dtype=pl.String)).with_columns(query_id=numbered)


def assemble(parts: Sequence[AnsweredSamples], options: Options, *, importer: str, source: str) -> Import:
    """Make runs of everything that was offered together, without the measures that are not wanted."""
    parts = [_wanted(part, options.table_as(part.member.name).without) for part in parts]
    stems = Counter(part.member.stem for part in parts)
    # The file's name with its ending, if stems do not distinguish parts
    names = [part.member.stem if stems[part.member.stem] == 1 else part.member.file for part in parts]
    own = [(part.label, name) for part, name in zip(parts, names, strict=True)]
    parts = [_in_ranges(part, options) for part in parts]
    known = _names(parts)
    lists = [_placed(part.rows, "contexts", "context_ids", known) for part in parts]
    sides = [_placed(part.rows, "references", "reference_ids", known) for part in parts]
    runs = [
        _run(part, label, places, options, importer)
        for part, label, places in zip(parts, run_labels(own, options), lists, strict=True)
    ]
    imports = [
        Import(collections=collection_of(options, source)),
        _collection(parts, lists, sides, options),
        _relevant(pl.concat(sides), pl.concat(lists), parts[0].member.name, options, importer),
        *runs,
        *(part.rest for part in parts),
    ]
    return merged(imports)


def _in_ranges(part: AnsweredSamples, options: Options) -> AnsweredSamples:
    """Return a part with the measures of its queries as shares; see `core.importers.ranged.in_ranges`."""
    name = part.member.name
    lines = dict(part.rows.select("query_id", "line").iter_rows()) if "line" in part.rows.columns else {}
    asked = dict(part.rows.select("query_id", "text").iter_rows())

    def where(row: dict[str, Any]) -> str:
        query = row["query_id"]
        at = place(name, lines.get(query), row["signal"])
        return at if query in lines else f"{at}, query {quoted(asked.get(query) or query)}"

    said = options.table_as(name).numbers
    values, ways = in_ranges(part.values, "signal", name, said, where)
    notes = (*part.rest.notes, *notes_of(name, ways))
    return replace(part, values=values, rest=replace(part.rest, notes=notes)) if ways else part


def _wanted(part: AnsweredSamples, without: Collection[str]) -> AnsweredSamples:
    unwanted = part.values["signal"].is_in(list(without))
    if not unwanted.any():
        return part
    names = dict.fromkeys(part.values.filter(unwanted)["signal"], AS_YOU_WISH)
    report = FileReport(part.member.name, "measure", (), names)
    rest = replace(part.rest, reports=(*part.rest.reports, report))
    return replace(part, values=part.values.filter(~unwanted), rest=rest)


def _names(parts: Sequence[AnsweredSamples]) -> dict[str, str]:
    """Return text → id for the passages that have both, so that a text alone finds its id."""
    known: dict[str, str] = {}
    for part in parts:
        for texts, ids in (("contexts", "context_ids"), ("references", "reference_ids")):
            for listed, named in part.rows.select(texts, ids).drop_nulls().iter_rows():
                if len(listed) == len(named):
                    for text, own in zip(listed, named, strict=True):
                        if text and own:
                            known.setdefault(" ".join(text.split()), own)
    return known


def _placed(rows: pl.DataFrame, texts: str, ids: str, known: Mapping[str, str]) -> pl.DataFrame:
    """Return the passages of every question at their ranks.

    The columns are query_id, rank, passage_id and text, repeats included.
    """
    places: list[tuple[str, int, str, str | None]] = []
    for query, some, named in rows.select("query_id", texts, ids).iter_rows():
        count = max(len(some or ()), len(named or ()))
        fits = not some or not named or len(some) == len(named)
        for at in range(count):
            text = some[at] if some and at < len(some) else None
            own = named[at] if named and fits else None
            if text is not None and not own:
                own = known.get(" ".join(text.split())) or text_id(text, "t")
            if own:
                places.append((query, at + 1, own, text))
    return pl.DataFrame(places, schema=_PLACE, orient="row")


def _run(part: AnsweredSamples, label: str, places: pl.DataFrame, options: Options, importer: str) -> Import:
    name = part.member.name
    run = imported_run(
        options,
        label,
        part.digest or part.member.digest,
        importer=importer,
        decided={**part.decided, "name": label},
        spec={**part.spec, "name": shown(label, 200)},
    )
    of_run = pl.lit(run.run_id).alias("run_id")
    once = places.unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    ranked = once.join(part.scores, on=["query_id", "rank"], how="left", maintain_order="left").with_columns(
        of_run, stage=pl.lit("final"), rank=pl.int_range(1, pl.len() + 1).over("query_id")
    )
    given = _given(part)
    deepest = given["k"].max()
    k, why = (deepest, _LONGEST) if isinstance(deepest, int) else (None, "")
    if k is None and not part.values.is_empty():
        k, why = 1, _NO_LIST
    own = frame("aggregates", [{"run_id": run.run_id, **figure} for figure in part.figures])
    more = {table: rows.with_columns(of_run) for table, rows in part.frames.items()}
    figures = pl.concat([means(part.values, run.run_id, k), own])
    left = {
        REPEATED: places.height - once.height,
        "questions without retrieved passages": part.rows.height - places["query_id"].n_unique(),
    }
    plain = Import(
        runs=(run,),
        frames=frames_of(rankings=ranked, aggregates=figures, **more),
        notes=(f"{name}: measures stand at K = {k}, {why}.",) if k else (),
        left_out=counted(left, name),
    )
    wanted = options.columns.get("grade")
    graded = graded_by(given, part.values, run.run_id, name, wanted=wanted, judges=part.judges)
    return merged((plain, graded))


def _given(part: AnsweredSamples) -> pl.DataFrame:
    """Return the answers, each with its reader, depth, tokens and times if known."""
    reader = part.spec.get("generator")
    rows = part.rows.select(
        "query_id",
        pl.col("answer").alias("text"),
        pl.max_horizontal(pl.col("contexts", "context_ids").list.len()).alias("k"),
        pl.lit(reader if isinstance(reader, str) else None, pl.String).alias("reader"),
        pl.lit(part.temperature, pl.Float64).alias("temperature"),
        "first_token_ms",
    ).with_columns(pl.when(pl.col("k") > 0).then("k"))
    sums = {"timings": {"ms": pl.col("ms")}}
    units = ("input_tokens", "output_tokens")
    sums["usage"] = {unit: pl.col("amount").filter(pl.col("unit") == unit) for unit in units}
    for table in sums.keys() & part.frames.keys():
        own = part.frames[table].filter(pl.col("stage") == GENERATE).group_by("query_id")
        known = [pl.when(expr.count() > 0).then(expr.sum()).alias(name) for name, expr in sums[table].items()]
        rows = rows.join(own.agg(known), on="query_id", how="left", maintain_order="left")
    return rows


def _collection(
    parts: Sequence[AnsweredSamples],
    lists: Sequence[pl.DataFrame],
    sides: Sequence[pl.DataFrame],
    options: Options,
) -> Import:
    asked = pl.concat([part.rows.select("query_id", "text") for part in parts])
    asked = asked.filter(pl.col("text").fill_null("") != "")  # a query may have only an id
    queries = asked.unique("query_id", keep="first", maintain_order=True)
    texts = pl.concat([*lists, *sides]).drop_nulls("text").select("passage_id", "text")
    passages = texts.unique("passage_id", keep="first", maintain_order=True)
    said = pl.concat([part.rows.select("query_id", answer="right") for part in parts])
    right = said.explode("answer", empty_as_null=True).filter(pl.col("answer").fill_null("") != "")
    right = right.unique(maintain_order=True).with_columns(collection_id=pl.lit(options.collection_id))
    frames = {**collection_frames(options, queries, passages), **frames_of(gold_answers=right)}
    own = any((part.rows["context_ids"].list.len() > 0).any() for part in parts)
    notes = [] if own or passages.is_empty() else ["Passages have no ids: each is named by its text."]
    other = texts.unique()["passage_id"].is_duplicated().sum() if own else 0
    if other:
        notes.append(f"{other} texts stand under a passage id that has another text too: the first is kept.")
    return Import(frames=frames, notes=tuple(notes))


def _relevant(
    references: pl.DataFrame, retrieved: pl.DataFrame, name: str, options: Options, importer: str
) -> Import:
    """Return references as judgements, if they are searched passages rather than separate texts."""
    pairs = references.unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    matches = pairs.join(retrieved, on="passage_id", how="semi")
    if matches.is_empty():
        why = "reference contexts: none of them is, word for word or by id, a passage that was retrieved"
        return Import(left_out=counted({why: pairs.height}, name))
    graded = pairs.with_columns(grade=pl.lit("1"), line=pl.int_range(1, pl.len() + 1))
    imported = golden_set(graded, name, "references", options, f"{importer} reference contexts")
    note = (
        f"Reference contexts count as relevant: {matches.height} of {pairs.height} are passages that were "
        "retrieved for some question; every other passage counts as unjudged."
    )
    return replace(imported, notes=(*imported.notes, note))
