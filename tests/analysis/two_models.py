"""A store of two models, of which the small one runs today: the worked example of docs/switch.md."""

from __future__ import annotations

from core.decide.switching import Terms
from tests.stores import Lab

QUERIES = [f"q{number:02}" for number in range(40)]
DENSE = {"mode": "dense", "dim": 1024, "index": "flat", "candidates": 10, "reranker": "none"}
SMALL, LARGE = ({**DENSE, "embedder": name} for name in ("voyage-3.5-lite", "voyage-3.5"))
HALF = {query: ["good"] if number % 2 else ["bad"] for number, query in enumerate(QUERIES)}
EVERY = {query: ["good"] for query in QUERIES}
EXAMPLE = Terms(
    queries_per_month=1_000_000,
    weeks_both=4,
    engineering_days=5,
    usd_per_day=600,
    evaluation_usd=40,
    passages=2_000_000,
    tokens_per_passage=250,
)


def judged() -> Lab:
    """Questions that have a good and a bad passage each."""
    return Lab().judge({query: {"good": 5, "bad": 1} for query in QUERIES})


def two_models() -> Lab:
    """A small model that finds half of the answers, and a large one that finds all, each with its tokens."""
    made = judged()
    for name, spec, final in (("small", SMALL, HALF), ("large", LARGE, EVERY)):
        made.run(name, final=final, spec=spec, usage=[("embed", spec["embedder"], "input_tokens", 20.0)])
    return made
