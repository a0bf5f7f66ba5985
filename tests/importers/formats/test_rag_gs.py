import json
from collections.abc import Mapping, Sequence

import pytest

from core.importers import preview
from core.store import Store
from tests.importers.helpers import SHARED, needs, read, refusal, rows, up, zipped

REAL = SHARED / "peer_outputs" / "rag_gs"

DENSE = "q01/s2_candidates/dense/q01.top3.jsonl"
GRADES = "q01/s4_scores/q01.gpt5_scores.jsonl"


def lines(*items: Mapping[str, object]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def question(
    number: int, dense: Sequence[str], sparse: Sequence[str], grades: Mapping[str, int | None]
) -> dict[str, str]:
    q = f"q{number:02d}"
    merged = list(dict.fromkeys([*dense, *sparse]))
    kept = [name for name, grade in grades.items() if (grade or 0) >= 3]

    def row(name: str) -> dict[str, object]:
        return {"doc_id": name, "text": f"text {name}", "metadata": {"source": f"{name}.md", "title": name}}

    return {
        f"{q}/s1_rewrites/{q}.json": json.dumps(
            {"qid": f"Q{number}", "text": f"ask {number}", "text_rewrite": f"asked {number}",
             "model": "voyage-3.5", "output_dimension": 512, "embedding": [0.5, 0.25]}
        ),
        f"{q}/s1_rewrites/_SUCCESS": "",
        f"{q}/s1_rewrites/manifest.json": json.dumps({"api_key": "sk-abcdefghijklmnop"}),
        f"{q}/s2_candidates/dense/{q}.top{len(dense)}.jsonl": lines(
            *({"rank_dense": rank, "score_cos": 1 / rank, **row(name)} for rank, name in enumerate(dense, 1))
        ),
        f"{q}/s2_candidates/sparse/{q}.top{len(sparse)}.jsonl": lines(
            *({"rank_sparse": rank, "score_bm25": 9, **row(name)} for rank, name in enumerate(sparse, 1))
        ),
        f"{q}/s2_candidates/_SUCCESS": "",
        f"{q}/s3_merge/{q}.merge.jsonl": lines(
            *({"source": "both", "rank_rrf": rank, "rrf_score": 1 / (60 + rank), **row(name)}
              for rank, name in reversed(list(enumerate(merged, 1))))
        ),
        f"{q}/s4_scores/{q}.gpt5_scores.jsonl": lines(
            *({"doc_id": name, "grade_1_5": grade, "model": "gpt-5"} for name, grade in grades.items())
        ),
        f"{q}/s5_pruned/{q}.top35plus.jsonl": lines(*map(row, kept)),
        f"{q}/s6_ranked/{q}.top20.jsonl": lines(
            *({"final_rank": rank, "final_score": 0.5, "exposures": 3, "info": {}, "doc_id": name}
              for rank, name in enumerate(kept, 1))
        ),
    }  # fmt: skip


def run(root: str = "runs/r1/", **changes: str | None) -> dict[str, str]:
    files: dict[str, str | None] = {
        **question(1, ["a", "b", "c"], ["b", "d"], {"a": 5, "b": 1, "c": 3, "d": None}),
        **question(2, ["d", "a"], ["d"], {"d": 4, "a": 2}),
        "questions_manifest.json": json.dumps(
            {"items": [{"qid": "Q1", "text": "ask 1", "text_rewrite": "asked 1"},
                       {"qid": "Q2", "text": "ask 2"}]}
        ),
    }  # fmt: skip
    files |= {name.replace("__", "/"): content for name, content in changes.items()}
    return {f"{root}{name}": content for name, content in files.items() if content is not None}


def offer(root: str = "runs/r1/", **changes: str | None):
    return up("data.zip", zipped(run(root, **changes)))


@pytest.mark.parametrize("root", ["runs/r1/", "", "data/"])
def test_a_run_folder_becomes_stacks_and_a_golden_set(root, tmp_path):
    made = read(offer(root), collection_id="c")
    assert made.detected[0].format == "rag-gs"
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": 3, "judgements": 5, "passages": 4, "queries": 2,
        "rankings": 5 + 3 + 6,
    }  # fmt: skip
    assert [each.stack.label for each in made.runs] == [
        "voyage-3.5 512 d · rewritten", "BM25 · rewritten", "BM25 ⊕ voyage-3.5 512 d · rewritten"
    ]  # fmt: skip
    ranked = rows(made, "rankings").filter(run_id=made.runs[2].run_id)
    assert ranked.select("query_id", "rank", "passage_id").rows() == [
        ("Q1", 1, "a"), ("Q1", 2, "b"), ("Q1", 3, "c"), ("Q1", 4, "d"), ("Q2", 1, "d"), ("Q2", 2, "a")
    ]  # fmt: skip
    assert ranked["score"][0] == 1 / 61
    judged = rows(made, "judgements").select("query_id", "passage_id", "grade", "judge").rows()
    assert judged == [
        ("Q1", "a", 5, "gpt-5"), ("Q1", "b", 1, "gpt-5"), ("Q1", "c", 3, "gpt-5"), ("Q2", "d", 4, "gpt-5"),
        ("Q2", "a", 2, "gpt-5"),
    ]  # fmt: skip
    assert made.golden_sets[0].mapping == "1-5"
    assert rows(made, "queries")["text"].to_list() == ["ask 1", "ask 2"]
    assert rows(made, "passages").select("passage_id", "title", "source").rows()[0] == ("a", "a", "a.md")
    left = {each.reason: each.count for each in made.left_out}
    assert left["passages that the judge gave no grade"] == 1
    assert made.runs[2].manifest["s6_ranked"] == {
        "Q1": [["a", 1, 0.5, 3, "{}"], ["c", 2, 0.5, 3, "{}"]], "Q2": [["d", 1, 0.5, 3, "{}"]]
    }  # fmt: skip
    assert any("2 questions were searched with a rewritten text" in note for note in made.notes)
    assert any("have no _SUCCESS mark" in note for note in made.notes)
    assert "sk-abcdefghijklmnop" not in json.dumps(dict(made.runs[0].manifest))
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_the_longest_list_and_the_enriched_grades_count():
    made = read(
        offer(
            q01__s2_candidates__dense__top="",
            **{
                "q01/s2_candidates/dense/q01.top200.jsonl": lines(
                    *({"rank_dense": rank, "score_cos": None, "doc_id": f"x{rank}"} for rank in range(1, 6))
                ),
                "q01/s4_scores/q01.enriched.jsonl": lines({"doc_id": "a", "grade_1_5": 2, "model": "m"}),
            },
        ),
        collection_id="c",
    )
    assert rows(made, "rankings").filter(run_id=made.runs[0].run_id).height == 5 + 2
    assert rows(made, "judgements").filter(query_id="Q1")["grade"].to_list() == [2]
    left = [name for each in made.reports for name in each.left_out if each.kind == "file"]
    assert [name for name in left if "q01" in name] == [
        "runs/r1/q01/s2_candidates/dense/q01.top3.jsonl",
        "runs/r1/q01/s2_candidates/dense/top",
        "runs/r1/q01/s4_scores/q01.gpt5_scores.jsonl",
    ]
    assert {each.reason: each.count for each in made.left_out}["passages without a text"] == 5


def dense(depth: int) -> str:
    return lines(
        *({"rank_dense": rank, "score_cos": 0.5, "doc_id": f"d{rank}"} for rank in range(1, depth + 1))
    )


def manifest(**content: object) -> str:
    return json.dumps(content)


def test_the_pool_is_as_deep_as_the_manifest_says(tmp_path):
    """Not as deep as the longest list, which another run may have left there."""
    deep = {
        "q01/s2_candidates/dense/q01.top5.jsonl": dense(5),
        "q02/s2_candidates/dense/q02.top5.jsonl": dense(5),
    }
    told = {f"{q}/s2_candidates/manifest.json": manifest(dense_k=2, sparse_k=3) for q in ("q01", "q02")}
    short = {
        "q01/s2_candidates/dense/q01.top2.jsonl": dense(2),
        "q02/s2_candidates/dense/q02.top2.jsonl": dense(2),
    }
    made = read(offer("", **deep, **told, **short, **{"q01/s3_merge/manifest.json": manifest(rrf_c=60.0)}))
    assert [run.pool for run in made.runs] == ["dense@2", "bm25@3", "rrf2+3@5"]
    assert made.runs[2].stack.spec["fusion"] == {"method": "rrf", "constant": 60}
    ranked = rows(made, "rankings").filter(run_id=made.runs[0].run_id)
    assert ranked.group_by("stage").len().sort("stage").rows() == [("final", 4), ("pool", 4)]
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    equal = read(offer("", **short, **{name: manifest(dense_k=2, sparse_k=2) for name in told}))
    assert [run.pool for run in equal.runs] == ["dense@2", "bm25@2", "rrf2@4"]
    assert equal.runs[2].stack.spec["fusion"] == {"method": "rrf", "depth": 2}


@pytest.mark.slow
@needs(REAL)
def test_real_run():
    """Counts and lists equal to those of a plain reader of the same files."""
    made = read(REAL)
    root = REAL / "data" / "runs" / "demo"

    def each(pattern: str) -> dict[str, list[dict[str, object]]]:
        found = {}
        for path in sorted(root.glob(pattern)):
            entries = [json.loads(line) for line in path.read_text().splitlines()]
            found[f"Q{int(path.relative_to(root).parts[0][1:])}"] = entries
        return found

    stages = {
        "dense": (each("q*/s2_candidates/dense/*.jsonl"), "rank_dense", "score_cos"),
        "sparse": (each("q*/s2_candidates/sparse/*.jsonl"), "rank_sparse", "score_bm25"),
        "merge": (each("q*/s3_merge/*.jsonl"), "rank_rrf", "rrf_score"),
    }
    assert [run.pool for run in made.runs] == ["dense@50", "bm25@50", "rrf50@100"]
    for run, (lists, rank, score) in zip(made.runs, stages.values(), strict=True):
        for stage in ("pool", "final"):
            table = rows(made, "rankings").filter(run_id=run.run_id, stage=stage)
            found = {(row["query_id"], row["rank"], row["passage_id"], row["score"])
                     for row in table.iter_rows(named=True)}  # fmt: skip
            assert found == {
                (query, entry[rank], entry["doc_id"], entry[score])
                for query, held in lists.items()
                for entry in held
            }
    grades = each("q*/s4_scores/*.jsonl")
    judged = rows(made, "judgements").select("query_id", "passage_id", "grade", "judge")
    assert set(judged.rows()) == {
        (query, entry["doc_id"], entry["grade_1_5"], entry["model"])
        for query, held in grades.items()
        for entry in held
    }
    assert made.taken["queries"] == len(list(root.glob("q*/s1_rewrites/q*.json"))) == 7
    texts = {entry["doc_id"] for lists, _, _ in stages.values() for held in lists.values() for entry in held}
    assert made.taken["passages"] == len(texts)
    assert made.runs[2].manifest["s6_ranked"] == {
        query: [
            [entry[key] for key in ("doc_id", "final_rank", "final_score", "exposures", "info")]
            for entry in held
        ]
        for query, held in each("q*/s6_ranked/*.jsonl").items()
    }
    assert {file_report.file for file_report in made.reports} == {
        f"rag_gs/{path.relative_to(REAL)}" for path in REAL.rglob("*") if path.is_file()
    }


def test_refined_passages_without_a_merged_run_are_counted():
    merge = {f"{q}/s3_merge/{q}.merge.jsonl": None for q in ("q01", "q02")}
    made = read(offer("", **merge))
    assert ("passages of s6_ranked beyond what can be kept with a merged run", 3) in {
        (each.reason, each.count) for each in made.left_out
    }


def test_passages_of_another_run_are_refused_with_their_list():
    strange = lines(*({"final_rank": rank, "doc_id": f"z{rank}"} for rank in range(25)))
    found = refusal(
        offer(q02__s6_ranked__q02="", **{"q02/s6_ranked/q02.top20.jsonl": strange}), collection_id="c"
    )
    assert "25 passages of s6_ranked are not in s5_pruned" in found
    assert "Q2 z0, Q2 z1" in found
    assert "and 5 more" in found
    emptied = refusal(offer(**{"q01/s5_pruned/q01.top35plus.jsonl": ""}), collection_id="c")
    assert "Q1 a, Q1 c" in emptied


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (DENSE, lines({"rank_dense": 1, "doc_id": ""}), "no doc_id"),
        (DENSE, lines({"rank_dense": "x", "doc_id": "a"}), "top3.jsonl:1"),
        (DENSE, lines({"rank_dense": 1, "doc_id": "a"}) * 2, "stands twice"),
        (DENSE,
         lines({"rank_dense": 1, "doc_id": "a"}, {"rank_dense": None, "doc_id": "b"}), "no rank_dense"),
        (GRADES, lines({"doc_id": "a", "grade_1_5": 6}), "not within 1 to 5"),
        (GRADES, lines({"doc_id": "a", "grade_1_5": 2.5}), "gpt5_scores.jsonl:1"),
        (GRADES, lines({"doc_id": "a", "grade_1_5": 2}) * 2, "graded twice"),
        ("q01/s1_rewrites/q01.json", '{"text": 5}', "'text' is an integer"),
        ("q01/s1_rewrites/manifest.json", "{", "manifest.json:1"),
        ("questions_manifest.json", '{"items": [{"qid": "7"}]}', "not a question id"),
        ("questions_manifest.json", '{"items": {}}', "'items' is an object, not a list"),
        ("../q01/s3_merge/x.jsonl", "", "outside itself"),
        ("r2/q01/s3_merge/q01.merge.jsonl", lines({"rank_rrf": 1, "doc_id": "a"}), "There are 2 run folders"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(name, content, message):
    assert message in refusal(offer("", **{name: content}), collection_id="c")


def test_nan_scores_are_missing():
    name = "q01/s2_candidates/sparse/q01.top2.jsonl"
    made = read(offer("", **{name: lines({"rank_sparse": 1, "doc_id": "a", "score_bm25": float("nan")})}))
    ranked = rows(made, "rankings").filter(run_id=made.runs[1].run_id, query_id="Q1")
    assert ranked.select("passage_id", "score").rows() == [("a", None)]


def test_a_preview_shows_the_stages():
    (seen,) = preview([offer()])
    assert (seen.format, seen.problem) == ("rag-gs", "")
    assert seen.rows.row(0) == ("Q1", "s1_rewrites", "rewrites", "runs/r1/q01/s1_rewrites/q01.json")


OFFERS = {
    "rag-gs": ("rag-gs", zipped(run(), 0)),
}
