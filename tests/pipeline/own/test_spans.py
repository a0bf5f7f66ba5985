"""Spans of OpenTelemetry are stages and tokens of a pipeline, by OpenInference and by gen_ai.*."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.pipeline.own.config import OwnStack
from core.pipeline.own.process import OwnWorker

pytestmark = pytest.mark.extras

CODE = '''
from opentelemetry import trace

MS = 1_000_000

def spans(tracer, tree, at=0):
    """Emit spans of given milliseconds, each with those inside it."""
    for name, ms, attributes, inside in tree:
        span = tracer.start_span(name, start_time=at * MS, attributes=attributes)
        with trace.use_span(span):
            spans(tracer, inside, at)
        span.end(end_time=(at + ms) * MS)

def kind(name, **more):
    return {"openinference.span.kind": name, **more}

EMBED = ("embed", 30, kind("EMBEDDING", **{"embedding.model_name": "e", "llm.token_count.prompt": 7}), [])
RERANK = ("rerank", 20, kind("RERANKER", **{"reranker.model_name": "r"}), [])
INFERENCE = [("chain", 200, kind("CHAIN"), [("search", 50, kind("RETRIEVER"), [EMBED]), RERANK,
    ("answer", 90, kind("LLM", **{"llm.model_name": "m", "llm.token_count.prompt": 100,
        "llm.token_count.completion": 9}), [])])]
GEN_AI = [
    ("embeddings", 30, {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e",
        "gen_ai.usage.input_tokens": 7}, []),
    ("chat", 90, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1", "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 9}, []),
    ("tool", 10, {"gen_ai.operation.name": "execute_tool"}, []),
]

def inference(query):
    spans(trace.get_tracer("shop"), INFERENCE)
    return ["a"]

def gen_ai(query):
    spans(trace.get_tracer("shop"), GEN_AI)
    return ["a"]
'''
OF_THEIR_OWN = """
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""
CASES = {
    "inference": (
        {"retrieve": 20.0, "embed": 30.0, "rerank": 20.0, "generate": 90.0},
        [
            {"model": "e", "input_tokens": 7.0},
            {"model": "m", "input_tokens": 100.0, "output_tokens": 9.0},
        ],
    ),
    "gen_ai": (
        {"embed": 30.0, "generate": 90.0},
        [
            {"model": "e", "input_tokens": 7.0},
            {"model": "m-1", "input_tokens": 100.0, "output_tokens": 9.0},
        ],
    ),
}


@pytest.fixture(autouse=True)
def _sdk() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("provider", ["", OF_THEIR_OWN], ids=["ours", "theirs"])
def test_spans_are_stages_and_tokens(name: str, provider: str, tmp_path: Path):
    (tmp_path / "pipe.py").write_text(CODE + provider)
    one = OwnWorker(OwnStack(name="shop", call=f"pipe:{name}", path=tmp_path))
    answers = [one.ask("cats", 1, {}) for _ in range(2)]
    one.close()
    assert one.hello["spans"] is True
    for answer in answers:  # the spans of one query are not those of the next
        assert (answer["stages"], answer["usage"]) == CASES[name]
