"""Questions in groups: every page, command and record of such a workspace says of how many they are.

A workspace of 40 questions from ten documents: rankings, grades and times of four stacks.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import core as clq
from core.agents.answers import Answers
from core.analysis.sides import sides
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.people import corrected_means
from core.analysis.workspace.scope import Latency
from core.analysis.workspace.stacks import runs_in
from core.answers import BY_PEOPLE
from core.api.decision import Decision
from core.api.workspace import Workspace
from core.cli.app import app
from core.errors import ClqError
from core.metrics import Measure
from core.metrics.rates import CORRECTED
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.stats.means import mean_interval
from core.store import Store
from core.tables import frame
from core.views.pages import PAGES

QUERIES, DOCUMENTS, RUNS, PASSAGES = 40, 10, 4, 30
OF = {f"q{at:02}": f"d{at % DOCUMENTS}.md" for at in range(QUERIES)}
SAID = f"{QUERIES} questions from {DOCUMENTS} documents"
GROUPS = {"n": QUERIES, "clusters": DOCUMENTS, "kind": "document"}


def seed(path: Path, documents: int = DOCUMENTS, without: int = 0) -> None:
    """Fill a store; so many of its questions are said to have no answer."""
    random = np.random.default_rng(3)
    ids = [f"p{at}" for at in range(PASSAGES)]
    rankings, timings, judged = [], [], []
    for query in OF:
        grades = random.permutation([5, 5, 4, 4, 3, 3, 2, 2] + [1] * (PASSAGES - 8))
        judged += [
            {"golden_set_id": "gold", "query_id": query, "passage_id": passage, "grade": grade, "raw": grade}
            for passage, grade in zip(ids, grades.tolist(), strict=True)
        ]
        for run in range(RUNS):
            order = np.argsort(-grades + random.normal(0, 1.0 + 0.7 * run, len(ids)))
            rankings += [
                {
                    "run_id": f"r{run}",
                    "query_id": query,
                    "stage": "final",
                    "rank": rank,
                    "passage_id": ids[at],
                    "score": float(grades[at] - rank / 4),
                }
                for rank, at in enumerate(order.tolist(), 1)
            ]
            took = 20.0 + 30 * (RUNS - run) + random.random()
            timings.append(
                {"run_id": f"r{run}", "query_id": query, "stage": "retrieve", "repeat": 1, "ms": took}
            )
    none = ["unanswerable"]
    queries = [
        {"collection_id": "lab", "query_id": query, "text": f"What is {query}?",
         "tags": [f"document=d{at % documents}.md", f"type={'ab'[at % 2]}", *none * (at < without)]}
        for at, query in enumerate(OF)
    ]  # fmt: skip
    passages = [{"collection_id": "lab", "passage_id": each, "text": f"Text {each} " * (at % 7 + 1)}
                for at, each in enumerate(ids)]  # fmt: skip
    runs = tuple(
        Run(run_id=f"r{run}", collection_id="lab", stack=Stack({"name": f"s{run}"}), label=f"s{run}",
            origin=Origin.IMPORT)
        for run in range(RUNS)
    )  # fmt: skip
    tables = {
        "queries": queries,
        "passages": passages,
        "judgements": judged,
        "rankings": rankings,
        "timings": timings,
    }
    batch = Batch(
        collections=(Collection(collection_id="lab", name="Lab"),),
        golden_sets=(GoldenSet(golden_set_id="gold", collection_id="lab", name="Gold"),),
        runs=runs,
        frames={table: frame(table, rows) for table, rows in tables.items()},
    )
    with Store.open(path).write("import") as writer:
        writer.add(batch)


MORE = {
    "noisy": {"name": "s0", "perturb": {"noise": 4}},
    "rules": {"name": "s0", "rewrite": "rules", "perturb": {"noise": 4}},
    "flat": {"name": "bm", "index": "flat"},
    "hnsw": {"name": "bm", "index": "hnsw", "index_params": {"ef_search": 64}},
}
"""Runs beside the four: perturbed siblings of the first, and two indexes of one stack."""


def more(path: Path) -> None:
    """Add the runs `MORE`, answers of two readers with a judge's and people's scores, alike in a document."""
    random, store = np.random.default_rng(5), Store.open(path)
    like = dict(zip(sorted(set(OF.values())), random.normal(0, 1, DOCUMENTS), strict=True))
    by_query = store.read().judgements("gold").sort("query_id", "passage_id")
    rankings, answers, scores = [], [], []
    for (query,), part in by_query.group_by("query_id", maintain_order=True):
        own = like[OF[str(query)]]
        for run in MORE:
            order = np.argsort(
                -part["grade"].to_numpy() + random.normal(0, 2.0 + own, part.height) * (own > 0)
            )
            rankings += [
                {"run_id": run, "query_id": query, "stage": "final", "rank": rank, "score": 9.0 - rank,
                 "passage_id": part["passage_id"][at]}
                for rank, at in enumerate(order.tolist(), 1)
            ]  # fmt: skip
        for run, reader, (mode, k) in product(
            ("r0", "r1"), ("one", "two"), (("none", 0), ("top_k", 1), ("top_k", 5))
        ):
            key = {
                "run_id": run,
                "query_id": query,
                "reader": reader,
                "prompt": "p",
                "mode": mode,
                "k": k,
                "pass": 1,
            }
            right = 0.4 + 0.05 * k + 0.2 * own * (k + 1) / 4 + random.normal(0, 0.1)
            said = "I do not know the answer." if own > 1 else "It is so."
            answers.append({**key, "text": said})
            for judge, of, source in (("m", right, None), ("anna", right + 0.1 * own, BY_PEOPLE)):
                scored = {"scorer": "correctness", "judge": judge, "source": source, "scale": "0-1"}
                scores.append({**key, **scored, "value": float(np.clip(of, 0, 1))})
    runs = tuple(Run(run_id=run, collection_id="lab", stack=Stack(spec), label=run, origin=Origin.IMPORT)
                 for run, spec in MORE.items())  # fmt: skip
    tables = {"rankings": rankings, "answers": answers, "answer_scores": scores}
    with store.write("more") as writer:
        writer.add(Batch(runs=runs, frames={name: frame(name, rows) for name, rows in tables.items()}))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "store"
    seed(path)
    return path


@pytest.fixture(scope="module")
def workspace(store: Path) -> Workspace:
    return clq.open(store).workspace("lab")


WITHOUT = {("golden", name) for name in ("questions", "build", "judge")}
"""Sections that are forms, which a page alone has."""


def sections() -> list[tuple[str, str | None]]:
    """Every page of results, with its sections."""
    pages = [page for page in PAGES.values() if page.home and page.settings]
    every = [(page.name, name) for page in pages for name in (page.sections or [None])]
    return [one for one in every if one not in WITHOUT]


@pytest.mark.parametrize(("page", "section"), sections())
def test_every_page_says_of_how_many_groups_its_questions_are(
    workspace: Workspace, page: str, section: str | None
):
    data = workspace.page(page, section).data
    assert data["workspace"]["clusters"] == GROUPS
    assert any(SAID in remark for remark in data["workspace"]["remarks"])


def call(store: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["--store", str(store), *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_records_api_and_agents_say_it(store: Path, workspace: Workspace, tmp_path: Path):
    printed = call(store, "decide")
    assert SAID in printed
    assert f"n = {QUERIES} from {DOCUMENTS} documents" in printed
    chosen = json.loads(call(store, "decide", "--format", "json").partition("{")[2].join(["{", ""]))["chosen"]
    assert (chosen["n"], chosen["clusters"], chosen["effective_n"]) == (QUERIES, DOCUMENTS, DOCUMENTS)
    decision = workspace.decide()
    assert (decision.chosen.n, decision.chosen.clusters) == (QUERIES, DOCUMENTS)
    files = decision.record(tmp_path / "r.json", tmp_path / "r.html")
    record = json.loads(files[0].read_text())
    assert (record["chosen"]["clusters"], record["question"]["cluster_by"]) == (DOCUMENTS, "auto")
    assert any(SAID in remark for remark in record["remarks"])
    assert f"n = {QUERIES} from {DOCUMENTS} documents" in files[1].read_text()
    assert workspace.gate(files[0]).holds
    told = Answers(clq.open(store), tmp_path).decide("lab", {})
    assert told["ship"]["quality"]["clusters"] == DOCUMENTS
    assert any(SAID in note for note in told["notes"])
    scored = json.loads(call(store, "score", "--measures", "nDCG@10", "--format", "json"))
    assert {(row["n"], row["clusters"]) for row in scored} == {(QUERIES, DOCUMENTS)}
    pairs = decision.page("compare").tables["differences"]
    assert set(pairs.select("n", "clusters", "cluster_kind").rows()) == {(QUERIES, DOCUMENTS, "document")}


def test_intervals_take_each_group_as_one(workspace: Workspace):
    decision = workspace.decide()
    view, chosen = decision.view, decision.chosen
    assert view.paired is not None
    row = int(view.paired.places(pl.Series([chosen.run_id]))[0])
    labels = [int(OF[query][1:-3]) for query in sorted(OF)]
    (low,), (high,) = mean_interval(view.paired.values[row], "shares", clusters=np.array(labels))
    assert (chosen.quality_low, chosen.quality_high) == pytest.approx((low, high))
    alone = workspace.decide(cluster_by="none").chosen
    (low,), (high,) = mean_interval(view.paired.values[row], "shares")
    assert (alone.quality_low, alone.quality_high) == pytest.approx((low, high))
    at_ten = (
        decision.page("curves")
        .tables["curves"]
        .filter(name=chosen.name, k=10, measure=view.quality.name[:-3])
    )
    assert at_ten.select("low", "high").row(0) == pytest.approx((chosen.quality_low, chosen.quality_high))


INTERVALS = [
    ("curves", "by cutoff", "curves", "low"),
    ("curves", "by cutoff", "curves", "tokens_low"),
    ("readers", "by depth", "points", "low"),
    ("readers", "by depth", "points", "gain_low"),
    ("readers", "gains", "gains", "gain_mean_low"),
    ("readers", "gains", "stack_differences", "mean_low"),
    ("readers", "gains", "per_recall", "per_recall_low"),
    ("readers", "with and without gold", "parts", "low"),
    ("readers", "dose of distractors", "losses", "low"),
    ("readers", "joint k", "joint", "correct_low"),
    ("readers", "generators", "generators", "difference_low"),
    ("readers", "sources", "sources", "precision_low"),
    ("readers", "refusing", "refusing", "auc_low"),
    ("readers", "refusing", "refusing", "wrong_low"),
    ("readers", "refusing", "refusals", "refused_low"),
    ("what_if", "routing", "routing", "low"),
    ("what_if", "routing", "routing", "gain_low"),
    ("latency", "index loss", "index_loss", "low"),
    ("diagnostics", "noise", "noise", "change_low"),
    ("golden", "unseen", "unseen", "total_low"),
    ("compare", None, "differences", "low"),
]
"""A column of every kind of interval: page, section, table and its lower end."""


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[Decision, Decision]:
    path = tmp_path_factory.mktemp("groups") / "more"
    seed(path, without=12)
    more(path)
    known = clq.open(path).workspace("lab")
    return known.decide(), known.decide(cluster_by="none")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "section", "table", "end"), INTERVALS)
def test_every_interval_differs_where_questions_come_in_groups(
    both: tuple[Decision, Decision], page: str, section: str | None, table: str, end: str
):
    grouped, alone = (one.page(page, section).tables[table] for one in both)
    other_end = end.replace("low", "high")
    assert grouped[end].count() > 0
    widths = [part[other_end].to_numpy() - part[end].to_numpy() for part in (grouped, alone)]
    assert not np.allclose(*widths, rtol=1e-9, atol=0, equal_nan=True)


def test_mean_latencies_and_corrected_means_take_each_group_as_one(both: tuple[Decision, Decision]):
    snapshot, means = both[0].view.snapshot, []
    for view in (one.view for one in both):
        alike = groups(snapshot, view.scope).labels
        runs = runs_in(snapshot, view.scope)
        ids = runs["run_id"].to_list()
        took = latencies(snapshot, runs, Latency("mean"), alike).drop_nulls("latency_low")
        right = corrected_means(snapshot, ids, Measure("Answer", 5, (("people", CORRECTED),)), alike=alike)
        means.append((took.height, took["latency_low"].to_list(), right.height, right["low"].to_list()))
        gaps = sides(snapshot, view.table, ["s0", "s1"], None, latency=Latency("mean"), jitter=0.0,
                     alike=groups(snapshot, view.scope)).filter(axis="latency")  # fmt: skip
        means[-1] += (gaps["low"].item(), gaps["clusters"].item())
    grouped, alone = means
    assert (grouped[0], alone[0]) == (RUNS, RUNS)
    assert grouped[2] == alone[2] > 0
    assert (grouped[-1], alone[-1]) == (DOCUMENTS, None)
    for place in (1, 3, 4):
        assert grouped[place] != alone[place]


def test_each_question_by_itself_is_asked_for(store: Path, workspace: Workspace):
    alone = workspace.decide(cluster_by="none")
    assert alone.chosen.clusters is None
    assert "clusters" in alone.page("decision").data["workspace"]
    assert alone.page("decision").data["workspace"]["clusters"] is None
    assert SAID not in call(store, "decide", "--cluster-by", "none")
    with pytest.raises(ClqError, match="No group of questions 'session'"):
        workspace.decide(cluster_by="session")


def test_below_eight_groups_chances_are_unknown(tmp_path: Path):
    seed(tmp_path / "store", 7)
    decision = clq.open(tmp_path / "store").workspace("lab").decide()
    assert decision.confidence is None or decision.confidence.pgs is None
    assert decision.data["chosen"]["pgs_unknown"]
    assert decision.chosen.quality_low is None
    page = decision.page("decision")
    assert "7 documents" in json.dumps(page.data)
    pairs = decision.page("compare").tables["differences"]
    assert pairs["p_holm"].null_count() == pairs.height
    assert set(pairs["verdict"]) == {"unknown: fewer than 8 groups"}
