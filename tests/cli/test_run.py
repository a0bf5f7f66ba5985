"""``run``, ``resume`` and ``manifest``: whole evaluations by the command line, with their exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.paths import ROOT
from core.pipeline.evaluate.folder import State, folders
from core.providers.calls.keys import ALLOW
from tests.cli.test_commands import Cli
from tests.pipeline.evaluate.vendor import Vendor, vendor

pytestmark = pytest.mark.slow

TEXTS = ["cats purr at night", "dogs bark loudly", "cows moo in the field", "pigs grunt", "bees hum at noon"]
ASKED = ["cats at night", "dogs", "what do bees do"]
LOCAL = """
name = "barn"
collection = "barn"
[axes]
mode = ["sparse", "dense"]
embedder = "fake"
candidates = [2, 4]
[latency]
repeats = 2
"""
PAID = """
name = "paid"
collection = "barn"
[axes]
mode = ["sparse", "dense"]
embedder = "mine"
dim = 8
reranker = ["none", "ranker"]
candidates = 3
[latency]
repeats = 1
[models.mine]
provider = "openai"
model = "text-embedding-3-small"
dims = [8, 16]
base_url = "{url}/openai/v1"
key_env = "FARM_KEY"
tokenizer = "cl100k_base"
[models.ranker]
provider = "voyage"
model = "rerank-2.5"
base_url = "{url}/voyage/v1"
key_env = "FARM_KEY"
tokenizer = "voyage3_base"
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "barn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(ASKED)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq2\td4\t1\n"
    )
    return Cli(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with vendor(tmp_path_factory.mktemp("vendor")) as serving:
        yield serving


@pytest.fixture
def paid(cli: Cli, server: Vendor, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The specification of a paid sweep; the test's name is its key."""
    monkeypatch.setenv("FARM_KEY", request.node.name)
    monkeypatch.setenv(ALLOW, f"FARM_KEY={server.url}")
    return cli.file("paid.toml", PAID.format(url=server.url))


def states(cli: Cli) -> list[State]:
    return [each.status().state for each in folders(cli.folder / "evaluations")]


def test_a_run_stores_its_results_and_a_second_one_is_a_no_op(cli: Cli):
    spec = cli.file("barn.toml", LOCAL)
    rows = cli.rows("run", spec)
    assert [row["status"] for row in rows] == ["new"] * 4
    assert {row["label"] for row in cli.rows("list", "runs")} == {row["label"] for row in rows}
    assert all(row["has_rankings"] for row in cli.rows("list", "runs"))
    scores = cli.rows("score", "--measures", "RA-nWG@2")
    assert len(scores) == 4
    assert all(row["value"] is not None for row in scores)
    assert states(cli) == [State.FINISHED]
    revision = cli.store.revision()
    for words in (["run", spec], ["resume", "barn"]):
        again = cli.rows(*words)
        assert [row["status"] for row in again] == ["there before"] * 4
        assert {row["run_id"] for row in again} == {row["run_id"] for row in rows}
    assert cli.store.revision() == revision


def test_a_dry_run_spends_and_writes_nothing(cli: Cli, paid: str, server: Vendor):
    made = json.loads(cli("run", paid, "--dry-run", "--format", "json").stdout)
    assert made["usd"] > 0
    assert made["calls"] > 3
    assert server.lines("test_a_dry_run_spends_and_writes_nothing") == []
    assert cli.store.revision() == 0
    assert not (cli.folder / "evaluations").exists()


def test_the_plan_is_what_the_run_costs(cli: Cli, paid: str):
    planned = json.loads(cli("run", paid, "--dry-run", "--format", "json").stdout)
    cli("run", paid)
    (folder,) = folders(cli.folder / "evaluations")
    assert folder.status().usd == pytest.approx(planned["usd"], rel=0.01)
    left = json.loads(cli("run", paid, "--dry-run", "--format", "json").stdout)
    assert left["usd"] < planned["usd"], "the corpus is embedded already"


def test_a_budget_that_ends_is_exit_code_3_and_resume_goes_on(cli: Cli, paid: str, server: Vendor):
    key = "test_a_budget_that_ends_is_exit_code_3_and_resume_goes_on"
    planned = json.loads(cli("run", paid, "--dry-run", "--format", "json").stdout)["usd"]
    stopped = cli("run", paid, "--budget", str(planned / 2), code=3)
    assert "stopped: " in stopped.stderr
    assert "The budget of $" in stopped.stderr
    assert states(cli) == [State.BUDGET]
    before = server.paid(key)
    assert cli("resume", "paid", code=3).stderr.count("The budget of $") == 1  # it has the budget it had
    cli("resume", "paid", "--budget", "1")
    assert states(cli) == [State.FINISHED]
    assert len(cli.rows("list", "runs")) == 4
    assert max(server.paid(key).values()) <= 2  # asked once, and once to warm up
    assert before <= server.paid(key)


def test_a_missing_key_is_refused_before_anything_runs(cli: Cli, paid: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FARM_KEY")
    refused = cli("run", paid, code=1)
    assert "FARM_KEY" in refused.stderr
    assert cli.store.revision() == 0


def test_a_run_is_repeated_from_its_manifest_alone(cli: Cli, tmp_path: Path):
    spec = cli.file("barn.toml", LOCAL)
    rows = cli.rows("run", spec)
    Path(spec).unlink()
    (again,) = cli.rows("run", "--manifest", str(rows[0]["run_id"]))
    assert again["label"] == rows[0]["label"]
    assert again["run_id"] != rows[0]["run_id"]
    whole = cli.rows("run", "--manifest", "barn-" + folders(tmp_path / "evaluations")[-1].evaluation_id)
    assert {row["label"] for row in whole} == {row["label"] for row in rows}
    one, other = (str(row["run_id"]) for row in (rows[0], again))
    keys = {str(row["key"]).split(".")[0] for row in cli.rows("manifest", "diff", one, other)}
    assert keys <= {"evaluation", "rounds", "indexes"}
    told = json.loads(cli("manifest", "show", one, "--format", "json").stdout)
    assert {"sweep", "spec", "versions", "hashes", "protocol"} <= told.keys()
    assert {"corpus", "queries", "golden_set", "prices list"} <= told["hashes"].keys()
    file = cli.file("manifest.json", json.dumps(told))
    assert cli.rows("run", "--manifest", file)[0]["label"] == rows[0]["label"]
    (tmp_path / "barn" / "queries.jsonl").write_text('{"_id": "q0", "text": "other"}\n')
    changed = cli("run", "--manifest", one, code=1)
    assert "What it was made from has changed: golden_set, queries." in changed.stderr
    assert "has changed: queries" in cli("resume", whole_name(tmp_path), code=1).stderr


def whole_name(folder: Path) -> str:
    return folders(folder / "evaluations")[-1].path.name


def test_again_measures_anew(cli: Cli):
    spec = cli.file("barn.toml", LOCAL)
    first, second = (cli.rows("run", spec, *words) for words in ([], ["--again"]))
    assert {row["run_id"] for row in first}.isdisjoint(row["run_id"] for row in second)
    assert "2 evaluations are called 'barn'" in cli("resume", "barn", code=1).stderr


REFUSED = {
    "nothing": (["run"], 2, "Name a specification or a --manifest"),
    "both": (["run", "x.toml", "--manifest", "y"], 2, "Name a specification or a --manifest"),
    "no file": (["run", "nowhere.toml"], 1, "There is no such file."),
    "no evaluation": (["resume", "nothing"], 1, "No evaluation 'nothing'. Found: none."),
    "no manifest": (["manifest", "show", "nothing"], 1, "No manifest 'nothing'. Found: none."),
    "one of two": (["manifest", "diff", "nothing"], 2, "diff takes 2, 1 given"),
    "negative": (["run", "x.toml", "--budget", "-1"], 2, "budget"),
}


@pytest.mark.parametrize(("words", "code", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(cli: Cli, words: list[str], code: int, says: str):
    refused = cli(*words, code=code)
    assert says in " ".join(refused.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["run", "resume"])
def test_exit_codes_are_documented(cli: Cli, command: str):
    text = " ".join(cli(command, "--help").stdout.split())
    assert "0 done; 1 refused or failed" in text
    assert "3 stopped by the budget; 130 interrupted or cancelled" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_with_130_and_it_goes_on_later(cli: Cli, number: signal.Signals):
    """The real thing in a process of its own."""
    rounds = LOCAL.replace("repeats = 2", "repeats = 1\nrounds = 2\npause_minutes = 10")
    command = [sys.executable, "-W", "error", "-m", "core", "--store", str(cli.store.path), "run"]
    process = subprocess.Popen(
        [*command, cli.file("barn.toml", rounds)], cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True
    )
    place = None
    while place is None or "wait for round 2" not in (place.status() or place).__repr__():
        assert process.poll() is None, process.stderr and process.stderr.read()
        place = next(iter(folders(cli.folder / "evaluations")), None)
        time.sleep(0.02)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert states(cli) == [State.CANCELLED if number is signal.SIGTERM else State.INTERRUPTED]


ALLOWED = [
    # what the specification names, what the operator wrote, who allows it
    ("FARM_KEY", "FARM_KEY={url}", "operator"),
    ("FARM_KEY", "FARM_KEY={url}/openai/v1", "operator"),
    ("FARM_KEY", "", ""),
    ("FARM_KEY", "FARM_KEY=https://models.example.com", ""),
    ("FARM_KEY", "VOYAGE_API_KEY={url}", ""),
    ("VOYAGE_API_KEY", "FARM_KEY={url}", ""),
    ("OPENAI_API_KEY", "FARM_KEY={url}", ""),
    ("HOME", "FARM_KEY={url}", ""),
]


@pytest.mark.parametrize(("name", "said", "by"), ALLOWED)
def test_a_specification_cannot_send_a_key_where_it_does_not_belong(  # noqa: PLR0917
    cli: Cli, server: Vendor, monkeypatch: pytest.MonkeyPatch, name: str, said: str, by: str
):
    key = f"{name}-{said}-{by}".replace("{url}", "u").replace(" ", "")
    for each in ("FARM_KEY", "VOYAGE_API_KEY", "OPENAI_API_KEY", "HOME"):
        monkeypatch.setenv(each, key)
    monkeypatch.setenv(ALLOW, said.format(url=server.url))
    spec = cli.file("paid.toml", PAID.format(url=server.url).replace("FARM_KEY", name))
    before = len(server.lines())
    planned = json.loads(cli("plan", spec, "--format", "json").stdout)
    assert planned["services"] == [
        {"model": model, "url": f"{server.url}/{path}/v1", "key_env": name, "allowed_by": by}
        for model, path in (("mine", "openai"), ("ranker", "voyage"))
    ]
    shown = " ".join(cli("plan", spec).stdout.split())
    assert f"mine is asked at {server.url}/openai/v1: key {name}" in shown
    assert key not in shown
    assert len(server.lines()) == before
    ran = cli("run", spec, code=0 if by else 1)
    assert bool(server.lines(key)) == bool(by)
    assert len(server.lines()) == before + len(server.lines(key))
    assert (f"The key {name} may not be sent to" in ran.stderr) != bool(by)
    assert not any(
        key in path.read_bytes().decode("latin-1") for path in cli.folder.rglob("*") if path.is_file()
    )
