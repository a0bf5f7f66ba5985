"""Latency per run and stage with intervals, and the time a generator takes by the size of its prompt.

The unit of the sample is the query: the repeats of a query are first reduced to their median, so that a
query timed ten times does not count ten times. Retrieval latency is everything before generation (CLQ paper
§3.2.2).

Queries that follow one another meet the same load, so n of them say less than n. Where the order of measuring
is known, the interval uses the ranks of a smaller sample: the effective n is that of a normal series made of
the ranks, whose autocorrelation is added up while pairs of lags are above 0 and fall (Geyer 1992; Vehtari et
al. 2021). Autocorrelation inflates a percentile less than the mean: at each lag the correlation of "is below
it" follows from the series of Hermite polynomials of two normal variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import ndtri

from core.arrays import Floats
from core.errors import InputError
from core.stats.intervals import quantile_ranks, too_few, weights
from core.tables import GENERATE, schema

_Scope = Literal["path", "rerank"]
SHARES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

TOTAL = "total"  # The stage name of the whole path
P95_MIN_QUERIES = 60
"""Below this n a p95 is withheld: the largest of fewer samples does not bound it with 95 % coverage."""
P99_MIN_QUERIES = 299  # The same for a p99
LEAST: Mapping[str, int] = {"p95": P95_MIN_QUERIES, "p99": P99_MIN_QUERIES}
"""How many queries a percentile needs; a p50 is never withheld."""
AFTER_RETRIEVAL = ("generate", "first_token")  # Stages that are not part of the retrieval path

SUMMARY = schema(
    "run_id stage n:int64 p50:float p50_low:float p50_high:float p50_reason p95:float p95_low:float "
    "p95_high:float p95_reason p99:float p99_low:float p99_high:float p99_reason"
)
"""Columns of `summary`; milliseconds."""
LEAST_SERIES = 20  # Queries per pass below which its autocorrelation is not estimated
_TERMS = 60  # of the series in Hermite polynomials
_LAGS = 40
LEAST_EFFECTIVE = 12
"""Effective n below which autocorrelated queries have no interval, because that n is too uncertain."""
NOTED = 0.9
"""Share of n above which the effective n is not mentioned."""
MIN_ANSWERS = 10  # Timed answers with token counts that a fit needs


def per_query(
    timings: pl.DataFrame, *, scope: _Scope = "path", stages: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return the median latency over repeats per run, stage and query, with the stage "total" added.

    Args:
        timings: Rows of the table "timings"; ms.
        scope: "path" = every stage before generation, "rerank" = the reranker alone.
        stages: Exactly these stages instead of a scope.

    Returns:
        Columns run_id, stage, query_id, ms.
    """
    return _medians(per_repeat(timings, scope=scope, stages=stages))


def totals(timings: pl.DataFrame, scope: _Scope = "path") -> pl.DataFrame:
    """Return `per_query` for the stage "total" alone, with the column `serial` of its run (see `serial`)."""
    return sampled(per_repeat(timings, scope=scope).filter(pl.col("stage") == TOTAL))


def sampled(repeats: pl.DataFrame) -> pl.DataFrame:
    """Reduce rows of `per_repeat` to the medians of queries, with the column `serial` (see there)."""
    return _medians(repeats).join(serial(repeats), on=["run_id", "stage"], how="left")


def _medians(repeats: pl.DataFrame) -> pl.DataFrame:
    return repeats.group_by("run_id", "stage", "query_id").agg(pl.col("ms").median())


def per_repeat(
    timings: pl.DataFrame, *, scope: _Scope = "path", stages: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return timings of a scope with the stage "total" added: the sum of the stages in one repeat of a query.

    A repeat in which a stage of the run is missing has no total. Where a run was timed as a whole (rows with
    the stage "total"), those rows are its total and nothing is added up.

    Args:
        timings: Rows of the table "timings"; ms.
        scope: "path" = every stage before generation, "rerank" = the reranker alone.
        stages: Exactly these stages instead of a scope.

    Returns:
        Columns run_id, stage, query_id, repeat, ms, place (in the order of measuring; null = unknown).
    """
    known = timings.filter(pl.col("ms").is_not_null() & pl.col("ms").is_not_nan())
    parts = known.filter(_in_scope(scope, stages) & (pl.col("stage") != TOTAL))
    whole = known.filter((pl.col("stage") == TOTAL) & pl.lit(scope == "path" and stages is None))
    expected = parts.group_by("run_id").agg(pl.col("stage").n_unique().alias("expected"))
    first = pl.when(pl.col("place").is_not_null().all()).then(pl.col("place").min())
    sums = (
        parts.join(whole.select("run_id").unique(), on="run_id", how="anti")
        .group_by("run_id", "query_id", "repeat")
        .agg(pl.col("ms").sum(), first.alias("place"), pl.col("stage").n_unique().alias("found"))
        .join(expected, on="run_id")
        .filter(pl.col("found") == pl.col("expected"))
        .with_columns(pl.lit(TOTAL).alias("stage"))
    )
    columns = ["run_id", "stage", "query_id", "repeat", "ms", "place"]
    return pl.concat([parts.select(columns), whole.select(columns), sums.select(columns)])


def _in_scope(scope: _Scope, stages: Sequence[str] | None) -> pl.Expr:
    if stages is not None:
        return pl.col("stage").is_in(list(stages))
    if scope == "rerank":
        return pl.col("stage") == "rerank"
    return ~pl.col("stage").is_in(list(AFTER_RETRIEVAL))


def serial(repeats: pl.DataFrame) -> pl.DataFrame:
    """Estimate how strongly queries that were measured one after another resemble each other.

    Args:
        repeats: Rows of `per_repeat`.

    Returns:
        run_id, stage, serial: the φ, 0..1, of a first-order series whose mean is as uncertain as that of
        these queries, over all passes of the run. No row if the order is unknown or passes have fewer than
        `LEAST_SERIES` queries.
    """
    of_pass = ["run_id", "stage", "repeat"]
    ranked = repeats.filter(pl.col("place").is_not_null().all().over(of_pass)).select(
        *of_pass, "place", pl.col("ms").rank().over(of_pass), n=pl.len().over(of_pass)
    )
    parts = []
    for (n,), rows in ranked.filter(pl.col("n") >= LEAST_SERIES).group_by("n"):
        ordered = rows.sort(*of_pass, "place")
        shares = ordered["ms"].to_numpy().reshape(-1, n)
        lags = autocorrelation(ndtri((shares - 0.5) / shares.shape[1]))
        head = ordered.select(of_pass)[:: shares.shape[1]]
        parts.append(head.with_columns(n=pl.lit(n), lags=pl.Series(list(lags), dtype=pl.List(pl.Float64))))
    empty = pl.DataFrame(schema={"run_id": pl.String, "stage": pl.String, "serial": pl.Float64})
    return pl.concat([empty, *map(_pooled, parts)]).unique(["run_id", "stage"], keep="first")


def _pooled(passes: pl.DataFrame) -> pl.DataFrame:
    """Average the lags over the passes of each run, and sum them up."""
    lags = np.stack([*passes["lags"].to_numpy()])
    runs = passes.select("run_id", "stage", group=pl.struct("run_id", "stage").rank("dense") - 1)
    at = runs["group"].to_numpy().astype(np.intp)
    sums = np.zeros((at.max() + 1, lags.shape[1]))
    np.add.at(sums, at, lags)
    phi = summed_up(sums / np.bincount(at)[:, None], passes["n"][0])
    return runs.with_columns(serial=pl.Series(phi[at])).drop("group")


def autocorrelation(series: Floats) -> Floats:
    """Return the autocorrelation of series [S, n] from lag 1 to `_LAGS` [S, L]; 0 if all values are equal."""
    n = series.shape[1]
    centred = series - series.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    products = np.fft.irfft(power, axis=1)[:, : min(n // 2, _LAGS) + 1]
    spread = np.maximum(products[:, :1], 1e-12)
    return np.asarray(products[:, 1:] / spread)


def summed_up(lags: Floats, n: int) -> Floats:
    """Return the φ of a first-order series whose mean is as uncertain as under these lags [S, L]."""
    upto = np.column_stack([np.ones(len(lags)), lags])[:, : 2 * ((lags.shape[1] + 1) // 2)]
    pairs = upto[:, 0::2] + upto[:, 1::2]
    falling = np.minimum.accumulate(pairs, axis=1) * np.cumprod(pairs > 0, axis=1)
    times = np.maximum(2 * falling.sum(axis=1) - 1, 1.0)
    times /= np.maximum(1 - times / n, 0.1)  # subtracting the mean took as much away
    first_order = (n * lags[:, 0] + 1) / (n - 3)  # lag 1 falls short by (1 + 3 φ) / n (Kendall 1954)
    return np.asarray(np.clip(np.maximum(first_order, (times - 1) / (times + 1)), 0.0, 0.99))


@lru_cache(maxsize=8)
def _hermite(q: float) -> Floats:
    """Return weights by which powers of a normal correlation sum to that of "is below a quantile"; sum 1."""
    z = float(ndtri(q))
    values = [1.0, z]
    for j in range(2, _TERMS):
        values.append((z * values[-1] - np.sqrt(j - 1) * values[-2]) / np.sqrt(j))
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    squares = density**2 * np.square(values) / np.arange(1, _TERMS + 1) / (q * (1 - q))
    return np.asarray(squares)


def inflation(phi: ArrayLike, q: float | None) -> Floats:
    """Return the factor by which autocorrelation multiplies a variance: phi [S] to [S], from 1.

    Args:
        phi: From `serial`.
        q: The quantile; None = the mean.
    """
    alike = np.minimum(np.asarray(phi, dtype=np.float64), 0.99)
    if q is None:
        return np.asarray((1 + alike) / (1 - alike))
    powers = alike[:, None] ** np.arange(1, _TERMS + 1)
    return np.asarray(1 + 2 * (_hermite(q) * powers / (1 - powers)).sum(axis=1))


def summary(sample: pl.DataFrame) -> pl.DataFrame:
    """Return p50, p95 and p99 of every run and stage.

    Args:
        sample: run_id, stage, query_id, ms, serial (of the run and stage; null = taken as independent).

    Returns:
        Columns of `SUMMARY`, one row per run and stage, sorted. n counts queries. An interval is null if n or
        the effective n is too small; p95 is null below `P95_MIN_QUERIES` and p99 below
        `P99_MIN_QUERIES`; the reason says so, or gives the effective n.
    """
    grouped = sample.group_by("run_id", "stage").agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("serial").max().fill_null(0.0),
        pl.col("ms").median().alias("p50"),
        pl.col("ms").quantile(0.95, interpolation="linear").alias("p95"),
        pl.col("ms").quantile(0.99, interpolation="linear").alias("p99"),
        pl.col("ms").sort().alias("sorted"),
    )
    phi = grouped["serial"].to_numpy()
    counts = {name: np.floor(grouped["n"].to_numpy() / inflation(phi, q)) for name, q in SHARES.items()}
    grouped = grouped.with_columns(pl.Series(f"{name}_as", m, dtype=pl.Int64) for name, m in counts.items())
    for name in SHARES:
        keys = ["n", f"{name}_as"]
        grouped = grouped.join(_ranks(name, grouped.select(keys).unique()), on=keys, how="left")
    ends = [f"{p}_{end}" for p in SHARES for end in ("low", "high")]
    found = [pl.col("sorted").list.get(pl.col(f"{end}_rank"), null_on_oob=True).alias(end) for end in ends]
    shown = [
        pl.when(pl.col("n") >= least).then(pl.col(name))
        for p, least in LEAST.items()
        for name in (p, f"{p}_low", f"{p}_high")
    ]
    return (
        grouped.with_columns(found)
        .with_columns(shown)
        .select([pl.col(name).cast(dtype) for name, dtype in SUMMARY.items()])
        .sort("run_id", "stage")
    )


def _ranks(percentile: str, sizes: pl.DataFrame) -> pl.DataFrame:
    """Add the positions (from 0) of the bounds, and notes on them, to sample sizes.

    Args:
        sizes: n, and the effective n.
    """
    rows = [(n, m, *_bounds(percentile, n, m), _said(percentile, n, m)) for n, m in sizes.iter_rows()]
    names = [*sizes.columns, f"{percentile}_low_rank", f"{percentile}_high_rank", f"{percentile}_reason"]
    types = [pl.Int64(), pl.Int64(), pl.Int64(), pl.Int64(), pl.String()]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


def _bounds(percentile: str, n: int, counts_as: int) -> tuple[int, int] | tuple[None, None]:
    """Return ranks (from 0) among n ordered queries that bracket the percentile at a smaller effective n."""
    ranks = quantile_ranks(counts_as, SHARES[percentile])
    if ranks is None or (counts_as < min(n, max(LEAST_EFFECTIVE, LEAST.get(percentile, 0) - 1))):
        return None, None
    low, high = ((rank - 0.5) * n / counts_as + 0.5 for rank in ranks)
    return max(round(low), 1) - 1, min(round(high), n) - 1


def _said(percentile: str, n: int, counts_as: int) -> str | None:
    """Explain why a percentile or its interval is withheld, or give the effective n; None = neither."""
    withheld = _reason(percentile, n)
    if withheld or counts_as == n:
        return withheld
    none = _bounds(percentile, n, counts_as)[0] is None
    if not none and counts_as > NOTED * n:
        return None
    said = f"neighbouring timings resemble one another: {n} count as {counts_as} for the {percentile}"
    return f"{said}, too few for a 95 % interval" if none else said


def p95_reason(n: int) -> str | None:
    """Explain in words why a p95 of n queries is withheld, or return None if it is not."""
    return _reason("p95", n)


def _reason(percentile: str, n: int) -> str | None:
    least = LEAST.get(percentile, 0)
    return None if n >= least else f"{too_few(n, SHARES[percentile])}: at least {least} are needed"


def quantile_gap(
    first: Floats, second: Floats, percentile: str, serials: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float, float]:
    """Estimate the difference of two stacks' quantiles with its 95 % bootstrap interval, paired over queries.

    It is widened by the larger autocorrelation of the two, but never beyond what the two stacks' own
    intervals allow: from the lower end of the second minus the upper end of the first, and vice versa.

    Args:
        first: [Q], one latency per query; ms.
        second: [Q], the same queries in the same order.
        percentile: A key of `SHARES`.
        serials: The `serial` of each.

    Returns:
        second − first, and its bounds; ms.
    """
    q, drawn = SHARES[percentile], weights(len(first))
    apart = _quantiles(second, drawn, q) - _quantiles(first, drawn, q)
    gap = float(np.quantile(second, q) - np.quantile(first, q))
    wider = float(inflation([max(serials)], q)[0]) ** 0.5
    low, high = (gap + wider * (float(end) - gap) for end in np.quantile(apart, [0.025, 0.975]))
    (least, most), (lowest, highest) = (
        _own_ends(values, percentile, phi) for values, phi in zip((first, second), serials, strict=True)
    )
    return gap, max(low, lowest - most), min(high, highest - least)


def _own_ends(values: Floats, percentile: str, phi: float) -> tuple[float, float]:
    """Return the interval of one stack's quantile as `summary` does; endless where it has none."""
    counts_as = int(len(values) / inflation([phi], SHARES[percentile])[0])
    low, high = _bounds(percentile, len(values), counts_as)
    if low is None or high is None or len(values) < LEAST.get(percentile, 0):
        return -np.inf, np.inf
    ordered = np.sort(values)
    return float(ordered[low]), float(ordered[high])


def _quantiles(values: Floats, drawn: Floats, q: float) -> Floats:
    """Return the quantile in every resample [R], linear between order statistics."""
    order = np.argsort(values)
    upto, ordered, place = drawn[:, order].cumsum(axis=1), values[order], q * (len(values) - 1)
    below, above = (ordered[(upto <= rank).sum(axis=1)] for rank in (np.floor(place), np.ceil(place)))
    return np.asarray(below + (above - below) * (place - np.floor(place)))


@dataclass(frozen=True, slots=True)
class Speed:
    """A generator's speed."""

    base_ms: float  # ms that do not depend on any length
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
    """A modelled generation: a speed, and the lengths of prompt and answer."""

    speed: Speed  # the generator's speed
    chunks: int = 10  # passages sent, for stacks whose specification does not say
    tokens_per_chunk: float = 500.0  # tokens of a passage
    prompt_tokens: float = 0.0  # tokens of instructions and question
    output_tokens: float = 200.0  # tokens of an answer

    def prompt(self, chunks: int | None = None) -> float:
        """Return tokens of the whole prompt with this many chunks; None = the usual number."""
        return self.prompt_tokens + (self.chunks if chunks is None else chunks) * self.tokens_per_chunk

    def ms(self, prompt_tokens: float) -> float:
        """Return the time of an answer to a prompt of this many tokens; ms."""
        return self.speed.answer_ms(prompt_tokens, self.output_tokens)


@dataclass(frozen=True, slots=True)
class Fit:
    """A speed fitted to timings."""

    speed: Speed | None  # the speed; None if it is withheld
    n: int  # timed answers with token counts
    r2: float  # share of the variance that the line explains; NaN for constant values
    reason: str = ""  # why there is no speed, in words; empty if there is one


def answers(timings: pl.DataFrame, usage: pl.DataFrame, stage: str = GENERATE) -> pl.DataFrame:
    """Return timed answers with their tokens.

    Args:
        timings: Rows of the table "timings".
        usage: Rows of the table "usage".
        stage: `GENERATE` or `FIRST_TOKEN`.

    Returns:
        run_id, query_id, ms (median of the repeats), input_tokens, output_tokens (null if not recorded).
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
    """Fit a generator's speed to timed answers by least squares, with no part below 0.

    Args:
        timed: ms, input_tokens and output_tokens of answers, as `answers` returns them.

    Returns:
        The fit. If no answer has its output tokens, their time becomes part of the base.
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
    """Fit non-negative least squares; columns are scaled alike first."""
    from scipy.optimize import nnls  # noqa: PLC0415 - needed by few

    scale = np.maximum(np.abs(at).max(axis=0), 1e-12)
    solution, _ = nnls(at / scale, took)
    return np.asarray(solution / scale)
