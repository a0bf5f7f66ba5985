"""``measure``: a pipeline of one's own in one line, resumed, its faults told, and never from a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import Cli

pytestmark = pytest.mark.slow

TEXTS = ["cats purr at night", "dogs bark loudly", "cows moo in the field", "pigs grunt", "bees hum at noon"]
ASKED = ["cats at night", "dogs", "what do bees do"]
SHOP = """
def find(query, k=5, bonus=0):
    if query == "dogs":
        raise ValueError("no dogs")
    words = set(query.split())
    texts = %r
    scored = [(f"d{at}", len(words & set(text.split())) + bonus) for at, text in enumerate(texts)]
    return sorted(scored, key=lambda pair: -pair[1])[:k]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "barn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(ASKED)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    rows = "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq2\td4\t1\n"
    (folder / "qrels" / "test.tsv").write_text(rows)
    (tmp_path / "shop.py").write_text(SHOP % TEXTS)
    one = Cli(tmp_path)
    one("import", str(folder))
    return one


def measure(cli: Cli, *words: str, code: int = 0) -> list[dict[str, object]]:
    done = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), *words, code=code)
    return [] if code else json.loads(done.stdout)


def test_one_line_is_a_stack_beside_others(cli: Cli):
    rows = measure(cli, "--name", "shop", "--param", "bonus=0,1", "-k", "3", "--yes", "--format", "json")
    assert [row["label"] for row in rows] == ["shop, K = 3 · bonus 0", "shop, K = 3 · bonus 1"]
    again = measure(cli, "--name", "shop", "--param", "bonus=0,1", "-k", "3", "--yes", "--format", "json")
    assert [row["status"] for row in again] == ["there before"] * 2
    told = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--yes").stderr
    assert "1 of 3 questions failed" in told
    assert "q1: exception: ValueError: no dogs (shop.py:4 in find)" in told
    run_id = str(rows[0]["run_id"])
    assert "A manifest never runs code" in cli("run", "--manifest", run_id, code=1).stderr
    chosen = json.loads(cli("decide", "--format", "json").stdout)["chosen"]
    assert (chosen["cost"], "not priced" in chosen["cost_missing"]) == (None, True)


def test_versions_stand_side_by_side(cli: Cli):
    for version in ("old", "new"):
        measure(
            cli,
            "--name",
            "shop",
            "--version",
            version,
            "--yes",
            "--usd-per-query",
            "0.002",
            "--format",
            "json",
        )
    labels = [row["label"] for row in cli.rows("list", "runs")]
    assert sorted(labels) == ["shop, K = 50 · new", "shop, K = 50 · old"]
    decided = json.loads(cli("decide", "--format", "json").stdout)
    assert [decided[side]["cost"] for side in ("chosen", "runner_up")] == [pytest.approx(2.0)] * 2


def test_a_dry_run_calls_nothing_and_the_specification_says_the_same(cli: Cli):
    (cli.folder / "shop.py").write_text("raise SystemExit('it ran')")
    done = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--dry-run")
    assert "1 stack" in done.stdout
    text = cli("measure", "shop:find", "--collection", "barn", "--spec", "--param", "a=1,x").stdout
    assert 'call = "shop:find"' in text
    assert 'params.a = [1, "x"]' in text


def test_what_cannot_be_measured_is_refused(cli: Cli):
    assert "No collection 'sty'" in cli("measure", "shop:find", "--collection", "sty", code=1).stderr
    assert (
        "No module named 'nowhere'"
        in cli(
            "measure", "nowhere:find", "--collection", "barn", "--path", str(cli.folder), "--yes", code=1
        ).stderr
    )
    assert (
        "no parameter"
        in cli("measure", "shop:find", "--collection", "barn", "--param", "alpha", code=1).stderr
    )
    refused = cli(
        "measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--budget", "1", code=1
    )  # fmt: skip
    assert "usd_per_query" in refused.stderr
