"""`clq.measure` and `clq.run`: pipelines of this process and of a module, their faults, and what costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import core as clq
from core.api.running import called, importable
from core.errors import BudgetError, InputError
from core.pipeline.own.here import MODULE

TEXTS = ["cats purr at night", "dogs bark loudly", "cows moo in the field", "pigs grunt", "bees hum at noon"]
ASKED = ["cats at night", "dogs", "what do bees do"]
QRELS = "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq2\td4\t1\n"
CODE = f"""
TEXTS = {TEXTS!r}

def find(query, k=5):
    words = set(query.split())
    scored = [(f"d{{at}}", len(words & set(text.split()))) for at, text in enumerate(TEXTS)]
    return sorted(scored, key=lambda pair: -pair[1])[:k]
"""


@pytest.fixture
def barn(tmp_path: Path) -> clq.Results:
    folder = tmp_path / "barn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(TEXTS)]
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(ASKED)]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    results = clq.open(tmp_path / "store")
    results.add(folder)
    return results


def closure(calls: list[str], bonus_for: str = ""):
    def find(query: str, k: int = 5, bonus: int = 0) -> list[tuple[str, int]]:
        calls.append(query)
        if query == bonus_for:
            raise ValueError("not this one")
        words = set(query.split())
        scored = [(f"d{at}", len(words & set(text.split())) + bonus) for at, text in enumerate(TEXTS)]
        return sorted(scored, key=lambda pair: -pair[1])[:k]

    return find


@pytest.mark.slow
def test_a_closure_is_measured_in_this_process(barn: clq.Results):
    calls: list[str] = []
    find = closure(calls, "dogs")
    first = barn.measure(find, name="mine", k=3, params={"bonus": [0, 1]}, usd_per_query=0.001, quiet=True)
    assert (first.state, set(calls)) == ("finished", set(ASKED))
    assert first.runs["label"].str.starts_with("mine, K = 3 · bonus ").all()
    assert any("1 of 3 questions failed" in note for note in first.notes)
    assert first.usd > 0
    again = barn.measure(find, name="mine", k=3, params={"bonus": [0, 1]}, usd_per_query=0.001, quiet=True)
    assert again.runs["status"].to_list() == ["there before"] * 2
    decided = barn.decide(measure="N-Recall4+@3")
    assert decided.chosen is not None
    assert (decided.chosen.quality, decided.chosen.cost) == (pytest.approx(2 / 3), pytest.approx(1.0))


@pytest.mark.slow
def test_a_function_of_a_module_is_measured_in_a_process_of_its_own(
    barn: clq.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "shop_api.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    shop = __import__("shop_api")
    assert called(shop.find) == {"target": "shop_api:find", "path": str(tmp_path.resolve()), "name": "find"}
    shop.TEXTS.clear()  # of this process, which is not the one that is asked
    done = barn.measure(shop.find, k=3, quiet=True)
    assert done.runs["label"].to_list() == ["find, K = 3"]
    assert barn.score("N-Recall4+@3")["value"].to_list() == [1.0]
    monkeypatch.delitem(sys.modules, "shop_api")


def test_what_another_process_cannot_import_is_asked_here():
    class Found:
        def retrieve(self, query: str) -> list[str]:
            return [query]

    for target in (lambda query: [query], closure([]), Found(), Found().retrieve, Found):
        assert importable(target) is None
        said = called(target)
        assert said["target"].startswith(f"{MODULE}:")
        assert len(said["version"]) == 8
    assert importable(json.loads) is not None
    with pytest.raises(InputError, match="int cannot be asked"):
        called(3)


def test_the_version_of_what_is_asked_here_is_its_source():
    def one(query: str) -> list[str]:
        return [query]

    def other(query: str) -> list[str]:
        return [query.upper()]

    assert called(one)["version"] == called(one)["version"] != called(other)["version"]


@pytest.mark.slow
def test_a_specification_runs_and_one_that_costs_wants_a_budget(barn: clq.Results):
    spec = {"collection": {"stored": "barn"}, "axes": {"mode": ["sparse"], "candidates": [3]}}
    done = barn.run(spec, quiet=True)
    assert (done.state, done.runs.height, done.usd) == ("finished", 1, 0.0)
    paid = {**spec, "stack": [{"name": "paid", "url": "http://localhost:9/x", "usd_per_query": 0.1}]}
    del paid["axes"]
    with pytest.raises(BudgetError, match=r"This costs about \$"):
        barn.run(paid, quiet=True)
