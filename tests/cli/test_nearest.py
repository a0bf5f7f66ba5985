"""Misspelt names are answered with the nearest: options, commands, choices, measures."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.decide.axes import LIMITS, nearest_setting
from core.errors import UnknownNameError
from core.metrics import Measure, parse_list, translated
from tests.stores import Lab


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("decide --sla 5", "No such option: --sla. Nearest: --sla-ms."),
        ("decide --max-cost 1", "No such option: --max-cost. Nearest: --budget."),
        ("decide --min-qualty 1", "No such option: --min-qualty. Nearest: --min-quality."),
        ("decide --zzzz 1", "No such option: --zzzz.\n"),
        ("decide --rule qualty", "is not one of 'quality', 'cost', 'latency'. Nearest: quality."),
        ("list run", "'golden-sets', 'collections'. Nearest: runs."),
        ("list runs --format jsn", "Invalid value for '--format': 'jsn' is not one of"),
        ("decid", "No such command 'decid'. Nearest: decide."),
        ("decide --workspace x", "No such option: --workspace. Nearest: --collection."),
        ("list workspaces", "Nearest: collections."),
        ("list runs --store x", "No such option: --store. Write it before the command: --store … list."),
        ("prices zzz", "No such command 'zzz'. Found: "),
        ("decide --sla-ms 50ms", "Invalid value for '--sla-ms': It is not a number."),
        ("golden buld", "No such command 'buld'. Nearest: build."),
        ("--stor x list runs", "No such option: --stor. Nearest: --store."),
    ],
)
def test_a_wrong_word_on_the_command_line(words: str, said: str, tmp_path: Path):
    refused = CliRunner().invoke(app, ["--store", str(tmp_path / "s"), *words.split()])
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert "Value error" not in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        "list runs", "list golden-sets", "list collections --removed", "score --measures nDCG@10", "readers",
        "prices set x --usd-per-query 1", "export runs.zip", "measure a:b",
    ],
)  # fmt: skip
def test_a_collection_that_nobody_knows(words: str, tmp_path: Path):
    Lab("docs").ask({"q1": "text"}).write(tmp_path / "s")
    refused = CliRunner().invoke(
        app, ["--store", str(tmp_path / "s"), *words.split(), "--collection", "dogs"]
    )
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "error: No collection 'dogs'. Found: docs.\n"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sla", "sla_ms"), ("latency_ms", "sla_ms"), ("max_cost", "budget"), ("cost", "budget"),
        ("floor", "min_quality"), ("quality", "min_quality"), ("max_latency", "sla_ms"),
        ("min_robus", "min_robust"), ("harm", "max_harm"), ("zzz", ""),
    ],
)  # fmt: skip
def test_a_limit_by_another_name(name: str, near: str):
    assert nearest_setting(name, LIMITS) == near


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ndcg_cut_10", "nDCG@10"), ("P_10", "P@10"), ("recall_100", "R@100"), ("map_cut_100", "AP@100"),
        ("success_5", "Success@5"), ("recall@10", "R@10"), ("mrr@10", "RR@10"), ("map@100", "AP@100"),
        ("hit_rate@10", "Success@10"), ("hitrate@5", "Success@5"), ("precision@3", "P@3"),
        ("map", "AP"), ("recip_rank", "RR"), ("recall", "R"), ("RR(rel=4)@5", None),
        ("zzz_10", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_trec_eval_and_ranx_are_understood(text: str, meant: str | None):
    found = translated(text)
    assert (None if found is None else str(found)) == meant
    if meant:
        assert [str(measure) for measure in parse_list(text)] == [meant]


@pytest.mark.parametrize(
    ("name", "near"),
    [("map", ["AP"]), ("recal", ["R"]), ("MRR", ["RR"]), ("hiit", ["Hit"]), ("nDGC", ["nDCG"])],
)
def test_an_unknown_measure_is_answered_with_the_nearest(name: str, near: list[str]):
    with pytest.raises(UnknownNameError) as refused:
        Measure.parse(f"{name}@10")
    assert set(near) <= set(refused.value.known)
