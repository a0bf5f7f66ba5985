import json
from pathlib import Path

import polars as pl
import pytest

from core.answers import GRADE
from tests.importers.helpers import SHARED, needs, read, rows

REAL = SHARED / "peer_outputs" / "ragged" / "tree"


@pytest.mark.slow
@needs(REAL)
def test_real_tree():
    """Counts and values equal to those of a plain reader of the same files."""
    made = read(REAL)
    reading = sorted(REAL.rglob("all_data_evaluated.jsonl"))
    said = {path: [json.loads(line) for line in path.read_text().splitlines()] for path in reading}
    predicted = {
        path.parent.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in REAL.glob("retriever_results/predictions/*/*.jsonl")
    }
    gold = {
        (entry["id"], place.replace("_", ":"))
        for entry in json.loads(next(REAL.glob("data/gold*/*.json")).read_text())
        for place in entry["output"]["page_par_id_set"]
    }
    judged = dict.fromkeys(gold, 1)
    for path in REAL.glob("retriever_results/evaluations/*/*.jsonl"):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            for each in entry["passage-level results"]:
                pair = entry["id"], each["page_par_id"].replace("_", ":")
                judged[pair] = max(judged.get(pair, 0), int(each["page_par_id_match"]))
    lists = {
        (name, entry["id"]): list(
            dict.fromkeys(
                f"{each['page_id']}:{each['start_par_id']}" for each in entry["output"][0]["provenance"]
            )
        )
        for name, entries in predicted.items()
        for entry in entries
    }
    # gold and no_context belong to both retrievers
    spread = [
        ((retriever, *mode_of(path)), entries)
        for path, entries in said.items()
        for retriever in ("bm25", "colbert")
        if path.parts[-4] == retriever or path.parent.name in ("gold", "no_context")
    ]
    right = {
        (entry["id"], answer)
        for entries in said.values()
        for entry in entries
        for answer in entry["gold_answers"]
    }
    assert made.taken == {
        "collections": 1,
        "golden sets": 1,
        "runs": 2,
        "queries": 30,
        "passages": len({place for places in lists.values() for place in places}),
        "judgements": len(judged),
        "rankings": sum(map(len, lists.values())),
        "answers": sum(len(entries) for _, entries in spread),
        "answer_scores": sum(len(entry["answer_evaluation"]) for _, entries in spread for entry in entries),
        "gold_answers": len(right),
    }
    table = rows(made, "judgements").select("query_id", "passage_id", "raw")
    assert {(query, passage): raw for query, passage, raw in table.iter_rows()} == judged
    names = {run.run_id: run for run in made.runs}
    ranked = rows(made, "rankings").sort("run_id", "query_id", "rank")
    for (run_id, query), group in ranked.group_by("run_id", "query_id"):
        retriever = "bm25" if "bm25" in names[run_id].label else "colbert"
        assert group["passage_id"].to_list() == lists[retriever, query]
    assert set(rows(made, "gold_answers").select("query_id", "answer").rows()) == right
    retriever_of = pl.col("run_id").replace_strict(
        {run_id: "bm25" if "bm25" in run.label else "colbert" for run_id, run in names.items()}
    )
    told = rows(made, "answers").select(retriever_of, "mode", "k", "query_id", "text", "reader").rows()
    assert {row[-1] for row in told} == {"flanT5_2000truncation_10new_tokens"}
    assert sorted(map(str, (row[:-1] for row in told))) == sorted(
        str((*key, entry["id"], entry["answer"])) for key, entries in spread for entry in entries
    )
    scores = rows(made, "answer_scores").select(retriever_of, "mode", "k", "query_id", "scorer", "value")
    assert sorted(map(str, scores.rows())) == sorted(
        str((*key, entry["id"], scorer, float(value)))
        for key, entries in spread
        for entry in entries
        for scorer, value in entry["answer_evaluation"].items()
    )
    assert set(rows(made, "answer_scores")["scale"]) == {"0-1"}
    assert set(rows(made, "answer_scores").filter(source=GRADE)["scorer"]) == {"f1"}


def mode_of(path: Path) -> tuple[str, int | None]:
    folder = path.parent.name
    if folder in ("gold", "no_context"):
        return ("gold", None) if folder == "gold" else ("none", 0)
    names = {"top_k": "top_k", "top_positive": "gold_only", "top_negative": "no_gold"}
    return names[path.parts[-3]], int(folder.removeprefix("top_"))
