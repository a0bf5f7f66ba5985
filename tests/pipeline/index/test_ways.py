"""Every way of honouring filters against brute force: a mask, and exact search among what it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.errors import InputError
from core.filters import Filter, Kind, fields_of, parse
from core.pipeline import demo, demo_filters
from core.pipeline.index import (
    INDEXES,
    DatabaseIndex,
    DatabasePlace,
    DenseIndex,
    ann_recall,
    load_index,
    make_index,
    parted,
)
from core.pipeline.index.bm25 import Bm25Index, make_bm25
from core.pipeline.index.partitioned import Partitioned
from core.pipeline.index.scope import NONE, FilterWay, IndexScope, filter_way, kept, partition, scopes_of
from core.pipeline.index.ways import SearchedFor, search
from core.pipeline.ranking import Hits, top_k
from core.providers.base import Purpose
from core.providers.embed import make_embedder
from tests.pipeline import cranfield
from tests.pipeline.engines import FILTERING, kind_of

K = 20
METRIC = "cosine"
LISTS = {"lists": 8, "nprobe": 8}
"""Options with which a kind of index compares every vector."""
EXACT: dict[str, dict[str, Any]] = {"flat": {}, "ivf-flat": LISTS, "hnsw-f32": {"efSearch": 10_000}}
NO_VECTOR = np.empty(0, dtype=np.float32)


class Corpus:
    """Texts with made or real metadata, questions with filters, and their vectors."""

    def __init__(
        self, texts: list[str], asked: list[str], fields: pl.DataFrame, filters: list[Filter | None]
    ):
        embedder = make_embedder("wordllama", 64)
        self.texts, self.asked, self.fields = texts, asked, fields
        self.vectors = embedder.embed(texts)
        self.queries = embedder.embed(asked, Purpose.QUERY)
        self.scopes = scopes_of(fields, filters)
        self.masks = [np.ones(len(texts), bool) if each is None else each.mask(fields) for each in filters]

    def exact(self, query: int) -> Hits:
        """The nearest of the allowed passages, by a mask and a product."""
        left = np.flatnonzero(self.masks[query])
        lengths = np.linalg.norm(self.vectors[left], axis=1) * np.linalg.norm(self.queries[query])
        found = self.vectors[left] @ self.queries[query] / np.where(lengths > 0, lengths, 1)
        return top_k(left, found.astype(np.float64), K)


def zipf(count: int, draw: np.random.Generator) -> list[str]:
    """Names of ten tenants by Zipf's law."""
    shares = 1 / np.arange(1, 11)
    return [f"tenant {number}" for number in draw.choice(10, size=count, p=shares / shares.sum())]


def of_cranfield() -> Corpus:
    draw = np.random.default_rng(49)
    rows, queries = cranfield.table("passages"), cranfield.table("queries")
    texts = [text or "" for text in rows["text"]]
    groups = ["sales", "finance", "staff"]
    known = [
        {
            "tenant": tenant,
            "acl": list(draw.choice(groups, size=draw.integers(1, 4), replace=False)),
            **(
                {"date": f"20{draw.integers(10, 26)}-0{draw.integers(1, 10)}-15"}
                if draw.random() < 0.9
                else {}
            ),
        }
        for tenant in zipf(len(texts), draw)
    ]
    asked = []
    for number, tenant in enumerate(zipf(queries.height, draw)):
        wanted: dict[str, Any] = {"tenant": tenant}
        if number % 3 == 1:
            wanted["acl"] = {"any": [groups[number % 2]]}
        if number % 3 == 2:
            wanted["date"] = {"not": {"lt": "2018-01-01"}}
        asked.append(None if number % 20 == 19 else parse(wanted))
    return Corpus(texts, queries["text"].to_list(), fields_of(known), asked)


def of_packages() -> Corpus:
    """Every question of the demo twice: with its filter there, and asked by a user of one of the packages."""
    rows = demo.passages()
    asked = {
        each["query_id"]: each["text"]
        for file in ("queries.jsonl", "queries-more.jsonl")
        for each in map(json.loads, (demo.DEMO / file).read_text().splitlines())
    }
    own = {
        each["query_id"]: parse(each["filter"])
        for each in map(json.loads, demo_filters.FILTERS.read_text().splitlines())
    }
    names = sorted(rows["source"].unique())
    filters = [own.get(query) for query in asked] + [
        parse({demo_filters.PERMISSION: names[at % len(names)]}) for at in range(len(asked))
    ]
    fields = fields_of([dict(demo_filters.known(passage)) for passage in rows["passage_id"]])
    return Corpus(rows["text"].fill_null("").to_list(), [*asked.values()] * 2, fields, filters)


CORPORA = {"cranfield": of_cranfield, "packages": of_packages}
FIELD = {"cranfield": "tenant", "packages": demo_filters.PERMISSION}
_MADE: dict[str, Corpus] = {}


@pytest.fixture(params=CORPORA)
def named(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name not in _MADE:
        _MADE[name] = CORPORA[name]()
    assert sum(scope is not None for scope in _MADE[name].scopes) >= 200
    return name


def same(found: Hits, wanted: Hits) -> bool:
    """Equal up to rounding: the scores are, and passages that clearly beat the last one."""
    if len(found.passages) != len(wanted.passages) or not np.allclose(found.scores, wanted.scores, atol=2e-6):
        return False
    clear = wanted.scores > (wanted.scores[-1] if len(wanted.scores) else 0) + 5e-6
    return set(wanted.passages[clear]) <= set(found.passages)


def parts_of(corpus: Corpus, field: str, name: str, options: dict[str, Any]) -> Partitioned[Any]:
    positions = partition(corpus.fields, field)
    parts = [make_index(name, corpus.vectors[of_part], METRIC, options) for of_part in positions]
    return Partitioned(parts, positions, field)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_every_way_at_exact_settings_is_brute_force(named: str, name: str):
    corpus = _MADE[named]
    index = make_index(name, corpus.vectors, METRIC, EXACT[name])
    split = parts_of(corpus, FIELD[named], "flat", {})
    everywhere = FilterWay("post", times=-(-len(corpus.texts) // K))
    for query, scope in enumerate(corpus.scopes):
        wanted, asked = corpus.exact(query), SearchedFor(corpus.queries[query], corpus.asked[query])
        assert len(wanted.passages) == min(K, corpus.masks[query].sum())
        for searched, way in ((index, FilterWay("pre")), (split, FilterWay("partition"))):
            found = search(searched, asked, K, scope=scope, way=way)
            assert same(found, wanted), (query, way)
            assert corpus.masks[query][found.passages].all()
        if name == "flat" and query % 10 == 0:
            assert same(search(index, asked, K, scope=scope, way=everywhere), wanted)
        few = search(index, asked, K, scope=scope, way=FilterWay("post", times=2))
        assert corpus.masks[query][few.passages].all()
        assert set(few.passages) <= set(search(index, asked, 2 * K, scope=None, way=FilterWay(NONE)).passages)


@pytest.mark.slow
@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", FILTERING)
def test_every_engine_that_filters_first_is_brute_force(
    named: str, name: str, address: dict[str, str], tmp_path: Path
):
    corpus, place = _MADE[named], DatabasePlace(tmp_path, "t", fields=_MADE[named].fields)
    index = make_index(kind_of(name), corpus.vectors, METRIC, {**address, "exact": "yes"}, place=place)
    for query, scope in enumerate(corpus.scopes):
        wanted, asked = corpus.exact(query), SearchedFor(corpus.queries[query], corpus.asked[query])
        found = search(index, asked, K, scope=scope, way=FilterWay("pre"))
        assert corpus.masks[query][found.passages].all(), query
        assert same(found, wanted), query
    assert isinstance(index, DatabaseIndex)
    index.drop()


@pytest.mark.slow
def test_bm25_before_after_and_within_partitions(named: str):
    corpus = _MADE[named]
    index = make_bm25(corpus.texts)
    positions = partition(corpus.fields, FIELD[named])
    split = Partitioned([make_bm25([corpus.texts[at] for at in part]) for part in positions], positions, "f")
    for query, (text, scope, mask) in enumerate(zip(corpus.asked, corpus.scopes, corpus.masks, strict=True)):
        every = index.search(text, len(corpus.texts))
        left = mask[every.passages]
        wanted = Hits(every.passages[left][:K], every.scores[left][:K])
        found = search(index, SearchedFor(NO_VECTOR, text), K, scope=scope, way=FilterWay("pre"))
        np.testing.assert_array_equal(found.passages, wanted.passages)
        np.testing.assert_array_equal(found.scores, wanted.scores)
        after = search(index, SearchedFor(NO_VECTOR, text), K, scope=scope, way=FilterWay("post", times=4))
        np.testing.assert_array_equal(after.passages, wanted.passages[: len(after.passages)])
        within = search(split, SearchedFor(NO_VECTOR, text), K, scope=scope, way=FilterWay("partition"))
        assert mask[within.passages].all()
        assert len(within.passages) == len(wanted.passages), query


SMALL = fields_of([{"tenant": "a", "n": 1, "acl": ["x"]}, {"tenant": "b"}, {}, {"tenant": "a", "n": 2}])


def scope(**wanted: Any) -> IndexScope:
    (found,) = scopes_of(SMALL, [parse(wanted)])
    assert found is not None
    return found


@pytest.mark.parametrize("name", INDEXES)
def test_kinds_select_or_say_that_they_cannot(name: str):
    vectors = np.random.default_rng(0).standard_normal((1300, 16)).astype(np.float32)
    small = {"m": 4, "nbits": 5}
    options = small if "pq" in name else {}
    index = make_index(name, vectors, METRIC, {**options, "rounds": 1} if name == "opq" else options)
    allowed = np.arange(1300) % 7 == 3
    seen = IndexScope(parse({"tenant": "a"}), allowed, {"tenant": Kind.TEXT})
    if not index.selects:
        with pytest.raises(InputError, match=f"The index {name} cannot filter while it searches"):
            index.search(vectors[0], 10, seen)
        split = Partitioned([index], [np.arange(1300)], "tenant")
        found = search(split, SearchedFor(vectors[3], ""), 10, scope=seen, way=FilterWay("partition"))
    else:
        found = index.search(vectors[3], 10, seen)
        nothing = IndexScope(seen.asked, np.zeros(1300, bool), seen.kinds)
        assert not len(index.search(vectors[3], 10, nothing).passages)
    assert allowed[found.passages].all()
    assert found.passages[0] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hnsw-f32", {"M": 8, "efSearch": 16}),
        ("hnsw-int8", {"M": 8, "efSearch": 16}),
        ("ivf-flat", {"lists": 32, "nprobe": 6}),
    ],
)
def test_a_filter_takes_no_recall_from_an_approximate_search(name: str, options: dict[str, Any]):
    draw, count, k = np.random.default_rng(3), 6000, 10
    vectors = draw.standard_normal((count, 16)).astype(np.float32)
    asked = draw.standard_normal((60, 16)).astype(np.float32)
    more = make_index(name, vectors, "l2", options)
    plain = more.with_options({"filtered": "same"})
    flat = make_index("int8" if "int8" in name else "flat", vectors, "l2")

    def recall(index: DenseIndex, seen: IndexScope | None) -> float:
        found = [
            ann_recall(index.search(query, k, seen), flat.search(query, k, seen), k) or 0 for query in asked
        ]
        return float(np.mean(found))

    unfiltered, lost = recall(more, None), []
    assert 0.5 < unfiltered < 1
    for share in (0.3, 0.1, 0.03, 0.01, 0.002):
        allowed = draw.random(count) < share
        seen = IndexScope(parse({"tenant": "a"}), allowed, {"tenant": Kind.TEXT})
        assert recall(more, seen) >= unfiltered - 0.02, share
        assert allowed[more.search(asked[0], k, seen).passages].all()
        lost.append(unfiltered - recall(plain, seen))
    assert max(lost) > 0.1
    assert parted(name, {**options, "filtered": "same"})[1].keys() >= {"filtered"}  # one index serves both


def test_masks_are_made_once_for_each_different_filter():
    one, other, again, none = scopes_of(
        SMALL, [parse({"tenant": "a"}), parse({"n": 2}), parse('{"tenant":["a"]}'), None]
    )
    assert one is again
    assert none is None
    assert one is not None
    assert one.positions.tolist() == [0, 3]
    assert other is not None
    assert other.positions.tolist() == [3]
    hits = Hits(np.array([3, 1, 0]), np.array([3.0, 2.0, 1.0]))
    assert kept(hits, one, 2).passages.tolist() == [3, 0]
    assert kept(hits, None, 1).passages.tolist() == [3]


def test_passages_without_a_value_share_a_partition():
    assert [part.tolist() for part in partition(SMALL, "tenant")] == [[0, 3], [1], [2]]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("acl", "The field 'acl' holds list of texts"),
        ("nobody's", "is of no passage"),
        ("'; DROP TABLE x --", "is of no passage"),
    ],
)
def test_fields_that_cannot_have_partitions_are_refused(field: str, said: str):
    with pytest.raises(InputError, match=said) as refused:
        partition(SMALL, field)
    assert refused.value.do == "Partition by one of: n, tenant."


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("none", FilterWay("none")),
        ("pre", FilterWay("pre")),
        ("post:4", FilterWay("post", times=4)),
        ("partition", FilterWay("partition")),
        ("partition:a:b", FilterWay("partition", field="a:b")),
    ],
)
def test_ways_are_read(text: str, way: FilterWay):
    assert filter_way(text) == way


@pytest.mark.parametrize(
    "text", ["", "post", "post:0", "post:1001", "post:-1", "post:٣", "pre:2", "partition:", "Pre"]
)
def test_other_ways_are_refused(text: str):
    with pytest.raises(InputError, match="There is no way of filtering"):
        filter_way(text)


def test_partitions_are_the_same_after_they_were_saved(tmp_path: Path):
    texts = ["a cat", "a dog and a cat", "...", "a cat, a cat"]
    positions = partition(SMALL, "tenant")
    made = [make_bm25([texts[at] for at in part]) if 2 not in part else None for part in positions]
    split: Partitioned[Bm25Index] = Partitioned(made, positions, "tenant")
    split.save(tmp_path / "index")
    again = Partitioned.load(tmp_path / "index", Bm25Index.load)
    assert again.parameters == {**split.parameters, "partitions": 3, "partition": "tenant"}
    assert again.size_bytes == split.size_bytes
    for seen in (None, scope(tenant="a"), scope(tenant="b"), scope(n=2)):
        asked = SearchedFor(NO_VECTOR, "cat")
        one, other = (
            search(each, asked, 3, scope=seen, way=FilterWay("partition")) for each in (split, again)
        )
        assert one.passages.tolist() == other.passages.tolist()
        assert len(one.passages) == (3 if seen is None else seen.allowed.sum())
    vectors = np.eye(4, dtype=np.float32)
    dense: Partitioned[DenseIndex] = Partitioned(
        [make_index("flat", vectors[part], METRIC) for part in positions], positions, "tenant"
    )
    dense.save(tmp_path / "dense" / "index")
    loaded = Partitioned.load(tmp_path / "dense" / "index", load_index)
    found = search(
        loaded, SearchedFor(vectors[3], ""), 4, scope=scope(tenant="a"), way=FilterWay("partition")
    )
    assert found.passages.tolist() == [3, 0]
