"""What a message says: as much as can be read, and the nearest name."""

from __future__ import annotations

import errno
import sqlite3

import polars as pl
import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.errors import ClqError, InputError, UnknownNameError, cut, nearest, refusal, told

LONG = "x" * 200_000


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("Short."), "Short."),
        (InputError("Found.", where="file", do="Do it."), "file: Found. Do it."),
        (InputError(LONG, where=LONG, do=LONG), f"{cut(LONG)}: {cut(LONG)} {cut(LONG, 400)}"),
        (UnknownNameError("run", LONG, ["a"]), f"No run {cut(LONG, 80)!r}. Found: a."),
        (UnknownNameError("run", "beta", ["alpha", "beta2"]), "No run 'beta'. Found: alpha, beta2."),
        (
            UnknownNameError("run", "zet", [f"a{at:03}" for at in range(20)] + ["zeta"]),
            "No run 'zet'. Nearest: zeta. Found: a000, a001, a002, a003, a004, a005, a006, a007, a008, a009, "
            "a010, a011 (+9 more).",
        ),
        (
            UnknownNameError("run", "a", ["b" * 100, "c" * 100, "d" * 100]),
            f"No run 'a'. Found: {'b' * 100} (+2 more).",
        ),
    ],
)
def test_a_message(error: ClqError, said: str):
    assert str(error) == said
    assert len(error.brief()) <= 200
    assert error.brief() == said or len(said) > 200


@pytest.mark.parametrize(
    ("name", "near"),
    [("Floor", "floor"), ("min_qualty", "min_quality"), ("zzz", ""), (LONG, ""), ("", "")],
)
def test_the_nearest_name(name: str, near: str):
    assert nearest(name, ["floor", "min_quality"]) == near


NUMBERS = ("ENOSPC", "EDQUOT", "EROFS", "EACCES", "EMFILE", "EIO", "ENAMETOOLONG")


@pytest.mark.parametrize("number", [getattr(errno, name) for name in NUMBERS])
def test_a_system_error_is_said_in_words(number: int):
    said = refusal(OSError(number, "what the system says", "file"))
    assert said is not None
    assert "Errno" not in str(said)


FULL = "the disk is full. Free some space and try again; what was there is unchanged."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "x", "tmp"), FULL),
        ("parquet: underlying IO error: No space left on device (os error 28)", FULL),
        (OSError(errno.EACCES, "x"), f"a.csv: {refusal(OSError(errno.EACCES, ''))}"),
        ("a cell says: no space left on device, the disk is full", "a.csv: Wrong."),
        (ValueError("bad"), "a.csv: Wrong."),
    ],
)
def test_what_the_system_refused_is_told_behind_any_error(error: Exception | str, said: str):
    assert str(told(error, InputError("Wrong.", where="a.csv"))) == said


def test_a_full_disk_is_told_behind_an_error_of_the_library_that_writes():
    with pytest.raises((OSError, pl.exceptions.PolarsError)) as raised:
        pl.DataFrame({"x": range(1_000)}).lazy().sink_parquet("/dev/full")
    assert str(told(raised.value, InputError("Wrong."))) == FULL


def test_a_damaged_file_of_an_evaluation_is_said(tmp_path, monkeypatch):
    def damaged(*_: object) -> None:
        raise sqlite3.DatabaseError("file is not a database")

    monkeypatch.setattr("core.cli.base.Context.store", damaged)
    said = CliRunner().invoke(app, ["--store", str(tmp_path), "list", "runs"])
    assert (said.exit_code, said.output) == (
        1,
        "error: A file of an evaluation beside the store is damaged: file is not a database. "
        "Move its folder aside, and begin it again.\n",
    )


ARGUMENTS = (
    "plan", "run", "measure", "import", "export", "page", "formats", "record", "gate", "resume", "delete",
    "restore", "manifest show", "store restore", "decide --measure", "decide --run", "decide --sla-ms",
    "decide --collection", "score", "list", "", "golden", "router", "sql", "page decision -o",
)  # fmt: skip
"""Commands to which an argument is given that is longer than any name."""


@pytest.mark.slow
@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_long_argument_is_not_echoed_whole(demo_store, command: str):
    said = CliRunner().invoke(app, ["--store", str(demo_store), *command.split(), LONG])
    assert said.exit_code in (1, 2)
    assert isinstance(said.exception, SystemExit)
    assert len(said.output) < 1_000
    assert "Errno" not in said.output
