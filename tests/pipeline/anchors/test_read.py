"""Files of spans."""

from __future__ import annotations

import json

import polars as pl
import pytest

from core.errors import InputError, UnknownNameError
from core.importers import Options
from core.pipeline.anchors import holds_spans, read_spans
from core.tables import TABLES

TEXT = "Lift comes from\nthe wing. Drag slows it down. The wing bends. 😀 end"
DOCUMENTS = pl.DataFrame({"source": ["a.txt", "b.txt"], "text": [TEXT, "Other text."]})
ROWS = [
    {"qid": "q", "doc": "a.txt", "start": 0, "end": 25, "rel": 3},
    {"qid": "q", "doc": "b.txt", "start": 0, "end": 5, "rel": 0},
]


def wrote(tmp_path, text: str, name: str = "spans.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def read(path, options=None):
    made = read_spans(path, DOCUMENTS, options or Options())
    return made.golden_sets[0], made.frames["spans"].lazy().collect()


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.tsv", "s.parquet"])
def test_every_kind_of_table(tmp_path, name):
    path, table = tmp_path / name, pl.DataFrame(ROWS)
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif name.endswith("parquet"):
        table.write_parquet(path)
    else:
        table.write_csv(path, separator="," if name.endswith("csv") else "\t")
    golden, spans = read(path, Options(collection_id="c"))
    assert golden.golden_set_id == "c-s"
    assert golden.collection_id == "c"
    assert golden.mapping == "0-3: 0→1, 1→3, 2→4, 3→5"
    assert spans.schema == TABLES["spans"]
    assert spans.rows() == [
        ("c-s", "q", "a.txt", 0, 25, 5, 3, None),
        ("c-s", "q", "b.txt", 0, 5, 1, 0, None),
    ]


def test_quotes_are_found_whatever_the_blanks(tmp_path):
    path = wrote(
        tmp_path,
        "query_id,source,quote,grade,judge\n"
        "q,a.txt,comes from the  wing.,5,me\nq,a.txt,Drag slows,4,\nr,a.txt,😀,2,\n",
    )
    _, spans = read(path)
    placed = [TEXT[start:end] for start, end in spans.select("start_char", "end_char").iter_rows()]
    assert placed == ["comes from\nthe wing.", "Drag slows", "😀"]
    assert spans["judge"].to_list() == ["me", None, None]


def test_places_and_quotes_together(tmp_path):
    path = wrote(tmp_path, "query_id,source,start,end,quote,grade\nq,a.txt,0,4,,5\nr,a.txt,,,bends,4\n")
    assert read(path)[1].select("start_char", "end_char").rows() == [(0, 4), (55, 60)]


def test_repetitions_count_once(tmp_path):
    path = wrote(tmp_path, "query_id,source,start,end,grade\nq,a.txt,0,4,5\nq,a.txt,0,4,5\n")
    _, spans = read(path)
    assert spans.height == 1


HEAD = "query_id,source,start_char,end_char,grade\n"
QUOTED = "query_id,source,quote,grade\n"
BROKEN = {
    "document": (HEAD + "q,x.txt,0,4,5\n", r"csv:2, column `source`: There is no document 'x.txt'.*a.txt"),
    "behind the end": (HEAD + "q,b.txt,0,99,5\n", "Characters 0 to 99 are not in 'b.txt', which has 11"),
    "before the beginning": (HEAD + "q,b.txt,-1,3,5\n", "Characters -1 to 3"),
    "empty": (HEAD + "q,b.txt,3,3,5\n", "Characters 3 to 3"),
    "blank": (HEAD + "q,a.txt,15,16,5\n", "The span holds blanks only"),
    "no place": (HEAD + "q,a.txt,,4,5\n", "Neither a place nor a quote"),
    "no number": (HEAD + "q,a.txt,x,4,5\n", "'x' is not an integer"),
    "no grade": (HEAD + "q,a.txt,0,4,\n", "column `grade`: The grade is empty"),
    "half a grade": (HEAD + "q,a.txt,0,4,1.5\n", "'1.5' is not an integer"),
    "no query": (HEAD + ",a.txt,0,4,5\n", "The id is empty"),
    "no rows": (HEAD, "The table has no rows"),
    "two grades": (HEAD + "q,a.txt,0,4,5\nq,a.txt,0,4,4\n", r"csv:3: Characters 0 to 4 of 'a.txt' .* twice"),
    "no column": ("query_id,source,start_char,grade\nq,a.txt,0,5\n", "no column `end_char`"),
    "neither": ("query_id,source,grade\nq,a.txt,5\n", "no column `start_char`"),
    "quote not there": (QUOTED + "q,a.txt,nowhere,5\n", "stands 0 times in 'a.txt'.*word by word"),
    "quote too short": (QUOTED + "q,a.txt,wing,5\n", "'wing' stands 2 times.*Lengthen it"),
    "scale": (HEAD + "q,a.txt,0,4,9\n", "No grade mapping fits"),
    "no table": ("just words\n", "not a table"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(wrote(tmp_path, text))


def test_decisions_of_the_user(tmp_path):
    path = wrote(tmp_path, "query_id,page,start,end,grade\nq,a.txt,0,4,0\n")
    options = Options(columns={"source": "page"}, grades="0→2", golden_set_id="mine", collection_id="c")
    golden, spans = read(path, options)
    assert golden.golden_set_id == "mine"
    assert spans["grade"].to_list() == [2]
    for columns, error in (({"source": "gone"}, InputError), ({"place": "page"}, UnknownNameError)):
        with pytest.raises(error):
            read(path, Options(columns=columns))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD, True),
        ("query,document,quote,relevance\n", True),
        ("query_id,passage_id,grade\n", False),
        ("query_id,passage_id,rank\n", False),
        ("words\n", False),
    ],
)
def test_spans_are_told_from_judgements_of_passages(tmp_path, text, expected):
    assert holds_spans(wrote(tmp_path, text)) is expected
    assert not holds_spans(tmp_path / "gone.csv")
