"""Files of other tools, by the page and by the command: the same numbers in the store."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app as command
from core.store import Store
from tests.importers.formats import test_deepeval as deepeval
from tests.importers.formats import test_lists as lists
from tests.importers.formats import test_stack_rows as stack_rows
from tests.importers.formats import test_vectordbbench as vectordbbench
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound

pytestmark = pytest.mark.slow

Figures = Mapping[tuple[str, str, int | None], list[float] | None]
"""Collection, measure (or judgements, or passages ranked), K → values in order; None where there are none."""

CASES: dict[str, tuple[dict[str, str], Figures]] = {
    "full text of two data sets": (
        {
            "result_fts.json": vectordbbench.file(
                vectordbbench.full_text("A", vectordbbench.HOTPOT, 0.84),
                vectordbbench.full_text("A", vectordbbench.MARCO, 0.27),
                vectordbbench.full_text("B", vectordbbench.MARCO, 0.28),
            )
        },
        {
            (f"case 503 - {vectordbbench.HOTPOT}", "RR", 100): [0.84],
            (f"case 503 - {vectordbbench.MARCO}", "RR", 100): [0.27, 0.28],
        },
    ),
    "ratings of Quepid": ({"t11.csv": lists.RATINGS}, {("t11", "judgements", None): [3]}),
    "what Quepid found": (
        {"found.csv": lists.FOUND},
        {("found", "judgements", None): [3], ("found", "ranked", None): [1, 3]},
    ),
    "scores of Quepid": ({"scored.csv": lists.SCORED}, {("scored", "Quepid score", 1): [15.0]}),
    "hits of a ranking evaluation": (
        {"response.json": json.dumps(lists.RESPONSE)},
        {("response", "judgements", None): [2], ("response", "metric_score", 3): [0.4]},
    ),
    "evaluations of OpenSearch": (
        {"evaluations.json": json.dumps(lists.EVALUATIONS)},
        {("evaluations", "ranked", None): [1, 2], ("evaluations", "NDCG@10", 2): [0.75]},
    ),
    "lists of ids in cells": (
        {"rows.csv": lists.LISTS["python/rows.csv"]},
        {("rows", "judgements", None): [3], ("rows", "ranked", None): [3], ("rows", "nDCG", 2): [0.315]},
    ),
    "an evaluation table of MLflow": (
        {"eval_results_table.json": lists.split(lists.MLFLOW)},
        {("eval_results_table", "Precision", 3): [0.25], ("eval_results_table", "judgements", None): [2]},
    ),
    "results of RAGChecker": (
        {"checked.json": json.dumps(lists.CHECKED)},
        {("checked", "precision", 2): [0.75], ("checked", "ranked", None): [2]},
    ),
    "records of TruLens": (
        {"records.json": json.dumps(lists.RECORDS)},
        {("records", "Groundedness", 1): [0.75, 1.0]},
    ),
    "a cache of DeepEval": (
        {"deepeval-cache.json": json.dumps(deepeval.CACHE)},
        {("deepeval-cache", "Faithfulness", 2): [0.75], ("deepeval-cache", "ranked", None): [3]},
    ),
    "recall of big-ann": (
        {"bigann.csv": stack_rows.BIG_ANN},
        {
            ("yfcc-10M", "ANN-Recall", 10): [0.72],
            ("other", "ANN-Recall", 10): [0.89, 0.9],
            ("yfcc-10M", "latency_mean", None): None,
        },
    ),
    "steps of sentence-transformers": (
        {stack_rows.IR_FILE: stack_rows.IR},
        {("NanoFiQA", "nDCG", 10): [0.55, 0.65], ("NanoFiQA", "AP", 100): [0.45, 0.5]},
    ),
    "a leaderboard": (
        {"leaderboard.json": json.dumps([vectordbbench.NEW_ROW])},
        {("Cohere (Large), filter 98 %", "latency_p99", None): [2.7]},
    ),
}


def figures(store: Path) -> dict[tuple[str, str, int | None], list[float]]:
    snapshot = Store.open(store).read()
    names = dict(snapshot.collections().select("collection_id", "name").iter_rows())
    runs = dict(snapshot.runs().select("run_id", "collection_id").iter_rows())
    found: dict[tuple[str, str, int | None], list[float]] = {}
    for row in snapshot.aggregates(list(runs)).sort("value").iter_rows(named=True):
        key = (names[runs[row["run_id"]]], row["measure"], row["k"])
        found.setdefault(key, []).append(row["value"])
    for golden in snapshot.golden_sets().iter_rows(named=True):
        found[names[golden["collection_id"]], "judgements", None] = [golden["judgements"]]
    for run, collection in runs.items():
        if ranked := snapshot.rankings([run]).height:
            key = (names[collection], "ranked", None)
            found[key] = sorted([*found.get(key, []), ranked])
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_page_takes_what_it_holds(case: str, open_page: OpenPage, tmp_path: Path):
    files, expected = CASES[case]
    app = open_page(tmp_path, "add")
    app.file_uploader[0].set_value([(name, text.encode(), "text/plain") for name, text in files.items()])
    app.run()
    assert_sound(app)
    app.button(key="add_now").click().run()
    assert_sound(app)
    found = figures(tmp_path)
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("case", CASES)
def test_the_command_takes_what_it_holds(case: str, tmp_path: Path):
    files, expected = CASES[case]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = ["--store", str(tmp_path / "store"), "import", *(str(tmp_path / name) for name in files)]
    said = CliRunner().invoke(command, words)
    assert said.exit_code == 0, said.output
    found = figures(tmp_path / "store")
    assert {key: found.get(key) for key in expected} == expected
