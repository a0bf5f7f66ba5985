"""How much relevant evidence nobody saw: the section on a workspace of known captures."""

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.contrib.unseen import Unseen, answer, is_unseen, judged_depth
from core.views.ask import Given
from core.views.blocks import Answer, Cards, Table, Tabs
from tests.stores import Lab
from tests.views.decision.test_facts import asked
from tests.views.made import LAB

GRADES = {f"q{n}": {"a": 5, "b": 4, "c": 5, "d": 4, "x": 1, "y": 1} for n in range(6)}
SPARSE, DENSE = {"mode": "sparse", "sparse": "bm25"}, {"mode": "dense", "embedder": "e", "dim": 8}


def view(tmp_path: Path, **runs: tuple[dict[str, object], list[str]]) -> View:
    made = Lab().judge(GRADES)
    for name, (spec, ranked) in runs.items():
        made.run(name, final=dict.fromkeys(GRADES, ranked), spec={"name": name, **spec})
    snapshot = made.write(tmp_path / "s").read()
    return asked(quality=Quality("RA-nWG", 3), snapshot=snapshot, scope=LAB)


@pytest.mark.slow
def test_two_lists_tell_what_both_lack(tmp_path: Path):
    page = view(tmp_path, bm=(SPARSE, ["a", "b", "x", "d"]), de=(DENSE, ["c", "y", "a"]))
    given = Given({"listk": ["3"]})
    blocks = list(is_unseen.draw(page, given))
    given.unasked()
    rows = next(block.rows for block in blocks if isinstance(block, Table) and block.name == "unseen")
    found = dict(rows.select("method", "total").iter_rows())
    # 2 and 2 with 1 of both: 3·3/2 − 1 = 3.5 a query, fewer than the 4 that are judged
    assert found["Chapman"] == 24
    # 3 seen, 1 of each list alone, 1 of both: 3 + 1·1 / (1 + 1) = 3.5
    assert found["Chao, lower bound"] == 24
    cards = next(block for block in blocks if isinstance(block, Cards)).cards
    assert [number for _, number, _ in cards] == ["24", "≈ 24", "0.0 %"]
    said = next(block for block in blocks if isinstance(block, Answer)).sentence
    assert (
        said == "None: all 24 relevant passages of the Top-3 are judged (estimate: Chapman; others ≤ 3.9 %)."
    )


@pytest.mark.slow
def test_what_is_unseen_lowers_what_the_scores_can_be(tmp_path: Path):
    page = view(tmp_path, bm=(SPARSE, ["a", "b"]), de=(DENSE, ["c", "d"]))
    blocks = list(is_unseen.draw(page, Given({"listk": ["2"]})))
    rows = next(block.rows for block in blocks if isinstance(block, Table) and block.name == "unseen")
    # 2 and 2 and none of both: 3·3/1 − 1 = 8 a query; judged 4
    (chapman,) = rows.filter(method="Chapman").iter_rows(named=True)
    assert (chapman["total"], chapman["total_low"], chapman["missing"]) == (48, 48, 0.5)
    tabs = next(block for block in blocks if isinstance(block, Tabs))
    scores = next(block.rows for block in tabs.folds[0].blocks if isinstance(block, Table))
    by_name = scores.sort("name").row(0, named=True)
    assert by_name["recall"] == pytest.approx(2 / 3)
    assert by_name["recall_most"] == by_name["recall_expected"] == pytest.approx(2 / 3)  # K = 3 holds no more
    assert by_name["score_most"] < by_name["score"]


def test_one_retriever_is_no_comparison(tmp_path: Path):
    page = view(tmp_path, bm=(SPARSE, ["a"]))
    (said, *_) = is_unseen.draw(page, Given())
    assert isinstance(said, Answer)
    assert "cannot be estimated yet" in said.sentence


def test_the_usual_depth_is_as_deep_as_is_judged():
    rows = pl.DataFrame({"rank": [1, 2, 3, 3], "grade": [5, 1, None, None]})
    assert judged_depth(rows) == 2
    assert judged_depth(rows.with_columns(grade=pl.lit(None, pl.Int64))) == 10


@pytest.mark.slow
def test_the_sign_of_the_dependence_says_on_which_side_an_estimate_is(tmp_path: Path):
    # bm and de hold the same passages of those that the third has, or none together
    third = ({"mode": "dense", "embedder": "f", "dim": 8}, [f"p{n}" for n in range(12)])
    same = {"bm": (SPARSE, [f"p{n}" for n in range(6)]), "de": (DENSE, [f"p{n}" for n in range(1, 7)])}
    apart = {"bm": (SPARSE, [f"p{n}" for n in range(7)]), "de": (DENSE, [f"p{n}" for n in range(6, 12)])}
    judged = {f"q{n}": {f"p{at}": 5 for at in range(12)} for n in range(12)}
    for held, side, words in ((same, "at least", "same passages"), (apart, "at most", "complementary")):
        made = Lab().judge(judged)
        for name, (spec, ranked) in {**held, "ot": third}.items():
            made.run(name, final=dict.fromkeys(judged, ranked), spec={"name": name, **spec})
        snapshot = made.write(tmp_path / side).read()
        page = asked(quality=Quality("RA-nWG", 3), snapshot=snapshot, scope=LAB)
        asking = {"listk": ["12"], "lists": ["bm", "de", "ot"], "listby": ["Chapman, the first two"]}
        blocks = list(is_unseen.draw(page, Given(asking)))
        rows = next(block.rows for block in blocks if isinstance(block, Table) and block.name == "unseen")
        assert rows.filter(method="Chapman, the first two")["side"].item() == side
        tabs = next(block for block in blocks if isinstance(block, Tabs))
        pairs = next(block.rows for block in tabs.folds[1].blocks if isinstance(block, Table))
        assert pairs["dependence"][0] == words
        cards = next(block for block in blocks if isinstance(block, Cards)).cards
        assert cards[1][1].startswith({"at least": "≥ ", "at most": "≤ "}.get(side, "≈ "))


def test_lists_that_are_not_judged_tell_nothing() -> None:
    found = Unseen(("a", "b"), known=3, queries=2, judged=0.4, estimates=pl.DataFrame(), pairs=pl.DataFrame())
    assert answer({}, found, 10) == "Not known: 60.0 % of the lists' first 10 passages are unjudged."
