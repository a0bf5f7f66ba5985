"""``plan`` on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from core.cli.app import app
from core.pipeline.sweep.resources import measured
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame
from tests.pipeline.corpora import passages, queries

SPEC = """
name = "three"
collection = "farm"
[axes]
embedder = "voyage-3.5"
dim = 256
reranker = ["none", "rerank-2.5"]
candidates = [2, 3]
[latency]
repeats = 2
"""


class Cli:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.open(folder / "store")

    def __call__(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["--store", str(self.store.path), "plan", *words])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    def spec(self, text: str, name: str = "s.toml") -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    monkeypatch.setattr("core.providers.calls.keys.SECRETS", ())
    folder = tmp_path / "farm"
    folder.mkdir()
    texts = ["cats purr loudly", "dogs bark", "cows moo", "ducks quack"]
    rows = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(["cats", "dogs"])]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return Cli(tmp_path)


def test_a_plan_as_tables(cli: Cli):
    result = cli(cli.spec(SPEC))
    told = result.stdout
    assert (
        "12 stacks (Decision compares 9: without a reranker K changes nothing), 2 questions asked 2 times, 4"
        in told
    )
    for words in ("embed corpus", "voyage-3.5", "rerank-2.5", "Dollars: $0.00", "(estimated), no budget"):
        assert words in told
    assert "BM25 ⊕ voyage-3.5 256 d + rerank-2.5, K = 3" in told
    assert "Time: about" in told
    assert "Memory:" in told
    assert "missing: voyage-3.5, rerank-2.5: The key VOYAGE_API_KEY is not set." in result.stderr
    assert cli.store.revision() == 0
    assert not cli.store.path.exists()


def test_a_plan_as_json(cli: Cli):
    made = json.loads(cli(cli.spec(SPEC), "--format", "json").stdout)
    assert (made["name"], made["queries"], made["asked"], len(made["stacks"])) == ("three", 2, 2, 12)
    assert made["usd"] == pytest.approx(sum(line["usd"] for line in made["stages"]))
    assert made["calls"] == sum(line["calls"] for line in made["stages"])
    assert made["stacks"][0]["spec"]["mode"] == "sparse"
    assert made["seconds"]["total"] > 0
    assert made["bytes"]["vectors"] == 4 * 4 * (256 + 2048)
    assert [each["severity"] for each in made["problems"]] == ["missing"]


def test_indexes_of_many_passages(cli: Cli):
    path = cli.spec(SPEC)
    made = json.loads(cli(path, "--passages", "10000000", "--format", "json").stdout)["at_scale"]
    assert made[0]["index"] == "flat"
    assert made[0]["asked"]
    assert made[0]["memory_bytes"] == pytest.approx(4 * 256 * 10_000_000, rel=0.001)
    assert {"hnsw-f32", "pgvector"} <= {each["index"] for each in made}
    assert "usd_per_month" in cli(path, "--passages", "1000").stdout


def test_a_plan_as_csv(cli: Cli):
    path = cli.spec(SPEC)
    rows = list(csv.DictReader(io.StringIO(cli(path, "--format", "csv").stdout)))
    assert [row["stage"] for row in rows] == ["embed corpus", "embed", "rerank"]
    assert rows[0]["unit"] == "input_tokens"
    stacks = list(csv.DictReader(io.StringIO(cli(path, "--format", "csv", "--stacks").stdout)))
    assert len(stacks) == 12
    assert stacks[0]["label"] == "BM25, K = 2"


def test_many_stacks_are_cut_short_in_the_table(cli: Cli):
    path = cli.spec('collection = "farm"\n[axes]\nmode = "sparse"\ncandidates = ' + str(list(range(1, 31))))
    assert "… and 10 more (--stacks)" in cli(path).stdout
    assert "more (--stacks)" not in cli(path, "--stacks").stdout
    assert "No vendor is paid" in cli(path).stdout


def test_a_budget(cli: Cli):
    assert (
        "of a budget of $0.00: it stops before its end"
        in cli(cli.spec(SPEC + "[budget]\nusd = 0.0000001\n")).stdout
    )
    assert (
        "of a budget of $9.00: enough as far as is known"
        in cli(cli.spec(SPEC + "[budget]\nusd = 9\n")).stdout
    )
    mine = '[models.mine]\nprovider = "voyage"\nmodel = "mine"\ndim = 256\n'
    said = cli(cli.spec(SPEC.replace('"voyage-3.5"', '"mine"') + mine)).stdout
    assert "Dollars: unknown, at least $0.0" in said
    assert "No price in $: mine. Price it in" in said


def test_yaml(cli: Cli):
    path = cli.spec("collection: farm\naxes:\n  mode: sparse\n", "s.yaml")
    assert "1 stack," in cli(path).stdout


def test_refusals_tell_all_problems(cli: Cli):
    result = cli(cli.spec('collection = "nowhere/"\n[axes]\nmode = "dense"\nembedder = "x"\n'), code=1)
    assert result.stdout == ""
    first, second, *_ = result.stderr.splitlines()
    assert first.startswith("error: collection.path: There is no such file or folder: ")
    assert second.startswith("error: embedder of x, K = 50: There is no embedder 'x'.")
    typo = cli(cli.spec('collection = "farm"\n[axis]\n'), code=1).stderr
    assert typo.startswith("error: s.toml:2, axis: There is no key 'axis' here. Did you mean \"axes\"?")
    assert "There is no such file" in cli("none.toml", code=1).stderr


@pytest.mark.slow
def test_the_schema(cli: Cli):
    schema = json.loads(cli("--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"collection": "c", "axes": {"dim": 64}}, schema)


def test_wrong_usage_is_exit_code_2(cli: Cli):
    assert "SPEC" in cli(code=2).stderr


def stored(store: Store, *, judged: bool = True) -> None:
    golden = GoldenSet(golden_set_id="g", collection_id="c", name="G")
    rows = {"golden_set_id": ["g"], "query_id": ["q0"], "passage_id": ["p000"], "grade": [5], "raw": [5]}
    run = Run(
        run_id="r",
        collection_id="c",
        stack=Stack({"mode": "sparse", "reranker": "rerank-2.5", "candidates": 50}),
        label="r",
        origin=Origin.RUN,
    )
    asked = queries(["cats", "dogs"])
    times = {
        "run_id": ["r"],
        "query_id": [asked["query_id"][0]],
        "stage": ["rerank"],
        "repeat": [1],
        "ms": [9.0],
    }
    with store.write("test") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                golden_sets=(golden,) if judged else (),
                runs=(run,),
                frames={
                    "passages": passages(["cats purr", "dogs bark"]),
                    "queries": asked,
                    "timings": frame("timings", times),
                    **({"judgements": frame("judgements", rows)} if judged else {}),
                },
            )
        )


def test_stored_collections_and_measured_times(cli: Cli):
    stored(cli.store)
    path = cli.spec('collection = "c"\n[axes]\nmode = "sparse"\nreranker = "rerank-2.5"\ncandidates = 2\n')
    made = json.loads(cli(path, "--format", "json").stdout)
    assert made["passages"] == [{"chunking": None, "passages": 2}]
    assert "measured earlier" in made["time_basis"]
    assert made["seconds"]["rerank"] == pytest.approx(2 * 3 * 0.009)
    assert "No collection 'd'. Found: c." in cli(cli.spec('collection = "d"\n[axes]\n'), code=1).stderr
    text = 'collection = "c"\ngolden_set = "h"\n[axes]\n'
    assert "No golden set 'h'. Found: g." in cli(cli.spec(text), code=1).stderr


def test_a_stored_collection_without_passages(cli: Cli):
    with cli.store.write("test") as writer:
        writer.add(Batch(collections=(Collection(collection_id="c", name="C"),)))
    told = cli(cli.spec('collection = "c"\n[axes]\n'), code=1).stderr
    assert "c: The collection has no passages in the store." in told


def test_measured_rates_are_medians_by_model_and_depth():
    import polars as pl

    runs = pl.DataFrame(
        {
            "run_id": ["a", "b"],
            "spec": [
                json.dumps({"embedder": "e", "reranker": "r", "candidates": 50}),
                json.dumps({"embedder": "e", "candidates": 9}),
            ],
        }
    )
    times = pl.DataFrame(
        {
            "run_id": ["a", "a", "a", "a", "b", "x"],
            "stage": ["rerank", "rerank", "rerank", "embed", "embed", "embed"],
            "ms": [10.0, 30.0, 20.0, 5.0, 7.0, 1.0],
        }
    )
    assert measured(runs, times) == {("rerank", "r", 50): 20.0, ("embed", "e", 0): 7.0}


@pytest.mark.parametrize("command", [["plan"], ["run", "--dry-run"]], ids=" ".join)
@pytest.mark.parametrize(
    ("golden", "told"),
    [
        ("", 'golden_set = { split = "test" }\n'),
        ('golden_set = "farm"\n', 'golden_set = { path = "farm", split = "test" }\n'),
    ],
    ids=["with the collection", "named"],
)
def test_the_advice_about_splits_works_as_it_is_written(cli: Cli, command: list[str], golden: str, told: str):
    for split, query in (("dev", "q0"), ("test", "q1")):
        rows = f"query-id\tcorpus-id\tscore\n{query}\td1\t1\n"
        folder = cli.folder / "farm" / "qrels"
        folder.mkdir(exist_ok=True)
        (folder / f"{split}.tsv").write_text(rows)
    spec = cli.spec(f'collection = "farm"\n{golden}queries = {{ limit = 1 }}\n[axes]\nmode = "sparse"\n')
    words = ["--store", str(cli.store.path), *command, spec]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 1
    option = re.search(r"--split \w+", refused.stderr)
    assert option, refused.stderr
    made = CliRunner().invoke(app, [*words, *option[0].split(), "--format", "json"])
    assert json.loads(made.stdout)["queries"] == 1
    assert "golden_set.split" in refused.stderr
    written = cli.spec(f'collection = "farm"\n{told}[axes]\nmode = "sparse"\n')
    assert CliRunner().invoke(app, [*words[:2], *command, written]).exit_code == 0
