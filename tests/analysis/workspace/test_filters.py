"""What rankings show that filters forbid: planted leaks are all found, a leaking stack is never shipped."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analysis.workspace.filters import per_query, ranked_states
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.scores import evidence
from core.decide.axes import LEAK
from core.decide.near import near_misses
from core.metrics import Measure
from core.metrics.access import FORBIDDEN
from core.prices import PriceBook
from core.records import Batch
from core.store import Store
from core.tables import frame
from tests.store.material import CORPUS, GOLD, judgements, rankings, run

QUERIES, PASSAGES = [f"q{n}" for n in range(12)], [f"p{n:02}" for n in range(40)]
TENANTS = "abcd"
TENANT = {passage: TENANTS[at % 4] for at, passage in enumerate(PASSAGES)}
ASKER = {query: TENANTS[at % 4] for at, query in enumerate(QUERIES)}
GRADES = {query: dict.fromkeys(PASSAGES[::3], 5) | dict.fromkeys(PASSAGES[1::3], 2) for query in QUERIES}


def stored(path, ranked, *, metadata=TENANT, permission=True, grades=GRADES):
    own = CORPUS.collection_id
    frames = {
        "passage_metadata": frame(
            "passage_metadata",
            [
                {"collection_id": own, "passage_id": name, "metadata": json.dumps({"tenant": tenant})}
                for name, tenant in metadata.items()
            ],
        ),
        "query_filters": frame(
            "query_filters",
            [
                {"collection_id": own, "query_id": query, "filter": json.dumps({"tenant": tenant})}
                for query, tenant in ASKER.items()
            ],
        ),
        "fields": frame("fields", [{"collection_id": own, "field": "tenant", "permission": permission}]),
        "judgements": judgements(grades),
        "rankings": pl.concat([rankings(name, of) for name, of in ranked.items()]),
    }
    store = Store.open(path)
    runs = tuple(run(name, label=name) for name in ranked)
    with store.write("import") as writer:
        writer.add(Batch(collections=(CORPUS,), golden_sets=(GOLD,), runs=runs, frames=frames))
    return store.read()


def own_passages(query, backwards=False):
    of = [passage for passage in PASSAGES if TENANT[passage] == ASKER[query]]
    return of[::-1] if backwards else of


CLEAN = {query: own_passages(query) for query in QUERIES}
PLANTED = st.sets(
    st.tuples(st.sampled_from(QUERIES), st.integers(0, 9), st.sampled_from(PASSAGES)), max_size=8
)


@pytest.mark.slow
@given(PLANTED, st.integers(1, 10))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_planted_leaks_are_all_found(tmp_path_factory, planted, k):
    leaky = {query: list(of) for query, of in CLEAN.items()}
    for query, rank, passage in sorted(planted):
        if passage not in leaky[query]:
            leaky[query].insert(rank, passage)
    forbidden = {
        (query, rank, passage)
        for query, of in leaky.items()
        for rank, passage in enumerate(of, 1)
        if TENANT[passage] != ASKER[query]
    }
    snapshot = stored(tmp_path_factory.mktemp("leaks") / "store", {"leaky": leaky, "clean": CLEAN})
    found = ranked_states(snapshot, ["leaky", "clean"]).filter(pl.col("state") == FORBIDDEN)
    assert set(found.select("query_id", "rank", "passage_id").rows()) == forbidden
    assert set(found["run_id"]) <= {"leaky"}
    at_k = {query for query, rank, _ in forbidden if rank <= k}
    rows = per_query(snapshot, ["leaky"], k)
    assert set(rows.filter(pl.col("leak") > 0)["query_id"]) == at_k
    assert rows["leaked"].sum() == sum(rank <= k for _, rank, _ in forbidden)
    names = [Measure(name, k) for name in ("Leak", "Leaked", "Short")]
    graded = evidence(snapshot, ["leaky"], "gold", names)
    scored = [values[0, :, k - 1] for values in graded.score(names, depth=k).values()]
    at_once = {query: row for query, *row in rows.select("query_id", "leak", "leaked", "short").iter_rows()}
    for query, leak, leaked, short in zip(graded.query_ids, *scored, strict=True):
        assert at_once[query] == [leak, leaked, short]
        count = sum(each == query and rank <= k for each, rank, _ in forbidden)
        assert (leak, leaked) == (float(count > 0), count)
        assert short == float(min(k, len(leaky[query])) - count < min(k, 10))
    view = resolve(Question(collection="corpus", measure=f"RA-nWG@{k}"), snapshot, PriceBook("none", ()))
    assert view.constraints.max_leak == 0
    status = dict(zip(view.table["run_id"], view.decision.feasible.tolist(), strict=True))
    assert status == {"leaky": not at_k, "clean": True}
    if at_k:
        (reason,) = view.decision.excluded()["reason"]
        share = len(at_k) / len(QUERIES)
        assert not near_misses(view.table, view.decision, view.constraints)
        assert reason == f"{share:.3f} over the leak limit (query {min(at_k)})"


def test_what_is_unknown_is_not_shipped(tmp_path):
    known = {passage: tenant for passage, tenant in TENANT.items() if passage != "p04"}
    other = {query: own_passages(query, backwards=True) for query in QUERIES}
    ranked = {"first": CLEAN, "last": other}
    snapshot = stored(tmp_path / "store", ranked, metadata=known)
    view = resolve(Question(collection="corpus", measure="RA-nWG@3"), snapshot, PriceBook("none", ()))
    said = dict(view.decision.excluded().select("run_id", "reason").iter_rows())
    assert said == {"first": LEAK.unknown}
    assert view.table.filter(run_id="last")["leak"].to_list() == [0.0]
    scored = evidence(snapshot, ["first", "last"], "gold", [Measure("Leak")]).score(
        [Measure("Leak")], depth=9
    )
    values = scored[Measure("Leak")]
    assert np.isnan(values[0, :, 1:]).all()
    assert (values[0, :, 0] == 0).all()
    assert (values[1, :, :8] == 0).all()


@pytest.mark.parametrize(("permission", "limit"), [(False, None), (True, 0.0)])
def test_the_limit_is_there_as_soon_as_a_filter_asks_about_a_permission(tmp_path, permission, limit):
    snapshot = stored(tmp_path / "store", {"clean": CLEAN}, permission=permission)
    asked = Question(collection="corpus", measure="RA-nWG@3")
    assert resolve(asked, snapshot, PriceBook("none", ())).constraints.max_leak == limit
    lifted = Question(collection="corpus", measure="RA-nWG@3", max_leak=0.5)
    assert resolve(lifted, snapshot, PriceBook("none", ())).constraints.max_leak == 0.5
