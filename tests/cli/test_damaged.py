"""Damaged evaluations and price books: a sentence instead of a traceback, and nothing lost that was sound."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from tests.cli.everything import prepare
from tests.shared import EVERY_PAGE

pytestmark = pytest.mark.slow

TRIES = 60 if EVERY_PAGE else 12
Harm = Callable[[bytes, Random], bytes | None]
HARMS: dict[str, Harm] = {
    "a bit": lambda data, luck: _flipped(data, luck.randrange(8 * len(data))),
    "half": lambda data, luck: data[: luck.randrange(len(data))],
    "nothing": lambda _data, _luck: b"",
    "noise": lambda _data, luck: luck.randbytes(300),
    "another type": lambda _data, _luck: b'{"state": [1], "stacks": "x", "spec": 5, "name": null}',
    "a folder": lambda _data, _luck: None,
}
"""What becomes of a file; None = a folder stands in its place."""


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def harm(path: Path, how: str, luck: Random) -> None:
    data = HARMS[how](path.read_bytes(), luck)
    path.unlink()
    path.mkdir() if data is None else path.write_bytes(data)


def run(store: Path, *words: str) -> tuple[int, str]:
    """Return the exit code, and what was said; a traceback raises."""
    done = CliRunner().invoke(app, ["--store", str(store), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, repr(done.exception))
    assert "Traceback" not in done.output
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, and the evaluation of one stack beside it."""
    folder = tmp_path_factory.mktemp("damaged")
    prepare(folder / "store", folder)
    assert run(folder / "store", "run", str(folder / "spec.toml"), "--yes")[0] == 0
    return folder


def scores(store: Path) -> str:
    return run(store, "score", "--measures", "P@1,P@2", "--golden-set", "c-gold", "--format", "json")[1]


def test_a_damaged_evaluation_is_said_or_measured_anew(measured: Path, tmp_path: Path) -> None:
    files = sorted(
        path.relative_to(measured)
        for path in (measured / "evaluations").rglob("*")
        if path.is_file() and path.stat().st_size
    )
    assert len(files) >= 8
    (folder,) = {path.parts[1] for path in files if path.name == "spec.json"}
    wanted, luck = scores(measured / "store"), Random(5)  # noqa: S311
    for at in range(TRIES):
        file, how = files[at % len(files)], [*HARMS][(at // len(files) + at) % len(HARMS)]
        here = tmp_path / str(at)
        shutil.copytree(measured, here)
        harm(here / file, how, luck)
        words = ("resume", folder) if at % 2 else ("run", str(here / "spec.toml"), "--yes")
        code, said = run(here / "store", *words)
        assert code in {0, 1}, (file, how, said)
        assert code == 0 or said.count("error:") == 1, (file, how, said)
        assert scores(here / "store") == wanted, (file, how)
        assert run(here / "store", "doctor")[0] == 0, (file, how)
        shutil.rmtree(here)


BOOK = """
book = "{name}"
provider = "acme"
[[price]]
item = "m"
unit = "requests"
price = 2
per = 1_000
currency = "USD"
source = "a page"
looked_up = 2026-11-01
confirmed = true
"""


def test_a_damaged_price_book_is_said_and_stops_nothing_else(measured: Path, tmp_path: Path) -> None:
    store, luck = tmp_path / "store", Random(7)  # noqa: S311
    shutil.copytree(measured / "store", store)
    books, wanted = tmp_path / "price-books", scores(store)
    for at in range(TRIES):
        how = [*HARMS][at % len(HARMS)]
        shutil.rmtree(books, ignore_errors=True)
        books.mkdir()
        for name in ("ours", "theirs"):
            (books / f"{name}.toml").write_text(BOOK.format(name=name), encoding="utf-8")
        harm(books / "ours.toml", how, luck)
        code, said = run(store, "prices", "list", "--format", "csv")
        assert code == 0 or (said.count("error:") == 1 and "ours.toml" in said), (how, said)
        assert code == 1 or "theirs" in said, (how, said)
        assert scores(store) == wanted
        assert (books / "theirs.toml").read_text() == BOOK.format(name="theirs")
