import json
import re

import polars as pl
import pytest

from core.importers import preview
from tests.importers.helpers import SHARED, needs, read, refusal, rows, up, zipped

REAL = SHARED / "peer_outputs" / "mteb_results"
NAMES = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "recall": "R", "precision": "P", "hit_rate": "Success"}
SCORES = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": 0.6, "ndcg_at_10": 0.6,
          "recall_at_100": 0.9, "map_at_10": 0.5, "mrr_at_10": None, "nauc_map_at_10_max": 0.4}  # fmt: skip
NEW = {"dataset_revision": "r1", "task_name": "SciFact", "mteb_version": "1.12.75", "evaluation_time": 7.4,
       "scores": {"test": [SCORES, {**SCORES, "hf_subset": "fr"}]}}  # fmt: skip
OLD = {"dataset_revision": "r1", "mteb_dataset_name": "SciFact", "mteb_version": "1.0.2",
       "dev": {"evaluation_time": 3.2, "ndcg_at_10": 0.5},
       "test": {"en": {"ndcg_at_10": 0.7}, "de": {"ndcg_at_10": 0.6}, "evaluation_time": 1.0}}  # fmt: skip
META = {
    "name": "org/model",
    "revision": "abc",
    "embed_dim": 384,
    "loader": None,
    "api_key": "sk-123456789012345",
}


def file(content: object) -> str:
    return json.dumps(content)


def test_a_model_with_its_tasks():
    folder = "org__model/abc"
    members = {
        f"{folder}/a.json": file(NEW),
        f"{folder}/b.json": file(OLD),
        f"{folder}/model_meta.json": file(META),
    }
    made = read(up("results.zip", zipped(members)))
    assert {run.collection_id for run in made.runs} == {
        "SciFact", "SciFact-fr", "SciFact-dev", "SciFact-en", "SciFact-de"
    }  # fmt: skip
    assert {run.label for run in made.runs} == {"org/model"}
    run = next(each for each in made.runs if each.collection_id == "SciFact")
    assert run.stack.spec == {"mode": "dense", "embedder": "org/model", "dim": 384}
    assert run.manifest["result"]["evaluation_time"] == 7.4
    assert run.manifest["revision"] == "abc"
    assert "sk-1234" not in str(run.manifest)
    table = rows(made, "aggregates").filter(pl.col("run_id") == run.run_id)
    assert set(table.select("measure", "k", "value").rows()) == {
        ("nDCG", 10, 0.6), ("R", 100, 0.9), ("AP", 10, 0.5)
    }  # fmt: skip
    assert table["n"].null_count() == 3
    reasons = {each.reason: each.count for each in made.left_out}
    assert reasons["scores that are not measures of retrieval (nAUC and others)"] == 2
    assert reasons["evaluation times: of a whole evaluation, not of a query (kept in the manifest)"] == 5
    assert "timings" not in made.taken


BARE = {"test": {"ndcg_at_10": 0.7, "recall_at_100": 0.9, "evaluation_time": 1.0},
        "mteb_dataset_name": "SciFact"}  # fmt: skip
"""As the oldest versions wrote it: without a version of itself."""


def test_a_result_without_a_version_is_taken():
    made = read(up("SciFact.json", file(BARE)))
    assert [run.collection_id for run in made.runs] == ["SciFact"]
    assert set(rows(made, "aggregates").select("measure", "k", "value").rows()) == {
        ("nDCG", 10, 0.7), ("R", 100, 0.9)
    }  # fmt: skip


def test_experiments_with_a_model_are_told_apart():
    """The same model with other settings stands one folder deeper."""
    plain = file({**NEW, "scores": {"test": [SCORES]}, "date": 1793527200.5, "evaluation_phases": None})
    members = {
        "org__model/abc/SciFact.json": plain,
        "org__model/abc/model_meta.json": file(META),
        "org__model/abc/experiments/dim_64/SciFact.json": plain,
        "org__model/abc/experiments/dim_64/model_meta.json": file(META),
    }
    made = read(up("results.zip", zipped(members)))
    assert {run.label for run in made.runs} == {"org/model", "org/model · dim_64"}
    assert {str(run.stack.spec.get("params")) for run in made.runs} == {"None", "{'experiment': 'dim_64'}"}
    bare = {name: content for name, content in members.items() if "meta" not in name}
    made = read(up("results.zip", zipped(bare)))
    assert {run.label for run in made.runs} == {"org/model", "org/model · dim_64"}


@pytest.mark.parametrize("root", ["", "results/", "mteb/results/"])
def test_without_a_description_and_a_revision_the_folder_of_a_result_names_its_model(root):
    one = file({**NEW, "scores": {"test": [SCORES]}})
    members = {f"{root}{model}/NFCorpus.json": one for model in ("large-model", "small-model", "org__other")}
    made = read(up("results.zip", zipped(members)))
    assert {run.label for run in made.runs} == {"large-model", "small-model", "org/other"}


def test_a_named_collection_holds_or_begins_the_tasks():
    one = up("SciFact.json", file({**NEW, "scores": {"test": [SCORES]}}))
    assert {run.collection_id for run in read(one).runs} == {"SciFact"}
    assert {run.collection_id for run in read(one, collection_id="mine").runs} == {"mine"}
    two = up("SciFact.json", file(NEW))
    assert {run.collection_id for run in read(two, collection_id="mine").runs} == {
        "mine-SciFact", "mine-SciFact-fr"
    }  # fmt: skip
    known = read(one, known_collections=frozenset({"SciFact"}))
    assert known.collections == ()


def test_without_a_description_the_folder_names_the_model(tmp_path):
    (tmp_path / "org__model" / "abc").mkdir(parents=True)
    path = tmp_path / "org__model" / "abc" / "SciFact.json"
    path.write_text(file(NEW))
    assert {run.label for run in read(path).runs} == {"org/model"}
    assert read(tmp_path).runs[0].label == "org/model"
    assert read(up("x.json", file(NEW))).runs[0].label == "unnamed model"


def test_bm25_and_cross_encoders():
    def spec(**meta):
        members = {"m/r/a.json": file(NEW), "m/r/model_meta.json": file({**META, **meta})}
        return read(up("x.zip", zipped(members))).runs[0].stack.spec

    assert spec(name="mteb/baseline-bm25s") == {
        "mode": "sparse", "sparse": "bm25", "name": "mteb/baseline-bm25s"
    }  # fmt: skip
    assert spec(name="a/ce", is_cross_encoder=True) == {"reranker": "a/ce", "name": "a/ce"}
    assert "dim" not in spec(embed_dim="many")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**NEW, "scores": {"test": SCORES}}, "'test' is an object, not a list"),
        (
            {**NEW, "scores": {"test": [{**SCORES, "ndcg_at_10": "high"}]}},
            "ndcg_at_10' is text, not a number",
        ),
        ({**NEW, "scores": {"test": [{**SCORES, "hf_subset": 1}]}}, "hf_subset' is an integer, not text"),
        ({**NEW, "scores": {"test": [{"main_score": 1.0}]}}, "no measure of retrieval"),
        ({**NEW, "task_name": 3}, "task_name' is an integer"),
    ],
)
def test_refused(content, message):
    assert message in refusal(up("x.json", file(content)))


OTHER = {
    "clustering": {"v_measure": 0.4, "v_measures": {"Level 0": [0.1]}},
    "similarity of texts": {"cosine_spearman": 0.4, "pearson": 0.3},
    "pairs of texts": {"max_ap": 0.4, "cosine_accuracy": 0.3},
    "mining of translations": {"accuracy": 0.9, "f1": 0.8, "precision": 0.7, "recall": 0.6},
    "classification": {"accuracy": 0.9, "f1": 0.8, "f1_weighted": 0.7, "recall": 0.6},
    "other tasks": {"text_image_score": 0.4},
}  # fmt: skip


def other(kind: str, subsets: int = 3) -> str:
    rows = [
        {**OTHER[kind], "hf_subset": f"s{n}", "main_score": 0.4, "languages": ["x"]} for n in range(subsets)
    ]
    return file({**NEW, "task_name": kind.title(), "scores": {"test": rows}})


def test_other_tasks_are_summed_up_and_taken_on_request():
    """One line per kind, however many there are; a whole model folder has hundreds."""
    files = {f"m/r/{kind}{n}.json": other(kind) for kind in OTHER for n in range(20)}
    offered = up("x.zip", zipped({**files, "m/r/SciFact.json": file(NEW), "m/r/model_meta.json": file(META)}))
    made = read(offered)
    assert {run.collection_id for run in made.runs} == {"SciFact", "SciFact-fr"}
    lines = [each for each in made.left_out if "--all-tasks" in each.reason]
    assert [(each.count, each.reason.rpartition("a task of ")[2]) for each in lines] == [
        (20, f"{kind} (--all-tasks takes it)") for kind in sorted(OTHER)
    ]
    assert {file_report.file for file_report in made.reports} == {
        *(f"x.zip/{name}" for name in files), "x.zip/m/r/SciFact.json", "x.zip/m/r/model_meta.json"
    }  # fmt: skip
    (seen,) = preview([offered])
    assert seen.choices == {"tasks": ("retrieval and reranking", "all")}
    one = {name: text for name, text in files.items() if "0.json" in name and "10" not in name}
    whole = read(up("x.zip", zipped({**one, "m/r/model_meta.json": file(META)})), all_tasks=True)
    assert len(whole.runs) == 6 * 3
    figures = rows(whole, "aggregates").group_by("measure").len()
    assert dict(figures.iter_rows()) == {
        "v_measure": 3, "cosine_spearman": 3, "pearson": 3, "max_ap": 3, "cosine_accuracy": 3, "accuracy": 6,
        "f1": 6, "precision": 3, "recall": 6, "f1_weighted": 3, "text_image_score": 3,
    }  # fmt: skip


def test_only_other_tasks():
    message = refusal(up("x.json", other("clustering")))
    assert "no measure of retrieval" in message
    assert "--all-tasks" in message


def test_old_reranking_is_taken():
    made = read(up("x.json", file({**BARE, "test": {"map": 0.5, "mrr": 0.6}, "mteb_version": "1.0"})))
    assert set(rows(made, "aggregates")["measure"]) == {"AP", "RR"}


def test_a_description_alone_is_no_result():
    assert "there are no results beside it" in refusal(up("model_meta.json", file(META)))


@needs(REAL)
def test_real_files():
    made = read(REAL)
    expected = {}
    for path in sorted(REAL.glob("*/*/*.json")):
        if path.name == "model_meta.json":
            continue
        whole = json.loads(path.read_text())
        model = json.loads((path.parent / "model_meta.json").read_text())["name"]
        for split, found in whole["scores"].items():
            for scores in found:
                place = whole["task_name"] + ("" if split == "test" else f"-{split}")
                for key, value in scores.items():
                    match = re.fullmatch("(ndcg|map|mrr|recall|precision|hit_rate)(?:_at_([0-9]+))?", key)
                    if match and value is not None:
                        k = int(match[2]) if match[2] else None
                        expected[model, place, NAMES[match[1]], k] = value
    names = {run.run_id: (run.label, run.collection_id) for run in made.runs}
    found = {
        (*names[row["run_id"]], row["measure"], row["k"]): row["value"]
        for row in rows(made, "aggregates").iter_rows(named=True)
    }
    assert found == expected
    assert len(found) > 1000
    assert len(made.runs) == len({key[:2] for key in expected}) == 32


OFFERS = {
    "mteb": ("mteb", json.dumps(NEW).encode()),
    "mteb-old": ("mteb", json.dumps(OLD).encode()),
    "mteb-bare": ("mteb", json.dumps(BARE).encode()),
}
