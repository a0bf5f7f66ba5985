"""Answers of readers and their scores: the key of an answer, and which of its scores is its grade."""

from __future__ import annotations

import polars as pl

from core.tables import frame

KEY = ("run_id", "query_id", "reader", "prompt", "temperature", "mode", "k", "pass")
"""The key of an answer. Unknown values are null; a null mode means `TOP_K`, a null pass the only one."""
TOP_K, GOLD_ONLY, NO_GOLD, GOLD, CLOSED_BOOK = "top_k", "gold_only", "no_gold", "gold", "none"
HARM_BEFORE, HARM_AFTER = "harm_before", "harm_after"
MODES = (
    TOP_K, GOLD_ONLY, NO_GOLD, GOLD, CLOSED_BOOK, HARM_BEFORE, HARM_AFTER, "contradicted", "dated",
    "adversarial",
)  # fmt: skip
"""The input of an answer: the first k, the gold passages among those, those without them, all gold
passages whether retrieved or not, nothing; all gold passages with k harmful ones before or after them, or
with k misleading ones made from them after them."""
SCORERS = (
    "f1", "exact_match", "substring", "rougeL", "correctness", "similarity", "citation_precision",
    "citation_recall", "faithfulness", "precision", "answer_relevancy", "hallucination",
    "specific_information_accuracy", "ideal_f1", "ideal_rougeL", "ideal",
    "right_refusal", "no_wrong_refusal", "abstention",
)  # fmt: skip
"""The scorers of this product; imported scores keep the names of their tool."""
IMPORTED, GRADE = "imported", "imported, the grade"
"""Source of an imported score, and of the imported score that grades its answer."""
BY_PEOPLE = "judging"
"""Source of a score that a person gave on page Golden sets."""
EARLIER = pl.Schema({"grade": pl.Float64(), "scale": pl.String(), "judge": pl.String()})
"""Columns that answers had before their scores got a separate table."""
_UNNAMED = "grade"
_TELLING = SCORERS[:6]  # Scorers that compare an answer with a reference, the default first
_SCALE = r"^\s*(?<low>-?[0-9.]+)\s*[-–]\s*(?<high>[0-9.]+)\s*$"
_READER = ("reader", "prompt", "temperature")


def parted(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Split answers in the form of earlier releases, with one grade each, into answers and their scores.

    Args:
        rows: Columns of answers, those of `EARLIER` among them; any may be absent.

    Returns:
        Frames of "answers" and, if there are grades, "answer_scores".
    """
    lacking = [pl.lit(None, dtype).alias(name) for name, dtype in EARLIER.items() if name not in rows.columns]
    graded = rows.with_columns(lacking).filter(pl.col("grade").is_not_null())
    scores = graded.drop("judge").with_columns(
        graded["judge"].fill_null(_UNNAMED).alias("scorer"), value=pl.col("grade"), source=pl.lit(GRADE)
    )
    frames = {"answers": frame("answers", rows.to_dict())}
    return frames | ({"answer_scores": frame("answer_scores", scores.to_dict())} if scores.height else {})


def graded(
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    scorer: str | None = None,
    judge: str | None = None,
    reader: str | None = None,
) -> pl.DataFrame:
    """Return each run's answers from the first k passages by one reader, with one scorer's mean over passes.

    Args:
        answers: Columns of `KEY`, of all answers.
        scores: Frame of "answer_scores".
        scorer: Whose scores are the grade; None for the one that an import names, or f1, or the next
            that compares answers with a reference.
        judge: Only scores of this model or person; None for the one that scored most.
        reader: Only answers of this reader; None for the one that answered for most runs.

    Returns:
        run_id, query_id, reader, prompt, temperature, k, grade, scale, scorer, judge (grade to judge
        are null if nothing was scored); sorted by run, query and k.
    """
    top = pl.col("mode").is_null() | (pl.col("mode") == TOP_K)
    own = pl.lit(True) if reader is None else pl.col("reader") == reader
    answers = answers.filter(top & own)
    single = scores.filter(top & own & pl.col("query_id").is_not_null())
    single = _of_scorer(single, scorer, judge)
    answers, single = _of_reader(answers, single)
    key = [name for name in KEY if name not in ("mode", "pass")]
    said = answers.select(key).unique(maintain_order=True)
    means = single.group_by(key, maintain_order=True).agg(
        pl.col("value").mean().alias("grade"), pl.col("scale", "scorer", "judge").first()
    )
    joined = said.join(means, on=key, how="full", coalesce=True, nulls_equal=True)
    return joined.sort("run_id", "query_id", "k", maintain_order=True)


def share(value: str = "value") -> pl.Expr:
    """Return scores as shares 0..1 of their scale, written "low-high"; null if the scale is unknown."""
    ends = pl.col("scale").str.extract_groups(_SCALE)
    low, high = (ends.struct.field(end).cast(pl.Float64, strict=False) for end in ("low", "high"))
    scaled = (pl.col(value) - low) / (high - low)
    return pl.when(scaled.is_finite()).then(scaled.clip(0, 1)).alias(value)


def _of_scorer(scores: pl.DataFrame, scorer: str | None, judge: str | None) -> pl.DataFrame:
    if scorer is None:
        telling = pl.col("scorer").replace_strict(list(_TELLING), range(1, 1 + len(_TELLING)), default=None)
        rank = pl.when(pl.col("source") == GRADE).then(0).otherwise(telling)
    else:
        rank = pl.when(pl.col("scorer") == scorer).then(1)
    ranked = scores.with_columns(rank.alias("rank")).filter(pl.col("rank").is_not_null())
    ranked = ranked.filter(pl.col("rank") == pl.col("rank").min().over("run_id"))
    if judge is not None:
        return ranked.filter(pl.col("judge") == judge)
    times = ranked.group_by("run_id", "judge").agg(pl.len().alias("times"))
    most = times.sort("times", "judge", descending=[True, False]).unique("run_id", keep="first")
    same = ranked.join(most.select("run_id", judge_of="judge"), on="run_id", maintain_order="left")
    return same.filter((pl.col("rank") == 0) | pl.col("judge").eq_missing(pl.col("judge_of")))


def _of_reader(answers: pl.DataFrame, scores: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return each run's rows of one reader: the one in most runs, then with most scores, then the best."""
    none = answers.select("run_id", *_READER, scored=pl.lit(0), value=pl.lit(None, pl.Float64))
    counts = pl.concat(
        [none, scores.select("run_id", *_READER, share(), scored=pl.lit(1)).select(none.columns)]
    )
    best = pl.col("value").mean().fill_null(0)
    runs = counts.group_by(_READER).agg(
        pl.col("run_id").n_unique().alias("runs"), pl.col("scored").sum(), best
    )
    order = runs.sort("runs", "scored", "value", *_READER, descending=[True] * 3 + [False] * 3)
    places = order.with_row_index("place").select("place", *_READER)
    own = counts.select("run_id", *_READER).unique().join(places, on=_READER, nulls_equal=True)
    chosen = own.sort("place").unique("run_id", keep="first").drop("place")
    keys = ["run_id", *_READER]
    first, second = (
        rows.join(chosen, on=keys, how="semi", nulls_equal=True, maintain_order="left")
        for rows in (answers, scores)
    )
    return first, second
