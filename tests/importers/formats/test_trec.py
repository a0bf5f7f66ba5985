from __future__ import annotations

import gzip

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.importers import ReadLimits
from core.importers.read import ordering
from core.importers.runs import slug
from tests.importers.helpers import lost, parquet, read, refusal, rows, up

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\nq2\tQ0\tb  1\t  3.25   bm25\n"
QRELS = "q1 0 a 2\nq1 0 b 0\nq2 0 b 1\n"


def order(made, query: str = "q1") -> list[str]:
    table = rows(made, "rankings")
    return table.filter(table["query_id"] == query).sort("rank")["passage_id"].to_list()


def test_run_with_blanks_and_tabs():
    made = read(up("x.txt", RUN))
    assert made.taken == {"collections": 1, "runs": 1, "rankings": 3}
    (run,) = made.runs
    assert (run.label, run.origin.value, run.collection_id) == ("bm25", "import", "x")
    table = rows(made, "rankings")
    assert table["rank"].to_list() == [1, 2, 1]
    assert table["score"].to_list() == [9.5, 9.0, 3.25]
    assert set(table["stage"]) == {"final"}
    assert made.notes == ("x.txt: ordered by its rank column.",)


def test_gz_is_the_same_run_and_a_reimport_too():
    plain, packed = read(up("x.txt", RUN)), read(up("x.txt.gz", gzip.compress(RUN.encode())))
    assert plain.runs[0].run_id == packed.runs[0].run_id == read(up("x.txt", RUN)).runs[0].run_id
    assert plain.runs[0].run_id != read(up("x.txt", RUN), label="other").runs[0].run_id
    assert plain.runs[0].run_id != read(up("x.txt", RUN), collection_id="other").runs[0].run_id
    assert plain.runs[0].run_id != read(up("x.txt", RUN.replace("9.5", "9.6"))).runs[0].run_id


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_line_ends_and_byte_order_mark(ends, last):
    text = "\ufeff" + RUN.rstrip("\n").replace("\n", ends) + last.replace("\n", ends)
    assert read(up("x", text)).taken["rankings"] == 3


ORDERS = {
    "its own ranks win over scores": (["a 1 1.0", "b 2 5.0"], ["a", "b"], "disagree in 1 rankings"),
    "ranks from 0": (["b 1 5.0", "a 0 1.0"], ["a", "b"], "rank column"),
    "tied ranks, so scores": (["a 1 1.0", "b 1 5.0"], ["b", "a"], "does not count 1..n in 1 of 1 queries"),
    "gap in the ranks, so scores": (["a 1 1.0", "b 3 5.0"], ["b", "a"], "does not count 1..n"),
    "ranks from 2, so scores": (["a 2 1.0", "b 3 5.0"], ["b", "a"], "does not count 1..n"),
    "ranks that are no numbers": (["a - 1.0", "b - 5.0"], ["b", "a"], "no rank column"),
    "negative ranks": (["a -1 1.0", "b 0 5.0"], ["b", "a"], "does not count 1..n"),
    "tied scores by descending id": (
        ["a 7 1", "c 7 1", "b 7 1"],
        ["c", "b", "a"],
        "ties by descending passage id",
    ),
    "ids compare as bytes": (["a 7 1", "Z 7 1", "é 7 1"], ["é", "a", "Z"], "ties"),
}


@pytest.mark.parametrize(("lines", "expected", "said"), ORDERS.values(), ids=ORDERS.keys())
def test_which_rule_orders(lines, expected, said):
    made = read(up("x", "".join(f"q1 Q0 {line} t\n" for line in lines)))
    assert order(made) == expected
    assert rows(made, "rankings")["rank"].to_list() == list(range(1, len(expected) + 1))
    assert any(said in note for note in made.notes), made.notes


def test_one_bad_query_puts_the_whole_run_under_the_score_rule_and_leaves_other_runs_alone():
    text = "q1 Q0 a 1 1 r\nq1 Q0 b 2 5 r\nq2 Q0 a 4 1 r\nq1 Q0 a 1 1 s\nq1 Q0 b 2 5 s\n"
    made = read(up("x", text))
    table = rows(made, "rankings")
    by_label = {run.label: table.filter(table["run_id"] == run.run_id) for run in made.runs}
    assert by_label["r"].filter(by_label["r"]["query_id"] == "q1")["passage_id"].to_list() == ["b", "a"]
    assert by_label["s"]["passage_id"].to_list() == ["a", "b"]
    assert [run.manifest["order"] for run in made.runs] == ["score", "rank"]


def test_several_tags_are_several_runs_and_equal_labels_are_told_apart():
    made = read(up("one.txt", RUN + RUN.replace("bm25", "dense")), up("two.txt", RUN))
    assert [run.label for run in made.runs] == ["bm25 · one", "dense", "bm25 · two"]
    named = read(up("one.txt", RUN + RUN.replace("bm25", "dense")), label="May")
    assert [run.label for run in named.runs] == ["May · bm25", "May · dense"]
    assert read(up("one.txt", RUN), label="May").runs[0].label == "May"


def test_comments_blank_lines_and_further_fields():
    made = read(up("x", "# made by hand\n\n" + RUN.replace("bm25\n", "bm25 more junk\n", 1)))
    assert made.taken["rankings"] == 3
    assert "x: 1 comment lines skipped." in made.notes
    assert [(left.count, left.first) for left in made.left_out] == [(1, "x:3")]


TABBED = {
    "blanks in both ids": ("q 1\tQ0\td 1\t1\t2.0\tx\nq 1\tQ0\td2\t2\t1.0\tx\n", ["q 1/d 1", "q 1/d2"]),
    "blanks around fields": ("q 1 \tQ0\t d1\t1\t 2.0\t x\r\n", ["q 1/d1"]),
    "more after the tag": ("q 1\tQ0\td 1\t1\t2.0\tx more of it\n", ["q 1/d 1"]),
    "further fields": ("q 1\tQ0\td 1\t1\t2.0\tx\tmore of it\n", ["q 1/d 1"]),
    "a line of blanks among them": ("q1 Q0 d1 1 2.0 x\nr 2\tQ0\td2\t1\t1.0\tx\n", ["q1/d1", "r 2/d2"]),
    "tabs twice": ("q1\t\tQ0\td1\t1\t2.0\tx\n", ["q1/d1"]),
    "tabs and a blank": ("q1 Q0\td1\t1\t2.0\tx\n", ["q1/d1"]),
}


@pytest.mark.parametrize(("content", "expected"), TABBED.values(), ids=TABBED.keys())
def test_tabs_part_the_fields_of_a_line_that_has_enough_of_them(content, expected):
    for size in (ReadLimits().block_bytes, 16):
        made = read(up("f2.run", content), limits=ReadLimits(block_bytes=size))
        ids = rows(made, "rankings").select(pl.format("{}/{}", "query_id", "passage_id"))
        assert ids.to_series().to_list() == expected
        assert [run.label for run in made.runs] == ["x"]
        assert rows(made, "rankings")["score"].to_list() == [2.0, 1.0][: len(expected)]


def test_tabs_part_the_fields_of_qrels():
    made = read(up("f2.qrels", "q 1\t0\td 1\t1\nq 2\t0\td3\t0\n"))
    judged = rows(made, "judgements").select("query_id", "passage_id", "raw").rows()
    assert judged == [("q 1", "d 1", 1), ("q 2", "d3", 0)]


SHIFTED = {
    "in a passage": "q1 Q0 my doc 1 12.4 bm25",
    "in a passage, so that it reads well": "q1 Q0 my 2 1 12.4 bm25",
    "in a passage, no tag": "q1 Q0 my doc 1 12.4",
    "in a query": "q 1 Q0 d1 1 2.0 x",
    "in a query, passages are numbers": "q 1 Q0 17 1 2.0 x",
    "in a query, no tag": "q 1 Q0 17 1 2.0",
    "in both": "q 1 Q0 my doc 1 2.0 x",
    "between tabs that are too few": "q 1\tQ0\td1\t1\t2.0 x",
}


@pytest.mark.parametrize("line", SHIFTED.values(), ids=SHIFTED.keys())
def test_a_blank_in_an_id_is_refused_by_line_where_blanks_part_fields(line):
    said = refusal(up("x", f"q1 Q0 a 1 20.0 bm25\n{line}\n"), format="trec-run")
    assert said.startswith("x:2: ")
    assert "an id may hold a blank" in said
    assert "Separate the fields by tabs" in said


@pytest.mark.parametrize("line", ["q 1 0 d1 1", "q1 0 my 2 1", "q1 0 my doc 1", "q 1 0 17 1"])
def test_a_blank_in_an_id_of_qrels_is_refused_by_line(line):
    said = refusal(up("x", f"{QRELS}{line}\n"))
    assert said.startswith("x:4: More fields between blanks than 4: an id may hold a blank.")


def test_ids_keep_hashes_quotes_and_unicode():
    made = read(up("x", 'q"1 Q0 doc#1,"a 1 1.0 t\nq"1 Q0 d\u00a0é 2 0.5 t\n'))
    assert order(made, 'q"1') == ['doc#1,"a', "d\u00a0é"]


BROKEN_RUNS = {
    "five fields": (RUN + "q3 Q0 a 1 2.0\n", "x:4: This line has 5 fields, a run has 6"),
    "score is a word": (RUN + "q3 Q0 a 1 high t\n", "x:4, column `score`: 'high' is not a finite number."),
    "nan": (RUN + "q3 Q0 a 1 NaN t\n", "x:4, column `score`: 'NaN' is not a finite number."),
    "infinite": (RUN + "q3 Q0 a 1 -inf t\n", "x:4, column `score`: '-inf' is not a finite number."),
    "overflow": (RUN + "q3 Q0 a 1 1e999 t\n", "x:4, column `score`: '1e999' is not a finite number."),
    "duplicate": (RUN + "q1 Q0 a 2 1.0 bm25\n", "x:4: Passage 'a' occurs twice for query 'q1'."),
    "not UTF-8": (RUN.encode() + b"q3 Q0 caf\xe9 1 2.0 t\n", "x:4: Byte 72 (0xe9) is not valid UTF-8."),
    "NUL": (RUN.encode() + b"q3 Q0 a\0 1 2.0 t\n", "x:4: A NUL byte at byte 70"),
    "UTF-16": (RUN.encode("utf-16"), "x:1: The file is UTF-16, not UTF-8. Save the file as UTF-8"),
    "old Macintosh line ends": (RUN.replace("\n", "\r"), "Lines end with CR alone."),
}


@pytest.mark.parametrize(("content", "message"), BROKEN_RUNS.values(), ids=BROKEN_RUNS.keys())
def test_broken_run_names_file_line_and_column(content, message):
    assert message in refusal(up("x", content), format="trec-run")


def test_qrels_offered_as_a_run():
    assert "This is a qrels file" in refusal(up("x", QRELS), format="trec-run")
    assert "trec-qrels" in refusal(up("x", QRELS), format="trec-run")


def test_family_name_is_enough():
    assert read(up("x", QRELS), format="trec").taken["judgements"] == 3
    assert read(up("x", RUN), format="trec").taken["rankings"] == 3


def test_run_and_qrels_make_one_import_with_one_collection():
    made = read(up("bm25.run", RUN), up("may.qrels", QRELS))
    assert made.taken == {"collections": 1, "golden sets": 1, "runs": 1, "judgements": 3, "rankings": 3}
    (collection,), (golden,), (run,) = made.collections, made.golden_sets, made.runs
    assert collection.collection_id == golden.collection_id == run.collection_id == "may"
    assert golden.mapping == "0-2: 0→1, 1→3, 2→5"
    assert rows(made, "judgements").select("query_id", "passage_id", "grade", "raw").rows() == [
        ("q1", "a", 5, 2), ("q1", "b", 1, 0), ("q2", "b", 3, 1)
    ]  # fmt: skip
    assert {entry.format for entry in made.detected} == {"trec-run", "trec-qrels"}


def test_a_known_collection_gets_no_second_record():
    made = read(up("x", RUN), collection_id="Mine, v2", known_collections=frozenset({"Mine, v2"}))
    assert made.collections == ()
    assert made.runs[0].collection_id == "Mine, v2"
    assert read(up("x", RUN), collection_id="Mine, v2").collections[0].collection_id == slug("Mine, v2")


BROKEN_QRELS = {
    "grade is a fraction": (QRELS + "q3 0 a 0.5\n", "x:4, column `grade`: '0.5' is not an integer."),
    "three fields": (QRELS + "q3 0 a\n", "x:4: This line has 3 fields, qrels have 4"),
    "judged twice": (QRELS + "q1 0 a 1\n", "x:4: Passage 'a' is judged twice for query 'q1'."),
    "no mapping fits": (QRELS + "q3 0 a 7\n", "No grade mapping fits the grades 0, 1, 2, 7."),
    "out of range": (QRELS + "q3 0 a 99999\n", "x:4, column `grade`: The grade is out of range."),
}


@pytest.mark.parametrize(("content", "message"), BROKEN_QRELS.values(), ids=BROKEN_QRELS.keys())
def test_broken_qrels_name_file_line_and_column(content, message):
    assert message in refusal(up("x", content), format="trec-qrels")


LISTS_AGAIN = {
    "a place of its own, as Anserini writes it": ("A 1 3.0/A 2 2.9/B 3 2.8/B 4 2.7", ["A", "B"], 2, 2),
    "the same line": ("A 1 3.0/B 2 2.0/A 1 3.0", ["A", "B"], 1, 3),
    "the same list": ("A 1 3.0/B 2 2.0/A 1 3.0/B 2 2.0", ["A", "B"], 2, 3),
    "no ranks, scores that fall": ("A 0 3.0/B 0 2.0/A 0 1.0", ["A", "B"], 1, 3),
    "ranks in no order": ("B 3 2.8/A 2 2.9/A 1 3.0", ["A", "B"], 1, 3),
    "scores that rise where ranks fall": ("A 1 1.0/B 2 2.0/A 3 3.0", ["A", "B"], 1, 3),
}
SEVERAL = {
    "ranks begin anew": "A 1 3.0/B 2 2.0/A 1 2.5/C 2 1.5",
    "no ranks, scores begin anew": "A 0 3.0/B 0 2.0/A 0 2.5",
    "a place in common": "A 1 3.0/B 2 2.0/A 1 3.0/C 2 1.5",
}


def again(lines: str, kind: str):
    """A run in which a list repeats a passage, as TREC and as tables."""
    fields = [line.split() for line in lines.split("/")]
    if kind == "trec":
        return up("x", "".join(f"q Q0 {passage} {rank} {score} t\n" for passage, rank, score in fields))
    data = [["q", passage, int(rank), float(score)] for passage, rank, score in fields]
    table = pl.DataFrame(data, schema=["query_id", "passage_id", "rank", "score"], orient="row")
    return up("x", parquet(table) if kind == "parquet" else table.write_csv().encode())


@pytest.mark.parametrize("kind", ["trec", "csv", "parquet"])
@pytest.mark.parametrize(("lines", "expected", "count", "line"), LISTS_AGAIN.values(), ids=LISTS_AGAIN.keys())
def test_of_a_passage_that_a_list_repeats_the_first_place_counts(kind, lines, expected, count, line):
    at = line + {"trec": 0, "csv": 1, "parquet": 0}[kind]
    for room in (3_000_000, 0):
        made = read(again(lines, kind), limits=ReadLimits(rows_in_memory=room))
        assert order(made, "q") == expected
        assert rows(made, "rankings")["rank"].to_list() == [1, 2]
        assert [(each.count, each.reason, each.first) for each in lost(made)] == [
            (count, "passages that a list repeats: the first place counts", f"x:{at}")
        ]


@pytest.mark.parametrize("kind", ["trec", "csv", "parquet"])
@pytest.mark.parametrize("lines", SEVERAL.values(), ids=SEVERAL.keys())
def test_lists_of_several_that_nothing_tells_apart_are_refused(kind, lines):
    assert "Passage 'A' occurs twice for query 'q'." in refusal(again(lines, kind))


QRELS_AGAIN = {
    "x.qrels": "q1 0 a 1\nq1 0 a 1\nq1 0 b 0\n",
    "x.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\ta\t1\nq1\tb\t0\n",
    "x.csv": "query_id,passage_id,grade\nq1,a,1\nq1,a,1\nq1,b,0\n",
    "judged.csv": "query_id,passage_id,grade,judge\nq1,a,1,ann\nq1,a,1,ann\nq1,b,0,ann\n",
}


@pytest.mark.parametrize(("name", "content"), QRELS_AGAIN.items(), ids=QRELS_AGAIN.keys())
def test_a_judgement_that_stands_twice_counts_once_and_another_grade_is_refused(name, content):
    made = read(up(name, content))
    assert rows(made, "judgements").select("passage_id", "raw").rows() == [("a", 1), ("b", 0)]
    line = 2 if name == "x.qrels" else 3
    assert [(each.count, each.reason, each.first) for each in lost(made)] == [
        (1, "judgements that stand twice, alike: they count once", f"{name}:{line}")
    ]
    lines = content.split("\n")
    lines[line - 1] = lines[line - 1][::-1].replace("1", "0", 1)[::-1]
    assert f"{name}:{line}: Passage 'a' is judged twice" in refusal(up(name, "\n".join(lines)))


def test_two_qrels_files_are_two_golden_sets_unless_named_the_same():
    made = read(up("a", QRELS), up("b", QRELS), collection_id="c")
    assert [golden.golden_set_id for golden in made.golden_sets] == ["c-a", "c-b"]
    assert "Two files make the same golden set 'g'" in refusal(
        up("a", QRELS), up("b", QRELS), golden_set_id="g"
    )


def test_blocks_do_not_change_what_is_read():
    whole = read(up("x", RUN * 1))
    for size in (7, 16, 33, 1000):
        parts = read(up("x", "\ufeff# c\n" + RUN), limits=ReadLimits(block_bytes=size))
        assert rows(parts, "rankings").drop("run_id").equals(rows(whole, "rankings").drop("run_id"))
    assert "x:4: This line has 5" in refusal(
        up("x", RUN + "q Q0 a 1 2\n"), limits=ReadLimits(block_bytes=8), format="trec-run"
    )


def test_endless_line_and_long_field():
    limits = ReadLimits(block_bytes=64, line_bytes=200, cell_bytes=50)
    assert "x:4: The line is longer than 200 bytes." in refusal(up("x", RUN + "a" * 1000), limits=limits)
    long = RUN + f"q3 Q0 {'d' * 60} 1 1 t\n"
    assert "x:4, column `passage_id`: A field is longer than 50 bytes." in refusal(
        up("x", long), limits=limits
    )


token = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=8).filter(
    lambda text: not text.startswith("#") and not set(text) & set("\x0b\x0c\x1c\x1d\x1e\x1f\x85")
)
ranking = st.dictionaries(token, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
space = st.sampled_from([" ", "\t", "  ", " \t "])


@pytest.mark.slow
@given(
    runs=st.dictionaries(st.tuples(token, token), ranking, min_size=1, max_size=6),
    blank=space,
    ranked=st.booleans(),
)
def test_round_trip(runs, blank, ranked):
    """What is written as a TREC run is read back: same runs, passages, order and scores."""
    lines, expected = [], {}
    for (tag, query), scores in runs.items():
        ordered = sorted(scores.items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
        for place, (passage, score) in enumerate(ordered, 1):
            lines.append(blank.join([query, "Q0", passage, str(place if ranked else 0), repr(score), tag]))
            expected[tag, query, place] = (passage, score)
    made = read(up("x", "\n".join(reversed(lines)) + "\n"), format="trec-run")
    tags = {run.run_id: run.manifest["tag"] for run in made.runs}
    found = {
        (tags[row["run_id"]], row["query_id"], row["rank"]): (row["passage_id"], row["score"])
        for row in rows(made, "rankings").iter_rows(named=True)
    }
    assert found == expected


def ordered_both_ways(rows: pl.DataFrame) -> tuple[ordering.Ordered | None, ordering.Ordered | str]:
    """Without looking closely, where that is possible, and looking closely at everything."""
    fast = ordering.as_it_stands(rows, "f")
    try:
        return fast, ordering.worked_out(rows, "f")
    except InputError as error:
        return fast, str(error)


LISTS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("pf"),
        st.sampled_from("123"),
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from((1.0, 2.0))), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(LISTS, st.integers(0, 9), st.sampled_from((None, 0, 2, 7, "as it is")))
def test_rows_that_are_in_order_are_taken_as_they_stand(lists, place, rank):
    """Lists in any order of runs and queries; most times one rank is out of order."""
    made = [
        [run, stage, query, f"d{passage}", at, score]
        for run, stage, query, ranked in lists
        for at, (passage, score) in enumerate(ranked, 1)
    ]
    if rank != "as it is":
        made[place % len(made)][4] = rank
    columns = {"run": pl.String, "stage": pl.String, "query_id": pl.String, "passage_id": pl.String,
               "rank": pl.Int64, "score": pl.Float64}  # fmt: skip
    rows = pl.DataFrame(made, schema=columns, orient="row").with_row_index("line", offset=1)
    fast, slow = ordered_both_ways(rows)
    if fast is not None:
        assert isinstance(slow, ordering.Ordered)
        order = [*ordering.KEY, "rank", "passage_id", "score"]
        assert fast.rows.select(order).rows() == slow.rows.select(order).rows()
        assert (fast.rules, fast.notes) == (slow.rules, slow.notes)


def test_lists_in_any_order_of_queries_are_taken_as_they_stand():
    rows = pl.DataFrame(
        {
            "run": ["r"] * 5,
            "stage": ["final"] * 5,
            "query_id": ["q10", "q10", "q2", "q1", "q1"],
            "passage_id": ["a", "b", "a", "c", "a"],
            "rank": pl.Series([1, 2, 1, 1, 2], dtype=pl.Int64),
            "score": [3.0, 2.0, 1.0, 1.0, 5.0],
            "line": range(1, 6),
        }
    )
    fast, slow = ordered_both_ways(rows)
    assert fast is not None
    assert fast.rows["query_id"].to_list() == ["q1", "q1", "q10", "q10", "q2"]
    assert fast.rows["passage_id"].to_list() == ["c", "a", "a", "b", "a"]
    assert "disagree in 1 rankings" in fast.notes[1]
    assert isinstance(slow, ordering.Ordered)
    assert fast.notes == slow.notes


@pytest.mark.parametrize("mark", [" ", "\t", "  ", " \t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_any_blanks_between_fields_read_the_same(mark, end):
    lines = [f"q1 Q0 d{rank} {rank} {-rank}.5 tag".replace(" ", mark) for rank in (1, 2, 3)]
    made = read(up("run.trec", (end or "\n").join(lines) + end))
    assert rows(made, "rankings").select("passage_id", "rank", "score").rows() == [
        ("d1", 1, -1.5),
        ("d2", 2, -2.5),
        ("d3", 3, -3.5),
    ]


RUN_FILE = "".join(
    f"q{query} Q0 doc{rank} {rank} {10 - rank / 7} bm25\n" for query in range(5) for rank in range(1, 8)
).encode()
MARCO = "1\td1\t1\n1\td2\t2\n1\td3\t3\n2\td1\t1\n"


@pytest.mark.parametrize("mark", ["\t", " "])
def test_a_run_of_ms_marco_has_ranks_and_no_scores(mark):
    made = read(up("bm25.tsv", MARCO.replace("\t", mark)))
    assert made.detected[0].format == "msmarco-run"
    assert [run.label for run in made.runs] == ["bm25"]
    assert rows(made, "rankings").select("query_id", "passage_id", "rank", "score").rows() == [
        ("1", "d1", 1, None), ("1", "d2", 2, None), ("1", "d3", 3, None), ("2", "d1", 1, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["1\td1\t1\n2\td2\t1\n", "1\td1\t0\n1\td2\t1\n", "1\td1\t2\n1\td2\t1\n", "1\td1\t0.5\n1\td2\t0.4\n"],
)
def test_three_fields_that_may_be_grades_are_no_run(text):
    assert "no format known" in refusal(up("x.tsv", text))


def test_topics_are_taken_by_the_name_of_the_file_or_as_said():
    text = "1\twhat is it\n2\twhere is\tit\n3\tand a tab\n"
    for head in ("", "qid\tquery\n"):
        made = read(up("queries.dev.tsv", head + text.replace("is\tit", "is it")))
        assert rows(made, "queries").select("query_id", "text").rows() == [
            ("1", "what is it"), ("2", "where is it"), ("3", "and a tab")
        ]  # fmt: skip
    plain = up("x.tsv", text.replace("is\tit", "is it"))
    assert "say so (--as topics)" in refusal(plain)
    assert read(plain, format="topics").taken["queries"] == 3
    assert "The query '1' stands twice." in refusal(up("topics.tsv", "1\ta b\n1\ta c\n"))
    twice = read(up("topics.tsv", "1\ta b\n2\ta c\n1\ta b\n"))
    assert twice.taken["queries"] == 2
    assert [(each.count, each.first) for each in lost(twice)] == [(1, "topics.tsv:3")]


OFFERS = {
    "trec-run": ("trec-run", RUN_FILE),
    "trec-qrels": ("trec-qrels", b"q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"),
    "msmarco": ("msmarco-run", MARCO.encode()),
    "topics": ("topics", b"qid\tquery\n1\twhat is it\n2\twhere is it\n"),
    "gz": ("trec-run", gzip.compress(RUN_FILE)),
}
