"""Frameworks' own retrievers as stacks: ranked as by hand, in an interpreter that has them.

They take 400 MB, so no environment of the project has them. Name one that does::

    python -m venv frameworks
    frameworks/bin/pip install langchain-core langchain-community rank-bm25 llama-index-core \\
        llama-index-retrievers-bm25 haystack-ai starlette uvicorn
    CLQ_FRAMEWORKS=frameworks/bin/python python -m pytest -m extras tests/pipeline/own/test_frameworks.py
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from core.pipeline import demo
from core.pipeline.evaluate import Protocol, corpus_of
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import filled
from core.records import Stack
from tests.pipeline.evaluate.helpers import job, run

PYTHON = os.environ.get("CLQ_FRAMEWORKS", "")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="CLQ_FRAMEWORKS names no interpreter that has the frameworks"),
]
K, ASKED, PASSAGES = 20, 30, 1000
ROWS = """
import json
from pathlib import Path
ROWS = json.loads((Path(__file__).parent / "rows.json").read_text())
"""
CODES = {
    "langchain_bm25": """
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from rows import ROWS
retriever = BM25Retriever.from_documents(
    [Document(page_content=text, metadata={"id": name}) for name, text in ROWS], k=20)
def by_hand(query): return [found.metadata["id"] for found in retriever.invoke(query)]
""",
    "llama_bm25": """
from llama_index.core.schema import TextNode
from llama_index.retrievers.bm25 import BM25Retriever
from rows import ROWS
retriever = BM25Retriever.from_defaults(
    nodes=[TextNode(id_=name, text=text) for name, text in ROWS], similarity_top_k=20)
def by_hand(query): return [found.node.node_id for found in retriever.retrieve(query)]
""",
    "haystack_rrf": """
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from rows import ROWS
retriever = Pipeline()
retriever.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=20))
for kind in ("BM25L", "BM25Okapi"):
    store = InMemoryDocumentStore(bm25_algorithm=kind)
    store.write_documents([Document(id=name, content=text) for name, text in ROWS])
    retriever.add_component(kind, InMemoryBM25Retriever(store, top_k=20))
    retriever.connect(kind, "joiner")
def by_hand(query):
    found = retriever.run({kind: {"query": query} for kind in ("BM25L", "BM25Okapi")})
    return [document.id for document in found["joiner"]["documents"]]
""",
    "core": """
from rows import ROWS
def retriever(query, k=20):
    words = set(query.lower().split())
    scored = [(name, len(words & set(text.lower().split()))) for name, text in ROWS]
    return sorted(scored, key=lambda pair: -pair[1])[:k]
def by_hand(query): return [name for name, _ in retriever(query)]
""",
    "service": """
from core import by_hand
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def search(request):
    asked = await request.json()
    return JSONResponse([{"id": name} for name in by_hand(asked["query"])[: asked["k"]]])
app = Starlette(routes=[Route("/search", search, methods=["POST"])])
""",
}
BY_HAND = "import json, sys, {0}; print(json.dumps([{0}.by_hand(query) for query in json.load(sys.stdin)]))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("frameworks")
    corpus = corpus_of(demo.passages().head(PASSAGES))
    rows = list(zip(corpus.passage_ids, corpus.texts, strict=True))
    (made / "rows.json").write_text(json.dumps(rows))
    (made / "rows.py").write_text(ROWS)
    (made / "core").mkdir()
    for name, code in CODES.items():
        (made / ("core/__init__.py" if name == "core" else f"{name}.py")).write_text(code)
    return made


@pytest.fixture(scope="module")
def address(folder: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(command, cwd=folder)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/search"
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", CODES)
def test_it_ranks_as_when_it_is_called_by_hand(name: str, folder: Path, tmp_path: Path, address: str):
    asked = demo.queries()["text"].head(ASKED).to_list()
    told = {"name": name, "candidates": K}
    where = {"call": f"{name}:retriever", "python": Path(PYTHON), "path": folder}
    place = {"url": address, "preset": "plain"} if name == "service" else where
    pipeline = filled(OwnStack.model_validate({**told, **place}))
    work = job(
        [Stack(pipeline.spec({}))],
        texts=demo.passages().head(PASSAGES),
        asked=asked,
        protocol=Protocol(repeats=1),
        own={name: pipeline},
    )
    outcome, sunk = run(tmp_path, work)
    assert outcome.runs[0].manifest["own"]["failed"] == 0
    rows = sunk.table("rankings").filter(stage="final").sort("query_id", "rank")
    stored = [part["passage_id"].to_list() for _, part in rows.group_by("query_id", maintain_order=True)]
    called = [PYTHON, "-c", BY_HAND.format("core" if name == "service" else name)]
    done = subprocess.run(called, input=json.dumps(asked), stdout=-1, text=True, cwd=folder, check=True)
    assert stored == json.loads(done.stdout.splitlines()[-1])
