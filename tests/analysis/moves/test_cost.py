"""What a move costs once and takes: nothing to itself, never less than nothing, no dearer than by steps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.moves.cost import AskedMove, Ground, items_of, work_of
from core.analysis.moves.switching import switch
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.view import View
from core.decide.switching import WEEKS_PER_MONTH, Terms, needed, total
from core.pipeline.sweep.scale import index_at
from core.records import Batch
from core.tables import frame
from tests.analysis.two_models import EXAMPLE, LARGE, QUERIES, SMALL, two_models
from tests.stores import Lab, add
from tests.views.made import BOOK


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """A small model that finds half of the answers, and a large one that finds all."""
    snapshot = two_models().write(tmp_path_factory.mktemp("s") / "s").read()
    return resolve(Question(incumbent="small", move=EXAMPLE.said()), snapshot, BOOK)


def test_the_worked_example_of_the_docs_to_the_cent(view: View):
    text = (Path(__file__).parents[3] / "docs" / "switch.md").read_text(encoding="utf-8")
    section = text.partition("a worked example")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    said = {
        cell[0]: float(cell[2].replace(",", ""))
        for cell in cells
        if len(cell) == 3 and re.search(r"\d", cell[2])
    }
    found = switch(view).to_dict()
    once = {each["what"]: each["usd"] for each in found["one_time"]}
    assert said == {
        **{what: round(usd, 2) for what, usd in once.items()},
        "together": round(found["one_time_usd"], 2),
    }
    takes = {each["name"]: each["amount"] for each in found["takes"]}
    assert takes["embedding"] == pytest.approx(
        2_000_000 * 250 / 8e6 / 60
    )  # the tokens a minute of the basic tier
    assert takes["disk of both indexes"] == pytest.approx(4 * 2_000_000 * 1024 * 4 / 2**30, rel=0.01)


@pytest.mark.parametrize(
    ("terms", "what", "usd"),
    [
        ({"batch_usd": 0.03}, "embed again", 15.0),
        ({"weeks_both": 0}, "both run", None),
        ({"engineering_days": 0}, "engineering", None),
        ({"evaluation_usd": 12.5}, "evaluation", 12.5),
    ],
)
def test_every_input_counts(view: View, terms: dict[str, Any], what: str, usd: float | None):
    asked = view.replace(
        terms=Terms(**{**{k: getattr(EXAMPLE, k) for k in Terms.__dataclass_fields__}, **terms})
    )
    once = {each["what"]: each["usd"] for each in switch(asked).to_dict()["one_time"]}
    assert once.get(what) == (usd if usd is None else pytest.approx(usd))


def test_fewer_tokens_a_minute_take_longer(view: View):
    slow = view.replace(terms=Terms(passages=2_000_000, tokens_per_passage=250, tokens_per_minute=1e6))
    takes = {each["name"]: each["amount"] for each in switch(slow).to_dict()["takes"]}
    assert takes["embedding"] == pytest.approx(500 / 60)


def test_what_is_added_in_a_month_is_embedded_by_whichever_runs(view: View):
    grows = view.replace(terms=Terms(queries_per_month=1e6, passages_per_month=1e6, tokens_per_passage=250))
    assert switch(grows).to_dict()["monthly_usd"] == pytest.approx(0.8 + 250 * (0.06 - 0.02))


specs = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["dense", "sparse", "hybrid"]),
        "embedder": st.sampled_from(["voyage-3.5", "voyage-3.5-lite"]),
        "dim": st.sampled_from([256, 1024]),
        "index": st.sampled_from(["flat", "hnsw-f32"]),
        "sparse": st.just("bm25"),
        "reranker": st.sampled_from(["none", "rerank-2.5"]),
        "candidates": st.sampled_from([10, 50]),
    }
)


def cost(view: View, now: dict[str, Any], to: dict[str, Any]) -> float | None:
    names = ("small", "small" if now == to else "large")
    rows = [
        {"run_id": name, "spec": json.dumps(spec), "cost": 0.01}
        for name, spec in zip(names, (now, to), strict=True)
    ]
    needs = needed(now, to, shortens=True)
    asked = AskedMove(ground=Ground.of(view), now=rows[0], to=rows[1], needs=needs, was=now, spec=to)
    if now == to:
        assert not [*items_of(asked)]
        assert not [*work_of(asked)]
    return total(item.usd for item in items_of(asked))


@settings(deadline=None, max_examples=60)
@given(specs, specs, specs)
def test_a_move_costs_nothing_to_itself_and_no_more_than_by_way_of_another(
    view: View, one: dict, other: dict, third: dict
):
    assert cost(view, one, one) == 0
    straight, first, second = (cost(view, a, b) for a, b in ((one, third), (one, other), (other, third)))
    assert None not in (straight, first, second)
    assert min(straight or 0, first or 0, second or 0) >= 0
    if one["mode"] == other["mode"] == third["mode"]:
        assert (straight or 0) <= (first or 0) + (second or 0) + 1e-9


def moved(folder: Path, index: str, *, known: bool = True) -> AskedMove:
    """A move from one index of a hundred passages to three by tenant, grown to ten thousand."""
    passages, before = (
        [f"p{number:02}" for number in range(100)],
        {**SMALL, "index": index, "filtering": "pre"},
    )
    after = {**before, "filtering": "partition:tenant"}
    made = Lab().judge({query: {"p00": 5} for query in QUERIES}).hold(dict.fromkeys(passages, "a text"))
    for name, spec in (("now", before), ("to", after)):
        made.run(name, final={query: ["p00"] for query in QUERIES}, spec=spec)
    tenants = dict.fromkeys(passages[:60], "a") | dict.fromkeys(passages[60:90], "b")
    tables = {
        "query_filters": [{"query_id": query, "filter": '{"tenant":"a"}'} for query in QUERIES],
        "passage_metadata": [
            {"passage_id": passage, "metadata": json.dumps({"tenant": tenant})}
            for passage, tenant in tenants.items()
        ],
    }
    frames = {
        name: frame(name, [{"collection_id": "lab", **row} for row in rows]) for name, rows in tables.items()
    }
    store = made.write(folder / "s")
    if known:
        add(folder / "s", Batch(frames=frames), "import")
    terms = ["weeks_both=4", "passages=1e4", "tokens_per_passage=250"]
    view = resolve(Question(incumbent="now", move=terms), store.read(), BOOK)
    rows = [
        {"run_id": name, "spec": json.dumps(spec), "cost": 0.01}
        for name, spec in (("now", before), ("to", after))
    ]
    needs = needed(before, after)
    return AskedMove(ground=Ground.of(view), now=rows[0], to=rows[1], needs=needs, was=before, spec=after)


def test_every_partition_is_an_index_that_is_built_and_held(tmp_path: Path):
    asked = moved(tmp_path, "qdrant-edge")
    assert asked.ground.parts(asked.spec) == (60, 30, 10)  # those without a tenant share the last
    one, three = (
        index_at(asked.spec, 10_000, BOOK, {"partition:tenant": parts}) for parts in ((1,), (60, 30, 10))
    )
    assert three.disk_bytes > one.disk_bytes
    once = {item.name: item for item in items_of(asked)}
    assert once["second index"].usd == pytest.approx(three.usd_per_month * 4 / WEEKS_PER_MONTH)
    assert once["second index"].basis.endswith(" in 3 partitions, 4 weeks")
    assert once["build the index"].usd == pytest.approx(three.build_usd)
    assert once["build the index"].basis.endswith(" s of one core, qdrant-edge in 3 partitions")
    (disk,) = (work for work in work_of(asked) if work.name == "disk of both indexes")
    assert disk.amount == pytest.approx((one.disk_bytes + three.disk_bytes) / 2**30)


@pytest.mark.parametrize(
    ("index", "known", "why"),
    [
        ("milvus", True, "prices of memory and disk, or the least that a partition takes, are not known"),
        ("qdrant-edge", False, "the passages of its partitions are not known"),
    ],
)
def test_partitions_that_are_not_known_are_not_taken_for_one_index(
    tmp_path: Path, index: str, known: bool, why: str
):
    asked = moved(tmp_path, index, known=known)
    once = {item.name: item for item in items_of(asked)}
    assert (once["second index"].usd, once["second index"].basis) == (None, why)
    assert (once["build the index"].usd is None) == (not known)
    (disk,) = (work for work in work_of(asked) if work.name == "disk of both indexes")
    assert known or (disk.amount, disk.basis) == (None, why)


def test_payback_has_an_interval_where_costs_differ_from_query_to_query(tmp_path: Path):
    rng = np.random.default_rng(5)
    made = Lab().judge({query: {"good": 5} for query in QUERIES})
    for name, spec, mean in (("small", SMALL, 100.0), ("large", LARGE, 10.0)):
        made.run(name, final={key: ["good"] for key in QUERIES}, spec=spec)
        used = {"run_id": name, "stage": "embed", "item": spec["embedder"], "unit": "input_tokens"}
        amounts = mean * (1 + rng.random(len(QUERIES)))
        made.spend(
            {**used, "query_id": key, "amount": amount}
            for key, amount in zip(QUERIES, amounts.tolist(), strict=True)
        )
    snapshot = made.write(tmp_path / "s").read()
    terms = [
        "queries_per_month=1e6",
        "engineering_days=1",
        "usd_per_day=5",
        "tokens_per_passage=1",
        "passages=10",
    ]
    found = switch(resolve(Question(incumbent="small", move=terms), snapshot, BOOK)).to_dict()
    assert 0 < found["payback_low"] < found["payback_months"] < found["payback_high"]
