"""Judgements and rankings beside what askers may see, against plain Python."""

import json

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.filters import parse
from core.metrics.access import ALLOWED, FORBIDDEN, UNFILTERED, UNKNOWN
from core.records import Batch, Collection, GoldenSet
from core.store import Store
from core.tables import frame
from tests.filters.oracle import kinds_of, matches
from tests.store.material import CORPUS, GOLD, judgements, rankings, run

QUERIES, PASSAGES = [f"q{n}" for n in range(4)], [f"p{n}" for n in range(8)]


def store_of(path, metadata, filters, grades, ranked, *, fields=()):
    own = CORPUS.collection_id
    rows = {
        "passage_metadata": [
            {"collection_id": own, "passage_id": name, "metadata": json.dumps(known)}
            for name, known in metadata.items()
        ],
        "query_filters": [
            {"collection_id": own, "query_id": name, "filter": parse(asked).text}
            for name, asked in filters.items()
        ],
        "fields": [{"collection_id": own, "field": name, "permission": True} for name in fields],
    }
    frames = {table: frame(table, of) for table, of in rows.items() if of}
    frames |= {"judgements": judgements(grades), "rankings": rankings("a", ranked)}
    store = Store.open(path)
    with store.write("import") as writer:
        writer.add(Batch(collections=(CORPUS,), golden_sets=(GOLD,), runs=(run("a"),), frames=frames))
    return store


VALUES = st.sampled_from(["a", "b", 7, None])
META = st.dictionaries(st.sampled_from(PASSAGES), st.fixed_dictionaries({"t": VALUES, "u": VALUES}))
FILTERS = st.dictionaries(
    st.sampled_from(QUERIES),
    st.sampled_from([{"t": "a"}, {"t": ["a", "b"]}, {"u": {"not": "a"}}, {"t": "b", "u": "a"}, {"v": 1}, {}]),
)
GRADES = st.fixed_dictionaries(
    {query: st.dictionaries(st.sampled_from(PASSAGES), st.integers(1, 5), min_size=1) for query in QUERIES}
)
RANKED = st.fixed_dictionaries({query: st.permutations(PASSAGES) for query in QUERIES})


@given(META, FILTERS, GRADES, RANKED)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_judgements_outside_of_a_filter_are_set_aside(tmp_path_factory, meta, filters, grades, ranked):
    store = store_of(tmp_path_factory.mktemp("access") / "store", meta, filters, grades, ranked)
    kinds = kinds_of(list(meta.values()) or [{}])

    def state(query, passage):
        asked = filters.get(query)
        if asked is None:
            return UNFILTERED
        if passage not in meta:
            return UNKNOWN
        known = set(asked) <= set(kinds)
        return ALLOWED if known and matches(asked, meta[passage], kinds) else FORBIDDEN

    def may(query, passage):
        return state(query, passage) in (ALLOWED, UNFILTERED)

    snapshot = store.read()
    graded = snapshot.graded(["a"], "gold")
    kept = {q: {p: g for p, g in of.items() if may(q, p)} for q, of in grades.items()}
    left = [query for query in QUERIES if kept[query]]
    assert list(graded.query_ids) == left
    for at, query in enumerate(left):
        assert graded.pool_counts[at].tolist() == [
            list(kept[query].values()).count(grade) for grade in range(1, 6)
        ]
        assert graded.grades[0, at].tolist() == [kept[query].get(passage, 0) for passage in ranked[query]]
    assert snapshot.judgements("gold").height == sum(map(len, grades.values()))
    access = snapshot.access("corpus")
    if not filters:
        assert access is None
        return
    queries = [query for query in QUERIES for _ in PASSAGES]
    passages = PASSAGES * len(QUERIES)
    states = access.states(pl.Series(queries), pl.Series(passages))
    assert states.tolist() == [state(*pair) for pair in zip(queries, passages, strict=True)]
    known = [[state(query, passage) for passage in meta] for query in filters]
    assert access.left == {query: of.count(ALLOWED) for query, of in zip(filters, known, strict=True)}
    assert set(access.problems) == {query for query, left in access.left.items() if not left}


def test_a_filter_that_leaves_nothing_says_why(tmp_path):
    meta = {"p0": {"t": "a", "n": 3}, "p1": {"t": "b"}}
    asked = {"q0": {"t": "a"}, "q1": {"x": 1}, "q2": {"t": 3}, "q3": {"t": "z"}}
    store = store_of(tmp_path / "store", meta, asked, {"q0": {"p0": 5}}, {"q0": ["p0"]}, fields=["t"])
    access = store.read().access("corpus")
    assert access.permissions == {"t"}
    assert access.decides
    assert {query: said.split(".")[0] for query, said in access.problems.items()} == {
        "q1": "No field of passages 'x'",
        "q2": "The field 't' holds text; the filter asks for in [3",
        "q3": "No passage matches the filter",
    }


def test_a_chunk_is_known_by_its_document(tmp_path):
    store = store_of(
        tmp_path / "store",
        {"d1": {"t": "a"}, "d2": {"t": "b"}, "p9": {"t": "a"}},
        {"q0": {"t": "a"}},
        {"q0": {"p0": 5}},
        {"q0": ["p0"]},
    )
    part = Collection(collection_id="corpus@x", name="Chunks", part_of="corpus")
    cut = {"passage_id": ["d1:0", "d2:0", "d3:0"], "source": ["d1", "d2", "d3"]}
    rows = frame("passages", {"collection_id": ["corpus@x"] * 3, "text": [""] * 3, **cut})
    part_set = GoldenSet(golden_set_id="gold@x", collection_id="corpus@x", name="Gold", part_of="gold")
    graded = frame(
        "judgements",
        {
            "golden_set_id": ["gold@x"] * 3,
            "query_id": ["q0"] * 3,
            "passage_id": cut["passage_id"],
            "grade": [5, 4, 3],
        },
    )
    with store.write("cut") as writer:
        frames = {
            "passages": rows,
            "judgements": graded,
            "rankings": rankings("c", {"q0": cut["passage_id"]}),
        }
        writer.add(
            Batch(collections=(part,), golden_sets=(part_set,), runs=(run("c", chunking="x"),), frames=frames)
        )
    snapshot = store.read()
    states = snapshot.access("corpus@x").states(pl.Series(["q0"] * 3), pl.Series(cut["passage_id"]))
    assert states.tolist() == [ALLOWED, FORBIDDEN, UNKNOWN]
    assert snapshot.graded(["c"], "gold").grades.tolist() == [[[5, 0, 0]]]
    assert snapshot.graded(["c"], "gold").pool_counts.tolist() == [[0, 0, 0, 0, 1]]
