"""Importing by command: changed files, progress in a file, cancelling."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.cli.import_ import InFile
from core.importers import ReadProgress
from core.jobs import JobStatus, Tracker
from core.store import Store

RUN = "q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.trec"
    path.write_text(RUN)
    return path


def call(tmp_path: Path, *arguments: str | Path) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "import", *map(str, arguments)])
    return said.exit_code, said.output


BYTE = "\udcff"  # The byte FF of a name, as Python hands it over


@pytest.mark.parametrize(
    ("option", "found"),
    [("--label", "label"), ("--collection", "collection"), ("--golden-set", "golden set")],
)
def test_a_name_that_is_no_utf_8_is_refused_before_a_store_is_made(
    file: Path, tmp_path: Path, option: str, found: str
) -> None:
    code, said = call(tmp_path, file, "--collection", "c", option, f"a{BYTE}")
    assert (code, said) == (1, f"error: The {found} 'a\\xff' is not UTF-8. Write it in UTF-8.\n")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("folder", [False, True])
def test_a_file_whose_name_is_no_utf_8_is_read_under_one_that_is(
    file: Path, tmp_path: Path, *, folder: bool
) -> None:
    odd = tmp_path / "odd" / f"a{BYTE}.trec"
    odd.parent.mkdir()
    file.rename(odd)
    assert call(tmp_path, odd.parent if folder else odd, "--collection", "c")[0] == 0
    revision = Store.open(tmp_path / "store").read().revisions().row(-1, named=True)
    assert revision["note"] == ("odd" if folder else "a\\xff.trec")


@pytest.mark.parametrize("name", ["a?b", "a\\b", f"a{BYTE}", "a?/store"])
def test_a_path_that_the_engine_would_read_as_another_is_refused(
    file: Path, tmp_path: Path, name: str
) -> None:
    said = CliRunner().invoke(app, ["--store", str(tmp_path / name), "import", str(file)])
    assert said.exit_code == 1
    assert "which the engine reads as another name. Name another folder, or a new one." in said.output
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["a*b[1]", "{a,b}", "a'b\"c", "%41", "a#b", "é ü", "a;b", "s3:"])
def test_a_path_of_any_other_characters_is_a_store(file: Path, tmp_path: Path, name: str) -> None:
    said = CliRunner().invoke(app, ["--store", str(tmp_path / name), "import", str(file)])
    assert said.exit_code == 0
    assert Store.open(tmp_path / name).read().runs().height == 1


@pytest.mark.slow
def test_a_changed_file_needs_a_decision(file: Path, tmp_path: Path) -> None:
    assert call(tmp_path, file, "--collection", "c")[0] == 0
    assert "known already" in call(tmp_path, file, "--collection", "c")[1]
    file.write_text(RUN.replace("p2", "p3"))
    for decision in ("refuse", "ask"):
        code, said = call(tmp_path, file, "--collection", "c", "--if-changed", decision)
        assert code == 1
        assert "run 'mine'" in said
        assert "--if-changed new" in said
        assert "--if-changed replace" in said
    store = Store.open(tmp_path / "store")
    assert store.revision() == 1
    assert (
        "Kept beside what was there: run 'mine'"
        in call(tmp_path, file, "--collection", "c", "--if-changed", "new")[1]
    )
    assert sorted(store.read().runs()["label"]) == ["mine", "mine (2)"]


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    handled = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "signal", lambda *_: handled)
    return tmp_path / "status.json"


def test_the_dashboard_reads_how_it_went(file: Path, tmp_path: Path, status: Path) -> None:
    call(tmp_path, file, "--collection", "c", "--status", status)
    told = json.loads(status.read_text())
    facts = told["facts"]
    assert (told["state"], facts["fresh"], facts["collection"]) == ("finished", True, "c")
    assert "mine.trec: trec-run" in facts["more"]
    file.write_text(RUN.replace("p2", "p3"))
    call(tmp_path, file, "--collection", "c", "--status", status)
    told = json.loads(status.read_text())
    assert (told["state"], told["facts"]["changed"]) == ("failed", ["run 'mine'"])
    file.write_text("nonsense")
    call(tmp_path, file, "--status", status)
    told = json.loads(status.read_text())
    assert told["facts"]["changed"] == []
    assert "mine.trec" in told["message"]


def test_a_cancelled_import_leaves_the_store_as_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request to end comes while rows are being written."""
    from core.store import parts

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(parts, "stage", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    try:
        code, _ = call(tmp_path, file, "--status", tmp_path / "status.json")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert code != 0
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "cancelled"
    assert Store.open(tmp_path / "store").revision() == 0
    assert [path for path in (tmp_path / "store" / "parts").iterdir() if path.is_dir()] == []


def test_progress_is_written_now_and_then(tmp_path: Path) -> None:
    clock = {"s": 0.0}
    tracker = Tracker(JobStatus(name="x"), path=tmp_path / "status.json", clock=lambda: clock["s"])
    teller = InFile(tracker)
    seen = []

    def tell(now: ReadProgress) -> None:
        teller(now)
        told = json.loads((tmp_path / "status.json").read_text())
        seen.append((told["counted"], told["whole"], told["unit"]))

    progress = ReadProgress(tell)
    progress.total = 100
    for position, seconds in ((10, 0.0), (20, 0.3), (30, 0.31), (40, 1.0)):
        clock["s"] = seconds
        progress.at("x", position)
    assert seen == [(0, 0, ""), (20, 100, "bytes"), (20, 100, "bytes"), (40, 100, "bytes")]
    progress.step("storing rankings")
    assert json.loads((tmp_path / "status.json").read_text())["stage"] == "storing rankings"


def test_a_status_that_cannot_be_written_ends_no_import_and_a_full_disk_is_said(tmp_path: Path) -> None:
    absent, status = (
        InFile(Tracker(JobStatus(name="x"), path=path))
        for path in (tmp_path / "absent" / "status.json", tmp_path / "status.json")
    )
    absent(ReadProgress(lambda _: None))
    status.failed(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert "the disk is full" in json.loads((tmp_path / "status.json").read_text())["message"]


def test_a_piped_table_holds_names_whole(tmp_path):
    name = "a-stack-of-many-parts-" * 11
    (tmp_path / f"{name}.csv").write_text("query_id,passage_id,rank\nq1,a,1\n")
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "s"), "import", str(tmp_path / f"{name}.csv")])
    assert [line for line in done.stdout.splitlines() if f" {name}.csv " in line]


LONG = "stack,query_id,metric,value,latency_ms,usd_per_query,remark\n" + "".join(
    f"{stack},q{n},{measure},0.{5 + n % 4},{ms},{usd},x\n"
    for stack, ms, usd in (("dense", 300, 0.002), ("bm25", 12, 0))
    for n in range(12)
    for measure in ("nDCG@10", "R@10")
)


@pytest.mark.slow
def test_a_long_table_is_decided_on_with_its_latency_and_price(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(LONG)
    code, said = call(tmp_path, tmp_path / "long.csv", "--collection", "c")
    assert code == 0
    assert "column `remark`: unknown meaning" in said
    snapshot = Store.open(tmp_path / "store").read()
    ids = dict(snapshot.runs().select("label", "run_id").iter_rows())
    assert set(snapshot.timings([ids["dense"]])["ms"]) == {300.0}
    prices = snapshot.aggregates([ids["dense"]]).filter(measure="usd_per_1k")
    assert prices["value"].to_list() == [2.0]
    store = ["--store", str(tmp_path / "store")]
    decided = CliRunner().invoke(app, [*store, "decide", "--collection", "c", "--sla-ms", "100"])
    assert decided.stdout.startswith("Ship bm25 within 100 ms")
    assert "12.0 ms" in decided.stdout
    (tmp_path / "long.csv").write_text(LONG.replace(",300,", ",301,", 1))
    code, said = call(tmp_path, tmp_path / "long.csv", "--collection", "d")
    assert code == 1
    assert "The same query of a stack has '301' on line 2 and '300' on line 3" in said
