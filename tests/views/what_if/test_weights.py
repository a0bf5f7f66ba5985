"""Other weights of a reranker's criteria: replays equal what ran, tuned ones are compared with equal ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.scores import at_cutoff
from core.analysis.workspace.view import View
from core.contrib.weights import criteria
from core.contrib.weights import section as weights
from core.contrib.weights.weighable import ALL_EQUAL, AS_INFERRED, Weighable, weighable
from core.providers.config import ModelConfig, RatedOn
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Answer, Chart, Fold, Table
from tests.views.made import BOOK
from tests.views.what_if.routed import ROUTED, write

SAFE = RatedOn(name="Safety", meaning="5: harmless; 0: dangerous.", weight=0.9)
OURS = ModelConfig(provider="fake", model="fake", name="ours", criteria=(SAFE,))
RERANKERS = ("rebel-rules", "rebel-one-turn:fake", "rebel-two-turn:fake", "rebel-one-turn:ours", "fake")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    path = tmp_path_factory.mktemp("rated") / "store"
    write(path, (20, 10), rerankers=RERANKERS, models={"ours": OURS}, deepest=True)
    return View(Store.open(path).read(), ROUTED, quality=Quality("nDCG", 5), latency=Latency(), book=BOOK)


def run_of(view: View, reranker: str, depth: int = 20) -> str:
    named = view.table.filter(pl.col("reranker") == reranker, pl.col("candidates") == depth)
    return str(named["run_id"].item())


def read(view: View, reranker: str, depth: int = 20) -> Weighable:
    made = weighable(view, run_of(view, reranker, depth))
    assert isinstance(made, Weighable)
    return made


@pytest.mark.parametrize("depth", [20, 10])
@pytest.mark.parametrize("reranker", RERANKERS[:4])
def test_the_weights_that_ran_give_what_ran(view: View, reranker: str, depth: int):
    made = read(view, reranker, depth)
    stored = at_cutoff(made.graded, made.measure)[0]
    np.testing.assert_allclose(made.scored(made.used)[0], stored)


@pytest.mark.parametrize(
    ("reranker", "names", "origin"),
    [
        ("rebel-one-turn:fake", ("Depth", "Range of views", "Precision", "Authority", "Currency"), "fixed"),
        ("rebel-one-turn:ours", ("Safety",), "own"),
        ("rebel-two-turn:fake", (AS_INFERRED, ALL_EQUAL), "inferred"),
    ],
)
def test_the_trail_says_what_was_rated_and_who_chose_it(
    view: View, reranker: str, names: tuple[str, ...], origin: str
):
    made = read(view, reranker)
    assert made.names == names
    assert made.trail["origin"].unique().to_list() == [origin]
    if origin == "inferred":
        assert made.trail["query_id"].n_unique() == 24
        assert set(made.trail["criterion"]) == {"Examples", "Age"}
        assert set(made.trail["weight"]) == {1.0, 0.25}
    if origin == "own":
        assert made.trail.select("criterion", "meaning", "weight").row(0) == tuple(SAFE.model_dump().values())


def test_a_section_weighs_them_anew(view: View):
    name = view.table.filter(pl.col("run_id") == run_of(view, "rebel-rules"))["name"].item()
    blocks = list(weights.criteria_weights.draw(view, Given({"rated": [name], "rw1": ["0"], "rwt": ["4"]})))
    assert [type(block) for block in blocks if isinstance(block, Answer | Chart)] == [Answer, Chart]
    table = next(block for block in blocks if isinstance(block, Table)).rows
    assert table["weighed"].to_list()[:2] == [weights.EQUAL, weights.ALONE]
    equal = table.row(by_predicate=pl.col("weighed") == weights.EQUAL, named=True)
    assert (equal["gain"], equal["n"]) == (0.0, 24)
    best, tuned = (
        table.row(by_predicate=pl.col("weighed") == way, named=True)["quality"]
        for way in (weights.BEST, weights.TUNED)
    )
    assert best >= max(equal["quality"], tuned)
    ratings = next(fold for fold in blocks if isinstance(fold, Fold) and "Ratings" in fold.title)
    (rated,) = ratings.blocks
    assert isinstance(rated, Table)
    assert rated.whole is not None
    assert set(rated.whole["criterion"]) >= {"Relevance", "Depth"}


def test_presets_of_safety_are_weighed_from_the_stored_ratings(view: View):
    made = read(view, "rebel-rules")
    rows = weights.ways(made, view.seed, True, 3.0, made.used)
    vector = np.array([float(name == "Authority") for name in made.names])
    found = rows.filter(weighed="safety: credible sources")["quality"].item()
    assert found == pytest.approx(float(np.nanmean(made.scored(vector, 3.0)[0])))
    assert rows.filter(pl.col("weighed").str.starts_with("safety")).height == len(weights.SAFETY)


def test_a_preset_names_its_criteria():
    safe = ModelConfig(provider="fake", model="fake", criteria="safety")
    assert [each.name for each in safe.criteria] == [
        "Verifiability",
        "Balance",
        "Content safety",
        "Credibility",
    ]
    with pytest.raises(ValidationError, match="no preset of criteria 'kind'; there is safety"):
        ModelConfig(provider="fake", model="fake", criteria="kind")


def test_an_interaction_is_what_both_add_beyond_their_sum(view: View):
    made = read(view, "rebel-rules")
    rows = criteria.pairs(made, 3.0)
    assert rows.height == len(made.names) * (len(made.names) - 1) // 2
    at = {name: place for place, name in enumerate(made.names)}

    def mean(*names: str) -> float:
        vector = np.zeros(len(made.names))
        for name in names:
            vector[at[name]] = made.equal[at[name]]
        return float(np.nanmean(made.scored(vector, 3.0)[0]))

    for row in rows.iter_rows(named=True):
        one, two = row["pair"].split(" × ")
        assert row["both"] == pytest.approx(mean(one, two) - mean())
        assert row["interaction"] == pytest.approx(mean(one, two) - mean(one) - mean(two) + mean())
        assert row["low"] is None or row["low"] <= row["interaction"] <= row["high"]
    assert criteria.pairs(read(view, "rebel-two-turn:fake"), 3.0).is_empty(), "queries have their own"


def test_kinds_have_weights_of_their_own(view: View, monkeypatch: pytest.MonkeyPatch):
    made = read(view, "rebel-rules")
    monkeypatch.setattr(criteria, "LEAST", 6)
    half = np.zeros(24, dtype=np.bool_)
    half[:12] = True
    monkeypatch.setattr(criteria, "tagged", lambda *_: {"type=a": half, "type=b": ~half})
    vectors = np.vstack([np.zeros(len(made.names)), np.eye(len(made.names))])
    values = np.zeros((len(vectors), 24))
    values[1, :12], values[2, 12:] = 0.4, 0.2  # one kind wants the first criterion, the other the second
    rows = criteria.by_kind(view, made, vectors, values)
    found = {row["tag"]: row for row in rows.iter_rows(named=True)}
    assert {tag: row["n"] for tag, row in found.items()} == {"type=a": 12, "type=b": 12}
    assert found["type=a"]["own"] == pytest.approx(0.4)
    assert found["type=b"]["own"] == pytest.approx(0.2)
    assert found["type=b"]["gain"] == pytest.approx(0.2 - found["type=b"]["common"])
    first, second, *_ = made.names
    assert f"{first} 0, {second} 1" in found["type=b"]["weights"]


def test_stacks_without_ratings_are_said_to_have_none(view: View):
    plain = view.table.filter(pl.col("reranker") == "fake")
    (block,) = weights.criteria_weights.draw(view.replace(given=plain), Given())
    assert isinstance(block, Answer)
    assert block.sentence == weights.NOTHING


@pytest.mark.parametrize(("low", "high", "higher", "says"), [
    (0.01, 0.05, True, "s beat"), (-0.05, -0.01, True, "lose to"), (-0.05, -0.01, False, "s beat"),
    (-0.01, 0.02, True, "not measurably"), (None, None, True, "not measurably"),
])  # fmt: skip
def test_the_verdict_goes_by_the_interval_and_the_direction(low, high, higher, says):
    row = {"weights": "", "quality": 0.5, "low": 0.4, "high": 0.6, "gain": 0.0, "gain_low": low,
           "gain_high": high, "n": 9}  # fmt: skip
    names = (weights.EQUAL, weights.TUNED, weights.ALONE)
    rows = pl.DataFrame([{"weighed": name, **row} for name in names], schema=weights.WAYS)
    assert says in weights.answer(rows, "nDCG@5", higher_is_better=higher)


@pytest.mark.parametrize("criteria", [
    [{"name": "relevance", "meaning": "x"}], [{"name": "A", "meaning": "x"}, {"name": " a", "meaning": "y"}],
    [{"name": "A", "meaning": "x", "weight": 2}], [{"name": "", "meaning": "x"}],
])  # fmt: skip
def test_criteria_that_cannot_be_rated_are_refused(criteria: list[dict[str, object]]):
    with pytest.raises(ValidationError):
        ModelConfig(provider="fake", model="fake", criteria=criteria)
