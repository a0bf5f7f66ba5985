"""Real files: what is imported equals an independent count of the file."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from tests.importers.helpers import CRANFIELD, PIAF, TREC_EVAL, needs, read, refusal, rows

RUNS = ["results.test", "results-302.test", "results.comment.test", "results.trunc", "prefs.results.test"]
QRELS = ["qrels.test", "qrels-302.test", "qrels.comment.test", "qrels.rel_level", "qrels.test.with-comments"]

OUTPUTS = [
    *("out.test", "out.comment.test", "out.test.meas_params"),
    *(f"out.test.{flags}" for flags in ("a", "aq", "aqc", "aqcM", "aql")),
]


def fields(path: Path) -> list[list[str]]:
    return [
        line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")
    ]


@needs(TREC_EVAL)
@pytest.mark.parametrize("name", RUNS)
def test_trec_eval_runs(name):
    lines = fields(TREC_EVAL / name)
    made = read(TREC_EVAL / name)
    table = rows(made, "rankings")
    assert Counter(table["query_id"].to_list()) == Counter(line[0] for line in lines)
    assert len(made.runs) == len({line[5] for line in lines})
    (rule,) = {run.manifest["order"] for run in made.runs}
    for query, group in table.group_by("query_id"):
        mine = [line for line in lines if line[0] == query[0]]
        if rule == "rank":
            expected = sorted(mine, key=lambda line: int(line[3]))
        else:
            expected = sorted(mine, key=lambda line: (float(line[4]), line[2]), reverse=True)
        assert group.sort("rank")["passage_id"].to_list() == [line[2] for line in expected]
        assert group.sort("rank")["rank"].to_list() == list(range(1, len(mine) + 1))


@needs(TREC_EVAL)
@pytest.mark.parametrize("name", QRELS)
def test_trec_eval_qrels(name):
    lines = fields(TREC_EVAL / name)
    table = rows(read(TREC_EVAL / name), "judgements")
    found = {(row["query_id"], row["passage_id"]): row["raw"] for row in table.iter_rows(named=True)}
    assert found == {(line[0], line[2]): int(line[3]) for line in lines}
    assert set(table.filter(pl.col("raw") < 0)["grade"]) <= {1}


@needs(TREC_EVAL)
@pytest.mark.parametrize("name", OUTPUTS)
def test_trec_eval_outputs(name):
    made = read(TREC_EVAL / name)
    kept = [line for line in fields(TREC_EVAL / name) if not re.match("runid|num_|relstring", line[0])]
    ours = {"AP": "map", "RR": "recip_rank", "nDCG": "ndcg", "P": "P", "R": "recall", "Success": "success"}

    def called(measure: str, k: int | None) -> set[str]:
        base = ours.get(measure, measure)
        return {f"{base}_{k}", f"{base}_cut_{k}"} if k else {base}

    values = {(line[1], line[0]): float(line[2]) for line in kept}
    for table, column in (("signals", "signal"), ("aggregates", "measure")):
        for row in rows(made, table).iter_rows(named=True) if table in made.frames else ():
            query = row.get("query_id", "all")
            (name,) = [name for name in called(row[column], row["k"]) if (query, name) in values]
            assert row["value"] == values.pop((query, name))
    assert values == {}


@needs(TREC_EVAL)
def test_trec_eval_files_of_other_kinds_are_refused():
    refused = [path for path in TREC_EVAL.iterdir() if path.name not in RUNS + QRELS + OUTPUTS]
    assert len(refused) == 10
    messages = {path.name: refusal(path) for path in refused}
    assert "qrels.123:3682: Passage 'CR93E-10279' is judged twice" in messages["qrels.123"]
    assert all(name in message for name, message in messages.items())


@needs(CRANFIELD)
@pytest.mark.parametrize("split", ["test", "test_without_source_doc"])
def test_cranfield(split):
    made = read(CRANFIELD, split=split)
    passages = [json.loads(line) for line in (CRANFIELD / "corpus.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (CRANFIELD / "queries.jsonl").read_text().splitlines()]
    with (CRANFIELD / "qrels" / f"{split}.tsv").open() as file:
        judged = list(csv.DictReader(file, delimiter="\t"))
    assert made.taken == {
        "collections": 1, "golden sets": 1, "judgements": len(judged), "passages": 1400, "queries": 225,
        "passage_metadata": 1400,
    }  # fmt: skip
    known = dict(rows(made, "passage_metadata").select("passage_id", "metadata").iter_rows())
    assert {name: json.loads(text) for name, text in known.items()} == {
        each["_id"]: each["metadata"] for each in passages
    }
    assert dict(rows(made, "passages").select("passage_id", "text").iter_rows()) == {
        each["_id"]: each["text"] for each in passages
    }
    assert dict(rows(made, "queries").select("query_id", "text").iter_rows()) == {
        each["_id"]: each["text"] for each in queries
    }
    assert rows(made, "queries")["tags"][0].to_list() == ["cran_qry_id=001"]
    grades = Counter(rows(made, "judgements")["grade"].to_list())
    assert grades == Counter(int(each["score"]) for each in judged)
    assert made.golden_sets[0].mapping == "1-5"


@needs(CRANFIELD)
def test_cranfield_raw_codes_are_reversed_on_request():
    path = CRANFIELD / "qrels_raw.tsv"
    made = read(path, columns={"grade": "cranfield-code"}, grades="1-5 reversed")
    assert Counter(rows(made, "judgements")["grade"].to_list()) == {5: 128, 4: 387, 3: 734, 2: 363, 1: 225}


@needs(PIAF)
def test_piaf():
    made = read(PIAF)
    assert made.taken == {
        "collections": 1,
        "golden sets": 1,
        "judgements": 7569,
        "passages": 1518,
        "queries": 7569,
    }
    assert made.golden_sets[0].mapping == "binary: 0→1, 1→5"
    assert set(rows(made, "judgements")["grade"]) == {5}
