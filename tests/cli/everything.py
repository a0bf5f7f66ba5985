"""Every way in, tried on one store: what each command and each page says, for the table of faults."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.cli.app import app
from core.paths import ROOT
from core.ui import cache
from tests.pages.reading import go
from tests.pages.served import served

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\n"
QRELS = "q1 0 a 2\nq1 0 b 0\n"
TEXTS = "".join(f'{{"_id": "{each}", "text": "{each} words"}}\n' for each in "abc")
ASKED = '{"_id": "q1", "text": "a words"}\n'
SPEC = """
name = "tiny"
collection = "c"
[axes]
mode = ["sparse"]
candidates = [2]
[latency]
repeats = 1
"""
READERS = ("list", "score")
WRITERS = ("import", "reimport", "run", "delete")
_LEAKS = ("Traceback", "SELECT", "read_parquet", "LINE 1", "UnboundLocal")


@dataclass(frozen=True)
class Outcome:
    """What was seen: the exit code (of a page 1 if it shows an error), and what was printed or shown."""

    code: int
    said: str

    def clear(self) -> bool:
        """Whether it worked, or was refused in one sentence without anything of the inside."""
        if any(word in self.said for word in _LEAKS):
            return False
        return self.code == 0 or (
            self.code == 1 and (self.said.count("error:") == 1 or "damage" in self.said)
        )


def prepare(store: Path, folder: Path) -> None:
    """A store with a collection, a run and judgements, and the files that the commands read."""
    for name, text in (
        ("first.run", RUN),
        ("gold.qrels", QRELS),
        ("more.run", RUN.replace("bm25", "more")),
        ("spec.toml", SPEC),
    ):
        (folder / name).write_text(text)
    beir = folder / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "corpus.jsonl").write_text(TEXTS)
    (beir / "queries.jsonl").write_text(ASKED)
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    for words in (
        ["import", str(beir), "--collection", "c"],
        ["import", str(folder / "first.run"), str(folder / "gold.qrels"), "--collection", "c"],
    ):
        result = CliRunner().invoke(app, ["--store", str(store), *words])
        assert result.exit_code == 0, result.output


def command(store: Path, folder: Path, name: str) -> Outcome:
    """Run one of the commands."""
    words = {
        "list": ["list", "runs"],
        "score": ["score", "--measures", "P@1", "--golden-set", "c-gold"],
        "import": ["import", str(folder / "more.run"), "--collection", "c"],
        "reimport": ["import", str(folder / "first.run"), "--collection", "c"],
        "delete": ["delete", "--collection", "c"],
        "run": ["run", str(folder / "spec.toml"), "--yes"],
        "doctor": ["doctor"],
        "repair": ["doctor", "--repair"],
        "backup": ["store", "backup", str(folder / "backup")],
        "restore": ["store", "restore", str(folder / "backup")],
        "back": ["store", "restore", str(folder / "backup"), "--back"],
    }[name]
    result = CliRunner().invoke(app, ["--store", str(store), *words])
    raised = result.exception
    if raised is not None and not isinstance(raised, SystemExit):
        return Outcome(99, f"Traceback: {raised!r}\n{result.output}")
    return Outcome(result.exit_code, result.output)


def page(store: Path, name: str) -> Outcome:
    """Open one of the pages."""
    os.environ["CLQ_STORE"] = str(store)
    cache.store.clear()
    with pytest.MonkeyPatch.context() as patch:
        served(patch)
        opened = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        go(opened, name).run()
    said = [f"Traceback {each.value} {each.message}" for each in opened.exception]
    errors = ["error: " + each.value.replace("\\", "") for each in opened.error]  # escaped Markdown
    return Outcome(int(bool(said or errors)), "\n".join([*said, *errors]))


def outcomes(store: Path, folder: Path, names: Iterable[str]) -> dict[str, Outcome]:
    """What each of some commands and pages ("page NAME") says; the folder has the files that are imported."""
    return {
        name: page(store, name[5:]) if name.startswith("page ") else command(store, folder, name)
        for name in names
    }
