from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import core
from core.analysis.workspace.scope import resolve_runs
from core.cli.app import COMMANDS, app
from core.cli.context import Format, emit
from core.cli.runs import run
from core.errors import InputError, UnknownNameError
from core.paths import ROOT
from core.pipeline.demo import Demo
from core.records import Batch, Collection, Origin, Run, Stack
from core.store import Store
from core.tables import TABLES
from tests.importers.helpers import zipped

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\n"
QRELS = "q1 0 a 2\nq1 0 b 0\n"


class Cli:
    """The command line on a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.open(folder / "store")

    def file(self, name: str, text: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def __call__(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["--store", str(self.store.path), *words])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    def rows(self, *words: str) -> list[dict[str, object]]:
        return json.loads(self(*words, "--format", "json").stdout)


@pytest.fixture
def cli(tmp_path):
    return Cli(tmp_path)


def counts(rows: list[dict[str, object]], status: str) -> dict[object, object]:
    return {row["what"]: row["count"] for row in rows if row["status"] == status and row["count"] is not None}


@pytest.mark.slow
def test_import_says_what_it_took_and_a_second_time_that_it_is_known(cli):
    run, qrels = cli.file("r.txt", RUN), cli.file("g.txt", QRELS)
    expected = {"collections": 1, "golden sets": 1, "runs": 1, "judgements": 2, "rankings": 2}
    assert counts(cli.rows("import", run, qrels, "--collection", "c"), "taken") == expected
    again = cli.rows("import", run, qrels, "--collection", "c")
    assert counts(again, "known already") == {
        name: n for name, n in expected.items() if name != "collections"
    }
    assert cli.store.revision() == 1
    assert any("ordered by its rank column" in str(row["detail"]) for row in again)


@pytest.mark.slow
def test_options_of_import_reach_the_importer(cli):
    table = cli.file("t.csv", "frage,absatz,wert\nq1,a,1\n")
    columns = ["--column", "query_id=frage", "--column", "passage_id=absatz", "--column", "score=wert"]
    cli("import", table, *columns, "--as", "table", "--label", "mine", "--collection", "c")
    (run,) = cli.rows("list", "runs")
    assert (run["label"], run["collection_id"]) == ("mine", "c")
    cli("import", cli.file("q", QRELS), "--golden-set", "May", "--grades", "0=1,2=4", "--collection", "c")
    (golden,) = cli.rows("list", "golden-sets")
    assert (golden["golden_set_id"], golden["mapping"]) == ("May", "0→1, 2→4")
    beir = zipped(
        {f"qrels/{split}.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n" for split in ("dev", "test")}
    )
    path = cli.file("b.zip", beir)
    assert "several splits: dev, test" in cli("import", path, code=1).stderr
    cli("import", path, "--split", "dev")
    assert len(cli.rows("list", "golden-sets")) == 2


def test_a_dry_run_writes_nothing(cli):
    assert counts(cli.rows("import", cli.file("r", RUN), "--dry-run"), "would take")["rankings"] == 2
    assert cli.store.revision() == 0
    assert not cli.store.path.exists()


def test_files_are_scored_without_a_store(cli):
    run, qrels = cli.file("r.txt", RUN), cli.file("g.txt", QRELS)
    words = ["score", "--measures", "RA-nWG@2,RR@1", "--grades", "0=1,2=4"]
    found = cli.rows(*words, run, "--qrels", qrels)
    assert [(row["stack"], row["measure"], row["value"], row["n"]) for row in found] == [
        ("bm25", "RA-nWG@2", 1.0, 1),
        ("bm25", "RR@1", 1.0, 1),
    ]
    assert cli.rows(*words, run, qrels, "--per-query")[0]["query_id"] == "q1"
    assert not cli.store.path.exists()
    more = cli.file("g2.txt", QRELS + "q9 0 z 2\n")
    zero = cli(*words, run, more)
    assert "note: 1 of 2 judged queries are ranked by no stack and count as 0." in zero.stderr
    own = cli.rows(*words, run, more, "--queries", "own")
    assert [(row["value"], row["n"]) for row in own] == [(1.0, 1), (1.0, 1)]


def test_every_cutoff_goes_to_a_file(cli):
    cli("import", cli.file("r.txt", RUN), cli.file("g.txt", QRELS), "--grades", "0=1,2=4")
    out = cli.folder / "out.parquet"
    assert cli.rows("score", "--measures", "P,RA-nWG", "--every-k", str(out))[0]["rows"] == 2
    assert pl.read_parquet(out).select("k", "query_id", "P", "RA-nWG").rows() == [
        (1, "q1", 1.0, 1.0),
        (2, "q1", 0.5, 1.0),
    ]
    shared = ["score", "--measures", "P", "--every-k", str(out), "--queries", "shared"]
    assert "every run's own queries" in cli(*shared, code=1).stderr


REFUSED = {
    "files without judgements": (
        ["score", "--measures", "P@1", "--qrels", "x"],
        "does not go with the store",
    ),
    "files and runs": (["score", "x", "--measures", "P@1", "--run", "a"], "does not go with files"),
    "no such file": (["import", "/nowhere/x"], "error: /nowhere/x: There is no such file or folder."),
    "column": (["import", "x", "--column", "score"], "--column: 'score' is not meaning=column."),
    "column twice": (
        ["import", "x", "--column", "k=a", "--column", "k=b"],
        "Two columns are said to hold k: a, b.",
    ),
    "delete": (["delete", "nope"], "error: No run 'nope'. Found: none."),
    "restore": (["restore", "nope"], "error: No run 'nope'."),
    "export": (["export", "out", "--collection", "nope"], "error: No collection 'nope'."),
    "export run": (["export", "out", "--run", "nope"], "error: No run 'nope'."),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_are_one_plain_line_on_standard_error(cli, words, message):
    result = cli(*words, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_broken_file_among_good_ones_writes_nothing(cli):
    good, bad = cli.file("r", RUN), cli.file("bad", RUN + "q2 Q0 a 1 NaN bm25\n")
    assert "bad:3, column `score`: 'NaN' is not a finite number." in cli("import", good, bad, code=1).stderr
    assert cli.store.revision() == 0


@pytest.mark.parametrize(
    "words", [["list"], ["list", "things"], ["import"], ["nope"], ["list", "runs", "--format", "xml"], []]
)
def test_wrong_usage_is_exit_code_2(cli, words):
    cli(*words, code=2)


@pytest.mark.parametrize("kind", ["runs", "stacks", "golden-sets", "collections"])
def test_lists_of_an_empty_store(cli, kind):
    assert cli("list", kind).stdout == f"No {kind}.\n"
    assert cli.rows("list", kind) == []
    assert "_id" in cli("list", kind, "--format", "csv").stdout


def test_lists_in_three_formats(cli):
    cli(
        "import", cli.file("r", RUN.replace("bm25", "=cmd()[red]")), cli.file("g", QRELS), "--collection", "c"
    )
    (run,) = cli.rows("list", "runs")
    assert run["label"] == "=cmd()[red]"
    (row,) = csv.DictReader(io.StringIO(cli("list", "runs", "--format", "csv").stdout))
    assert row["label"] == "'=cmd()[red]"
    assert "=cmd()[red]" in cli("list", "runs").stdout
    assert [each["stack_id"] for each in cli.rows("list", "stacks", "--collection", "c")] == [run["stack_id"]]
    assert cli.rows("list", "stacks", "--collection", "c") == cli.rows("list", "stacks")
    assert [each["judgements"] for each in cli.rows("list", "golden-sets")] == [2]
    assert [each["collection_id"] for each in cli.rows("list", "collections", "--collection", "c")] == ["c"]


@pytest.mark.slow
def test_delete_and_restore_by_id_or_label(cli):
    cli("import", cli.file("r", RUN + RUN.replace("bm25", "dense")), "--collection", "c")
    first = cli.rows("list", "runs")[0]["run_id"]
    cli("delete", "dense", str(first))
    assert cli.rows("list", "runs") == []
    assert len(cli.rows("list", "runs", "--removed")) == 2
    assert [row["status"] for row in cli.rows("restore", "dense")] == ["restored"]
    assert [row["label"] for row in cli.rows("list", "runs")] == ["dense"]


def test_names_of_runs():
    runs = pl.DataFrame({"run_id": ["r-1", "r-2", "r-3"], "label": ["a", "b", "b"]})
    assert resolve_runs(runs, ["a", "r-3", "r-1"]) == ["r-1", "r-3"]
    with pytest.raises(InputError, match="2 runs are labelled 'b': r-2, r-3"):
        resolve_runs(runs, ["b"])
    with pytest.raises(UnknownNameError):
        resolve_runs(runs, ["c"])


@pytest.mark.slow
def test_export_and_import_into_another_store(cli, tmp_path):
    cli(
        "import", cli.file("r", RUN + RUN.replace("bm25", "dense")), cli.file("g", QRELS), "--collection", "c"
    )
    cli("import", cli.file("other", RUN), "--collection", "d")
    path = str(tmp_path / "out.zip")
    exported = {row["what"]: row["count"] for row in cli.rows("export", path, "--run", "dense")}
    assert exported == {"collections": 1, "golden sets": 1, "runs": 1, "judgements": 2, "rankings": 2}
    other = Cli(tmp_path / "other-store")
    other("import", path)
    assert [row["label"] for row in other.rows("list", "runs")] == ["dense"]
    whole = {row["what"]: row["count"] for row in cli.rows("export", str(tmp_path / "whole"))}
    assert (whole["collections"], whole["runs"]) == (2, 3)
    assert "The path exists already." in cli("export", path, code=1).stderr


def test_doctor_says_what_evaluations_keep(cli):
    for name, size in (("index-0a", 1_500_000), ("index-0b", 500_000), (".index-0c.partial", 9)):
        folder = cli.folder / "evaluations" / "artifacts" / name
        folder.mkdir(parents=True)
        (folder / "index").write_bytes(bytes(size))
    kept = [row for row in cli.rows("doctor") if row["kind"] == "artifacts"]
    assert [(row["what"], row["found"]) for row in kept] == [("index", "2 folders, 2.0 MB")]


def test_doctor(cli):
    assert any(row["found"] == "sound" for row in cli.rows("doctor"))
    cli("import", cli.file("r", RUN))
    assert {row["what"]: row["found"] for row in cli.rows("doctor") if row["kind"] == "count"}[
        "rankings"
    ] == "2"
    part = next(cli.store.path.rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    result = cli("doctor", code=1)
    assert "damaged" in result.stdout


@pytest.mark.slow
def test_a_writer_that_waits_says_so(cli):
    with cli.store.write("long import"):
        command = [sys.executable, "-m", "core", "--store", str(cli.store.path), "delete", "x"]
        cli.file("r", RUN)
        command[-2:] = ["import", str(cli.folder / "r")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert "waiting for another process that writes to the store (0 s)" in process.stderr.readline()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(cli.rows("list", "runs")) == 1


def small_demo(sink, progress):
    """Stands for the measured demo: two batches, told step by step."""
    run = Run(
        run_id="r-demo",
        collection_id="demo",
        stack=Stack({"mode": "sparse"}),
        label="demo",
        origin=Origin.RUN,
    )
    progress(0, 2, "[red]reading")
    sink(Batch(collections=(Collection(collection_id="demo", name="Demo"),)))
    progress(2, 2, "done")
    sink(Batch(runs=(run,)))
    return Demo((run,), pl.DataFrame(schema=TABLES["judgements"]))


@pytest.mark.slow
def test_demo_fills_the_store_once(cli, monkeypatch):
    monkeypatch.setattr("core.pipeline.demo.run_demo", small_demo)
    monkeypatch.setattr("core.work.names.job.DEMO_RUNS", 1)
    made = cli.rows("demo", "--if-empty", "--measure")
    assert {row["origin"] for row in made} == {"published", "run"}
    assert cli.store.revision() == 1
    assert len(cli.rows("list", "runs")) == len(made)
    assert cli.store.read().sizes("diagnostics").height == 4
    trial = next(
        row["run_id"]
        for row in made
        if row["collection_id"] == "python-names" and row["label"] == "BM25, K = 50"
    )
    answers = cli.store.read().answers([trial])
    assert set(answers["mode"]) == {"top_k", "none", "no_gold", "gold", "harm_after", "harm_before"}
    assert sum(name.startswith("u") for name in answers["query_id"].unique()) == 24
    assert "nothing to do" in cli("demo", "--if-empty").stderr
    assert cli.store.revision() == 1


def test_a_demo_that_fails_writes_nothing(cli, monkeypatch):
    def failing(sink, progress):
        sink(Batch(collections=(Collection(collection_id="demo", name="Demo"),)))
        raise InputError("The questions cannot be read.")

    monkeypatch.setattr("core.pipeline.demo.run_demo", failing)
    assert "error: The questions cannot be read." in cli("demo", "--measure", code=1).stderr
    assert cli.store.revision() == 0


def test_json_has_no_nan(capsys):
    emit(pl.DataFrame({"x": [float("nan"), 1.0, None]}), Format.JSON)
    assert json.loads(capsys.readouterr().out) == [{"x": None}, {"x": 1.0}, {"x": None}]


def test_tables_show_control_characters_harmlessly(capsys):
    emit(pl.DataFrame({"x": ["\x1b[31mred\nline [bold]b[/bold]"], "y": [None]}), Format.TABLE)
    out = capsys.readouterr().out
    assert "\\x1b[31mred\\x0aline [bold]b[/bold]" in out


def test_every_command_prints_in_three_formats_and_has_help(cli):
    for name, _ in COMMANDS:
        text = cli(name, "--help").stdout
        assert name in {"ui", "mcp"} or "--format" in text, name  # which serve, and print nothing


@pytest.mark.slow
def test_python_m_core(tmp_path):
    """The real thing in a process of its own: codes, and no traceback."""
    environment = os.environ | {"CLQ_STORE": str(tmp_path / "store")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "core", *words]
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(core.__file__).parents[1],
        )

    (tmp_path / "r.txt").write_text(RUN)
    done = run("import", str(tmp_path / "r.txt"), "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("status,what,count,detail\n")
    refused = run("import", str(tmp_path / "none"))
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ")
    assert run("nonsense").returncode == 2


def test_the_bar_goes_to_standard_error():
    assert run._bar().console.stderr


def test_the_version_is_that_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert CliRunner().invoke(app, ["--version"]).output.strip() == core.__version__ == declared
