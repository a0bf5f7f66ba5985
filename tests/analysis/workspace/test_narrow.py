from pathlib import Path

import pytest

from core.analysis.workspace.narrow import NarrowChoices, narrow
from core.analysis.workspace.scope import Ids, Latency, Scope
from core.store import Store
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, DEMO, LAB, PAPER, table

ALL = [f"q{number}" for number in range(1, 21)]
RIGHT = {query: [f"p-{query}"] for query in ALL}


@pytest.mark.parametrize("scope", [DEMO, PAPER])
def test_where_all_match_nothing_is_narrowed(demo_store: Path, scope: Scope):
    found = narrow(Store.open(demo_store).read(), scope, AT_10, Latency(), BOOK)
    assert (found.scope, found.latency) == (scope, Latency())
    assert found.compared.sentences == ()
    assert found.compared.apart.is_empty()


@pytest.mark.slow
def test_what_differs_is_narrowed_and_told(tmp_path: Path):
    lab = Lab().judge({query: {f"p-{query}": 5} for query in ALL})
    lab.run("a", final=RIGHT, ms={"sparse": [9.0] * 20}, environment={"cpu": "Big"})
    lab.run(
        "b",
        final={query: RIGHT[query] for query in ALL[:18]},
        environment={"cpu": "Small"},
        ms={"sparse": [1.0]},
    )
    lab.run("e", final=RIGHT, environment={"cpu": "Small"})
    lab.run("c", label="three", final={query: RIGHT[query] for query in ALL[:3]})
    lab.run("d", label="told", figures=[{"measure": "RA-nWG", "k": 10, "value": 0.9, "n": 7}])
    snapshot = lab.write(tmp_path / "store").read()
    found = narrow(snapshot, LAB, AT_10, Latency(), BOOK)
    assert found.scope == Scope("lab", "gold", (), Ids.of("cd"), shared=Ids.of(ALL))
    assert found.latency.machine == "Big (imported)"
    assert found.compared.apart.rows() == [
        ("three", "was asked 3 of 20 judged queries"),
        ("told", "an average from elsewhere, not scored with this golden set"),
    ]
    assert len(found.compared.sentences) == 3
    rows = table(snapshot, found.scope, AT_10, found.latency)
    assert rows.select("run_id", "n", "latency_ms").rows() == [
        ("a", 20, 9.0),
        ("b", 20, None),
        ("e", 20, None),
    ]
    assert rows.select("quality", "lacks", "lacks_low", "lacks_high").rows() == [
        (1.0, 0.0, 1.0, 1.0),
        (0.9, 0.1, 0.9, 1.0),
        (1.0, 0.0, 1.0, 1.0),
    ]


@pytest.mark.slow
def test_stacks_that_searched_other_texts_do_not_compare(tmp_path: Path):
    lab = Lab().judge({query: {f"p-{query}": 5} for query in ALL})
    for name, texts in {"a": "11", "b": "11", "c": "22", "d": None}.items():
        manifest = {} if texts is None else {"corpus": {"hash": texts}}
        lab.run(name, label="BM25, K = 50" if name in "bc" else name, final=RIGHT, manifest=manifest)
    snapshot = lab.write(tmp_path / "store").read()
    found = narrow(snapshot, LAB, AT_10, Latency(), BOOK)
    assert found.table["name"].to_list() == ["BM25, K = 50", "a", "d"]
    assert found.compared.apart.rows() == [
        ("BM25, K = 50 · other texts", "searched other texts of the same passages")
    ]
    whole = narrow(snapshot, LAB, AT_10, Latency(), BOOK, choices=NarrowChoices(as_they_are=True))
    assert "BM25, K = 50 · other texts" in whole.table["name"]
    assert any("searched other texts" in said for said in whole.compared.sentences)
