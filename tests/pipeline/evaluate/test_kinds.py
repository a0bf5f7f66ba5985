"""Every kind of step in one evaluation of documents, from a specification to measures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from core.metrics import Measure, score
from core.pipeline.evaluate import Outcome, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.ranking.cut import keep
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.providers.calls.keys import ALLOW
from core.store import Snapshot, Store
from tests.pipeline.evaluate.vendor import Vendor, vendor
from tests.vendors import keys_for

DOCUMENTS = {
    "farm.txt": "Once there was a farm. The cat sat on the mat. It was happy there.\n\nDogs bark at night.\n",
    "zoo.md": "# Zebras\n\nZebras run fast. They have stripes.\n\n## Lions\n\nLions sleep all day.\n",
    "sea.txt": "Fish swim in the sea. Whales sing at night. Crabs walk sideways on the sand.\n",
}
ASKED = "query_id,text\nq1,Hello! where did the cat sit? Thanks\nq2,which animal runs fast\nq3,who sings\n"
SPANS = (
    "query_id,source,quote,grade\nq1,farm.txt,The cat sat on the mat.,5\nq2,zoo.md,Zebras run fast.,4\n"
    "q3,sea.txt,Whales sing at night.,5\nq3,farm.txt,Dogs bark at night.,2\n"
)
SPEC = """
name = "kinds"
collection = "docs"
queries = "asked.csv"
golden_set = "spans.csv"
[models.chat]
provider = "openai"
model = "gpt-4o-mini"
base_url = "{url}/openai/v1"
key_env = "KEY"
[models.strict]
provider = "openai"
model = "gpt-4o-mini"
base_url = "{url}/openai/v1"
key_env = "KEY"
chat = {{ json_mode = "schema" }}
reasons = true
[latency]
repeats = 1
[axes]
method = "list"
[[stack]]
mode = "sparse"
chunker = "none"
candidates = 4
[[stack]]
mode = "hybrid"
embedder = "fake"
chunker = {{ method = "sentence", size = 24, overlap = 0 }}
fusion = {{ method = "convex", alpha = 0.4 }}
rewrite = "rules"
candidates = 4
cut = "max-gap"
[[stack]]
mode = "dense"
embedder = "fake"
chunker = {{ method = "paragraph", size = 30 }}
index = "hnsw-f32"
metric = "ip"
rewrite = "chat:chat"
reranker = "rebel-two-turn:strict"
candidates = 3
chunks_sent = 2
[[stack]]
mode = "hybrid"
embedder = "fake"
chunker = {{ method = "paragraph", size = 30 }}
bm25 = {{ k1 = 0.9, b = 0.4 }}
reranker = "fake"
cut = "otsu"
candidates = 3
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with vendor(tmp_path_factory.mktemp("vendor")) as serving:
        yield serving


@pytest.fixture(scope="module")
def made(server: Vendor, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Snapshot]:
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "docs").mkdir()
    for name, text in {
        **{f"docs/{k}": v for k, v in DOCUMENTS.items()},
        "asked.csv": ASKED,
        "spans.csv": SPANS,
    }.items():
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "kinds")
        patch.setenv(ALLOW, f"KEY={server.url}")
        job, problems = read_job(parse(SPEC.format(url=server.url), "toml", folder=folder))
    assert not [each for each in problems if each.severity == "error"]
    store = Store.open(folder / "store")
    with store.write("evaluate") as writer:
        site = Site(work=folder / "evaluations", keys=keys_for(server.url, KEY="kinds"))
        outcome = run_job(job, writer.add, site=site)
    return outcome, store.read()


def test_every_stack_lands_with_its_chunking(made: tuple[Outcome, Snapshot]):
    outcome, snapshot = made
    chunkings = [run.chunking for run in outcome.runs]
    assert [str(each).partition("-")[0] for each in chunkings] == [
        "None",
        "sentence",
        "paragraph",
        "paragraph",
    ]
    for run in outcome.runs:
        ranked = set(snapshot.rankings([run.run_id])["passage_id"])
        assert all(("#" in passage) == (run.chunking is not None) for passage in ranked)
        assert run.manifest["corpus"]["indexed"] >= 3


def test_one_golden_set_judges_all_chunkings(made: tuple[Outcome, Snapshot]):
    outcome, snapshot = made
    (golden,) = snapshot.golden_sets()["golden_set_id"]
    graded = snapshot.graded([run.run_id for run in outcome.runs], golden)
    values = score(Measure.parse("RA-nWG@2"), graded.grades, graded.pool_counts)[..., 1]
    assert np.isfinite(values).all()
    assert values.mean() > 0.4


def test_pools_and_finals_are_what_reranker_and_cut_made_of_them(made: tuple[Outcome, Snapshot]):
    outcome, snapshot = made
    for run in outcome.runs:
        final, pool = (
            {query: list(zip(ids, scores, strict=True)) for query, ids, scores in rows.iter_rows()}
            for rows in (
                snapshot.rankings([run.run_id], stage=stage)
                .sort("rank")
                .group_by("query_id")
                .agg("passage_id", "score")
                for stage in ("final", "pool")
            )
        )
        spec = run.stack.spec
        chosen = spec["reranker"] != "none" or "cut" in spec or "chunks_sent" in spec
        assert bool(pool) == chosen
        for query, ranked in final.items():
            assert len(ranked) <= spec.get("chunks_sent", spec["candidates"])
            if chosen:
                assert {passage for passage, _ in ranked} <= {passage for passage, _ in pool[query]}
            if spec["reranker"] == "none" and "cut" in spec:
                kept = keep(spec["cut"], [score for _, score in pool[query]])
                assert ranked == pool[query][:kept]


def test_times_and_usage_cover_every_stage(made: tuple[Outcome, Snapshot]):
    outcome, snapshot = made
    expected = [
        {"sparse"},
        {"rewrite", "sparse", "embed", "retrieve", "fuse", "cut"},
        {"rewrite", "embed", "retrieve", "rerank"},
        {"sparse", "embed", "retrieve", "fuse", "rerank", "cut"},
    ]
    for run, stages in zip(outcome.runs, expected, strict=True):
        assert set(snapshot.timings([run.run_id])["stage"]) == stages
        assert set(snapshot.usage([run.run_id])["stage"]) == stages
    usage = snapshot.usage([outcome.runs[2].run_id])
    assert set(usage.filter(stage="rerank")["unit"]) == {"input_tokens", "output_tokens"}
    assert set(usage.filter(stage="rewrite")["item"]) == {"gpt-4o-mini"}
    assert usage.filter(pl.col("unit") != "cpu_ms")["amount"].min() > 0


def test_signals_tell_how_sure_each_query_was(made: tuple[Outcome, Snapshot]):
    outcome, snapshot = made
    names = [set(snapshot.signals([run.run_id])["signal"]) for run in outcome.runs]
    assert all("top1" in each for each in names)
    assert all({"top_margin", "score_gap", "score_entropy"} <= each for each in names[1:])
    assert {"dense_top_margin", "rewrite_changed"} <= names[1]
    assert {"ann_recall", "rerank_chars_per_second", "rerank_discarded"} <= names[2]
    assert {"rerank_top_margin", "rerank_score_entropy"} <= names[3]
    equal = snapshot.signals([outcome.runs[2].run_id]).filter(signal="rerank_equal_weights")
    assert equal["value"].to_list() == [0.0] * 3, "the criteria's weights are the model's"
    why = snapshot.ratings([outcome.runs[2].run_id]).filter(position=0)["reason"]
    assert why.str.contains(r"^has \d+ characters$").all(), "the model was asked for its reasons"
    assert snapshot.ratings([outcome.runs[2].run_id]).filter(pl.col("position") > 0)["reason"].is_null().all()
    changed = snapshot.signals([outcome.runs[1].run_id]).filter(signal="rewrite_changed").sort("query_id")
    assert changed["value"].to_list() == [1.0, 0.0, 0.0]


def test_a_rewritten_query_is_what_is_searched(made: tuple[Outcome, Snapshot], server: Vendor):
    outcome, _ = made
    assert outcome.status.usd_lost == 0
    asked = [things[0] for things in server.requests("kinds")]
    assert any("Hello! where did the cat sit? Thanks" in each for each in asked), "what the rewrite is given"
    searched = [each for each in asked if "The cat sat on the mat." in each]
    assert searched, "what the reranker is given"
