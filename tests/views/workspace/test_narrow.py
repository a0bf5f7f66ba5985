from pathlib import Path

import pytest

from core.store import Store
from core.views.workspace.narrow import narrow
from core.views.workspace.scope import Apart, Latency, Scope
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


def test_what_differs_is_narrowed_and_told(tmp_path: Path):
    lab = Lab().judge({query: {f"p-{query}": 5} for query in ALL})
    lab.run("a", final=RIGHT, ms={"sparse": [9.0] * 20}, environment={"cpu": "Big"})
    lab.run(
        "b",
        final={query: RIGHT[query] for query in ALL[:11]},
        environment={"cpu": "Small"},
        ms={"sparse": [1.0]},
    )
    lab.run("c", label="three", final={query: RIGHT[query] for query in ALL[:3]})
    lab.run("d", label="told", figures=[{"measure": "RA-nWG", "k": 10, "value": 0.9, "n": 7}])
    snapshot = lab.write(tmp_path / "store").read()
    found = narrow(snapshot, LAB, AT_10, Latency(), BOOK)
    assert found.scope == Scope("lab", "gold", (), Apart.of("cd"), shared=True)
    assert found.latency.machine == "Big (imported)"
    assert found.compared.apart.rows() == [
        ("three", "was asked 3 of 20 judged queries"),
        ("told", "an average from elsewhere, not scored with this golden set"),
    ]
    assert len(found.compared.sentences) == 3
    rows = table(snapshot, found.scope, AT_10, found.latency)
    assert rows.select("run_id", "n", "latency_ms").rows() == [("a", 11, 9.0), ("b", 11, None)]
