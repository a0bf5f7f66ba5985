"""What a sweep will cost: by hand, and against what a run is billed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.pipeline.evaluate import Job, Protocol, corpus_of, run_job
from core.pipeline.evaluate.identity import billed_by
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep import parse
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.paid import CORPUS, POOL_KNOWN, POOL_TYPICAL, REWRITTEN, count_texts, typical
from core.pipeline.sweep.plan import Plan, plan
from core.pipeline.sweep.resources import (
    ENCODER_PASSAGES_PER_S,
    MEASURED,
    PROBED,
    PUBLISHED,
    MachineSpeed,
    Rates,
    corpus_s,
    probe,
)
from core.prices import Price, PriceBook, load_books
from core.providers.base import Amount
from core.providers.calls import Keys
from core.providers.chat import CHATS
from core.providers.config import Limits, ModelConfig
from core.providers.embed import EMBEDDERS
from core.providers.rerank import BY_CHAT, RERANKERS
from core.records import Basis, Stack
from core.work.sweep.words import dollars
from tests.pipeline.corpora import passages, queries, random_texts
from tests.vendors import keys_for, serve

TEXTS = ["aaaa bbbb", "aaaa cccc dddd", "eeee", "eeee"]
"""3, 4 and 1 tokens at a token per four bytes, the last one twice."""
MODELS = {
    "e": ModelConfig(
        provider="voyage", model="voyage-3.5", name="e", dims=(4, 8), matryoshka=True, batch_items=2
    ),
    "r": ModelConfig(provider="voyage", model="rerank-2.5", name="r"),
    "c": ModelConfig(provider="cohere", model="rerank-v3.5", name="c"),
}
BOOKS = load_books()


def stacks(text: str) -> list[Stack]:
    models = "".join(
        f'[models.{name}]\nprovider = "{each.provider}"\ndims = {list(each.dims)}\n'
        for name, each in MODELS.items()
    )
    return expand(parse(f'collection = "c/"\n{text}\n{models}'))


def job(text: str, *, texts: list[str] = TEXTS, asked: tuple[str, ...] = ("aaaa",), **options: Any) -> Job:
    return Job(
        **{
            "name": "t",
            "collection_id": "c",
            "corpora": {None: corpus_of(passages(texts))},
            "queries": queries(asked),
            "stacks": stacks(text),
            "models": MODELS,
            "protocol": Protocol(repeats=3, rounds=2),
            "book": BOOKS["list"],
            **options,
        }
    )


def lines(made: Plan) -> dict[tuple[str, str, str], tuple[int, float | None, float | None]]:
    return {(each.stage, each.model, each.unit): (each.calls, each.amount, each.usd) for each in made.lines}


SPARSE = '[axes]\nmode = "sparse"\ncandidates = 2\nreranker = ["none", "r"]'
DENSE = '[axes]\nmode = "dense"\nembedder = "e"\ndim = [4, 8]\nindex = ["flat", "int8"]\ncandidates = 2\n'


def test_nothing_is_paid_for_what_runs_here():
    made = plan(job('[axes]\nmode = ["sparse", "dense", "hybrid"]\nreranker = ["none", "fake"]'))
    assert made.lines == ()
    assert (made.usd, made.calls, made.exact) == (0.0, 0, True)
    assert {each.usd_per_1k for each in made.stacks} == {0.0}
    assert (made.queries, made.asked, made.passages) == (1, 6, {None: 4})


def test_reranking_by_hand():
    # The pool of "aaaa" (1 token) is the first two passages: 2 · 1 + 3 + 4 = 9 tokens a call;
    # 3 repeats · 2 rounds, and one query to warm up in each round: 8 calls.
    made = plan(job(SPARSE))
    assert lines(made) == {("rerank", "r", "input_tokens"): (8, 72.0, pytest.approx(72 * 0.05e-6))}
    assert POOL_KNOWN in made.lines[0].notes
    assert [each.usd_per_1k for each in made.stacks] == [0.0, pytest.approx(9 * 0.05e-3)]
    assert made.stacks[1].stack.label == "BM25 + r, K = 2"


@pytest.mark.parametrize(
    ("protocol", "calls"),
    [
        (Protocol(repeats=1), 2),
        (Protocol(repeats=0), 1),
        (Protocol(repeats=2, warm_up=0), 2),
        (Protocol(repeats=2, warm_up=9), 3),
    ],
)
def test_how_often_a_query_is_asked(protocol: Protocol, calls: int):
    made = plan(job(SPARSE, protocol=protocol))
    assert (made.calls, made.lines[0].amount) == (calls, 9 * calls)


@pytest.mark.parametrize(("way", "calls"), [(way, 2 if "two-turn" in way else 1) for way in BY_CHAT])
def test_a_reranker_of_two_turns_is_two_calls_per_query(way: str, calls: int):
    text = f'[axes]\nmode = ["sparse"]\ncandidates = 1\nreranker = ["{way}:gpt-4o-mini"]\n'
    made = plan(job(text, protocol=Protocol(repeats=0), asked=("aaaa", "bbbb cccc")))
    assert made.calls == 2 * calls
    assert {each.unit for each in made.lines} == {"input_tokens", "output_tokens"}


def test_embedding_by_hand():
    # The corpus once for both dimensions, equal texts once: 3 + 4 + 1 tokens in two batches of two texts.
    # Questions per dimension: 6 · 2 calls, and one to warm up per round.
    made = plan(job(DENSE))
    assert lines(made) == {
        (CORPUS, "e", "input_tokens"): (2, 8.0, pytest.approx(8 * 0.06e-6)),
        ("embed", "e", "input_tokens"): (14, 14.0, pytest.approx(14 * 0.06e-6)),
    }
    assert made.steps == {"vectors": 1, "slice": 1, "index": 4, "embed": 2, "search": 4}
    assert [each.usd_per_1k for each in made.stacks] == [pytest.approx(0.06e-3)] * 4
    assert not made.exact
    assert "estimated: one token per 4 bytes" in made.lines[0].notes
    four, eight = 4 * 4 * 4, 4 * 4 * 8
    assert made.resources.vector_bytes == four + eight
    assert made.resources.index_bytes >= four + eight


def test_embedding_the_corpus_can_be_spread_over_queries():
    spread = job(DENSE, spec={"budget": {"amortise_over_queries": 4}})
    made = plan(spread, built=lambda step: step.kind == "vectors")
    # 8 tokens of the corpus over 4 queries, and 1 of the question.
    assert [each.usd_per_1k for each in made.stacks] == [pytest.approx(3 * 0.06e-3)] * 4


def test_what_is_built_already_is_not_paid_again():
    made = plan(job(DENSE), built=lambda step: step.kind == "vectors")
    assert [each.stage for each in made.lines] == ["embed"]


def test_pools_that_need_a_vendor_are_as_long_as_the_corpus_on_average():
    # Distinct lengths 3, 4, 1: on average 8/3 tokens a passage.
    made = plan(job(DENSE + 'reranker = "r"', protocol=Protocol(repeats=1, warm_up=0)))
    (line,) = (each for each in made.lines if each.stage == "rerank")
    assert line.amount == pytest.approx(4 * (2 * 1 + 2 * 8 / 3))
    assert POOL_TYPICAL in line.notes
    assert not line.exact


def test_search_units_and_a_pool_beyond_the_corpus():
    texts = ["aaaa " + "x" * 4000, "aaaa"]  # 1,002 tokens with the query, 3 parts of 500; and one of 2
    made = plan(
        job(
            '[axes]\nmode = "sparse"\ncandidates = 50\nreranker = "c"',
            texts=texts,
            protocol=Protocol(repeats=1, warm_up=0),
        )
    )
    assert lines(made) == {("rerank", "c", "search_units"): (1, 1.0, pytest.approx(0.001))}
    many = plan(
        job(
            '[axes]\nmode = "sparse"\ncandidates = 50\nreranker = "c"',
            texts=[f"{texts[0]} {number}" for number in range(40)],
            protocol=Protocol(repeats=1, warm_up=0),
        )
    )
    assert many.lines[0].amount == 2.0  # 40 passages of 3 parts each


def test_the_deepest_pool_is_asked_for_all_and_stacks_are_priced_by_their_own():
    text = '[axes]\nmode = "sparse"\ncandidates = [1, 2]\nreranker = "r"'
    made = plan(job(text, protocol=Protocol(repeats=1, warm_up=0, deepest=True)))
    assert lines(made)["rerank", "r", "input_tokens"][:2] == (1, 9.0)
    assert [each.usd_per_1k for each in made.stacks] == [
        pytest.approx(4 * 0.05e-3),
        pytest.approx(9 * 0.05e-3),
    ]
    each_depth = plan(job(text, protocol=Protocol(repeats=1, warm_up=0)))
    assert lines(each_depth)["rerank", "r", "input_tokens"][:2] == (2, 13.0)


def test_rewrites_change_what_is_counted():
    text = SPARSE + '\nrewrite = ["rules", "chat:gpt-4o-mini"]'
    made = plan(job(text, asked=("Hello, aaaa?",), protocol=Protocol(repeats=1, warm_up=0)))
    found = {each.stage: each for each in made.lines}
    assert {each.unit for each in made.lines if each.stage == "rewrite"} == {"input_tokens", "output_tokens"}
    assert found["rewrite"].model == "chat:gpt-4o-mini"
    assert not found["rewrite"].exact
    dense = plan(job(DENSE + 'rewrite = "chat:gpt-4o-mini"'))
    assert REWRITTEN in next(each for each in dense.lines if each.stage == "embed").notes


def test_a_price_that_is_not_known_is_unknown_and_not_nothing():
    prices = (each for each in BOOKS["list"].prices if each.item != "rerank-2.5")
    book = PriceBook("mine", tuple(prices))
    made = plan(job(SPARSE.replace('"r"', '"r", "c"'), book=book))
    found = {each.model: each for each in made.lines}
    assert found["r"].usd is None
    assert found["r"].reason == "no price for rerank-2.5 (input_tokens) in mine"
    assert made.usd is None
    assert made.usd_known == found["c"].usd
    assert made.stacks[1].usd_per_1k is None
    assert made.stacks[1].reason == found["r"].reason
    assert made.unpriced == ("r",)
    assert "No price in $: r." in dollars(made)
    assert "price-books" in dollars(made)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("embedder", name) for name in EMBEDDERS),
        *(("reranker", name) for name in RERANKERS if name != "none"),
        *(("chat", name) for name in CHATS),
    ],
)
def test_every_model_of_the_catalogues_has_its_prices(kind: str, name: str):
    lacking = [each for each in billed_by(kind, name, {}) if BOOKS["list"].find(*each) is None]
    assert lacking == []


def test_another_currency_is_not_converted():
    price = Price(
        item="rerank-2.5",
        provider="x",
        unit="input_tokens",
        price=1,
        per=1,
        currency="EUR",
        source="s",
        looked_up=date(2026, 1, 1),
        confirmed=True,
    )
    assert plan(job(SPARSE, book=PriceBook("b", (price,)))).lines[0].reason == "rerank-2.5 is priced in EUR"


def test_a_budget_that_is_too_small_is_told():
    made = plan(job(SPARSE, budget_usd=1e-9))
    assert made.over_budget
    assert not plan(job(SPARSE, budget_usd=1.0)).over_budget


def test_time_of_vendors_by_published_and_by_measured_rates():
    made = plan(job(SPARSE))
    assert made.resources.seconds["rerank"] == pytest.approx(6 * (230 + 2.25 * 2) / 1000)
    assert PUBLISHED in made.resources.basis
    measured = Rates({("rerank", "r", 50): 500.0, ("rerank", "r", 3): 100.0})
    made = plan(job(SPARSE), rates=measured)
    assert made.resources.seconds["rerank"] == pytest.approx(0.6)
    assert MEASURED in made.resources.basis
    paused = plan(job(SPARSE, protocol=Protocol(rounds=3, pause_s=60)))
    assert paused.resources.pause_s == 120
    assert paused.resources.total_s > 120
    written = Rates().call("rewrite", "m", 0, (Amount("m", "output_tokens", 120.0, Basis.MODELLED),))
    assert written[0] == 3000
    assert Rates().call("embed", "m", 0, ())[0] == 140
    assert corpus_s(10, 6e6, 100, Limits(tokens_per_minute=3_000_000)) == 120
    assert corpus_s(10, 6e6, 6_000, Limits(items_per_minute=2_000)) == 180
    assert corpus_s(10, 6, 100, Limits(concurrency=4)) == 2.5


def test_typical_lengths_are_as_long_as_the_corpus_on_average():
    lengths = np.array([1, 1, 2, 4, 400])
    for k in (1, 2, 7, 200):
        assert len(typical(lengths, k)) == k
        assert sum(typical(lengths, k)) == pytest.approx(k * lengths.mean())
    assert typical(np.zeros(3, dtype=np.int64), 2) == [0, 0]


def test_large_corpora_are_counted_by_a_sample():
    texts = [f"{number:08}" for number in range(1000)]
    counted = count_texts([*texts, *texts, " "], None, "q: ", sample=100)
    assert (counted.tokens, counted.texts, len(counted.lengths)) == (3000.0, 1000, 100)
    assert not counted.exact
    assert "from a sample of 100 passages" in counted.note
    assert count_texts([], None).tokens == 0
    whole = count_texts(texts, "o200k_base", sample=1000)
    assert whole.exact
    assert whole.note == ""


def test_a_plan_needs_no_key_and_sends_nothing():
    known = KnownNames(MODELS, Keys({}, ()))
    assert plan(job(DENSE + 'reranker = "r"'), known=known).usd


@pytest.mark.slow
def test_the_plans_dollars_are_those_that_a_run_is_billed(tmp_path: Path):
    text = """
        [[axes]]
        mode = ["sparse", "dense", "hybrid"]
        embedder = [{name = "wordllama", dim = 64}]
        reranker = ["none", "rerank-2.5", "rerank-2.5-lite"]
        candidates = [3, 8]
        [[axes]]
        mode = ["dense", "hybrid"]
        embedder = "voyage-3.5"
        dim = [256, 512]
        candidates = 8
    """
    with serve() as vendors:
        at = {"base_url": vendors.voyage, "key_env": "VOYAGE_API_KEY"}
        models = {
            name: {**EMBEDDERS, **RERANKERS}[name].model_copy(update=at)
            for name in ("voyage-3.5", "rerank-2.5", "rerank-2.5-lite")
        }
        asked = job(
            text,
            texts=random_texts(60, seed=1),
            asked=("sort a frame", "lazy window mean", "join columns by row"),
            models=models,
            protocol=Protocol(repeats=2, rounds=2, warm_up=2),
        )
        made = plan(asked)
        assert not vendors.state.calls
        keys = keys_for(vendors.url, VOYAGE_API_KEY="key")
        outcome = run_job(asked, lambda _: None, site=Site(work=tmp_path, keys=keys))
        assert made.exact
        assert outcome.status.usd == pytest.approx(made.usd, rel=1e-9)
        assert sum(vendors.state.answered.values()) == made.calls
        spent = {each.amount.item: 0.0 for each in outcome.spent}
        for each in outcome.spent:
            spent[each.amount.item] += each.amount.amount or 0.0
        planned = {each.model: 0.0 for each in made.lines}
        for line in made.lines:
            planned[line.model] += line.amount or 0.0
        assert spent == planned


def test_servers_of_ones_own_are_asked_how_fast_they_are():
    assert probe(job(DENSE), KnownNames(MODELS, Keys({}, ()))) == {}, "vendors are not asked"
    with serve() as vendors:
        vendors.state.seconds_per_item = 0.02
        own = ModelConfig(provider="openai", model="own", name="e", dims=(4, 8), base_url=vendors.openai)
        asked = job(DENSE, texts=random_texts(60, seed=1), models={**MODELS, "e": own})
        before = plan(asked)
        assert not vendors.state.calls
        speeds = probe(asked)
        sizes = [len(each["input"]) for each in vendors.state.requests]
        assert sizes == [1, 1, 8]
    assert set(speeds) == {"e"}
    assert 20 <= speeds["e"].query_ms < 2000
    (tokens,) = (line.amount for line in before.lines if line.stage == CORPUS)
    assert 0 < speeds["e"].tokens_per_s < tokens / 60 / 0.02 * 2
    made = plan(asked, rates=Rates(probed={"e": MachineSpeed(500.0, 7.0)})).resources
    assert made.seconds[CORPUS] == pytest.approx(tokens / 7)
    assert made.seconds["embed"] == 2 * asked.protocol.passes * 0.5, "one question in two dimensions"
    assert PROBED in made.basis
    assert PROBED not in before.resources.basis
    assert before.resources.seconds[CORPUS] == 2 * 60 / ENCODER_PASSAGES_PER_S
