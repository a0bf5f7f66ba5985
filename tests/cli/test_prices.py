"""``prices list|check|import|set``."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from core.cli import prices
from core.records import Batch, Collection, Origin, Run, Stack
from core.tables import frame
from tests.cli.test_commands import Cli
from tests.cli.test_gate import store as store_of
from tests.prices.test_price_import import TABLE

TODAY = date(2026, 11, 22)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("CLQ_PRICES", raising=False)
    monkeypatch.setattr(prices, "_today", lambda: TODAY)
    return Cli(tmp_path)


def fill(cli: Cli) -> None:
    """Two runs: one with recorded usage, one that only names its models."""
    specs = {
        "r-a": {"mode": "dense", "embedder": "voyage-3.5", "reranker": "rerank-9"},
        "r-b": {"mode": "dense", "embedder": "my-embedder", "reranker": "relevance:my-chat"},
    }
    runs = tuple(
        Run(run_id=name, collection_id="c", stack=Stack(spec), label=name, origin=Origin.IMPORT)
        for name, spec in specs.items()
    )
    rows = [
        ("embed", "voyage-3.5", "input_tokens", 12.0),
        ("rerank", "rerank-9", "input_tokens", 900.0),
        ("rerank", "local-cpu", "cpu_ms", 3.0),
    ]
    usage = [
        {
            "run_id": "r-a",
            "query_id": None,
            "stage": stage,
            "item": item,
            "unit": unit,
            "amount": amount,
            "basis": "measured",
        }
        for stage, item, unit, amount in rows
    ]
    with cli.store.write("test") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                runs=runs,
                frames={"usage": frame("usage", usage)},
            )
        )


def test_list_shows_every_book_and_filters(cli):
    rows = cli.rows("prices", "list")
    assert {row["book"] for row in rows} == {"list", "clq-paper"}
    assert all(row["source"] and row["looked_up"] for row in rows)
    only = cli.rows("prices", "list", "--book", "clq-paper", "--item", "RERANK")
    assert [row["item"] for row in only] == ["rerank-2.5", "rerank-2.5-lite"]
    assert "rerank-2.5-lite" in cli("prices", "list").stdout
    refused = cli("prices", "list", "--book", "nope", code=1).stderr
    assert refused.startswith("error: No price book 'nope'. Found: clq-paper, list.")


def test_check_names_old_prices_and_models_without_one(cli, monkeypatch):
    fill(cli)
    rows = cli.rows("prices", "check")
    assert [(row["problem"], row["item"], row["unit"]) for row in rows] == [
        ("no price", "my-chat", ""),
        ("no price", "my-embedder", ""),
        ("no price", "rerank-9", "input_tokens"),
    ]
    cli("prices", "check", "--strict", code=1)
    monkeypatch.setattr(prices, "_today", lambda: date(2027, 3, 1))
    aged = [row for row in cli.rows("prices", "check") if row["problem"] == "old"]
    assert ("local-cpu", "looked up 100 days ago") in {(row["item"], row["detail"]) for row in aged}
    assert len(cli.rows("prices", "check", "--days", "1000")) == 3


def test_an_empty_store_needs_no_price(cli):
    out = cli("prices", "check", "--strict").stdout
    assert out == "Nothing: every model in the store has a price, none older than 90 days.\n"


def test_import_makes_a_book_that_every_command_reads(cli):
    table = cli.file("model_prices_and_context_window.json", json.dumps(TABLE))
    made = cli.rows(
        "prices", "import", table, "--book", "vendors", "--provider", "cohere", "--provider", "voyage"
    )
    assert made[0]["count"] == 3
    assert (cli.folder / "price-books" / "vendors.toml").exists()
    rows = {row["item"]: row for row in cli.rows("prices", "list", "--book", "vendors")}
    assert (rows["rerank-v3.5"]["unit"], rows["rerank-v3.5"]["price"], rows["rerank-v3.5"]["per"]) == (
        "search_units",
        2.0,
        1000.0,
    )
    assert rows["rerank-2.5"]["looked_up"] == "2026-11-22"
    assert rows["local-cpu"]["provider"] == "local"  # taken over from the list
    refused = cli("prices", "import", table, "--book", "vendors", code=1).stderr
    assert "The file is there already." in refused
    cli(
        "prices",
        "import",
        table,
        "--book",
        "vendors",
        "--replace",
        "--extends",
        "",
        "--fetched",
        "2026-01-31",
    )
    rows = {row["item"]: row for row in cli.rows("prices", "list", "--book", "vendors")}
    assert "local-cpu" not in rows
    assert rows["gpt-4o-mini"]["looked_up"] == "2026-01-31"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--book", "list"], "The book 'list' comes with the product."),
        (["--book", "../x"], "cannot be the name of a price book"),
        (["--provider", "acme"], "It has no provider 'acme'."),
        (["--fetched", "yesterday"], "--fetched: 'yesterday' is not a day."),
        (["--extends", "nobody"], "It extends 'nobody', which does not exist."),
    ],
)
def test_import_refuses(cli, words, says):
    table = cli.file("t.json", json.dumps(TABLE))
    assert says in cli("prices", "import", table, *words, code=1).stderr
    assert not list(cli.folder.glob("price-books/*"))


def test_own_books_are_named_in_errors(cli, monkeypatch, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "bad.toml").write_text("provider =", encoding="utf-8")
    monkeypatch.setenv("CLQ_PRICES", str(mine))
    assert "error: bad.toml: Not readable as TOML" in cli("prices", "list", code=1).stderr


@pytest.mark.slow
def test_a_price_of_a_stored_stack_counts_in_every_book(cli):
    store_of(cli.store.path, good=(14, 150.0, None), cheap=(4, 20.0, None), dear=(2, 30.0, 5.0))

    def decided(*words: str, code: int = 0) -> dict[str, object]:
        return json.loads(cli("decide", "--measure", "RR@10", "--format", "json", *words, code=code).stdout)

    cli("prices", "set", "cheap", "--usd-per-query", "0.001")
    chosen = decided()["chosen"]
    assert (chosen["stack"], chosen["cost"]) == ("good", None), "without a budget no cost is asked for"
    assert decided("--budget", "2")["chosen"]["stack"] == "cheap"
    for usd, status in (("0.002", "set"), ("0.002", "as before"), ("0.0015", "set")):
        (row,) = cli.rows("prices", "set", "good", "--usd-per-query", usd)
        assert (row["label"], row["status"], row["usd_per_1k"]) == ("good", status, 1000 * float(usd))
    chosen = decided("--budget", "2")["chosen"]
    assert (chosen["stack"], chosen["cost"]) == ("good", 1.5)
    cli("prices", "set", "dear", "good", "--usd-per-query", "0.0001", "--collection", "lab")
    cli("prices", "import", cli.file("litellm.json", json.dumps(TABLE)), "--book", "mine")
    chosen = decided("--budget", "0.2", "--prices", "mine")["chosen"]
    assert (chosen["stack"], chosen["cost"]) == ("good", 0.1)
    (row,) = cli.rows("prices", "set", "good", "--usd-per-hour", "36")  # 150 ms of an hour that costs $36
    assert row["usd_per_1k"] == pytest.approx(1.5)
    assert decided("--budget", "2")["chosen"]["cost"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("r-c", "--usd-per-query", "1"), 1, "No run 'r-c'."),
        (("r-a", "--usd-per-query", "-1"), 2, "0"),
        (("r-a",), 2, "Give one of --usd-per-query and --usd-per-hour."),
        (("r-a", "--usd-per-query", "1", "--usd-per-hour", "1"), 2, "Give one of"),
        (("r-a", "--usd-per-hour", "1"), 1, "The mean latency of 'r-a' is unknown"),
    ],
)
def test_a_price_of_a_stored_stack_is_refused(cli, words, code, says):
    fill(cli)
    assert says in cli("prices", "set", *words, code=code).stderr


@pytest.mark.slow
def test_a_backup_takes_prices_along(cli, tmp_path):
    def decided() -> dict[str, object]:
        words = ("decide", "--measure", "RR@10", "--budget", "2", "--prices", "mine", "--format", "json")
        return json.loads(cli(*words).stdout)["chosen"]

    def priced(usd: str) -> None:
        cli("prices", "set", "good", "cheap", "--usd-per-query", usd)

    store_of(cli.store.path, good=(14, 150.0, None), cheap=(4, 20.0, None))
    cli("prices", "import", cli.file("litellm.json", json.dumps(TABLE)), "--book", "mine")
    priced("0.0015")
    before, copy, own = decided(), str(tmp_path / "copy"), tmp_path / "price-books"
    assert cli.rows("store", "backup", copy)[0]["prices"] == "2 price files"
    shutil.rmtree(cli.store.path)
    shutil.rmtree(own)
    assert cli.rows("store", "restore", copy)[0]["prices"] == "2 of 2 price files were restored"
    assert decided() == before
    assert cli.rows("store", "restore", copy)[0]["prices"] == "2 price files are there already"
    priced("0.001")
    kept = "stack-prices.toml differs and is kept; --back takes the backup's"
    assert cli.rows("store", "restore", copy)[0]["prices"] == kept
    assert decided()["cost"] == 1.0
    assert cli.rows("store", "restore", copy, "--back")[0]["prices"] == "1 of 2 price files was restored"
    assert decided() == before
    assert len(list(own.glob("stack-prices.toml.*.aside"))) == 1
    (own / "mine.toml").unlink()
    assert cli.rows("store", "backup", copy)[0]["prices"] == "1 price file"
    shutil.rmtree(own)
    cli("store", "restore", copy)
    assert [path.name for path in own.iterdir()] == ["stack-prices.toml"]
