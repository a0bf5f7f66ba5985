import numpy as np
import polars as pl
import pytest

from core.errors import InputError
from core.stats.latency import Generation, Speed, answers, fit
from core.tables import frame

SPEED = Speed(200, 50, 10)


def timed(prompts: list[float], outputs: list[float | None], speed: Speed = SPEED) -> pl.DataFrame:
    ms = [speed.answer_ms(prompt, output or 0.0) for prompt, output in zip(prompts, outputs, strict=True)]
    return pl.DataFrame(
        {"ms": ms, "input_tokens": prompts, "output_tokens": outputs},
        schema={"ms": pl.Float64, "input_tokens": pl.Float64, "output_tokens": pl.Float64},
    )


def test_a_speed_is_a_line():
    assert SPEED.first_token_ms(2000) == 300
    assert SPEED.answer_ms(2000, 30) == 600
    with pytest.raises(InputError, match="less than no time"):
        Speed(-1, 0, 0)


def test_the_prompt_grows_with_the_chunks_sent():
    model = Generation(SPEED, chunks=10, tokens_per_chunk=500, prompt_tokens=100, output_tokens=20)
    assert (model.prompt(), model.prompt(4)) == (5100, 2100)
    assert model.ms(2100) == pytest.approx(200 + 105 + 200)


def test_a_speed_is_found_again():
    random = np.random.default_rng(5)
    prompts, outputs = random.integers(100, 9000, 40).tolist(), random.integers(10, 400, 40).tolist()
    found = fit(timed(prompts, outputs))
    assert found.speed is not None
    assert (found.speed.base_ms, found.speed.ms_per_1k_prompt, found.speed.ms_per_output) == pytest.approx(
        (200, 50, 10)
    )
    assert (found.n, found.r2) == (40, pytest.approx(1))


def test_without_output_tokens_their_time_is_part_of_the_base():
    found = fit(timed(list(range(1000, 2200, 100)), [None] * 12))
    assert found.speed is not None
    assert (found.speed.base_ms, found.speed.ms_per_1k_prompt) == pytest.approx((200, 50))
    assert found.speed.ms_per_output == 0


def test_no_part_of_a_speed_is_negative():
    rows = pl.DataFrame({"ms": np.arange(20.0, 0, -1), "input_tokens": np.arange(20.0)})
    found = fit(rows.with_columns(output_tokens=pl.lit(None, pl.Float64)))
    assert found.speed is not None
    assert found.speed.ms_per_1k_prompt == 0
    assert found.r2 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("prompts", "reason"), [([100.0] * 9, "are too few"), ([100.0] * 12, "all prompts are of one length")]
)
def test_what_cannot_be_fitted_says_why(prompts, reason):
    found = fit(timed(prompts, [5.0] * len(prompts)))
    assert found.speed is None
    assert reason in found.reason


def test_answers_join_the_median_time_with_the_tokens():
    timings = frame(
        "timings",
        [
            {"run_id": "r", "query_id": "q", "stage": stage, "repeat": repeat, "ms": ms}
            for stage, repeat, ms in (("generate", 1, 10.0), ("generate", 2, 30.0), ("retrieve", 1, 1.0))
        ],
    )
    usage = frame(
        "usage",
        [
            {"run_id": "r", "query_id": query, "stage": "generate", "item": "m", "unit": "input_tokens",
             "amount": 7.0, "basis": "measured"}
            for query in ("q", None)
        ],
    )  # fmt: skip
    assert answers(timings, usage).rows() == [("r", "q", 20.0, 7.0, None)]
