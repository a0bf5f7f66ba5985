"""The vendors' server in a process of its own, whose log tells every request with the key it came with.

python -m tests.pipeline.evaluate.vendor LOG DELAY_S      prints its address
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from core.paths import ROOT
from tests.vendors import wire


class _Handler(BaseHTTPRequestHandler):
    """Answers every request that it has read, and bills it, whoever is left to hear the answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    log: Path
    delay_s: float
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint, answer = wire.ENDPOINTS[self.path]
        threading.Event().wait(self.delay_s)
        made = answer(body)
        key = str(self.headers["Authorization"]).removeprefix("Bearer ")
        line = {"key": key, "of": asked(endpoint, body), "endpoint": endpoint, "units": made.units}
        with self.lock, self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        sent = json.dumps(made.wrap(made.results, True)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # a client that was killed


def asked(endpoint: str, body: Mapping[str, Any]) -> list[str]:
    """What is paid for in a request, one string each."""
    if endpoint.endswith("embeddings"):
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        return [f"{body.get('dimensions') or body.get('output_dimension')} {text}" for text in texts]
    if "messages" in body:
        return [str(body["messages"][-1]["content"])]
    return [f"{body['query']} / {len(body['documents'])} / {text}" for text in body["documents"]]


class Vendor:
    """A running server and what it was asked."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self._log = url, log

    def lines(self, key: str | None = None) -> list[dict[str, Any]]:
        """The requests so far, in the order in which they were answered; with this key or all."""
        if not self._log.exists():
            return []
        lines = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [line for line in lines if key in (None, line["key"])]

    def requests(self, key: str | None = None) -> list[list[str]]:
        """What was asked in each request."""
        return [line["of"] for line in self.lines(key)]

    def paid(self, key: str | None = None) -> Counter[str]:
        """How often each thing was asked for."""
        return Counter(thing for things in self.requests(key) for thing in things)

    def billed(self, key: str | None = None) -> float:
        """Units billed."""
        return sum(line["units"] for line in self.lines(key))


@contextmanager
def vendor(folder: Path, delay_s: float = 0.0) -> Iterator[Vendor]:
    """Serve from a process of its own until the block ends."""
    log = folder / "vendor.jsonl"
    command = [sys.executable, "-m", "tests.pipeline.evaluate.vendor", str(log), str(delay_s)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Vendor(process.stdout.readline().strip(), log)
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    log, delay_s = sys.argv[1:]
    handler = type("Handler", (_Handler,), {"log": Path(log), "delay_s": float(delay_s)})
    server = _Server(("127.0.0.1", 0), handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
