"""Who may connect, and what every answer carries."""

import asyncio
from typing import Any

import pytest

from core.ui.access import HEADERS, VISITOR, AccessMiddleware, welcome
from core.ui.assets import CARTESIAN


@pytest.mark.parametrize(
    ("origin", "host", "may"),
    [
        (None, "localhost:8501", True),
        ("http://localhost:8501", "localhost:8501", True),
        ("http://192.0.2.1:8501", "192.0.2.1:8501", True),
        ("https://clq.example.com", "127.0.0.1:8501", True),
        ("https://clq.example.com", "clq.example.com", True),
        ("http://localhost:8501", "127.0.0.1:8501", True),
        ("http://localhost:3000", "127.0.0.1:8501", False),  # another server of this machine
        ("http://localhost:3000", "localhost:8501", False),
        # a name whose owner lets it point to this machine
        ("http://rebound.example:8501", "rebound.example:8501", False),
        (None, "rebound.example:8501", False),
        ("https://evil.example", "127.0.0.1:8501", False),
        ("https://clq.example.com.evil.example", "127.0.0.1:8501", False),
        ("http://192.0.2.1:8501", "192.0.2.2:8501", False),
        ("null", "localhost:8501", False),
        ("", "localhost:8501", False),
        ("http://[::1", "localhost:8501", False),
        ("://", None, False),
    ],
)
def test_who_may_connect(origin: str | None, host: str | None, may: bool):
    assert welcome(origin, host, {"localhost", "clq.example.com"}) is may


def _asked(
    kind: str, path: str = "/media/x", method: str = "GET", **headers: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the door sends, and what it passes on; empty where it passes nothing on."""
    sent: list[dict[str, Any]] = []
    passed: dict[str, Any] = {}

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        passed.update(scope)
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOW")]}
        )

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": f"{kind}.connect"}

    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": method, "path": path, "headers": pairs, "client": ("127.0.0.1", 5)}
    asyncio.run(AccessMiddleware(app)(scope, receive, send))  # type: ignore[arg-type]
    return sent, passed


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8501", 200),
        ("127.0.0.1:8501", 200),
        ("[::1]:8501", 200),
        ("192.0.2.1", 200),
        ("other.example", 200),
        ("rebound.example:8501", 421),
        ("localhost.rebound.example", 421),
        ("[::1", 421),
    ],
)
def test_under_which_names_it_answers(monkeypatch: pytest.MonkeyPatch, host: str, status: int):
    monkeypatch.setenv("CLQ_HOSTS", "more.example other.example")
    (start, *_), passed = _asked("http", host=host)
    assert start["status"] == status
    assert bool(passed) is (status == 200)


def test_the_start_of_the_server_passes():
    passed: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        passed.append(scope["type"])

    asyncio.run(AccessMiddleware(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert passed == ["lifespan"]


def test_every_answer_carries_the_headers():
    (start,), _ = _asked("http", host="localhost")
    found = dict(start["headers"])
    assert found == {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
    assert b"frame-ancestors 'self'" in found[b"content-security-policy"]


@pytest.mark.parametrize(
    ("path", "method", "host", "packed"),
    [
        ("/", "GET", "localhost:8501", False),
        ("/queries", "GET", "192.0.2.1", True),
        (f"/{CARTESIAN}", "GET", "192.0.2.1", True),
        ("/", "POST", "localhost:8501", None),
        ("/_stcore/health", "GET", "localhost:8501", None),
        ("/favicon.png", "GET", "localhost:8501", None),
        ("/no/such/page.js", "GET", "localhost:8501", None),
    ],
)
def test_what_pages_load_is_sent_from_memory(path: str, method: str, host: str, packed: bool | None):
    sent, passed = _asked("http", path, method=method, host=host, accept_encoding="gzip, br")
    found = dict(sent[0]["headers"])
    assert bool(passed) is (packed is None)
    assert (found.get(b"content-encoding") == b"gzip") is bool(packed)
    assert found[b"x-frame-options"] == b"SAMEORIGIN"


def test_a_foreign_page_is_turned_away_at_the_door():
    sent, passed = _asked("websocket", host="localhost:8501", origin="https://evil.example")
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert not passed


@pytest.mark.parametrize(
    ("headers", "visitor", "origin"),
    [
        ({"host": "localhost:1", "origin": "http://localhost:1"}, b"here", True),
        ({"host": "localhost:1", "origin": "http://localhost:1", "via": "x"}, b"elsewhere", True),
        ({"host": "localhost:1", "origin": "http://127.0.0.1:1"}, b"here", False),
        ({"host": "localhost:1", "clq_visitor": "here"}, b"elsewhere", False),
    ],
)
def test_the_pages_are_told_where_a_visitor_sits(headers: dict[str, str], visitor: bytes, origin: bool):
    _, passed = _asked("websocket", **headers)
    told = [value for name, value in passed["headers"] if name.lower() == VISITOR.encode()]
    assert told == [visitor]
    assert any(name == b"origin" for name, _ in passed["headers"]) is origin
