from __future__ import annotations

import pytest

from core.pipeline import demo
from tests.pipeline.corpora import passages, queries
from tools.demo import pool as demo_pool

TEXTS = ["read a csv file", "write a csv file", "sort rows by a column", "group rows", "plot an array"]
BM25 = ({"mode": "sparse", "sparse": "bm25"},)


@pytest.fixture
def corpus():
    return passages(TEXTS, [f"lib.f{at}(x)" for at in range(len(TEXTS))])


def test_a_pool_merges_what_was_found_and_what_was_expected(corpus):
    asked = queries(["csv file", "nothing matches"])
    first, second = asked["query_id"]
    expected = {first: ["p004", "gone"], second: []}
    made = demo_pool.pools(corpus, asked, expected=expected, systems=BM25, depth=2)
    assert sorted(made[first]) == ["p000", "p001", "p004"]
    assert made[second] == []


def test_the_order_of_a_pool_depends_on_the_question_alone(corpus):
    asked = queries(["csv file rows array"])
    twice = [demo_pool.pools(corpus, asked, expected={}, systems=BM25 * times) for times in (1, 2)]
    assert twice[0] == twice[1]


def test_a_sheet_shows_question_title_and_the_start_of_the_text():
    long = passages(["x" * 2000], ["lib.f(x)"])
    made = demo_pool.sheet("q07", "how?", long)
    assert made.startswith("# q07\nQuestion: how?\nPassages: 1\n")
    assert "## 1. p000\ntitle: lib.f(x)\n" in made
    assert "x" * demo_pool.SHOWN_CHARACTERS + " […]" in made


@pytest.mark.slow
def test_only_pairs_without_a_grade_are_written_on_request(corpus, tmp_path, monkeypatch, capsys):
    asked = queries(["csv file", "sort rows"])
    first, second = asked["query_id"]
    monkeypatch.setattr(demo, "passages", lambda: corpus)
    monkeypatch.setattr(demo, "queries", lambda: asked)
    monkeypatch.setattr(demo_pool, "expected_answers", dict)
    table = tmp_path / "judgements.tsv"
    judged = [f"{first}\t{passage}\t1" for passage in corpus["passage_id"]] + [f"{second}\tp002\t5"]
    table.write_text("\n".join(["query_id\tpassage_id\tgrade", *judged]))
    monkeypatch.setattr(demo, "JUDGEMENTS", table)
    demo_pool.main([str(tmp_path / "all")])
    demo_pool.main([str(tmp_path / "left"), "--unjudged"])
    assert len(list((tmp_path / "all").iterdir())) == 2
    assert [each.name for each in (tmp_path / "left").iterdir()] == [f"{second}.md"]
    assert "4 pairs to judge" in capsys.readouterr().out
