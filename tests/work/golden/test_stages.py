"""Stages by hand: fusing and its ties, copies, pruning, what a judge's answer must be, specifications."""

from __future__ import annotations

import polars as pl
import pytest

from core.golden.pool import Pool, RankedSource, fused, with_texts
from core.paths import ROOT
from core.pipeline.sweep import load_as, parse_as
from core.pipeline.sweep.problems import SpecError
from core.providers.chat.ask import NOTICE
from core.work.golden.prompts import KINDS, LANGUAGES, prompt, prompt_hash
from core.work.golden.spec import GoldenSpec
from core.work.golden.stages import grading, label_mix, ordering, pruned, read_grade, read_order


def ranked(kind: str, *passages: str, query: str = "q") -> RankedSource:
    rows = {"query_id": [query] * len(passages), "passage_id": passages, "rank": range(1, len(passages) + 1)}
    return RankedSource(kind, kind, pl.DataFrame(rows))


@pytest.mark.parametrize(
    ("sources", "order"),
    [
        ([], []),
        ([ranked("sparse", "a", "b")], ["a", "b"]),
        # 1/61 + 1/62 each: the better dense rank decides
        ([ranked("sparse", "a", "b"), ranked("dense", "b", "a")], ["b", "a"]),
        # dense and sparse alone at the same rank: whoever has a dense rank
        ([ranked("sparse", "z"), ranked("dense", "a")], ["a", "z"]),
        ([ranked("sparse", "a"), ranked("dense", "z")], ["z", "a"]),
        # two hybrids: neither has a rank of its own, the id decides
        ([ranked("hybrid", "b"), ranked("hybrid", "a")], ["a", "b"]),
        # 1/61 < 1/62 + 1/62
        ([ranked("sparse", "a", "c"), ranked("dense", "b", "c")], ["c", "b", "a"]),
    ],
)
def test_fused(sources: list[RankedSource], order: list[str]):
    found = fused(sources)
    assert found["passage_id"].to_list() == order
    assert found["rank"].to_list() == list(range(1, len(order) + 1))


def test_fused_scores():
    found = fused([ranked("sparse", "a", "c"), ranked("dense", "b", "c")])
    assert found["rrf"].to_list() == pytest.approx([2 / 62, 1 / 61, 1 / 61])
    assert found["sources"].to_list() == [2, 1, 1]


def pool(*rows: tuple[str, str]) -> Pool:
    """A pool of one question in this order: passages and their texts."""
    texts = pl.DataFrame(rows, schema=["passage_id", "text"], orient="row")
    return with_texts(fused([ranked("sparse", *texts["passage_id"])]), texts)


def test_copies_and_passages_without_text():
    found = pool(("b", "same"), ("a", "same"), ("c", "other"))
    assert dict(found.rows.select("passage_id", "first").rows()) == {"b": "b", "a": "b", "c": "c"}
    lacking = with_texts(
        fused([ranked("sparse", "a", "gone")]), pl.DataFrame({"passage_id": ["a"], "text": ["x"]})
    )
    assert lacking.textless == 1
    assert lacking.rows["passage_id"].to_list() == ["a"]


@pytest.mark.parametrize(
    ("grades", "keep", "kept"),
    [
        ([5, 5, 4, 3], 1, [5, 5]),
        ([5, 4, 4, 4, 3], 2, [5, 4, 4, 4]),
        ([5, 4, 3], 3, [5, 4, 3]),
        ([3, 2, 1], 35, [3, 2, 1]),
        ([1, 1], 1, [1, 1]),
    ],
)
def test_whole_grades_are_kept_until_there_are_enough(grades: list[int], keep: int, kept: list[int]):
    names = [f"p{at}" for at in range(len(grades))]
    graded = pl.DataFrame({"query_id": "q", "passage_id": names, "grade": grades})
    found = pruned(pool(*((name, name) for name in names)), graded, keep)
    assert found["grade"].to_list() == kept


def test_label_mix():
    told = label_mix(pl.DataFrame({"query_id": ["a", "a", "b", "b"], "grade": [5, 4, 4, 1]}))
    assert (told["n5_mean"], told["n45_median"], told["share_mean"]) == (0.5, 1.5, 0.75)


GOOD, BAD = '{"grade_1_5": 4}', ("", "4", '"4"', "Grade: 4", '{"grade_1_5": 6}', '{"grade_1_5": 0}',
    '{"grade_1_5": 4.0}', '{"grade_1_5": "4"}', '{"grade_1_5": true}', '{"grade_1_5": 4, "why": "…"}',
    '{"grade_1_5": 4} {"grade_1_5": 5}', '{"grade_1_5": 4, "grade_1_5": 5}', "[4]", "{" * 5000,
    '{"grade_1_5": 4} 0123456789ab')  # fmt: skip


def test_answers_that_are_grades():
    assert read_grade(GOOD).value == 4
    assert read_grade(f"```json\n{GOOD}\n```").value == 4
    for answer in BAD:
        reading = read_grade(answer, "0123456789ab")
        assert reading.value is None
        assert reading.problem
        assert not answer or answer not in reading.problem


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ('{"order": [3, 1, 2]}', [2, 0, 1]),
        ('{"order": [1, 2]}', []),
        ('{"order": [1, 2, 2]}', []),
        ('{"order": [1, 2, 4]}', []),
        ('{"order": [1, 2, 3, 3]}', []),
        ('{"order": ["1", 2, 3]}', []),
        ('{"order": [true, 2, 3]}', []),
        ("[1, 2, 3]", []),
    ],
)
def test_answers_that_are_orders(answer: str, order: list[int]):
    assert read_order(answer, 3).value == order


def test_tasks_show_texts_between_marks_that_follow_from_all_of_them():
    one, other = grading("q", "text", "en"), grading("q", "text!", "en")
    assert one.user != other.user
    mark = one.user.split("<question ")[1][:12]
    assert one.user.count(mark) == 4
    assert mark not in "text"
    three = ordering("q", ["a", "b", "c"], "fr")
    assert [f"<passage {number} " in three.user for number in (1, 2, 3, 4)] == [True, True, True, False]


def test_prompts():
    assert len({prompt_hash(kind, language) for kind in KINDS for language in LANGUAGES}) == 8
    for kind in KINDS:
        for language in LANGUAGES:
            assert NOTICE in prompt(kind, language)
            assert "$" not in prompt(kind, language)


def test_every_mistake_of_a_specification_is_told_with_its_line(tmp_path):
    path = tmp_path / "golden.toml"
    path.write_text(
        'name = "x"\ncollection = "c"\nbudget = 1\n[golden]\nlanguage = "de"\n'
        '[[golden.pool]]\ndepth = 0\n[golden.judge]\nmodels = ["m"]\npolicy = "best"\n'
        '[golden.refine]\nmethod = "locks"\nturns = 0\n'
    )
    with pytest.raises(SpecError) as error:
        load_as(GoldenSpec, path)
    places = {problem.where.rpartition(", ")[2] for problem in error.value.problems}
    assert places >= {"budget", "golden.language", "golden.pool[1].depth", "golden.judge.policy"}
    assert any("turns" in problem.found for problem in error.value.problems)
    assert all("golden.toml:" in problem.where for problem in error.value.problems)


@pytest.mark.parametrize(
    "text",
    [
        "[golden]\n",
        '[golden]\n[golden.judge]\nmodels = ["m"]\n',
        '[golden]\n[[golden.pool]]\nruns = "workspace"\n',
        '[golden]\n[[golden.pool]]\n[golden.judge]\nmodels = ["m"]\n',
        '[golden]\n[golden.judge]\ngrades = "g"\n[golden.refine]\nmethod = "map"\n',
    ],
)
def test_specifications_that_lack_something_are_refused(text: str):
    with pytest.raises(SpecError):
        parse_as(GoldenSpec, f'name = "x"\ncollection.stored = "c"\n{text}')


def test_the_specification_of_the_guide_is_one():
    text = (ROOT / "docs" / "golden-sets.md").read_text(encoding="utf-8")
    spec = parse_as(GoldenSpec, text.partition("```toml\n")[2].partition("```")[0])
    assert [bool(each.runs) for each in spec.golden.pool] == [False, False, True]
    assert (spec.golden.judge.models, spec.golden.refine.method) == (("fake",), "none")
