import csv
import io
import json

import pytest
from typer.testing import CliRunner

from core.choices import declared
from core.cli.app import app
from core.cli.context import Format, emit
from core.prices.calculator import CostInputs
from tests.stores import Lab


@pytest.fixture
def cli(published_store):
    def call(*words, store=published_store, code=0):
        result = CliRunner().invoke(app, ["--store", str(store), "cost", *words])
        assert result.exit_code == code, result.output
        return result

    call.store = published_store
    return call


def read(result):
    return json.loads(result.stdout)


def test_the_papers_example(cli):
    """K = 50 at 500 tokens of rerank-2.5 is $1.25 per 1,000 queries (CLQ paper, §3.2.1)."""
    found = read(cli("--reranker", "rerank-2.5", "--queries", "200000", "--format", "json"))
    (line,) = found["lines"]
    assert (line["stage"], line["unit"], line["units_per_query"]) == ("rerank", "input_tokens", 25_000)
    assert line["basis"] == "modelled"
    assert found["total"] == {"usd_per_query": 0.00125, "usd_per_1k": 1.25, "usd_per_month": 250}
    said = "rerank-2.5: $1.25 per 1,000 queries, $250.00 a month at 200,000 queries"
    assert found["answer"].startswith(said)
    assert (found["prices"], found["inputs"]["candidates"]) == ("list", 50)


def test_a_bill_with_every_stage(cli):
    models = ["--embedder", "voyage-3.5", "--reranker", "rerank-2.5-lite", "--generator", "gpt-5-mini"]
    local = ["--cpu-ms", "3600", "--passages", "1000000", "--spread-queries", "1000000", "--copies", "2"]
    rows = list(csv.DictReader(io.StringIO(cli(*models, *local, "--format", "csv").stdout)))
    assert [row["stage"] for row in rows] == [
        "embed", "rerank", "generate-input", "generate-output", "machine", "embed-corpus", "index", "storage",
    ]  # fmt: skip
    shown = cli(*models, *local).stdout
    assert "Cost per month" in shown
    assert "rerank-2.5-lite" in shown
    assert "25,000" in shown
    assert "Prices: book list, looked up " in shown


def test_search_units_of_101_candidates(cli):
    found = read(cli("--reranker", "rerank-v3.5", "--candidates", "101", "--format", "json"))
    assert (found["lines"][0]["unit"], found["lines"][0]["units_per_query"]) == ("search_units", 2)


def test_what_if(cli):
    changed = ["--reranker", "rerank-2.5", "--price", "rerank-2.5:input_tokens=0.1", "--format", "json"]
    found = read(cli(*changed))
    assert found["total"]["usd_per_1k"] == 2.5
    assert found["lines"][0]["confirmed"] == "what-if"
    assert any("→ $0.1" in words for words in found["details"])


@pytest.mark.parametrize(
    ("table", "first"), [("rerank", [50, 1.25, 0.5]), ("generator", [10, 6.25, 1.25, 0.25])]
)
def test_tables_of_the_paper(cli, table, first):
    rows = read(cli("--table", table, "--format", "json"))
    assert list(rows[0].values()) == first


def test_what_moves_the_bill(cli):
    rows = read(cli("--reranker", "rerank-2.5", "--swing", "10", "--format", "json"))
    assert {row["input"] for row in rows} >= {"queries per month", "candidate depth"}
    assert rows[0]["usd_high"] == pytest.approx(1.1 * rows[0]["usd"])
    assert "Each moves the month's usage alike" in cli("--reranker", "rerank-2.5", "--swing", "10").stdout


def test_a_bill_that_begins_with_a_run(cli, tmp_path):
    made = Lab().run(
        "one",
        spec={"mode": "dense", "embedder": "voyage-3.5", "reranker": "rerank-2.5", "candidates": 20},
        final={"q1": ["a"]},
        ms={"embed": [1.0]},
        usage=[("rerank", "rerank-2.5", "input_tokens", 8000.0)],
    )
    made.write(tmp_path / "s")
    found = read(cli("--run", "one", "--format", "json", store=tmp_path / "s"))
    assert found["inputs"]["candidates"] == 20
    assert found["inputs"]["tokens_per_candidate"] == 400
    lines = {line["stage"]: line for line in found["lines"]}
    assert lines["rerank"]["units_per_query"] == 8000
    assert lines["rerank"]["basis"] != "modelled"
    deeper = read(cli("--run", "one", "--candidates", "40", "--format", "json", store=tmp_path / "s"))
    assert {line["stage"]: line["basis"] for line in deeper["lines"]}["rerank"] == "modelled"
    assert "candidate depth (there 20" in " ".join(deeper["details"])
    none = read(cli("--run", "one", "--reranker", "none", "--format", "json", store=tmp_path / "s"))
    assert [line["stage"] for line in none["lines"]] == ["embed"]


def test_an_unknown_part_makes_the_whole_unknown(cli):
    found = read(
        cli("--embedder", "voyage-3.5", "--reranker", "rerank-3", "--prices", "clq-paper", "--format", "json")
    )
    assert found["total"]["usd_per_1k"] is None
    assert found["answer"].startswith("Unknown: ")
    assert "unknown" not in cli("--reranker", "rerank-2.5").stdout


def test_nothing_is_billed(cli):
    assert cli().stdout.startswith("$0: ")
    assert read(cli("--format", "json"))["total"]["usd_per_month"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reranker", "rerank-2.6"], "No reranker 'rerank-2.6'. Nearest: rerank-2.5. Found: rerank-2, "),
        (["--index", "ivf"], "No index 'ivf'."),
        (["--prices", "mine"], "No price book 'mine'"),
        (["--run", "gone"], "No run 'gone'"),
        (["--price", "rerank-2.5=1"], "'rerank-2.5=1' is not a price."),
        (["--price", "rerank-2.5:input_tokens=x"], "is not a price."),
        (["--price", "rerank-2.5:input_tokens=-1"], "is not an amount"),
        (["--price", "nothing:requests=1"], "No price 'nothing:requests'"),
    ],
)
def test_refusals(cli, words, said):
    assert said in cli(*words, code=1).stderr


def test_large_numbers_are_written_out(capsys):
    import polars as pl

    emit(pl.DataFrame({"x": [25_000.0, 1234.5, 0.00012345]}), Format.TABLE)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[3:6]] == [
        "25,000",
        "1234",
        "0.0001234",
    ]


@pytest.mark.parametrize("field", declared(CostInputs).values(), ids=lambda field: field.name)
def test_every_input_is_an_option_a_field_of_the_page_and_a_part_of_the_record(cli, field):
    flag = field.choice.flag or f"--{field.name.replace('_', '-')}"
    value = "7" if field.number else "flat" if field.name == "index" else "none"
    inputs = read(cli(flag, value, "--format", "json"))["inputs"]
    assert inputs[field.name] == (7 if field.number else "flat" if field.name == "index" else None)
    asked = ["--set", f"{field.choice.key}={value}", "--collection", "clq-paper", "--format", "json"]
    done = CliRunner().invoke(app, ["--store", str(cli.store), "page", "cost", *asked])
    choice = json.loads(done.stdout)["choices"][field.choice.key]
    assert choice["label"] == field.choice.label
    assert choice["value"] in (7, value)


def test_the_command_and_the_page_say_the_same_of_a_bill(cli):
    words = ["base=no stack: type the amounts", "emb=none", "rer=rerank-2.5", "cand=60"]
    asked = [word for each in words for word in ("--set", each)]
    done = CliRunner().invoke(
        app, ["--store", str(cli.store), "page", "cost", "--collection", "clq-paper", *asked]
    )
    told = cli("--reranker", "rerank-2.5", "--candidates", "60").stdout
    assert done.stdout.startswith(told)
    assert "Each moves the month's usage alike" in done.stdout
