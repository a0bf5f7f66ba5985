"""Latency per run and stage with intervals, and how long a generator takes by the size of its prompt.

The unit of the sample is the query: the repeats of a query are first reduced to their median, so that a
query timed ten times does not count ten times. Retrieval latency is everything before generation (CLQ paper
§3.2.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError
from core.stats.intervals import quantile_ranks, too_few, weights
from core.tables import GENERATE, schema

Scope = Literal["path", "rerank"]
SHARES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

TOTAL = "total"  # The stage name of the whole path
P95_MIN_QUERIES = 60
"""Below this n a p95 is withheld: the largest of fewer samples does not bound it with 95 % coverage."""
P99_MIN_QUERIES = 299  # The same for a p99
LEAST: Mapping[str, int] = {"p95": P95_MIN_QUERIES, "p99": P99_MIN_QUERIES}
"""How many queries a percentile needs; a p50 is never withheld."""
AFTER_RETRIEVAL = ("generate", "first_token")  # Stages that are not part of the retrieval path

SUMMARY = schema(
    "run_id stage n:int64 p50:float p50_low:float p50_high:float p95:float p95_low:float p95_high:float "
    "p95_reason p99:float p99_low:float p99_high:float p99_reason"
)
"""Columns of `summarise`; milliseconds."""


def per_query(
    timings: pl.DataFrame, *, scope: Scope = "path", stages: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return one latency per run, stage and query, with the stage "total" added: the median over the repeats.

    Args:
        timings: Rows of the table "timings"; ms.
        scope: "path" = every stage before generation, "rerank" = the reranker alone.
        stages: Exactly these stages instead of a scope.

    Returns:
        Columns run_id, stage, query_id, ms.
    """
    rows = per_repeat(timings, scope=scope, stages=stages)
    return rows.group_by("run_id", "stage", "query_id").agg(pl.col("ms").median())


def per_repeat(
    timings: pl.DataFrame, *, scope: Scope = "path", stages: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return timings of a scope with the stage "total" added: the sum of the stages in one repeat of a query.

    A repeat in which a stage of the run is missing has no total. Where a run was timed as a whole (rows with
    the stage "total"), those rows are its total and nothing is added up.

    Args:
        timings: Rows of the table "timings"; ms.
        scope: "path" = every stage before generation, "rerank" = the reranker alone.
        stages: Exactly these stages instead of a scope.

    Returns:
        Columns run_id, stage, query_id, repeat, ms.
    """
    known = timings.filter(pl.col("ms").is_not_null() & pl.col("ms").is_not_nan())
    parts = known.filter(_in_scope(scope, stages) & (pl.col("stage") != TOTAL))
    whole = known.filter((pl.col("stage") == TOTAL) & pl.lit(scope == "path" and stages is None))
    expected = parts.group_by("run_id").agg(pl.col("stage").n_unique().alias("expected"))
    sums = (
        parts.join(whole.select("run_id").unique(), on="run_id", how="anti")
        .group_by("run_id", "query_id", "repeat")
        .agg(pl.col("ms").sum(), pl.col("stage").n_unique().alias("found"))
        .join(expected, on="run_id")
        .filter(pl.col("found") == pl.col("expected"))
        .with_columns(pl.lit(TOTAL).alias("stage"))
    )
    columns = ["run_id", "stage", "query_id", "repeat", "ms"]
    return pl.concat([parts.select(columns), whole.select(columns), sums.select(columns)])


def _in_scope(scope: Scope, stages: Sequence[str] | None) -> pl.Expr:
    if stages is not None:
        return pl.col("stage").is_in(list(stages))
    if scope == "rerank":
        return pl.col("stage") == "rerank"
    return ~pl.col("stage").is_in(list(AFTER_RETRIEVAL))


def summarise(timings: pl.DataFrame, *, stages: Sequence[str] | None = None) -> pl.DataFrame:
    """Return p50, p95 and p99 of every run and stage, and of their sum.

    Args:
        timings: Rows of the table "timings"; ms.
        stages: Exactly these stages instead of every stage before generation.

    Returns:
        Columns of `SUMMARY`, one row per run and stage including "total", sorted. n counts queries. An
        interval that n does not allow is null; p95 is null below `P95_MIN_QUERIES` and p99 below
        `P99_MIN_QUERIES`, with the reason.
    """
    sample = per_query(timings, stages=stages)
    grouped = sample.group_by("run_id", "stage").agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("ms").median().alias("p50"),
        pl.col("ms").quantile(0.95, interpolation="linear").alias("p95"),
        pl.col("ms").quantile(0.99, interpolation="linear").alias("p99"),
        pl.col("ms").sort().alias("sorted"),
    )
    ranked = grouped.join(_ranks(grouped["n"].unique().to_list()), on="n", how="left")
    bounds = [
        pl.col("sorted").list.get(pl.col(f"{name}_rank"), null_on_oob=True).alias(name)
        for name in (f"{p}_{end}" for p in SHARES for end in ("low", "high"))
    ]
    shown = [
        pl.when(pl.col("n") >= least).then(pl.col(name))
        for p, least in LEAST.items()
        for name in (p, f"{p}_low", f"{p}_high")
    ]
    return (
        ranked.with_columns(bounds)
        .with_columns(shown)
        .select([pl.col(name).cast(dtype) for name, dtype in SUMMARY.items()])
        .sort("run_id", "stage")
    )


def _ranks(sizes: Sequence[int]) -> pl.DataFrame:
    """Return positions (from 0) of the interval bounds and the reason against a p95, for each sample size."""
    rows = []
    for n in sizes:
        row: dict[str, int | str | None] = {"n": n, "p95_reason": p95_reason(n)}
        row["p99_reason"] = _reason("p99", n)
        for name, q in SHARES.items():
            ranks = quantile_ranks(n, q)
            row[f"{name}_low_rank"] = ranks[0] - 1 if ranks else None
            row[f"{name}_high_rank"] = ranks[1] - 1 if ranks else None
        rows.append(row)
    positions = [f"{name}_{end}_rank" for name in SHARES for end in ("low", "high")]
    schema = {
        "n": pl.Int64,
        "p95_reason": pl.String,
        "p99_reason": pl.String,
        **dict.fromkeys(positions, pl.Int64),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def p95_reason(n: int) -> str | None:
    """Say why a p95 of n queries is withheld, in words; None when it is not."""
    return _reason("p95", n)


def _reason(percentile: str, n: int) -> str | None:
    least = LEAST[percentile]
    return None if n >= least else f"{too_few(n, SHARES[percentile])}: at least {least} are needed"


def quantile_gap(
    first: NDArray[np.float64], second: NDArray[np.float64], q: float
) -> tuple[float, float, float]:
    """Estimate a quantile's difference of two stacks with its 95 % bootstrap interval, paired over queries.

    Args:
        first: [Q], one latency a query; ms.
        second: [Q], the same queries in the same order.
        q: 0..1.

    Returns:
        second − first, and the bounds of it; ms.
    """
    drawn = weights(len(first))
    apart = _quantiles(second, drawn, q) - _quantiles(first, drawn, q)
    low, high = np.quantile(apart, [0.025, 0.975])
    return float(np.quantile(second, q) - np.quantile(first, q)), float(low), float(high)


def _quantiles(values: NDArray[np.float64], drawn: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Return the quantile in every resample [R], linear between order statistics."""
    order = np.argsort(values)
    upto, ordered, place = drawn[:, order].cumsum(axis=1), values[order], q * (len(values) - 1)
    below, above = (ordered[(upto <= rank).sum(axis=1)] for rank in (np.floor(place), np.ceil(place)))
    return np.asarray(below + (above - below) * (place - np.floor(place)))


MIN_ANSWERS = 10  # Timed answers with token counts that a fit needs

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Speed:
    """A generator's speed."""

    base_ms: float  # ms before anything depends on length
    ms_per_1k_prompt: float  # ms per 1,000 prompt tokens
    ms_per_output: float  # ms per output token

    def __post_init__(self) -> None:
        """Refuse times below 0."""
        if min(self.base_ms, self.ms_per_1k_prompt, self.ms_per_output) < 0:
            raise InputError(f"A generator cannot take less than no time: {self}.")

    def first_token_ms(self, prompt_tokens: float) -> float:
        """Time until the first token of an answer; ms."""
        return self.base_ms + prompt_tokens / 1000 * self.ms_per_1k_prompt

    def answer_ms(self, prompt_tokens: float, output_tokens: float) -> float:
        """Time until the whole answer is there; ms."""
        return self.first_token_ms(prompt_tokens) + output_tokens * self.ms_per_output


@dataclass(frozen=True, slots=True)
class Generation:
    """A modelled generation: a speed and what it is asked to do."""

    speed: Speed  # of the generator
    chunks: int = 10  # passages sent, for stacks whose specification does not say
    tokens_per_chunk: float = 500.0  # tokens of a passage
    prompt_tokens: float = 0.0  # tokens of instructions and question
    output_tokens: float = 200.0  # tokens of an answer

    def prompt(self, chunks: int | None = None) -> float:
        """Return tokens of the whole prompt with so many chunks; None = the usual number."""
        return self.prompt_tokens + (self.chunks if chunks is None else chunks) * self.tokens_per_chunk

    def ms(self, prompt_tokens: float) -> float:
        """Compute the time of an answer to a prompt of so many tokens; ms."""
        return self.speed.answer_ms(prompt_tokens, self.output_tokens)


@dataclass(frozen=True, slots=True)
class Fit:
    """A speed fitted to timings."""

    speed: Speed | None  # the speed; None where it is withheld
    n: int  # timed answers with the tokens that they took
    r2: float  # share of the variance that the line explains; NaN where nothing varies
    reason: str = ""  # why there is no speed, in words; empty where there is one


def answers(timings: pl.DataFrame, usage: pl.DataFrame, stage: str = GENERATE) -> pl.DataFrame:
    """Return timed answers with their tokens.

    Args:
        timings: Rows of the table "timings".
        usage: Rows of the table "usage".
        stage: `GENERATE` or `FIRST_TOKEN`.

    Returns:
        run_id, query_id, ms (median of the repeats), input_tokens, output_tokens (null where not recorded).
    """
    took = timings.filter((pl.col("stage") == stage) & pl.col("ms").is_finite())
    rows = took.group_by("run_id", "query_id").agg(pl.col("ms").median())
    for unit in ("input_tokens", "output_tokens"):
        used = usage.filter((pl.col("stage") == GENERATE) & (pl.col("unit") == unit))
        sums = (
            used.filter(pl.col("query_id").is_not_null())
            .group_by("run_id", "query_id")
            .agg(pl.col("amount").sum().alias(unit))
        )
        rows = rows.join(sums, on=["run_id", "query_id"], how="left")
    return rows.sort("run_id", "query_id")


def fit(timed: pl.DataFrame) -> Fit:
    """Fit a generator's speed to timed answers by least squares, no part of it below 0.

    Args:
        timed: ms, input_tokens and output_tokens of answers, as of `answers`.

    Returns:
        The fit. Where no answer has its output tokens, their time is part of the base.
    """
    known = timed.filter(pl.col("input_tokens").is_finite())
    with_output = known.filter(pl.col("output_tokens").is_finite())
    rows = with_output if with_output.height >= MIN_ANSWERS else known
    if rows.height < MIN_ANSWERS:
        known_answers = f"{rows.height} timed answers with their prompt tokens"
        return Fit(
            None, rows.height, np.nan, f"{known_answers} are too few: at least {MIN_ANSWERS} are needed"
        )
    if rows["input_tokens"].n_unique() < 2:
        return Fit(None, rows.height, np.nan, "all prompts are of one length, so its part cannot be told")
    columns = [np.ones(rows.height), rows["input_tokens"].to_numpy() / 1000]
    if rows is with_output:
        columns.append(rows["output_tokens"].cast(pl.Float64).to_numpy())
    at, took = np.column_stack(columns).astype(np.float64), rows["ms"].to_numpy()
    parts = _least_squares(at, took)
    left = float(((took - at @ parts) ** 2).sum())
    spread = float(((took - took.mean()) ** 2).sum())
    speed = Speed(float(parts[0]), float(parts[1]), float(parts[2]) if len(parts) > 2 else 0.0)
    return Fit(speed, rows.height, 1 - left / spread if spread > 0 else np.nan)


def _least_squares(at: Floats, took: Floats) -> Floats:
    """Return non-negative least squares; columns are scaled alike first."""
    from scipy.optimize import nnls  # noqa: PLC0415 - needed by few

    scale = np.maximum(np.abs(at).max(axis=0), 1e-12)
    solution, _ = nnls(at / scale, took)
    return np.asarray(solution / scale)
