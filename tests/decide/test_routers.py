"""Routers by several signs: what they find, what they do not, and that the exported file decides alike."""

import importlib.util
import json
import math

import numpy as np
import pytest

from core.decide.learning import cross_validated, in_sample
from core.decide.routers import ByNeighbours, ByRegression, copies_gain
from core.decide.routing import Depths, outcome
from core.paths import DATA
from core.pipeline.ranking import signals

RULES = {"regression": ByRegression, "neighbours": ByNeighbours}
N = 120


def exported():
    spec = importlib.util.spec_from_file_location("exported_router", DATA / "exported" / "router.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(seed: int = 1, options: int = 2):
    """Two signs together tell which option is better; a third is noise, some are unknown."""
    random = np.random.default_rng(seed)
    signs = random.standard_normal((N, 3))
    first = random.random(N)
    gains = [sign * (signs[:, 0] + signs[:, 1]) / 4 for sign in (1, -1)][: options - 1]
    signs[::17, 2] = np.nan
    return signs, np.vstack([first, *(first + gain for gain in gains)])


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("options", [2, 3])
def test_what_signs_tell_together_is_found_on_queries_that_were_not_seen(rule, options):
    signs, quality = told(options=options)
    depths = Depths.of(quality)
    routed = outcome(depths, cross_validated(rule(signs), quality, repeats=2), probed=False)
    best, oracle = quality.mean(axis=1).max(), quality.max(axis=0).mean()
    assert routed.quality > best + 0.6 * (oracle - best)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_noisy_copies_of_one_stack_give_no_gain(rule):
    signs, quality = told(seed=5)
    over_chance, over_best = copies_gain(rule(signs), Depths.of(quality), draws=12)
    error = over_chance.std() / math.sqrt(len(over_chance))
    assert abs(over_chance.mean()) < 3 * error
    assert over_best.mean() < 2 * error


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_where_one_is_always_better_all_go_there(rule):
    signs, quality = told()
    quality[1] = quality[0] + 0.1
    _, choices = in_sample(rule(signs), quality)
    assert choices.tolist() == [1] * N
    _, choices = in_sample(rule(signs), quality[::-1])
    assert choices.tolist() == [0] * N


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("most", [0.0, 0.1, 0.3])
def test_no_more_leave_the_first_than_may(rule, most):
    signs, quality = told()
    learnt, _ = in_sample(rule(signs, most), quality)
    gone = cross_validated(rule(signs, most), quality, repeats=1)[1:].sum() / N
    assert learnt.threshold > 0
    assert gone <= most + 0.12


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("options", [2, 3])
def test_the_exported_file_decides_as_the_house(name, options):
    signs, quality = told(options=options)
    learnt, choices = in_sample(RULES[name](signs), quality)
    names = ["top_margin", "words", "vector:0"]
    labels = [{"label": f"option {place}"} for place in range(options)]
    written = json.dumps({"options": labels, "signs": names, **learnt.as_json()})
    router = exported().Router(json.loads(written))
    decided = [router.decide(dict(zip(names, row, strict=True))) for row in signs.tolist()]
    assert decided == choices.tolist()
    assert len(set(decided)) > 1


@pytest.mark.parametrize("scores", [[], [0.4], [0.5, 0.5], [3.0, 1.0, 2.0], [0.9, 0.2, 0.1, 0.05]])
def test_the_exported_file_reads_scores_as_the_house(scores):
    house = {name: value for name, value in signals(scores).items() if value is not None}
    assert exported().shape(scores) == pytest.approx(house)


def test_what_is_given_becomes_signs():
    router = exported().Router({"options": [], "signs": [], "means": [], "scales": []})
    told_of = router.signs(
        "who is Ada Lovelace",
        tags=["type=narrow"],
        vector=[0.5],
        scores=[0.9, 0.4],
        signals={"dense_top1": 0.7},
        perturbed={"noise 4": {"scores": [0.6, 0.5], "signals": {"dense_top1": 0.4}}},
    )
    assert told_of["capitals"] == pytest.approx(2 / 3)
    assert (told_of["words"], told_of["characters"], told_of["tag:type=narrow"]) == (4, 19, 1)
    assert told_of["vector:0"] == 0.5
    assert told_of["drop:noise 4:top_margin"] == pytest.approx(0.4)
    assert told_of["drop:noise 4:dense_top1"] == pytest.approx(0.3)
