"""Tables of rankings that are read in blocks bring what they bring when read at once."""

from __future__ import annotations

import gzip

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from core.importers import ReadLimits
from tests.importers.helpers import read, refusal, rows, up

HEAD = "run,query_id,passage_id,rank,score,note,latency_ms,rerank_input_tokens,rerank_model\n"
TEXT = HEAD + "".join(
    f'{run},q{query},"d{rank}, ""x""",{rank},{9 - rank},"two\nlines",{10 * query + 1.5},{query},m\n'
    for run in ("a", "b")
    for query in range(1, 5)
    for rank in range(1, 4)
)
JSONL = pl.read_csv(TEXT.encode(), infer_schema=False).drop("note").write_ndjson()
FORMS = {"t.csv": TEXT, "t.tsv": TEXT.replace(",", "\t"), "t": JSONL}
SMALL = ReadLimits(table_bytes=10, rows_in_memory=5, block_bytes=90)
KEYS = {"rankings": ["run_id", "query_id", "rank"], "timings": ["run_id", "query_id"]}


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", TEXT), ("t.tsv", TEXT.replace(",", "\t")), ("t", JSONL)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_in_blocks_as_at_once(name, text, packed):
    data = gzip.compress(text.encode(), mtime=0) if packed else text.encode()
    whole, parts = read(up(name, text)), read(up(name, data), limits=SMALL)
    assert len(parts.held) == 1, "some of it waits on disk"
    assert parts.taken == whole.taken
    assert [run.run_id for run in parts.runs] == [run.run_id for run in whole.runs]
    assert set(parts.notes) == set(whole.notes)
    assert parts.left_out == whole.left_out
    for table in whole.frames:
        key = KEYS.get(table, ["run_id", "query_id"])
        assert_frame_equal(rows(parts, table).sort(key), rows(whole, table).sort(key))


def test_a_pool_has_its_depth():
    text = "query_id,passage_id,rank,stage\n" + "".join(f"q1,d{r},{r},pool\n" for r in range(1, 9))
    text += "q1,d1,1,final\n"
    assert [run.pool for run in read(up("t.csv", text), limits=SMALL).runs] == ["imported@8"]


BROKEN = {
    "score": ("q2,d1,2,x\n", "column `score`"),
    "rank": ("q2,d1,1.5,1\n", "column `rank`"),
    "cells": ("q2,d1,1,1,1,1\n", "6 cells, the header has 4"),
    "empty id": (",d1,1,1\n", "The id is empty"),
}


@pytest.mark.parametrize(("line", "message"), BROKEN.values(), ids=BROKEN)
def test_errors_name_the_line_of_the_file(line, message):
    good = "".join(f"q1,d{rank},{rank},{9 - rank}\n" for rank in range(1, 9))
    text = f"query_id,passage_id,rank,score\n{good}{line}"
    said = refusal(up("t.csv", text), limits=SMALL)
    assert message in said
    assert "t.csv:10" in said
    assert said == refusal(up("t.csv", text))


def test_a_quote_that_is_never_closed_is_refused():
    text = "query_id,passage_id,rank\n" + 'q1,"d1,1\n' + "q1,d2,2\n" * 200
    limits = ReadLimits(table_bytes=10, block_bytes=64, line_bytes=256)
    assert "Check its quotes" in refusal(up("t.csv", text), limits=limits)
