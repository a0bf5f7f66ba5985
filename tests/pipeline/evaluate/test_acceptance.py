"""Whole evaluations of two shared collections, from the text of a specification to measures in a store."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import Stemmer
from bm25s import stopwords

from core.metrics import Measure, score
from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.providers.embed import make_embedder
from core.store import Snapshot, Store
from tests.pipeline import cranfield

pytestmark = pytest.mark.slow

PIAF = cranfield.FOLDER.parent / "piaf_fr"
SPEC = """
name = "acceptance"
collection = "{path}"
golden_set = {{ split = "{split}" }}
queries = {{ limit = {limit} }}
[axes]
mode = ["sparse", "dense", "hybrid"]
embedder = "wordllama"
{axes}
[latency]
repeats = 1
"""
CRANFIELD = SPEC.format(
    path=cranfield.FOLDER,
    split=cranfield.SPLIT,
    limit=1000,
    axes='dim = [64, 128, 256]\nindex = ["flat", "hnsw-f32", "int8"]\ncandidates = [20, 50, 100]',
)
FRENCH = SPEC.format(
    path=PIAF,
    split="test",
    limit=120,
    axes='dim = 256\ncandidates = 50\nbm25 = [{ language = "french" }, { language = "english" }]',
)
EXPECTED = {"BM25": 0.45, "wordllama 256 d": 0.38, "BM25 ⊕ wordllama 256 d": 0.45}
K1, B, RRF, DEPTH = 1.5, 0.75, 60, 100


def evaluated(text: str, folder: Path) -> Snapshot:
    job, _ = read_job(parse(text, "toml"))
    store = Store.open(folder / "store")
    with store.write("evaluate") as writer:
        run_job(job, writer.add, site=Site(work=folder / "evaluations"))
    return store.read()


def quality(snapshot: Snapshot, measure: str = "RA-nWG@10") -> dict[str, float]:
    """The mean of a measure by label."""
    runs = snapshot.runs()
    ids = runs["run_id"].to_list()
    (golden,) = snapshot.golden_sets()["golden_set_id"]
    graded = snapshot.graded(ids, golden)
    parsed = Measure.parse(measure)
    values = score(parsed, graded.grades, graded.pool_counts)[..., 9]
    labels = dict(runs.select("run_id", "label").iter_rows())
    return {labels[run]: float(np.nanmean(row)) for run, row in zip(graded.run_ids, values, strict=True)}


@dataclass
class Naive:
    """BM25 (Lucene's formula) and cosines in plain Python and float64, without the product's engines."""

    ids: Sequence[str]
    texts: Sequence[str]

    def __post_init__(self) -> None:
        self._stemmer = Stemmer.Stemmer("english")
        self._counts = [Counter(self.terms(text)) for text in self.texts]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = sum(self._lengths) / len(self.texts)
        self._holders: Counter[str] = Counter(term for counts in self._counts for term in counts)
        embedder = make_embedder("wordllama", 256)
        self._embed = lambda texts: embedder.embed(texts).astype(np.float64)
        self._vectors = self._embed(list(self.texts))

    def terms(self, text: str) -> list[str]:
        words = re.findall(r"\b\w\w+\b", text.lower())
        return [self._stemmer.stemWord(word) for word in words if word not in stopwords.STOPWORDS_EN]

    def bm25(self, query: str) -> dict[str, float]:
        found: dict[str, float] = {}
        asked = self.terms(query)
        for at, (counts, length) in enumerate(zip(self._counts, self._lengths, strict=True)):
            total = 0.0
            for term in asked:
                if counts[term]:
                    n = self._holders[term]
                    idf = math.log(1 + (len(self.texts) - n + 0.5) / (n + 0.5))
                    total += idf * counts[term] / (counts[term] + K1 * (1 - B + B * length / self._mean))
            if total:
                found[self.ids[at]] = total
        return found

    def cosines(self, query: str) -> dict[str, float]:
        return dict(zip(self.ids, (self._vectors @ self._embed([query])[0]).tolist(), strict=True))

    def best(self, scores: Mapping[str, float], k: int) -> list[str]:
        place = {passage: at for at, passage in enumerate(self.ids)}
        return sorted(scores, key=lambda passage: (-scores[passage], place[passage]))[:k]

    def fused(self, legs: Sequence[Sequence[str]]) -> dict[str, float]:
        scores: dict[str, float] = {}
        for leg in legs:
            for rank, passage in enumerate(leg[:DEPTH], 1):
                scores[passage] = scores.get(passage, 0.0) + 1 / (RRF + rank)
        return scores


def in_doubt(scores: Mapping[str, float], k: int) -> bool:
    """Whether float32 could rank the first k (and what is left out) in another order."""
    ordered = sorted(scores.values(), reverse=True)[: k + 1]
    return bool((-np.diff(ordered) < 2e-6 * abs(ordered[0])).any())


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    if not cranfield.FOLDER.is_dir():
        pytest.skip(f"the Cranfield collection is not at {cranfield.FOLDER}")
    return evaluated(CRANFIELD, tmp_path_factory.mktemp("cranfield"))


def rankings(snapshot: Snapshot, label: str) -> dict[str, list[str]]:
    run_id = snapshot.runs().row(by_predicate=pl.col("label") == label, named=True)["run_id"]
    rows = snapshot.rankings([run_id]).sort("query_id", "rank")
    return dict(rows.group_by("query_id", maintain_order=True).agg("passage_id").iter_rows())


def test_one_specification_gives_a_measure_for_every_stack(english: Snapshot):
    reached = quality(english)
    assert len(reached) == 3 * (1 + 9 + 9)
    assert all(0.2 < value < 0.6 for value in reached.values())
    # What throw-away scripts over the same engines reached, with the source documents left in.
    for label, expected in EXPECTED.items():
        assert reached[f"{label}, K = 100"] == pytest.approx(expected, abs=0.02)
    assert reached["wordllama 64 d, K = 100"] < reached["wordllama 256 d, K = 100"]
    signals = english.signals(english.runs()["run_id"].to_list()).filter(signal="ann_recall")
    assert signals["run_id"].n_unique() == 3 * (6 + 6)
    assert signals["value"].mean() > 0.97


def test_bm25_and_hybrid_agree_with_a_naive_computation(english: Snapshot):
    corpus = cranfield.table("passages")
    whole = corpus.select("passage_id", pl.concat_str("title", "text", separator="\n", ignore_nulls=True))
    kept = [(name, text.strip()) for name, text in whole.iter_rows() if text.strip()]
    naive = Naive([name for name, _ in kept], [text for _, text in kept])
    sparse = rankings(english, "BM25, K = 100")
    hybrid = {k: rankings(english, f"BM25 ⊕ wordllama 256 d, K = {k}") for k in (20, 50, 100)}
    asked = dict(cranfield.table("queries").select("query_id", "text").iter_rows())
    sure: Counter[str] = Counter()
    for query_id in hybrid[100]:
        by_words, by_meaning = naive.bm25(asked[query_id]), naive.cosines(asked[query_id])
        if in_doubt(by_words, DEPTH):
            continue
        sure["sparse"] += 1
        assert sparse[query_id] == naive.best(by_words, DEPTH)
        if in_doubt(by_meaning, DEPTH):
            continue
        sure["hybrid"] += 1
        legs = [naive.best(scores, DEPTH) for scores in (by_words, by_meaning)]
        for k, found in hybrid.items():
            assert found[query_id] == naive.best(naive.fused(legs), k)
    assert sure["sparse"] > 0.8 * len(hybrid[100]), sure
    assert sure["hybrid"] > 0.5 * len(hybrid[100]), sure


def test_a_french_collection_is_searched_with_the_french_analyzer(tmp_path: Path):
    if not PIAF.is_dir():
        pytest.skip(f"the PIAF collection is not at {PIAF}")
    snapshot = evaluated(FRENCH, tmp_path)
    runs = {row["label"]: json.loads(row["manifest"]) for row in snapshot.runs().to_dicts()}
    reached = quality(snapshot)
    used = {label: told["indexes"]["bm25"]["stemmer"] for label, told in runs.items() if "BM25" in label}
    assert sorted(used.values()) == ["english", "english", "french", "french"]
    assert min(value for label, value in reached.items() if "⊕" not in label and label in used) > 0.85
    french, english = (
        next(rankings(snapshot, label) for label in used if used[label] == language and "⊕" not in label)
        for language in ("french", "english")
    )
    assert french != english
    assert snapshot.golden_sets()["queries"].to_list() == [120]
