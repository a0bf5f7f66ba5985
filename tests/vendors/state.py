"""What the server was asked so far, and what it is told to do next."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Step:
    """How one call is answered.

    Attributes:
        kind: "ok"; "status" (an error with `status` and `retry_after`); "timeout" (no answer for `seconds`);
            "malformed" (status 200, half a JSON document); "wrong count" (one result too many);
            "partial" (the last results are missing, at least one is there); "slow" (ok after `seconds`);
            "drop" (the connection is closed without an answer); "no usage" (ok without any figure of usage);
            "null" (the last result is null); "null number", "nan", "zeros" (its numbers are so); "alike" (all
            results are the first); "constant" (every vector of every call is the same).
        billed: What every figure of usage is multiplied by.
        status: Status of an error.
        retry_after: Value of the Retry-After header, seconds or an HTTP date.
        seconds: How long it takes.
        count: How many requests must be under way before it is answered, for `seconds` at most.
        message: Text of an error; by default it repeats the request's key, as real services do.
    """

    kind: str = "ok"
    status: int = 500
    retry_after: str | None = None
    seconds: float = 0.02
    message: str | None = None
    count: int = 1
    billed: float = 1.0

    @classmethod
    def error(cls, status: int, retry_after: str | None = None, message: str | None = None) -> Step:
        return cls("status", status=status, retry_after=retry_after, message=message)


@dataclass
class State:
    """Counts of one server; everything is guarded by `lock`.

    Attributes:
        calls: Requests that came in, per endpoint ("voyage/embeddings", "cohere/rerank", "openai/chat"…).
        answered: Requests that were answered with results.
        texts: How often each text was embedded (or "query\\x1fpassage" reranked, or user message completed)
            and answered, per endpoint.
        usage: Units that a vendor would bill, per endpoint.
        requests: Body of every request with its "endpoint", "key", "headers" and "status" (0 = no answer), in
            order.
        largest: The most items of one request, per endpoint.
        seconds_per_item: How long each text (or passage) of a request takes, one request after the other.
        most_at_once: The most requests that were under way together.
    """

    log: Path | None = None
    delay_s: float = 0.0
    seconds_per_item: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    texts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    usage: Counter[str] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)
    largest: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    steps: dict[str, deque[Step]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, Step] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    working: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)
    full: threading.Event = field(default_factory=threading.Event)
    _under_way: int = 0

    def next_step(self, endpoint: str) -> Step:
        with self.lock:
            self.calls[endpoint] += 1
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            if self.steps[endpoint]:
                return self.steps[endpoint].popleft()
            return self.always.get(endpoint, Step())

    def together(self, count: int, seconds: float) -> None:
        """Wait until so many requests are under way at once."""
        with self.lock:
            if self._under_way >= count:
                self.full.set()
        self.full.wait(seconds)

    def begin(
        self, endpoint: str, body: Mapping[str, Any], key: str, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Note a request before it is answered: a client may come back before `finish` is reached."""
        request = {"endpoint": endpoint, "key": key, "status": 0, "headers": headers, **body}
        with self.lock:
            self.requests.append(request)
        return request

    def finish(self, request: dict[str, Any], status: int) -> None:
        with self.lock:
            self._under_way -= 1
            request["status"] = status
        self.write({"endpoint": request["endpoint"], "status": status})

    def bill(self, endpoint: str, texts: Sequence[str], units: float) -> None:
        with self.lock:
            self.answered[endpoint] += 1
            self.texts[endpoint].update(texts)
            self.usage[endpoint] += units
            self.largest[endpoint] = max(self.largest[endpoint], len(texts))
        self.write({"endpoint": endpoint, "texts": list(texts), "units": units})

    def write(self, line: Mapping[str, Any]) -> None:
        if self.log:
            with self.lock, self.log.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def reset(self) -> None:
        with self.lock:
            for counts in (self.calls, self.answered, self.texts, self.usage, self.largest):
                counts.clear()
            self.full.clear()
            self.requests.clear()
            self.steps.clear()
            self.always.clear()
            self.most_at_once, self.seconds_per_item = 0, 0.0

    def summary(self) -> dict[str, Any]:
        """Everything as JSON, for the tests of another process."""
        with self.lock:
            return {
                "calls": dict(self.calls),
                "answered": dict(self.answered),
                "texts": {endpoint: dict(counts) for endpoint, counts in self.texts.items()},
                "usage": dict(self.usage),
                "largest": dict(self.largest),
                "most_at_once": self.most_at_once,
                "steps": {
                    endpoint: [asdict(step) for step in steps] for endpoint, steps in self.steps.items()
                },
            }
