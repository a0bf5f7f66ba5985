"""Late chunking from a specification to the vectors that are searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep import parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.read import read_job
from core.providers.embed import make_embedder
from core.providers.embed.base import TokenEmbedder
from tests.providers import tiny_onnx

WORDS = ["the", "flow", "of", "heat", "wing", "fast", "wave", "plate", ".", "cold", "air", "is"]
TEXT = "the flow of heat is fast . the cold air is fast .\n\nthe wing is cold . the plate is cold .\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text(TEXT)
    (tmp_path / "docs" / "b.txt").write_text("the wave of cold air . " * 8)
    (tmp_path / "asked.csv").write_text("query_id,text\nq,cold wing\n")
    tiny_onnx.write(tmp_path / "tiny", WORDS)
    return tmp_path


def specification(late: str, embedder: str = "tiny") -> str:
    return f"""
        collection = "docs"
        queries = "asked.csv"
        [axes]
        mode = "dense"
        embedder = "{embedder}"
        chunker = {{ method = "paragraph", size = 20, metadata = "none", late = {late} }}
        candidates = 2
        [models.tiny]
        provider = "onnx"
        path = "tiny"
        dims = [8]
        [latency]
        repeats = 0
    """


@pytest.mark.slow
def test_the_vectors_of_chunks_come_from_whole_documents(folder: Path, tmp_path: Path):
    spec = parse(specification("true"), folder=folder)
    job, _ = read_job(spec)
    ((name, corpus),) = job.corpora.items()
    assert name is not None
    assert corpus.late is not None
    work = tmp_path / "evaluations"
    run_job(job, lambda _: None, site=Site(work=work))
    (path,) = (work / "artifacts").glob("vectors-*/vectors.npy")
    embedder = make_embedder(spec.models["tiny"], 8)
    assert isinstance(embedder, TokenEmbedder)
    texts = dict(corpus.late.documents.select("source", "text").iter_rows())
    found = np.load(path)
    assert len(found) == len(corpus) >= 4
    for row, chunk in zip(found, corpus.late.chunks.iter_rows(named=True), strict=True):
        tokens = embedder.embed_tokens(texts[chunk["source"]])
        within = (tokens.spans[:, 1] > chunk["start_char"]) & (tokens.spans[:, 0] < chunk["end_char"])
        assert np.allclose(row, embedder.pooled(tokens.vectors[within]), atol=1e-6)
    assert corpus.late.chunks["passage_id"].to_list() == corpus.passage_ids.to_list()


def test_late_and_early_chunks_are_different_chunkings(folder: Path):
    late, early = (read_job(parse(specification(word), folder=folder))[0] for word in ("true", "false"))
    assert late.stacks[0].label == f"{early.stacks[0].label} late"
    assert late.corpora.keys() != early.corpora.keys()
    (made,) = early.corpora.values()
    assert made.late is None
    (other,) = late.corpora.values()
    assert isinstance(other.texts, pl.Series)
    assert other.texts.to_list() == made.texts.to_list()
    assert other.hash != made.hash


def test_an_encoder_without_token_vectors_is_refused(folder: Path):
    (problem,) = check(parse(specification("true", "wordllama"), folder=folder))
    assert problem.found == "wordllama gives no vectors of tokens, which late chunking is made of."
