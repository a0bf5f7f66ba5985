import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from core.pipeline import demo
from core.pipeline.demo import REPEATS, grid, noisy, run_demo
from core.pipeline.evaluate import corpus_of
from core.pipeline.sweep.check import SpecFacts, check_stacks
from core.pipeline.sweep.problems import Severity
from core.records import Batch, Stack
from core.store import Store
from core.tables import TABLES


def few(stacks: list[Stack]) -> list[Stack]:
    return [stack for stack in stacks if stack.spec.get("index", "flat") == "flat"]


@pytest.mark.slow
def test_the_collection_comes_first_and_then_all_runs(tmp_path: Path):
    store = Store(tmp_path / "store")
    sunk: list[Batch] = []

    def sink(batch: Batch) -> None:
        sunk.append(batch)
        with store.write("demo") as writer:
            writer.add(batch)

    told: list[tuple[int, int]] = []
    stacks = few(grid(embedder="fake", dims=(32,), depths=(20, 50)))
    made = run_demo(sink, lambda done, total, _: told.append((done, total)), stacks=stacks)

    done = [step for step, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1] > len(stacks) * REPEATS / 2
    assert len({total for _, total in told[2:]}) == 1
    assert [len(batch.runs) for batch in sunk] == [0, len(stacks)]
    assert str(len(stacks)) in made.summary

    read = store.read()
    assert read.revision == 2
    collection = read.collections().row(0, named=True)
    assert collection["queries"] >= 40
    assert collection["passages"] > 3000
    assert read.gold_answers(demo.COLLECTION_ID).height == demo.gold_answers().height
    run_ids = [run.run_id for run in made.runs]
    graded = read.graded(run_ids, demo.GOLDEN_SET_ID, depth=10)
    assert graded.grades.shape == (len(stacks), made.judged["query_id"].n_unique(), 10)
    assert not graded.unjudged_queries.any()
    timings = read.timings(run_ids)
    assert timings["repeat"].unique().sort().to_list() == list(range(1, REPEATS + 1))
    assert timings.select(pl.col("ms").is_between(0, 1000, closed="right").all()).item()


@pytest.mark.slow
def test_the_whole_grid_ranks_every_question():
    sunk: list[Batch] = []
    made = run_demo(sunk.append)
    assert len(made.runs) == 103
    rankings = sunk[1].frames["rankings"]
    assert isinstance(rankings, pl.DataFrame)
    asked = rankings.group_by("run_id").agg(pl.col("query_id").n_unique())
    assert asked["query_id"].unique().to_list() == [demo.queries().height]


def test_the_grid_has_76_different_stacks_that_can_run():
    stacks = grid()
    assert len({stack.stack_id for stack in stacks}) == len(stacks) == 76
    assert len({stack.label for stack in stacks}) == 76
    assert {each.severity for each in check_stacks(stacks, SpecFacts())} == {
        Severity.WARNING
    }  # K = 200 of 2 · 100
    modes = Counter(stack.spec["mode"] for stack in stacks)
    assert modes == {"sparse": 4, "dense": 36, "hybrid": 36}


def test_noise_and_rewrites_are_asked_of_one_sparse_and_two_dense_stacks():
    stacks = noisy()
    asked = Counter((str(stack.spec.get("perturb")), stack.spec.get("rewrite", "none")) for stack in stacks)
    levels, rewrites = ("None", "{'noise': 2}", "{'noise': 4}"), ("none", "hygiene", "rules")
    assert asked == {(level, rewrite): 3 for level in levels for rewrite in rewrites}
    known = {stack.stack_id for stack in grid()}
    assert sum(stack.stack_id in known for stack in stacks) == 3, "the clean ones are those of the grid"


def test_the_passages_are_those_that_were_judged():
    passages = demo.passages()
    assert passages.schema == TABLES["passages"]
    assert passages.height == 3423
    assert passages["passage_id"].is_unique().all()
    assert passages["passage_id"].is_sorted()
    assert passages.select("title", "text").is_unique().all()
    assert passages["tokens"].min() > 0
    assert passages.filter(passage_id="numpy.clip")["title"].item() == "numpy.clip numpy clip"


def test_every_question_has_grades_of_passages_that_exist():
    queries, judged = demo.queries(), demo.judgements()
    assert queries.schema == TABLES["queries"]
    assert queries["query_id"].is_unique().all()
    tags = Counter(tag for tags in queries["tags"] for tag in tags)
    assert all(tags[f"package={name}"] >= 15 for name in ("numpy", "polars", "streamlit"))
    assert min(tags[name] for name in ("package=mixed", "style=misspelt", "style=chatty", "type=broad")) >= 5
    assert tags["language=en"] == queries.height >= 40
    assert judged.schema == TABLES["judgements"]
    assert not judged.select("query_id", "passage_id").is_duplicated().any()
    assert set(judged["query_id"]) == set(queries["query_id"])
    assert set(judged["passage_id"]) <= set(demo.passages()["passage_id"])
    assert set(judged["grade"]) == {1, 2, 3, 4, 5}
    assert (judged["grade"] == judged["raw"]).all()
    rows = map(json.loads, demo.QUERIES.read_text(encoding="utf-8").splitlines())
    answers = {(row["query_id"], answer) for row in rows for answer in row["answers"]}
    assert {query_id for query_id, _ in answers} == set(queries["query_id"])
    assert answers <= set(judged.select("query_id", "passage_id").iter_rows())


def test_gold_answers_are_named_or_stated_by_a_passage_that_answers():
    """Each is the name of such a passage, as people write it, or stands in its text word for word."""
    right = demo.gold_answers()
    assert right.schema == TABLES["gold_answers"]
    assert right["query_id"].n_unique() >= 40
    assert not right.is_duplicated().any()
    assert right["answer"].str.split(" ").list.len().max() <= 20
    judged = demo.judgements().select("query_id", "passage_id", "grade")
    texts = demo.passages().select("passage_id", "text")
    told = pl.read_csv(demo.GOLD_ANSWERS, separator="\t", quote_char=None)
    told = told.join(judged, on=["query_id", "passage_id"]).join(texts, on="passage_id")
    assert told.height == right.height
    assert told["grade"].min() >= 4
    for passage, answer, text in told.select("passage_id", "answer", "text").iter_rows():
        name = answer.replace("np.", "").replace("pl.", "").replace("st.", "")
        assert passage.endswith(name) or answer in " ".join(text.split()), (passage, answer)


def test_what_stands_beside_the_data_says_what_it_is():
    readme = (demo.DEMO / "README.md").read_text(encoding="utf-8")
    licences = (demo.DEMO / "LICENSES").read_text(encoding="utf-8")
    assert f"{demo.queries().height} questions" in readme
    for package in {each.partition(".")[0] for each in demo.passages()["passage_id"]}:
        assert package in demo.collection().source
        assert f"    {package} " in licences
    assert demo.PASSAGES.stat().st_size < 3_000_000
    assert demo.golden_set().collection_id == demo.collection().collection_id


def test_what_the_demo_searches_is_what_is_stored(demo_store: Path):
    """An own run on the stored collection compares with the demo's (it searched other texts once)."""
    snapshot = Store.open(demo_store).read()
    stored = corpus_of(snapshot.passages(demo.COLLECTION_ID)).hash
    runs = snapshot.runs(demo.COLLECTION_ID)
    assert {json.loads(manifest)["corpus"]["hash"] for manifest in runs["manifest"]} == {stored}
