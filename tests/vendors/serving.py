"""The server, in a thread of the test.

    with serve() as vendors:
        vendors.script("voyage/embeddings", Step.error(429, retry_after="1"), Step("timeout"))
        client = voyageai.Client(api_key="k", base_url=vendors.voyage)

A key that begins with "bad" is refused with 401.
"""

from __future__ import annotations

import base64
import json
import math
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from tests.vendors import answers, wire
from tests.vendors.state import State, Step


@dataclass(frozen=True)
class Vendors:
    """A running server.

    Attributes:
        url: Its address, without a slash at the end.
        state: What it was asked.
    """

    url: str
    state: State

    @property
    def voyage(self) -> str:
        return f"{self.url}/voyage/v1"

    @property
    def cohere(self) -> str:
        return f"{self.url}/cohere"

    @property
    def openai(self) -> str:
        return f"{self.url}/openai/v1"

    def script(self, endpoint: str, *steps: Step) -> None:
        """Answer the next calls of an endpoint so; those after them are fine."""
        with self.state.lock:
            self.state.steps[endpoint].extend(steps)

    def always(self, endpoint: str, step: Step) -> None:
        """Answer every call of an endpoint so, when its script is at its end."""
        with self.state.lock:
            self.state.always[endpoint] = step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: State
    write_chat: Callable[[wire.Body], str] | None = None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        if self.path == "/state":
            self._send(200, self.state.summary())
        else:
            self._send(404, {"detail": f"nothing at {self.path}"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path == "/script":
            with self.state.lock:
                self.state.steps[body["endpoint"]].extend(Step(**step) for step in body["steps"])
            self._send(200, {})
        elif self.path == "/reset":
            self.state.reset()
            self._send(200, {})
        elif self.path in wire.ENDPOINTS:
            self._vendor(body)
        else:
            self._send(404, {"detail": f"nothing at {self.path}"})

    def _vendor(self, body: dict[str, Any]) -> None:
        endpoint, answer = wire.ENDPOINTS[self.path]
        if endpoint == "openai/chat" and self.write_chat:
            chat = self.write_chat
            answer = lambda given: wire.openai_chat(given, chat)  # noqa: E731
        key = str(self.headers.get("Authorization") or "").removeprefix("Bearer ")
        step = self.state.next_step(endpoint)
        request = self.state.begin(endpoint, body, key, dict(self.headers))
        reply: _Reply | None = None
        try:
            reply = self._reply(endpoint, answer, body, key, step)
        finally:  # before the client can know that it is answered
            self.state.finish(request, reply.status if reply else 0)
        if reply:
            self._send_bytes(reply)
        else:
            self.close_connection = True

    def _reply(
        self, endpoint: str, answer: Callable[[wire.Body], wire.Answer], body: Any, key: str, step: Step
    ) -> _Reply | None:
        vendor = endpoint.partition("/")[0]
        if key.startswith("bad") or (not key and vendor != "openai"):
            return _reply(401, wire.error(vendor, f"The API key {key} is not valid."))
        if step.kind in {"timeout", "slow"}:
            self.state.closing.wait(step.seconds)
        if step.count > 1:
            self.state.together(step.count, step.seconds)
        if step.kind in {"timeout", "drop"}:
            return None
        if step.kind == "status":
            message = step.message or f"refused with {step.status} for Bearer {key}"
            headers = {"Retry-After": step.retry_after} if step.retry_after is not None else {}
            return _reply(step.status, wire.error(vendor, message), headers)
        if self.state.delay_s:
            self.state.closing.wait(self.state.delay_s)
        made = answer(body)
        if self.state.seconds_per_item:
            with self.state.working:
                self.state.closing.wait(self.state.seconds_per_item * len(made.texts))
        self.state.bill(endpoint, made.texts, made.units)
        whole = _reply(200, _billed(step, made.wrap(_results(step, made.results), step.kind != "no usage")))
        return replace(whole, body=whole.body[: len(whole.body) // 2]) if step.kind == "malformed" else whole

    def _send(self, status: int, body: dict[str, Any]) -> None:
        self._send_bytes(_reply(status, body))

    def _send_bytes(self, reply: _Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)


@dataclass(frozen=True)
class _Reply:
    status: int
    body: bytes
    headers: Mapping[str, str]


def _reply(status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> _Reply:
    return _Reply(status, json.dumps(body).encode(), headers or {})


def _results(step: Step, results: list[Any]) -> list[Any]:
    if step.kind == "wrong count":
        return [*results, results[-1]]
    if step.kind == "partial":
        return results[: max(1, len(results) // 2)]
    if step.kind in _ODD:
        return [*results[:-1], _with_value(results[-1], _ODD[step.kind])]
    if step.kind == "alike":
        return [_with_value(each, lambda _: _value(results[0])) for each in results]
    if step.kind == "constant":
        return [_with_value(each, lambda value: [1.0, *[0.0] * (len(value) - 1)]) for each in results]
    return results


_ODD: Mapping[str, Callable[[Any], Any]] = {
    "null": lambda _: None,
    "null number": lambda value: [None, *value[1:]] if isinstance(value, list) else None,
    "nan": lambda value: [math.nan] * len(value) if isinstance(value, list) else math.nan,
    "zeros": lambda value: [0.0] * len(value) if isinstance(value, list) else 0.0,
}
_FIELDS = ("embedding", "relevance_score")


def _value(result: Any) -> Any:
    return next((result[name] for name in _FIELDS if name in result), result)


def _with_value(result: Any, change: Callable[[Any], Any]) -> Any:
    """A result with other numbers; base64 is sent as a list, as servers do that do not know of it."""
    value = _value(result)
    if isinstance(value, str):
        value = np.frombuffer(base64.b64decode(value), dtype=np.float32).tolist()
    if not isinstance(result, dict):
        return change(value)
    return {**result, next(name for name in _FIELDS if name in result): change(value)}


def _billed(step: Step, body: dict[str, Any]) -> dict[str, Any]:
    for usage in (body.get("usage"), body.get("meta", {}).get("billed_units")):
        for name, amount in (usage or {}).items() if step.billed != 1 else ():
            usage[name] = int(amount * step.billed)
    return body


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that gave up waiting


def make(state: State, chat: Callable[[wire.Body], str] | None = None) -> _Server:
    for vocabulary in ("voyage3_base", "cl100k_base", "o200k_base"):
        answers.counter(vocabulary)  # the first answer must not be slower than the others
    attributes = {"state": state, "write_chat": staticmethod(chat) if chat else None}
    handler = type("Handler", (_Handler,), attributes)
    server = _Server(("127.0.0.1", 0), handler)
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


@contextmanager
def serve(
    *,
    log: Path | None = None,
    delay_s: float = 0.0,
    chat: Callable[[wire.Body], str] | None = None,
    state: State | None = None,
) -> Iterator[Vendors]:
    """Serve until the block ends.

    Args:
        log: File that takes a JSON line per event.
        delay_s: How long every good answer takes.
        chat: Writes the assistant's message for the body of a chat request; `chat.answer` by default.
        state: What it notes and how it answers; one of its own by default.
    """
    state = state or State(log=log, delay_s=delay_s)
    server = make(state, chat)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Vendors(f"http://127.0.0.1:{server.server_address[1]}", state)
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
