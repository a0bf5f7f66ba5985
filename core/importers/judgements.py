"""Turns judgements of any format into a golden set: integer grades, mapped to 1..5, without contradictions.

Mappings of other scales are data, chosen by the values or given, and always reported.

Measures of answers become scores; one of them says how good an answer is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from core.answers import GRADE, IMPORTED, KEY
from core.errors import InputError
from core.importers.base import Import, Options, counted, frames_of
from core.importers.read.rows import again, numbers, refuse, without_repeats
from core.importers.read.text import place, quoted, shown
from core.importers.runs import chosen_id, slug
from core.records import GoldenSet
from core.tables import frame

_RAW_MOST = 32_767
_JUDGED: Mapping[str, tuple[str, ...]] = {
    "judgements": ("query_id", "passage_id"),
    "spans": ("query_id", "source", "start_char", "end_char"),
}
"""Columns whose values a judge may judge only once, by table."""
TWICE = "judgements that stand twice, alike: they count once"
_SPAN = "Characters {start_char} to {end_char} of {source} are"

_NAMED = {
    "qrels": r"qrel|judg|relevan|ground.?truth|(?<![a-z])(gold|golden|labels?)(?![a-z])",
    "run": r"rank|retriev|bm25|tf.?idf|splade|colbert|hybrid|"
    r"(?<![a-z])(runs?|dense|sparse|predictions?|top.?\d+)(?![a-z])",
}
"""Patterns of file names, by whether they hold judgements or a run."""

GRADE_MAPPINGS: Mapping[str, Mapping[int, int]] = {
    "1-5": {1: 1, 2: 2, 3: 3, 4: 4, 5: 5},
    "binary": {0: 1, 1: 5},
    "0-2": {0: 1, 1: 3, 2: 5},
    "0-3": {0: 1, 1: 3, 2: 4, 3: 5},
    "0-4": {0: 1, 1: 2, 2: 3, 3: 4, 4: 5},
    "1-5 reversed": {1: 5, 2: 4, 3: 3, 4: 2, 5: 1},
}
_BY_HIGHEST = {1: "binary", 2: "0-2", 3: "0-3", 4: "0-4"}
_PAIR = re.compile(r"\s*(-?\d+)\s*(?:→|->|=)\s*([1-5])\s*")
VALUE = pl.Schema({"query_id": pl.String(), "signal": pl.String(), "value": pl.Float64()})
_CORRECTNESS = (
    r"answer_?correctness", r"correctness.*", r"factual_?correctness.*", r"(nv_?|answer_?)accuracy",
    r"sem_?score", r"g_?eval", r"(answer_|semantic_)similarity", r"exact_?match", r"f1", r"rouge.*",
    r"meteor", r"bleu.*",
)  # fmt: skip
"""Measures that compare an answer with a reference, the closest to correctness first."""


def said_by_name(file: str) -> str | None:
    """Return "qrels" or "run" by the name of the file, or else of its folder; None if neither tells."""
    for name in reversed(file.lower().split("/")):
        said = [what for what, words in _NAMED.items() if re.search(words, name)]
        if said:
            return said[0] if len(said) == 1 else None
    return None


def golden_set(
    rows: pl.DataFrame,
    name: str,
    stem: str,
    options: Options,
    judge: str = "",
    *,
    table: Literal["judgements", "spans"] = "judgements",
    from_zero: bool = False,
) -> Import:
    """Make a golden set of judged pairs, or one per judge if several judged the same pair."""
    rows = rows.with_columns(numbers(rows, "grade", name, whole=True).alias("raw"))
    blank = pl.col("raw").is_null()
    unjudged, rows = rows.filter(blank), rows.filter(~blank)
    refuse(unjudged if rows.is_empty() else rows.clear(), "The grade is empty.", name, "grade")
    refuse(rows.filter(pl.col("raw").abs() > _RAW_MOST), "The grade is out of range.", name, "grade")
    rows = rows.drop("grade")
    twice = again(rows, *(column for column in rows.columns if column != "line"))
    left = counted({TWICE: twice.height}, place(name, next(iter(twice["line"]), None)))
    blanks = counted({"rows without a grade: not judged": unjudged.height}, name)
    rows = without_repeats(rows)
    several = _several_judges(rows, name, _JUDGED[table])
    mapping = decide(options.grades, set(rows["raw"].unique().to_list()), name, from_zero=from_zero)
    collection = options.collection_id or "imported"
    own = slug(stem)
    chosen = f"{collection}-{'qrels' if own == collection else own}"
    named = options.golden_set_id or chosen
    chosen = chosen_id(named, {chosen})
    negative = rows.filter((pl.col("raw") < 0) & ~pl.col("raw").is_in(list(mapping.pairs)))
    notes = [mapping.note]
    if negative.height:
        notes.append(f"{name}: {negative.height} negative grades count as 1, the lowest.")
    ids = {assessor: f"{chosen}-{slug(assessor)}" for assessor in several} or {judge: chosen}
    if several:
        what = "passages" if table == "judgements" else table
        notes.append(f"{name}: {what} were judged by several, so each judge is a golden set of its own.")
    of_judge = pl.col("judge") if several else pl.lit(judge)
    judged = rows.with_columns(
        mapping.apply(pl.col("raw")).alias("grade"),
        pl.col("raw").cast(pl.Int16),
        of_judge.replace_strict(ids, return_dtype=pl.String).alias("golden_set_id"),
    )
    golden = tuple(
        GoldenSet(
            golden_set_id=golden_id,
            collection_id=collection,
            name=shown(f"{named}-{assessor}" if several else named),
            mapping=mapping.text,
            judge=shown(assessor),
        )
        for assessor, golden_id in ids.items()
    )
    frames = frames_of(**{table: frame(table, judged.to_dict())})
    return Import(golden_sets=golden, frames=frames, notes=tuple(notes), left_out=(*left, *blanks))


def _several_judges(rows: pl.DataFrame, name: str, pair: Sequence[str]) -> list[str]:
    if rows.select(pl.struct(pair).n_unique()).item() == rows.height:
        return []
    named = "judge" in rows.columns and not rows["judge"].null_count()
    key = [*pair, "judge"] if named else pair
    what = "Passage {passage_id} is" if "passage_id" in pair else _SPAN
    problem = f"{what} judged twice{' by {judge}' * named} for query {{query_id}}."
    do = "Keep one judgement of each, or leave the file out (--skip)."
    refuse(again(rows, *key), problem, name, do=do)
    return [str(judge) for judge in rows["judge"].unique().sort()]


@dataclass(frozen=True, slots=True)
class GradeMapping:
    """A mapping that was decided: its readable text, its pairs, and how it was decided.

    A negative grade without a pair becomes 1, the lowest of the rubric.
    """

    text: str
    pairs: Mapping[int, int]
    note: str

    def apply(self, raw: pl.Expr) -> pl.Expr:
        """Return grades 1..5 (Int8) of raw integer grades; null if a grade has no pair."""
        mapped = raw.replace_strict(dict(self.pairs), default=None, return_dtype=pl.Int8)
        return pl.when(mapped.is_null() & (raw < 0)).then(pl.lit(1, pl.Int8)).otherwise(mapped)


def decide(wanted: str | None, values: set[int], where: str, *, from_zero: bool = False) -> GradeMapping:
    """Choose the mapping of a golden set."""
    chosen, note = (
        (wanted, f"{where}: grades are mapped as asked") if wanted else _by_values(values, where, from_zero)
    )
    matches = [_PAIR.fullmatch(part) for part in chosen.split(",")]
    given = [(int(pair[1]), int(pair[2])) for pair in matches if pair]
    pairs = GRADE_MAPPINGS.get(chosen) or dict(given)
    if chosen not in GRADE_MAPPINGS and not all(matches):
        raise InputError(f"{quoted(chosen)} is not a grade mapping.", where=where, do=_advice({0, 1, 2}))
    for raw, grade in given:
        if pairs[raw] != grade:
            problem = f"Grade {raw} becomes both {grade} and {pairs[raw]} in the mapping {quoted(chosen)}."
            raise InputError(problem, where=where, do="Give each grade once.")
    unplaced = sorted(value for value in values if value >= 0 and value not in pairs)
    if unplaced:
        problem = f"Grades {', '.join(map(str, unplaced[:8]))} have no place in the mapping {chosen!r}."
        raise InputError(problem, where=where, do=_advice(values))
    text = mapping_text(chosen) if chosen in GRADE_MAPPINGS else _written(pairs)
    return GradeMapping(text, pairs, f"{note}; mapping {text}.")


def mapping_text(name: str) -> str:
    """Return a named mapping as recorded with a golden set, for example ``0-2: 0→1, 1→3, 2→5``."""
    return name if name == "1-5" else f"{name}: {_written(GRADE_MAPPINGS[name])}"


def _written(pairs: Mapping[int, int]) -> str:
    return ", ".join(f"{raw}→{grade}" for raw, grade in sorted(pairs.items()))


def _by_values(values: set[int], where: str, from_zero: bool) -> tuple[str, str]:
    graded = {value for value in values if value >= 0}
    highest = max(graded, default=1)
    if 0 not in graded and (highest == 5 or (1 < highest < 5 and not from_zero)):
        sure = "" if highest == 5 else f" (ambiguous: only {', '.join(map(str, sorted(graded)))} occur)"
        return "1-5", f"{where}: grades taken as they are{sure}"
    if graded <= {0, 1}:
        return "binary", f"{where}: grades are binary"
    if highest in _BY_HIGHEST:
        unseen = "" if 0 in graded else ", though no 0 occurs"
        return _BY_HIGHEST[highest], f"{where}: grades run from 0 to {highest}{unseen}"
    listed = ", ".join(map(str, sorted(values)[:12]))
    raise InputError(f"No grade mapping fits the grades {listed}.", where=where, do=_advice(values))


def _advice(values: set[int]) -> str:
    example = ", ".join(f"{value}→{min(5, place)}" for place, value in enumerate(sorted(values)[:9], 1))
    return f"Choose one of {', '.join(GRADE_MAPPINGS)}, or write your own, for example: {example}."


def grade_measure(names: list[str], wanted: str | None) -> str | None:
    """Return the measure that stands for answer quality, or None if none compares it with a reference."""
    if wanted is not None:
        return wanted if wanted in names else None
    bare = {name: re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names}
    fits = (name for kind in _CORRECTNESS for name, short in bare.items() if re.fullmatch(kind, short))
    return next(fits, None)


def graded_by(
    answers: pl.DataFrame,
    values: pl.DataFrame,
    run_id: str,
    where: str,
    *,
    wanted: str | None,
    judges: pl.DataFrame | None = None,
) -> Import:
    """Return answers with the measures of each query as their scores."""
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
    note = (
        f"`{chosen}` is taken as the grade of answers; --column grade=NAME of the command takes another."
        if chosen
        else "no measure compares answers with a reference, so that answers have no grade."
    )
    return Import(
        frames=frames_of(answers=said, answer_scores=scores_of(measured, chosen), signals=signals),
        notes=(f"{where}: {note}",) if said.height else (),
        left_out=counted(lacking, where),
    )


def scores_of(values: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Return values (signal, value) as scores of their answers.

    The measure `chosen` says how good the answers are.
    """
    share = pl.col("value").is_between(0, 1).all().over("signal")
    is_grade = pl.col("signal") == (chosen or "")
    return values.with_columns(
        scorer="signal",
        scale=pl.when(share).then(pl.lit("0-1")),
        source=pl.when(is_grade).then(pl.lit(GRADE)).otherwise(pl.lit(IMPORTED)),
    )


def means(values: pl.DataFrame, run_id: str, k: int | None) -> pl.DataFrame:
    """Return means over the queries that have a value, as aggregates with their n."""
    averages = (
        values.filter(pl.col("value").is_finite())
        .group_by("signal", maintain_order=True)
        .agg(pl.col("value").mean(), pl.len().alias("n"))
        .with_columns(
            pl.col("signal").map_elements(lambda name: shown(name, 80), pl.String).alias("measure"),
            run_id=pl.lit(run_id), k=pl.lit(k, pl.Int32), source=pl.lit("imported"),
        )
    )  # fmt: skip
    return frame("aggregates", averages.to_dict())
