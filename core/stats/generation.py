"""How long a generator takes, as a function of its prompt: a line that is given, or fitted to timings.

The prompt grows with the passages that are sent, so K weighs on the first token (CLQ paper §5.4, §6: with
about 500 tokens a candidate, K "slows first-token latency"). First token = base + prompt tokens × time per
prompt token; the whole answer adds output tokens × time per output token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError

GENERATE, FIRST_TOKEN = "generate", "first_token"
"""Stages: the whole answer, and its first token; the latter is a part of the former."""
MIN_ANSWERS = 10
"""Timed answers with token counts that a fit needs."""

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
        """Tokens of the whole prompt with so many chunks; None = the usual number."""
        return self.prompt_tokens + (self.chunks if chunks is None else chunks) * self.tokens_per_chunk

    def ms(self, prompt_tokens: float) -> float:
        """Time of an answer to a prompt of so many tokens; ms."""
        return self.speed.answer_ms(prompt_tokens, self.output_tokens)


@dataclass(frozen=True, slots=True)
class Fit:
    """A speed fitted to timings."""

    speed: Speed | None  # the speed; None where it is withheld
    n: int  # timed answers with the tokens that they took
    r2: float  # share of the variance that the line explains; NaN where nothing varies
    reason: str = ""  # why there is no speed, in words; empty where there is one


def answers(timings: pl.DataFrame, usage: pl.DataFrame, stage: str = GENERATE) -> pl.DataFrame:
    """Timed answers with their tokens.

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
        found = f"{rows.height} timed answers with their prompt tokens"
        return Fit(None, rows.height, np.nan, f"{found} are too few: at least {MIN_ANSWERS} are needed")
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
    """Non-negative least squares; columns are scaled alike first."""
    from scipy.optimize import nnls  # noqa: PLC0415 - needed by few

    scale = np.maximum(np.abs(at).max(axis=0), 1e-12)
    found, _ = nnls(at / scale, took)
    return np.asarray(found / scale)
