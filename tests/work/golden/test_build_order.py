from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from core.errors import BudgetError
from tests.vendors import Vendors, serve
from tests.work.golden import built
from tests.work.golden.test_build import asked


@pytest.mark.slow
def test_the_best_are_put_in_order(tmp_path: Path, vendors: Vendors):
    store = built.store_of(tmp_path)
    deep = built.SPEC.replace("depth = 6", "depth = 12").replace("depth = 4", "depth = 12")
    text = deep + '[golden.prune]\nkeep = 5\n[golden.refine]\nmethod = "locks"\nturns = 25\n'
    job = built.job(store, vendors.url, text)
    outcome = built.build(store, job, vendors.url)
    calls = asked(vendors)
    orders = store.read().orders("judged")
    found = built.grades(store, "judged")
    for query, rows in orders.partition_by("query_id", as_dict=True).items():
        assert rows["rank"].to_list() == list(range(1, rows.height + 1))
        best = [found[query[0], passage] for passage in rows["passage_id"]]
        assert rows.height >= 5
        kept = {built.TEXTS[passage] for passage in rows["passage_id"]}
        assert len(kept) == rows.height
        rest = [grade for (of, it), grade in found.items() if of == query[0] and built.TEXTS[it] not in kept]
        assert min(best) >= max(rest, default=0)
        assert best[0] == max(best)
    told = json.loads(store.read().golden_sets("c")["manifest"][0])["refined"]
    assert told["turns"] == sum(each["turns"] for each in told["questions"].values()) > 0
    assert (outcome.folder.path / "refined").is_dir()
    built.build(store, job, vendors.url)
    assert asked(vendors) == calls


@pytest.mark.slow
@pytest.mark.parametrize(("noisy", "methods"), [(False, {"locks", "map"}), (True, {"none"})])
def test_refined_only_where_it_pays(tmp_path: Path, noisy: bool, methods: set[str]):
    asked: Counter[int] = Counter()  # how often each batch: calls of different batches come in any order
    lock = Lock()

    def judge(body: Mapping[str, Any]) -> str:
        answer = json.loads(built.judge(body))
        if noisy and "order" in answer:
            batch = crc32(str(body["messages"][-1]["content"]).encode())
            with lock:
                asked[batch] += 1
                turn = asked[batch]
            answer["order"] = np.random.default_rng([batch, turn]).permutation(answer["order"]).tolist()
        return json.dumps(answer)

    texts = {f"p{at:02}": f"{'sort ' * (at % 3 > 0)}{'a ' * (at % 2)}frame {at}" for at in range(30)}
    with serve(chat=judge) as server:
        store = built.store_of(tmp_path, {"q1": "sort a frame", "q2": "frame"}, texts)
        text = built.SPEC.replace("depth = 6", "depth = 30").replace("depth = 4", "depth = 30")
        text += '[golden.refine]\nmethod = "auto"\nturns = 40\n'
        built.build(store, built.job(store, server.url, text), server.url)
    told = json.loads(store.read().golden_sets("c")["manifest"][0])["refined"]
    assert told["method"] in methods
    assert {way["method"] for way in told["ways"]} == {"none", "locks", "map"}
    assert (store.read().orders("judged").height > 0) == (told["method"] != "none")
    assert told["noise"]["sigma"] > 1 if noisy else told["noise"]["sigma"] < 0.2


@pytest.mark.slow
def test_a_refinement_that_the_budget_stops_goes_on_where_it_was(tmp_path: Path, vendors: Vendors):
    text = built.SPEC.replace("depth = 6", "depth = 12").replace("depth = 4", "depth = 12")
    text += '[golden.prune]\nkeep = 6\n[golden.refine]\nmethod = "locks"\nturns = 30\n'
    whole, part = built.store_of(tmp_path / "whole"), built.store_of(tmp_path / "part")
    spent = built.build(whole, built.job(whole, vendors.url, text), vendors.url).status.usd
    calls = asked(vendors)
    vendors.state.reset()
    with pytest.raises(BudgetError):
        built.build(part, built.job(part, vendors.url, f"budget_usd = {0.8 * spent}\n{text}"), vendors.url)
    assert part.read().golden_sets("c").is_empty()
    built.build(part, built.job(part, vendors.url, text), vendors.url)
    assert asked(vendors) == calls
    assert built.same(whole, part, "judged")
