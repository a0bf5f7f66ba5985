"""Runs of perturbed queries: what is asked, how they are named, and what stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.pipeline.evaluate.steps import Identities, graph
from core.pipeline.query.perturb import perturbed
from core.pipeline.sweep import parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.expand import count, expand, grid
from core.pipeline.sweep.model import Axes
from core.records import Stack
from tests.pipeline.evaluate.helpers import QUESTIONS, job, protocol, run

AXES = Axes.model_validate({"mode": "sparse", "noise": [0, 4], "rewrite": ["none", "rules"], "candidates": 5})


def test_a_perturbed_stack_is_another_and_says_so():
    stacks = grid(AXES)
    assert [each.spec.get("perturb") for each in stacks] == [None, {"noise": 4}, None, {"noise": 4}]
    assert [each.label for each in stacks] == [
        "BM25, K = 5", "BM25, K = 5 · noise 4", "BM25, K = 5 · rules", "BM25, K = 5 · rules · noise 4"
    ]  # fmt: skip
    (french,) = grid(Axes.model_validate({"mode": "sparse", "typo": 1}), "french")
    assert french.spec["perturb"] == {"typo": 1, "language": "french"}


@pytest.mark.parametrize(
    ("axes", "stacks"),
    [
        ('mode = "sparse"\nnoise = [0, 2, 4]\ntypo = [0, 1]', 6),
        ('mode = "sparse"\nmethod = "one-factor"\nnoise = [0, 2, 4]\ntypo = [0, 1]', 4),
        ('mode = "sparse"\ncase = 0', 1),
        ('mode = "sparse"\nnames = [0, 1, "mask"]', 3),
        ('mode = "sparse"\nnames = 2', 1),
    ],
)
def test_axes_of_a_specification(axes: str, stacks: int):
    spec = parse(f'collection = "c/"\n[axes]\n{axes}')
    assert len(expand(spec)) == stacks <= count(spec)


@pytest.mark.parametrize(
    ("language", "axis", "said"),
    [
        ("german", "noise = 1", "no small talk"),
        ("german", "typo = 1", ""),
        ("english", "noise = 7", "noise=7"),
    ],
)
def test_what_cannot_be_perturbed_is_said_before_it_runs(language: str, axis: str, said: str):
    text = f'[collection]\npath = "c/"\nlanguage = "{language}"\n[axes]\nmode = "sparse"\n{axis}'
    found = [
        each.found for each in check(parse(text)) if "small talk" in each.found or "noise=" in each.found
    ]
    assert (said in " ".join(found)) if said else not found


def test_clean_steps_keep_their_identity_and_perturbed_ones_are_shared():
    names = Identities(corpora={None: "h"})
    spec = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 5}
    clean, noisy, deeper = graph(
        [Stack(spec), Stack({**spec, "perturb": {"noise": 2}}),
         Stack({**spec, "perturb": {"noise": 2}, "candidates": 9})], names,
    ).routes  # fmt: skip
    assert clean.pool.params == {}
    assert clean.pool != noisy.pool == deeper.pool
    assert noisy.pool.typed["noise"] == 2


@pytest.mark.slow
def test_what_is_typed_is_what_is_searched_and_nothing_is_added_to_the_time(tmp_path: Path):
    stacks = grid(AXES)
    _, sunk = run(tmp_path, job(stacks, protocol=protocol(repeats=1)))
    typed = [perturbed(text, {"noise": 4}) for text in QUESTIONS]
    _, asked = run(tmp_path / "other", job(stacks[:1], asked=typed, protocol=protocol(repeats=1)))
    rankings = sunk.table("rankings").select("run_id", "query_id", "rank", "passage_id")
    of = {run.label: run.run_id for run in sunk.all.runs}

    def ranked(run_id: str) -> list[tuple[str, int, str]]:
        return rankings.filter(run_id=run_id).drop("run_id").rows()

    expected = asked.table("rankings").select("query_id", "rank", "passage_id").rows()
    assert ranked(of["BM25, K = 5 · noise 4"]) == expected
    assert ranked(of["BM25, K = 5"]) == ranked(of["BM25, K = 5 · rules"]) != expected
    stages = sunk.table("timings").group_by("run_id").agg("stage").rows()
    assert {run_id: set(each) for run_id, each in stages}[of["BM25, K = 5 · noise 4"]] == {"sparse"}


def test_questions_with_other_names_are_those_of_the_job(tmp_path: Path):
    stacks = grid(Axes.model_validate({"mode": "sparse", "names": [0, "mask"], "candidates": 5}))
    names = {QUESTIONS[2]: ("zebra",)}
    _, sunk = run(tmp_path, job(stacks, protocol=protocol(repeats=1), names=names))
    typed = [perturbed(text, {"names": "mask"}, names.get(text, ())) for text in QUESTIONS]
    assert [one == other for one, other in zip(typed, QUESTIONS, strict=True)] == [True, True, False, True]
    _, asked = run(tmp_path / "other", job(stacks[:1], asked=typed, protocol=protocol(repeats=1)))
    columns = ["query_id", "rank", "passage_id"]
    of = {run.label: run.run_id for run in sunk.all.runs}
    masked = sunk.table("rankings").filter(run_id=of["BM25, K = 5 · names mask"])
    assert masked.select(columns).rows() == asked.table("rankings").select(columns).rows()


def test_which_names_are_meant_is_part_of_a_step():
    spec = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 5}
    steps = [
        graph([Stack(spec | told)], Identities(corpora={None: "h"}, names=names)).routes[0].pool
        for told in ({"perturb": {"names": "1"}}, {"perturb": {"typo": 1}}, {})
        for names in ("", "n")
    ]
    assert [one == other for one, other in zip(steps[::2], steps[1::2], strict=True)] == [False, True, True]
