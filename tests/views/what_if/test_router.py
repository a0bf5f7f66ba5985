"""The section on a learnt router: what it reads of a store, and that what leaves decides as it does there."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.contrib.router import learned
from core.contrib.router import section as router
from core.errors import InputError
from core.providers import embed
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import frame
from core.views.ask import Given
from core.views.blocks import Answer, Control
from core.views.what_if import data, routing
from tests.views.made import BOOK
from tests.views.what_if import routed

LISTS = {"pool": "scores", "final": "rerank_scores"}


@pytest.fixture(scope="module")
def reranked(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return routed.write(tmp_path_factory.mktemp("router") / "s", (5, 20))


@pytest.fixture(scope="module")
def perturbed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return routed.write_rewritten(tmp_path_factory.mktemp("rewritten") / "s")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge a router in passing: what is asked here is what it decides."""
    monkeypatch.setattr(learned, "COPIES", 2)
    monkeypatch.setattr(learned, "REPEATS", {0: 1})


def view_of(store: Store, k: int = 3) -> View:
    return View(store.read(), routed.ROUTED, quality=Quality("RA-nWG", k), latency=Latency(), book=BOOK)


def learn(view: View, given: dict[str, list[str]]) -> tuple[learned.RouterPlan, learned.Learned]:
    plan = router.asked(view, Given({"most": ["100"], **given}))
    assert isinstance(plan, learned.RouterPlan)
    found = router.learnt(view, plan)
    assert isinstance(found, learned.Learned)
    return plan, found


def exported(folder: Path, files: dict[str, str]):
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location("router_that_left", folder / "router.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Router()


def scores_of(snapshot: Snapshot, run_id: str) -> dict[str, dict[str, list[float]]]:
    """Return the lists of scores of every query, as a service that runs the stack has them."""
    rows = snapshot.rankings([run_id]).filter(pl.col("score").is_finite())
    stages = rows["stage"].unique().to_list()
    found: dict[str, dict[str, list[float]]] = {}
    for (query_id, stage), part in rows.group_by("query_id", "stage"):
        name = LISTS[stage] if "pool" in stages else "scores"
        found.setdefault(str(query_id), {})[name] = part["score"].to_list()
    return found


def queries_of(snapshot: Snapshot) -> dict[str, tuple[str, list[str]]]:
    rows = snapshot.queries("c").select("query_id", "text", "tags").iter_rows()
    return {query_id: (text, tags or []) for query_id, text, tags in rows}


@pytest.mark.parametrize("method", learned.METHODS)
@pytest.mark.parametrize(
    "given", [["how it is written", "its tags", "scores of the pool"], ["its vector"]], ids=str
)
def test_the_files_decide_as_the_house_on_every_stored_query(
    reranked: Store, tmp_path: Path, method: str, given: list[str]
):
    view = view_of(reranked)
    names = view.table["name"].to_list()
    asked = {"among": names, "signs": given, "routby": [method]}
    known = {group.name for group in data.groups(view, router.asked(view, Given(asked)).options[0])}
    if not set(given) <= known:
        pytest.skip("the encoder of queries is not installed")
    plan, found = learn(view, asked)
    left = exported(tmp_path, learned.files(router.told(view, plan, found)))
    queries, scores = queries_of(view.snapshot), scores_of(view.snapshot, plan.options[0].run_id)
    vectors = {group.name: group.values for group in data.groups(view, plan.options[0])}.get("its vector", {})
    decided = [
        left.choose(
            queries[name][0],
            tags=queries[name][1],
            vector=vectors.get(name, ()),
            signals=recorded(view.snapshot, plan.options[0].run_id, name),
            **scores[name],
        )
        for name in found.routable.query_ids
    ]
    labels = [option.label for option in plan.options]
    assert decided == [labels[place] for place in found.decided]


def recorded(snapshot: Snapshot, run_id: str, query_id: str) -> dict[str, float]:
    rows = snapshot.signals([run_id]).filter(pl.col("query_id") == query_id, pl.col("value").is_finite())
    return dict(rows.select("signal", "value").iter_rows())


def test_a_drop_under_small_talk_is_a_sign_and_leaves(perturbed: Store, tmp_path: Path):
    view = view_of(perturbed)
    names = view.table["name"].to_list()
    plan, found = learn(view, {"among": names, "signs": [data.DROP]})
    assert {name.split(":")[1] for name in found.signs.names} == {"noise 4"}
    assert any("asks the first stack again" in note for note in found.signs.notes)
    left = exported(tmp_path, learned.files(router.told(view, plan, found)))
    clean = plan.options[0].run_id
    runs = view.snapshot.runs("c").filter(pl.col("spec").str.contains("noise"))
    mode = json.loads(view.snapshot.runs("c").filter(run_id=clean)["spec"][0])["mode"]
    own = runs.filter(
        pl.col("spec").str.json_path_match("$.mode") == mode, ~pl.col("spec").str.contains("rewrite")
    )["run_id"].item()
    decided = [
        left.choose(
            signals=recorded(view.snapshot, clean, name),
            perturbed={"noise 4": {"signals": recorded(view.snapshot, own, name)}},
        )
        for name in found.routable.query_ids
    ]
    assert decided == [plan.options[place].label for place in found.decided]


def test_without_the_encoder_there_is_no_vector(reranked: Store, monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object, **__: object) -> None:
        raise InputError("wordllama is not installed.")

    view = view_of(reranked)
    monkeypatch.setattr(embed, "make_embedder", missing)
    options = router.asked(view, Given({"among": view.table["name"].to_list()})).options
    known = data.feature_groups(view, options[0], data.signals(view, options[0]))
    assert [group.name for group in known] == [
        *("how it is written", "its tags", "scores of the pool"),
        "scores of the reranker",
    ]


def test_the_section_offers_the_files_and_says_what_noise_gains(reranked: Store):
    view = view_of(reranked)
    blocks = list(router.router.draw(view, Given({"among": view.table["name"].to_list()})))
    (answer,) = [block for block in blocks if isinstance(block, Answer)]
    assert "noisy copies" in answer.caveats["what noise gains"]
    (control,) = [block for block in blocks if isinstance(block, Control)]
    texts = control.given["texts"]
    told = json.loads(texts["router.json"])
    assert (told["format"], told["learnt_from"]["queries"]) == ("clq-explorer/router", routed.QUESTIONS)
    assert texts == learned.files(told)
    assert texts.keys() == control.given["about"].keys()


def test_one_stack_is_not_enough(reranked: Store):
    view = view_of(reranked)
    asked = Given({"among": view.table["name"].to_list()[:1]})
    said = next(block for block in router.router.draw(view, asked) if isinstance(block, Answer))
    assert said.sentence.startswith("Choose two or three stacks")


def test_passages_sent_to_a_reader_are_routed_by_its_answers(tmp_path: Path):
    """Questions of tag a are answered best from one passage, those of tag b from five."""
    store = routed.write(tmp_path / "s", (10,))
    read = store.read()
    run_id = str(read.runs()["run_id"].item())
    rows = [
        {
            "run_id": run_id, "query_id": name, "reader": "m", "prompt": "p", "temperature": 0.0,
            "mode": "top_k", "k": k, "pass": 1, "scorer": "f1", "scale": "0-1",
            "value": 0.9 if ("type=a" in tags) == (k == 1) else 0.2,
        }
        for name, (_, tags) in queries_of(read).items()
        for k in (1, 5)
    ]  # fmt: skip
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    answers = {name: columns[name] for name in columns if name not in ("scorer", "scale", "value")}
    frames = {"answers": frame("answers", answers), "answer_scores": frame("answer_scores", columns)}
    with store.write("answers") as writer:
        writer.add(Batch(frames=frames))
    view = view_of(store)
    (family,) = routing.families(view)
    plan, found = learn(view, {"fam": [family.name], "signs": ["its tags"]})
    assert [option.label for option in plan.options] == ["k = 1", "k = 5"]
    routed_row = found.rows.row(by_predicate=pl.col("kind") == "routed", named=True)
    assert routed_row["quality"] == pytest.approx(0.9)
    assert routed_row["gain_low"] > 0.2
    assert np.mean(found.decided) == pytest.approx(0.5)
    told = router.told(view, plan, found)
    assert [option["passages_sent"] for option in told["options"]] == [1, 5]
    assert told["learnt_from"]["measure"].startswith("Answer")
