"""From spans to the grades of chunks: by hand, against a naive oracle, and what the rule promises."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.pipeline.anchors import COVERAGE, anchor, judged
from core.pipeline.chunk import Chunked, chunk
from core.pipeline.documents.formats import Content
from core.records import GoldenSet
from core.tables import TABLES, frame
from tests.pipeline.chunk.texts import WHOLE, frame_of

GOLD = GoldenSet(golden_set_id="g", collection_id="c", name="Gold", mapping="1-5")


def spans_of(*rows: tuple[str, str, int, int, int]) -> pl.DataFrame:
    """Rows of query, source, start, end, grade."""
    columns = ("query_id", "source", "start_char", "end_char", "grade")
    made = [{"golden_set_id": "g", **dict(zip(columns, row, strict=True)), "raw": row[-1]} for row in rows]
    return frame("spans", made)


def chunks_of(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    """Rows of passage, source, start, end."""
    columns = ("passage_id", "source", "start_char", "end_char")
    return frame("chunks", [{"collection_id": "c", **dict(zip(columns, row, strict=True))} for row in rows])


def derive(spans: pl.DataFrame, chunks: pl.DataFrame, coverage: float = COVERAGE) -> pl.DataFrame:
    """The judgements of chunks that are those of the collection itself."""
    own = Chunked(name=None, chunker={}, collection=WHOLE, passages=chunks, chunks=chunks)
    return judged(GOLD, spans, own, coverage).judgements


def grades(judgements: pl.DataFrame) -> dict[tuple[str, str], int]:
    return {(query, passage): grade for query, passage, grade in
            judgements.select("query_id", "passage_id", "grade").iter_rows()}  # fmt: skip


TEN = chunks_of(
    *((f"p{n}", "d", n * 10, n * 10 + 10) for n in range(4))
)  # p0 0-10, p1 10-20, p2 20-30, p3 30-40

CASES = {
    "within one": ([(12, 15, 5)], 0.5, {"p1": 5}),
    "on two, mostly one": ([(14, 22, 5)], 0.5, {"p1": 5}),
    "halves": ([(16, 24, 5)], 0.5, {"p1": 5, "p2": 5}),
    "halves are not enough": ([(16, 24, 5)], 0.6, {}),
    "a chunk within a long span": ([(8, 32, 4)], 0.5, {"p1": 4, "p2": 4}),
    "a long span over half a chunk": ([(15, 40, 4)], 0.5, {"p1": 4, "p2": 4, "p3": 4}),
    "all of it": ([(15, 40, 4)], 1.0, {"p2": 4, "p3": 4}),
    "a trace": ([(19, 25, 3)], 0.1, {"p1": 3, "p2": 3}),
    "the highest": ([(10, 14, 2), (12, 18, 5), (15, 19, 4)], 0.5, {"p1": 5}),
    "side by side only": ([(10, 20, 3)], 0.5, {"p1": 3}),
    "behind all": ([(40, 50, 3)], 0.5, {}),
}


@pytest.mark.parametrize(("spans", "coverage", "expected"), CASES.values(), ids=CASES.keys())
def test_the_rule_by_hand(spans, coverage, expected):
    made = derive(spans_of(*(("q", "d", *span) for span in spans)), TEN, coverage)
    assert grades(made) == {("q", passage): grade for passage, grade in expected.items()}
    assert made.schema == TABLES["judgements"]


def test_documents_and_queries_are_kept_apart():
    spans = spans_of(("q", "d", 0, 5, 5), ("q", "e", 0, 5, 4), ("r", "d", 0, 5, 3), ("r", "absent", 0, 5, 2))
    made = derive(spans, pl.concat([TEN, chunks_of(("x", "e", 0, 4))]))
    assert grades(made) == {("q", "p0"): 5, ("q", "x"): 4, ("r", "p0"): 3}


def test_raw_and_judge_are_those_of_the_span_that_counts():
    spans = spans_of(("q", "d", 0, 4, 4), ("q", "d", 5, 9, 4), ("q", "d", 2, 6, 1)).with_columns(
        raw=pl.Series([40, 41, 10], dtype=pl.Int16), judge=pl.Series(["one", "two", "three"])
    )
    assert derive(spans, TEN).rows() == [("g", "q", "p0", 4, 40, "one")]


@pytest.mark.parametrize(
    ("spans", "chunks"), [(spans_of(), TEN), (spans_of(("q", "d", 0, 5, 5)), chunks_of())]
)
def test_nothing_comes_of_nothing(spans, chunks):
    made = derive(spans, chunks)
    assert made.is_empty()
    assert made.schema == TABLES["judgements"]


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, float("nan")])
def test_coverages_out_of_range(coverage):
    with pytest.raises(InputError, match="coverage"):
        derive(spans_of(), TEN, coverage)


def naive(spans: pl.DataFrame, chunks: pl.DataFrame, coverage: float) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for span in spans.iter_rows(named=True):
        for piece in chunks.iter_rows(named=True):
            if span["source"] != piece["source"]:
                continue
            shared = len(
                set(range(span["start_char"], span["end_char"]))
                & set(range(piece["start_char"], piece["end_char"]))
            )
            of_span = shared / (span["end_char"] - span["start_char"])
            of_chunk = shared / (piece["end_char"] - piece["start_char"])
            if shared and (of_span >= coverage - 1e-9 or of_chunk >= coverage - 1e-9):
                key = span["query_id"], piece["passage_id"]
                found[key] = max(found.get(key, 0), span["grade"])
    return found


_PLACES = st.tuples(st.integers(0, 30), st.integers(1, 20)).map(lambda place: (place[0], sum(place)))
_SOURCES = st.sampled_from("de")


@pytest.mark.slow
@given(
    spans=st.lists(st.tuples(st.sampled_from("qr"), _SOURCES, _PLACES, st.integers(1, 5)), max_size=12),
    chunks=st.lists(st.tuples(_SOURCES, _PLACES), max_size=10),  # overlapping, nested, in any order
    coverage=st.sampled_from([0.01, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0]),
)
@settings(max_examples=300, deadline=None)
def test_as_the_naive_oracle(spans, chunks, coverage):
    given_spans = spans_of(*((query, source, *where, grade) for query, source, where, grade in spans))
    given_chunks = chunks_of(*((f"p{n}", source, *where) for n, (source, where) in enumerate(chunks)))
    assert grades(derive(given_spans, given_chunks, coverage)) == naive(given_spans, given_chunks, coverage)


@pytest.mark.slow
@given(
    edges=st.sets(st.integers(1, 59), max_size=10),
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=8),
    coverage=st.floats(0.01, 0.5),
)
@settings(max_examples=150, deadline=None)
def test_up_to_a_half_nothing_is_lost(edges, spans, coverage):
    """Chunks without gaps: every span grades at least one."""
    cuts = [0, *sorted(edges), 60]
    chunks = chunks_of(*((f"p{n}", "d", start, end) for n, (start, end) in enumerate(pairwise(cuts))))
    for start, length in spans:
        assert derive(spans_of(("q", "d", start, min(start + length, 60), 3)), chunks, coverage).height


TEXT = "Lift comes from the wing. Drag slows it down.\n\nThrust comes from the engine. Fuel is burnt there."


@pytest.mark.parametrize(
    ("chunker", "expected"),
    [
        # One sentence each (8, 6, 7 and 6 tokens with their metadata).
        (
            {"method": "sentence", "size": 16, "overlap": 0, "metadata": "none"},
            {(0, 1): {"lift": 5, "all": 2}, (2, 3): {"engine": 4, "all": 3}},
        ),
        ({"method": "paragraph"}, {(0, 1): {"lift": 5, "all": 2}, (2, 3): {"engine": 4, "all": 3}}),
        ({"method": "none"}, {(0, 3): {"lift": 5, "engine": 4, "all": 3}}),
    ],
)
def test_one_golden_set_on_three_chunkers(chunker, expected):
    """lift: the first sentence is 5. engine: the third is 4. all: the first paragraph 2, the second 3."""
    spans = spans_of(
        ("lift", "d0", 0, 25, 5),
        ("engine", "d0", 47, 76, 4),
        ("all", "d0", 0, 45, 2),
        ("all", "d0", 47, 98, 3),
    )
    cut = chunk(frame_of(Content(TEXT)), chunker, collection=WHOLE)
    made = judged(GOLD, spans, cut)
    texts = dict(cut.passages.select("passage_id", "text").iter_rows())
    found: dict[str, dict[str, int]] = {}
    for (query, passage), grade in grades(made.judgements).items():
        found.setdefault(texts[passage], {})[query] = grade
    starts = {0: 0, 1: 26, 2: 47, 3: 77}
    ends = {0: 25, 1: 45, 2: 76, 3: 98}
    assert found == {TEXT[starts[first] : ends[last]]: grade for (first, last), grade in expected.items()}
    assert made.lost.is_empty()
    assert made.unasked == ()


def test_the_records_of_derived_grades():
    spans = spans_of(("q", "d0", 0, 25, 5), ("r", "absent", 0, 5, 4))
    documents = frame_of(Content(TEXT))
    cut = chunk(documents, {"method": "paragraph"}, collection=WHOLE)
    made = judged(GOLD, spans, cut, 0.4)
    assert made.golden_set.golden_set_id == f"g@{cut.name}"
    assert made.golden_set.part_of == "g"
    assert made.golden_set.collection_id == f"c@{cut.name}"
    assert made.golden_set.mapping == "1-5"
    assert "coverage 0.4" in made.golden_set.notes
    assert set(made.judgements["golden_set_id"]) == {f"g@{cut.name}"}
    assert made.lost["query_id"].to_list() == ["r"]
    assert made.lost.schema == TABLES["spans"]
    assert made.unasked == ("r",)
    whole = judged(GOLD, spans, chunk(documents, {"method": "none"}, collection=WHOLE))
    assert whole.golden_set == GOLD
    assert whole.judgements.select("golden_set_id", "passage_id", "grade").rows() == [("g", "d0", 5)]


def test_lost_evidence_is_listed():
    spans = spans_of(("q", "d", 5, 25, 5), ("r", "d", 11, 13, 4))
    thin = chunks_of(("p0", "d", 0, 9), ("p1", "d", 9, 14), ("p2", "d", 14, 40))
    assert grades(derive(spans, thin, 0.9)) == {("q", "p1"): 5, ("r", "p1"): 4}
    cut = chunk(frame_of(Content("a" * 40)), {"method": "none"}, collection=WHOLE)
    assert judged(GOLD, spans.with_columns(source=pl.lit("d0")), cut, 1.0).lost.is_empty()


def test_judged_chunks_carry_over():
    """Judged chunk by chunk, as spans, and back: the same; on other chunks by the rule."""
    judgements = derive(spans_of(("q", "d", 12, 15, 5), ("r", "d", 0, 40, 2)), TEN)
    placed, unplaced = anchor(judgements, TEN)
    assert placed.schema == TABLES["spans"]
    assert unplaced.is_empty()
    assert grades(derive(placed, TEN, COVERAGE)) == grades(judgements)
    halves = chunks_of(("h0", "d", 0, 20), ("h1", "d", 20, 40))
    assert grades(derive(placed, halves)) == {("q", "h0"): 5, ("r", "h0"): 2, ("r", "h1"): 2}


def test_judged_documents_judge_all_their_chunks():
    documents = frame_of(Content(TEXT), Content("Other."))
    whole = chunk(documents, {"method": "none"}, collection=WHOLE)
    judgements = frame(
        "judgements",
        [{"golden_set_id": "g", "query_id": "q", "passage_id": name, "grade": 4} for name in ("d0", "gone")],
    )
    placed, unplaced = anchor(judgements, whole.chunks)
    assert unplaced["passage_id"].to_list() == ["gone"]
    cut = chunk(documents, {"method": "paragraph"}, collection=WHOLE)
    assert set(derive(placed, cut.chunks)["passage_id"]) == {f"d0#{cut.name}:0", f"d0#{cut.name}:1"}


def test_the_highest_of_passages_that_cover_the_same():
    twins = chunks_of(("a", "d", 0, 5), ("b", "d", 0, 5))
    judgements = frame(
        "judgements",
        [
            {"golden_set_id": "g", "query_id": "q", "passage_id": p, "grade": n}
            for p, n in (("a", 2), ("b", 4))
        ],
    )
    assert anchor(judgements, twins)[0].select("start_char", "end_char", "grade").rows() == [(0, 5, 4)]
