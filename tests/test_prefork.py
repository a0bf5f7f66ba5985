"""Several processes serve one dashboard: who is handed to which, and what happens when one ends."""

import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from core.prefork import COOKIE, helping, process_of
from tests.client import Session, visiting
from tests.server import serve_many

HEAD = "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n"

EVERYWHERE = "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (f"Cookie: {COOKIE}=1", 1),
        (f"cookie: other=2; {COOKIE}=0; more=3", 0),
        (f"Cookie: {COOKIE}=7", 1),  # of a server with more processes
        (f"Cookie: {COOKIE}=-1", None),
        (f"Cookie: {COOKIE}=99999", None),
        (f"Cookie: {COOKIE}=²", None),
        (f"Cookie: not-{COOKIE}=1", None),
        ("Cookie: =;;=", None),
        (f"X-Cookie: {COOKIE}=1", None),
        ("Accept: */*", None),
    ],
)
def test_a_cookie_names_the_process(line: str, number: int | None):
    assert process_of(HEAD.format(line).encode("latin-1", "replace"), 2) == number


def test_a_cut_request_names_none():
    assert process_of(b"", 2) is None
    assert process_of(b"GET / HTTP/1.1", 2) is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(socket, "send_fds"), reason="hands no connections over")
@pytest.mark.parametrize(
    ("host", "cores", "processes"),
    [
        ("localhost", 8, 1),
        ("127.0.0.2", 8, 1),
        ("::1", 8, 1),
        (EVERYWHERE, 1, 1),
        (EVERYWHERE, 2, 1),
        (EVERYWHERE, 4, 3),
        ("10.0.0.7", 64, 4),
        ("clq.example.com", None, 1),
    ],
)
def test_as_many_processes_as_help_draw_where_others_get_in(
    host: str, cores: int | None, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.prefork.os.cpu_count", lambda: cores)
    assert helping(host) == processes


def test_two_processes_serve_one_dashboard(demo_store: Path, tmp_path: Path):
    with serve_many(tmp_path / "log", demo_store, 2) as server:
        numbers = [_number(server.url) for _ in range(4)]
        assert sorted(numbers) == ["0", "0", "1", "1"]
        for number in ("0", "1"):
            assert _number(server.url, f"{COOKIE}={number}") is None, "it has its process already"
            visiting(_open(server.url, f"{COOKIE}={number}"))
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert os.waitpid(server.pid, 0)[1], "an ended process ends the others"
        assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert "Traceback" not in server.log.read_text()


def _number(url: str, cookie: str = "") -> str | None:
    """The process that answers, as it names itself to a browser that does not know it."""
    request = urllib.request.Request(url, headers={"Cookie": cookie})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        pairs = [pair.partition(";")[0] for pair in answer.headers.get_all("set-cookie", [])]
    return next((pair.partition("=")[2] for pair in pairs if pair.startswith(COOKIE)), None)


async def _open(url: str, cookie: str) -> None:
    async with Session(url, {"Origin": url, "Cookie": cookie}) as session:
        assert "exception" not in session.shown
        assert "heading" in session.shown
