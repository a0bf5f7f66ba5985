"""Perturbed stacks beside their clean siblings, against numbers worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest

from core.diagnostics.noise import effects, orders, siblings
from core.diagnostics.vectors import published, similarities
from core.pipeline.query.perturb import perturbed
from core.stats.means import mean_interval

BM25 = {"mode": "sparse", "sparse": "bm25", "candidates": 5}
DENSE = {"mode": "dense", "embedder": "e", "candidates": 5}
NOISE = {"noise": 4}


def runs(**specs: Mapping[str, object]) -> pl.DataFrame:
    texts = [json.dumps(spec) for spec in specs.values()]
    manifests = [json.dumps({"corpus": {"hash": "of others" if name.istitle() else "a"}}) for name in specs]
    columns = {"run_id": list(specs), "spec": texts, "manifest": manifests}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


SPECS = {
    "c": BM25,
    "n": {**BM25, "perturb": NOISE},
    "r": {**BM25, "rewrite": "rules"},
    "rn": {**BM25, "rewrite": "rules", "perturb": NOISE},
}
VALUES = {"c": [1.0, 0.5, 0.0], "n": [0.5, 0.5, 0.0], "r": [1.0, 0.5, 0.0], "rn": [0.9, 0.5, 0.1]}


def table(specs: Mapping[str, Mapping[str, object]], values: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    arrays = {run_id: np.array(each) for run_id, each in values.items()}
    return effects(siblings(runs(**specs)), arrays, lambda *_: (0.5, None))


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ({}, []),
        ({"c": BM25}, []),
        ({"n": {**BM25, "perturb": NOISE}}, [("n", "none", "noise 4")]),
        ({"c": BM25, "other": DENSE, "n": {**BM25, "perturb": NOISE}},
         [("c", "none", ""), ("n", "none", "noise 4")]),
        ({"c": BM25, "again": BM25, "n": {**BM25, "perturb": NOISE}},
         [("again", "none", ""), ("n", "none", "noise 4")]),
        ({"c": BM25, "Later": BM25, "n": {**BM25, "perturb": NOISE}},  # over other texts
         [("c", "none", ""), ("n", "none", "noise 4")]),
        (SPECS,
         [("c", "none", ""), ("n", "none", "noise 4"), ("r", "rules", ""), ("rn", "rules", "noise 4")]),
        ({"n": {**BM25, "perturb": {**NOISE, "language": "french"}}}, [("n", "none", "noise 4")]),
        ({"n": {**BM25, "perturb": "broken"}}, []),
    ],
)  # fmt: skip
def test_siblings_differ_in_rewrite_and_perturbation_alone(
    specs: Mapping[str, Mapping[str, object]], expected: Sequence[tuple[str, str, str]]
):
    assert siblings(runs(**specs)).select("run_id", "rewrite", "perturb").rows() == expected


def test_effects_are_paired_with_level_0_and_with_no_rewrite():
    rows = {row["run_id"]: row for row in table(SPECS, VALUES).to_dicts()}
    assert (rows["n"]["change"], rows["rn"]["change"]) == (pytest.approx(-0.5 / 3), pytest.approx(0.0))
    assert rows["rn"]["won"] == pytest.approx(0.5 / 3)
    assert rows["r"]["won"] == 0.0
    assert rows["c"]["change"] is None
    assert rows["c"]["overlap"] is None
    assert rows["n"]["won"] is None
    assert rows["n"]["overlap"] == 0.5
    low, high = mean_interval(np.array(VALUES["n"]) - np.array(VALUES["c"]), "differences")
    assert (rows["n"]["change_low"], rows["n"]["change_high"]) == (low[0], high[0])


def test_what_is_not_applicable_is_left_out_and_never_0():
    values = {**VALUES, "n": [np.nan, 0.5, 0.0], "rn": [np.nan] * 3}
    rows = {row["run_id"]: row for row in table(SPECS, values).to_dicts()}
    assert (rows["n"]["n"], rows["n"]["change"]) == (2, 0.0)
    assert (rows["rn"]["n"], rows["rn"]["quality"], rows["rn"]["change"]) == (0, None, None)


def test_orders_tell_whether_noise_would_rank_stacks_alike():
    specs = {**SPECS, "d": DENSE, "dn": {**DENSE, "perturb": NOISE}}
    values = {**VALUES, "d": [0.2, 0.2, 0.2], "dn": [0.9, 0.9, 0.9]}
    made = orders(table(specs, values)).rows()
    assert made == [("none", "noise 4", 2, -1.0, -1.0), ("rules", "noise 4", 1, None, None)]


def letters(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts])


@pytest.mark.parametrize("language", ["english", "french"])
def test_similarities_against_a_naive_recomputation(language: str):
    texts = ["where do the cats sleep", "who sang the song of the sea"]
    made = similarities(texts, letters, language=language)
    assert made["cosine"][0] == pytest.approx(1.0)
    assert made["drop"][0] == made["share"][0] == 0.0
    for level, row in enumerate(made.iter_rows(named=True)):
        told = {"noise": level, "language": language}
        pairs = [letters([text, perturbed(text, told)]) for text in texts]
        naive = np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs])
        assert row["cosine"] == pytest.approx(naive)
        assert row["share"] == pytest.approx(naive - 1)


def test_a_restatement_is_another_reference_and_said():
    made = similarities(["hm cats sleep where"], letters, references=["where do cats sleep"])
    assert made["reference"].unique().to_list() == ["restatement"]
    assert made["cosine"][0] < 1
    assert made["share"][1] == pytest.approx(made["cosine"][1] / made["cosine"][0] - 1)


def test_the_papers_figures():
    """Drops relative to level 0 as clq_ra_nwg.txt §4.4 prints them: 36, 40, 28 and 30 %."""
    rows = published().filter(perturb="noise 4").sort("language", "model", descending=True)
    assert [round(-100 * share) for share in rows["share"]] == [36, 40, 28, 30]
