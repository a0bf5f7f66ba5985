"""What reaches a reader: a terminal of 80 columns, a pipe that closes early, NO_COLOR, JSON of one shape."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from core.cli.app import app
from core.cli.base import JSON_VERSION
from core.cli.context import Format, emit, lay
from core.paths import ROOT
from core.report.narrow import fit
from core.views.text import ruled

WIDE = [("stack", False), ("RA-nWG@10", True), ("p50 ms", True), ("a note of the run", False), ("n", True)]
ROW = ("wordllama 256 d + BM25 ⊕ MiniLM", "0.525 [0.429, 0.620]", "11.80", "as it was measured", "64")


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (200, []),
        (80, []),
        (60, ["n"]),
        (50, ["a note of the run", "n"]),
        (20, [head for head, _ in WIDE[1:]]),
    ],
)
def test_columns_that_do_not_fit_are_left_out_and_no_word_is_broken(width: int, left: list[str]):
    table, console = ruled(WIDE, [ROW]), Console(width=width, file=io.StringIO())
    assert fit(table, console) == left
    console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    kept = [cell for (head, _), cell in zip(WIDE, ROW, strict=True) if head not in left]
    words = {word for cell in kept for word in cell.split()}
    assert words <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= width


def test_a_column_wider_than_half_of_the_terminal_goes_before_those_behind_it():
    table = ruled([("id", False), ("spec", False), ("runs", True)], [("s-1", "x" * 70, "12")])
    assert fit(table, Console(width=80)) == ["spec"]


@pytest.mark.parametrize("characters", [20, 300])
def test_a_long_line_in_a_pipe_is_said(characters: int, capsys: pytest.CaptureFixture[str]):
    lay([ruled([("id", False), ("text", False)], [("a", "word " * (characters // 5))])])
    out, err = capsys.readouterr()
    assert ("word " * (characters // 5)).strip() in out
    assert ("--format csv" in err) is (characters > 200)


@pytest.mark.parametrize("version", [1, 2])
def test_json_of_a_table(version: int, capsys: pytest.CaptureFixture[str]):
    kept = JSON_VERSION.set(version)
    emit(pl.DataFrame({"n": [1, None]}), Format.JSON)
    JSON_VERSION.reset(kept)
    found = json.loads(capsys.readouterr().out)
    rows = [{"n": 1}, {"n": None}]
    assert found == (rows if version == 1 else {"format": "clq-explorer/rows", "version": 2, "rows": rows})


@pytest.mark.parametrize(
    "words",
    [
        ("--json-version", "2", "measures", "--format", "json"),
        ("measures", "--format", "json", "--json-version", "2"),
        ("measures", "--json-version=2", "--format", "json"),
    ],
)
def test_the_version_of_json_stands_before_or_behind_the_command(words: tuple[str, ...], tmp_path: Path):
    printed = CliRunner().invoke(app, ["--store", str(tmp_path / "s"), *words])
    assert json.loads(printed.stdout)["rows"][0]["measure"] == "RA-nWG"


def _run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which `clq` is the command line on a new store."""
    clq = f'clq() {{ {sys.executable} -m core --store {folder}/s "$@"; }}; set -o pipefail; '
    return subprocess.run(
        ["bash", "-c", clq + script],
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("clq measures --format csv | head -1", 0),
        ("clq measures | true", 0),
        ("clq --help | head -1", 0),
        ("clq measures --format json 2>&1 | head -c 1", 0),
        ("clq measures nosuch 2>&1 | true", 1),
        ("clq list nosuch 2>&1 | true", 2),
        ("clq measures >&-", 0),
    ],
)
def test_a_reader_that_leaves_early_is_no_error(script: str, code: int, tmp_path: Path):
    done = _run(script, tmp_path)
    assert (done.returncode, done.stderr) == (code, done.stderr if "2>" not in script else "")
    assert "Traceback" not in done.stderr
    assert "roken pipe" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["measures"], ["decide", "--help"], ["list", "nosuch"]])
@pytest.mark.parametrize("plain", [True, False])
def test_no_color_leaves_no_escapes_on_a_terminal(words: list[str], plain: bool, tmp_path: Path):
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.Popen(
        [sys.executable, "-m", "core", "--store", str(tmp_path / "s"), *words],
        cwd=ROOT, env=environment | {"TERM": "xterm"} | ({"NO_COLOR": "1"} if plain else {}),
        stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while part := _read(ours):
        said += part
    done.wait()
    os.close(ours)
    assert (b"\x1b" in said) is (not plain and words == ["measures"])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


COMPLETES = """
from typer.completion import completion_init
from core.cli.app import app
completion_init()
app([], prog_name="clq")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [("clq dec", "decide"), ("clq decide --sla", "--sla-ms"), ("clq decide --rule q", "quality")],
)
def test_the_shell_completes_commands_options_and_values(words: str, found: str):
    asked = {"_CLQ_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETES],
        check=True,
        cwd=ROOT,
        env=os.environ | asked,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [found]
