"""What is found before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ClqError
from core.paths import ROOT
from core.pipeline.sweep import parse, presets
from core.pipeline.sweep.check import check, require
from core.pipeline.sweep.expand import MAX_STACKS
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.problems import Severity, SpecError
from core.prices import PriceBook
from core.providers.calls import Keys

ALL_KEYS = Keys(dict.fromkeys(("VOYAGE_API_KEY", "COHERE_API_KEY", "OPENAI_API_KEY"), "k"), ())
NO_KEYS = Keys({}, ())
HEAD = f'collection = "{ROOT / "tests" / "cases"}"\n'
DENSE = HEAD + '[axes]\nmode = "dense"\n'
HYBRID = HEAD + '[axes]\nmode = "hybrid"\n'


def told(text: str, keys: Keys = ALL_KEYS, **more: object) -> list[str]:
    spec = parse(text)
    found = check(spec, known=KnownNames(spec.models, keys), **more)  # type: ignore[arg-type]
    return [f"{each.severity}: {each}" for each in found]


CASES = {
    "nothing": (HEAD, ["error: axes: There is no stack to run. Give [axes] or at least one [[stack]]."]),
    "all is well": (HYBRID, []),
    "an embedder": (
        DENSE + 'embedder = "wordlama"\ndim = 64\n',
        [
            "error: embedder of wordlama 64 d, K = 50: There is no embedder 'wordlama'. "
            'Did you mean "wordllama"? Known: '
        ],
    ),
    "an index": (
        DENSE + 'index = "hnsw"\n',
        [
            "error: index of wordllama 256 d hnsw, K = 50: There is no index 'hnsw'. "
            'Did you mean "hnsw-f32"? Known: elasticsearch, flat, hnsw-f32, hnsw-int8, int8, '
            "ivf-flat, ivf-pq, lancedb, milvus, opensearch, opq, pgvector (+4 more)."
        ],
    ),
    "a fusion": (
        HYBRID + 'fusion = "rff"\n',
        [
            "error: fusion.method of BM25 ⊕ wordllama 256 d, K = 50 · rff: There is no fusion 'rff'. "
            'Did you mean "rrf"? Known: convex, rrf, rrf-boosted, weighted.'
        ],
    ),
    "a reranker": (
        DENSE + 'reranker = "rerank-2.6"\n',
        [
            "error: reranker of wordllama 256 d + rerank-2.6, K = 50: There is no reranker 'rerank-2.6'. "
            'Did you mean "rerank-2.5"? Known: '
        ],
    ),
    "a rewrite": (
        DENSE + 'rewrite = "rule"\n',
        [
            "error: rewrite of wordllama 256 d, K = 50 · rule: There is no rewrite 'rule'. "
            'Did you mean "rules"? '
        ],
    ),
    "a language": (
        HEAD + '[axes]\nmode = "sparse"\nbm25 = { language = "frensh" }\n',
        [
            "error: bm25.language of BM25, K = 50 · bm25 language frensh: There is no language 'frensh'. "
            'Did you mean "french"? Known: '
        ],
    ),
    "a dimension that the model lacks": (
        DENSE + "dim = [64, 100]\n",
        [
            "error: dim of wordllama 100 d, K = 50: wordllama has no 100 dimensions. "
            "Choose among 64, 128, 256."
        ],
    ),
    "a dimension that nobody knows": (
        DENSE + 'embedder = "mine"\n[models.mine]\nprovider = "openai"\nbase_url = "http://localhost"\n',
        ["error: dim of mine, K = 50: The dimension of mine is not known. Give dim, or dims of the model."],
    ),
    "an option of an index": (
        DENSE + 'index = { name = "hnsw-f32", efSerch = 3 }\n',
        [
            "error: index of wordllama 256 d hnsw-f32, K = 50 · index efSerch 3: "
            "There is no option 'efSerch' of index hnsw-f32. "
            'Did you mean "efSearch"? Known: M, efConstruction, efSearch, filtered.'
        ],
    ),
    "parts that do not divide the dimension": (
        DENSE + 'dim = 64\nindex = { name = "pq", m = 3 }\n',
        [
            "error: index of wordllama 64 d pq, K = 50 · index m 3: 64 dimensions cannot be cut "
            "into m=3 equal parts. "
            "Choose m from 1, 2, 4, 8, 16, 32, 64."
        ],
    ),
    "an option of a fusion": (
        HYBRID + 'fusion = { method = "convex", alpha = 2.5 }\n',
        [
            "error: fusion of BM25 ⊕ wordllama 256 d, K = 50 · convex alpha 2.5: alpha=2.5 is not allowed. "
            "Use 0 to 1 (default 0.5)."
        ],
    ),
    "the inner product of vectors of any length": (
        DENSE + 'embedder = "embed-english-v3.0"\nmetric = ["cosine", "l2", "ip"]\n',
        [
            "error: metric of embed-english-v3.0 1024 d, K = 50 · ip: The model does not normalise its "
            "vectors: by inner product long vectors win whatever they say. "
        ],
    ),
    "K beyond the pool": (
        HYBRID + 'fusion = { method = "rrf", depth = 30 }\ncandidates = [30, 60, 61]\n',
        [
            "error: candidates of BM25 ⊕ wordllama 256 d, K = 61 · rrf depth 30: K = 61 is beyond the pool: "
            "the fusion merges 2 rankings of 30. "
            "Raise fusion.depth to 61, or lower candidates to 60 or fewer.",
            "warning: candidates of BM25 ⊕ wordllama 256 d, K = 60 · rrf depth 30: Pools may hold fewer than "
            "K = 60 passages: the fusion merges 2 rankings of 30. Raise fusion.depth to 60 to be sure.",
        ],
    ),
    "more chunks sent than there are": (
        DENSE + "candidates = [8, 10]\nchunks_sent = [5, 9]\n",
        [
            "error: chunks_sent of wordllama 256 d, K = 8 · 9 sent: 9 chunks cannot be sent of a "
            "pool of K = 8. "
            "Lower chunks_sent to 8 or fewer, or raise candidates."
        ],
    ),
    "a listwise reranker at the deepest K": (
        DENSE + 'reranker = "rebel-one-turn:fake"\n[latency]\nrerank = "deepest"\n',
        [
            "warning: reranker of wordllama 256 d + rebel-one-turn:fake, K = 50: rebel-one-turn:fake judges "
            'passages beside one another: latency.rerank = "deepest" does not fit it. '
            "It is asked at each depth."
        ],
    ),
    "a price book": (
        DENSE + '[budget]\nprices = "lists"\n',
        [
            "error: budget.prices: There is no price book 'lists'. "
            'Did you mean "list"? Known: clq-paper, list.'
        ],
    ),
    "a provider": (
        DENSE + '[models.mine]\nprovider = "voyag"\n',
        ["error: models.mine.provider: There is no provider 'voyag'. Did you mean \"voyage\"? Known: "],
    ),
    "paths": (
        'collection = "nowhere/"\nqueries = "q.jsonl"\ngolden_set = "g.tsv"\n[axes]\nmode = "sparse"\n',
        [
            f"error: {key}: There is no such file or folder: {Path().absolute() / path}."
            for key, path in (
                ("collection.path", "nowhere"),
                ("queries.path", "q.jsonl"),
                ("golden_set.path", "g.tsv"),
            )
        ],
    ),
    "an item without a price while there is a budget": (
        DENSE + 'embedder = "mine"\nreranker = ["none", "rerank-2.5"]\n[budget]\nusd = 1\n'
        '[models.mine]\nprovider = "voyage"\nmodel = "mine"\ndim = 8\n',
        [
            "missing: budget.usd: There is no price of mine (input_tokens) in the price book list. "
            "Price it in a file in price-books, beside the store: data/prices/README.md says how. "
            "Or run without budget.usd."
        ],
    ),
    "units of a search, with a budget": (
        DENSE + 'reranker = ["rerank-v3.5", "relevance:gpt-5"]\nrewrite = "chat:gpt-5"\n[budget]\nusd = 1\n',
        [],
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_every_problem_with_its_reason(text: str, expected: list[str]):
    found = told(text)
    assert len(found) == len(expected), found
    for one, other in zip(found, expected, strict=True):
        assert one.startswith(other)
        assert one == other or other.endswith(" ")


def test_all_of_them_at_once_and_each_once():
    text = (
        DENSE + 'dim = [64, 100]\nindex = ["flat", "hnsw"]\ncandidates = [20, 50]\nreranker = ["none", "x"]\n'
    )
    assert [each.partition(": There")[0].partition(": wordllama has")[0] for each in told(text)] == [
        "error: reranker of wordllama 64 d + x, K = 20 and 7 more",
        "error: index of wordllama 64 d hnsw, K = 20 and 7 more",
        "error: dim of wordllama 100 d, K = 20 and 7 more",
    ]


def test_a_key_that_is_not_set_is_one_problem_and_names_it():
    text = 'preset = "clq-paper"\ncollection = "tests/cases"\n'
    missing = [each for each in told(text, NO_KEYS) if not each.startswith("warning")]
    assert missing == [
        "missing: voyage-3-large, voyage-3.5, voyage-3.5-lite, rerank-2.5, rerank-2.5-lite: "
        "The key VOYAGE_API_KEY is not set. "
        "Set the environment variable VOYAGE_API_KEY, or VOYAGE_API_KEY in .streamlit/secrets.toml."
    ]
    assert all(each.startswith("warning") for each in told(text))


@pytest.mark.parametrize("name", presets())
def test_presets_need_no_more_than_a_key(name: str):
    assert all(
        each.startswith("warning") for each in told(f'preset = "{name}"\ncollection = "tests/cases"\n')
    )


def test_a_package_that_is_not_installed_names_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.pipeline.sweep.known.importlib.util.find_spec", lambda _: None)
    text = DENSE + 'embedder = "mine"\n[models.mine]\nprovider = "sentence-transformers"\ndims = [3]\n'
    assert told(text) == [
        "missing: mine: mine needs the package sentence_transformers. "
        "Install it: pip install sentence-transformers"
    ]


def test_the_size_of_the_corpus_where_it_is_known():
    assert told(DENSE, passages=49) == [
        "warning: candidates of wordllama 256 d, K = 50: K = 50 is beyond the 49 passages of the collection: "
        "all are candidates. A smaller K says the same in less time."
    ]
    (found,) = told(DENSE + 'index = "pq"\n', passages=100)
    assert "100 vectors (passages) are too few to learn from" in found


def test_too_many_stacks_are_not_even_made():
    text = DENSE + f"candidates = {list(range(1, MAX_STACKS + 2))}\n"
    assert told(text) == ["error: axes: They make up to 20,001 stacks; at most 20,000 can run."]


def test_a_missing_key_keeps_from_running_but_not_from_planning():
    spec = parse(DENSE + 'embedder = "voyage-3.5"\ncandidates = [10]\n')
    problems = check(spec, known=KnownNames(spec.models, NO_KEYS))
    assert [each.severity for each in problems] == [Severity.MISSING]
    assert require(problems, to_run=False) == problems
    with pytest.raises(SpecError, match="VOYAGE_API_KEY is not set"):
        require(problems)
    assert require([]) == []


def test_another_price_book():
    spec = parse(DENSE + 'embedder = "voyage-3.5"\n[budget]\nusd = 1\nprices = "mine"\n')
    (found,) = check(spec, known=KnownNames(spec.models, ALL_KEYS), books={"mine": PriceBook("mine", ())})
    assert found.found == "There is no price of voyage-3.5 (input_tokens) in the price book mine."


def test_errors_of_providers_name_what_is_missing_without_a_key():
    known = KnownNames(keys=NO_KEYS)
    (error,) = known.obstacles("reranker", "rerank-v3.5")
    assert isinstance(error, ClqError)
    assert error.where == "COHERE_API_KEY"
    assert list(known.obstacles("embedder", "wordllama")) == list(known.obstacles("rewrite", "rules")) == []
