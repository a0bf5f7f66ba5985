"""One model's connection to its vendor: pacing, attempts, backoff, the meter, and the time of the call."""

from __future__ import annotations

import copy
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from core.errors import ClqError, ProviderError
from core.providers.base import Amount, Meter, Reply, believable
from core.providers.calls.failures import Failure, failure
from core.providers.config import Limits, ModelConfig, Place

WINDOW_S = 60.0
T = TypeVar("T")
_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0
_TIMEOUTS = 2  # Attempts at a divisible call that times out
_LONGEST_TIMEOUT_S = 600.0
_UNREADABLE = 3  # Attempts at an unreadable answer: each may be billed, and it rarely becomes better
_ADVICE = {
    "auth": "Check the key{key}, and that it may use this model.",
    "quota": "Check the account's plan and credit at the vendor.",
    "refused": "Check the model's name and its settings.",
    "too large": "Lower batch_items or batch_tokens of the model, or send shorter texts.",
    "busy": "Wait, or lower requests_per_minute, tokens_per_minute or concurrency in the model's limits.",
    "server": "Try again later; what was answered so far is kept.",
    "timeout": "Try again later, or raise timeout_s in the model's limits.",
    "unreachable": "Check the network and the model's base_url.",
    "unreadable": "Check that base_url is a service of this kind, or try again later.",
}


class Pacer:
    """Schedules calls within rate limits, first come, first served; thread-safe.

    Bookings in any window of a minute never add up to more than the limits. A single call beyond a
    limit is let through alone: the vendor has the last word.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = dict(limits)
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, Mapping[str, float]]] = deque()
        self._sums: Counter[str] = Counter()
        self._latest = float("-inf")

    def book(self, costs: Mapping[str, float], now: float) -> float:
        """Book the next slot for a call."""
        with self._lock:
            moment = max(now, self._latest)
            if self._limits:
                while self._sent and (self._sent[0][0] <= moment - WINDOW_S or not self._fits(costs)):
                    moment = max(moment, self._drop() + WINDOW_S)
                self._sent.append((moment, costs))
                self._sums.update(costs)
            self._latest = moment
            return moment

    def hold(self, until: float) -> None:
        """Let nothing through before this moment, because the vendor asked for a pause."""
        with self._lock:
            self._latest = max(self._latest, until)

    def _fits(self, costs: Mapping[str, float]) -> bool:
        return all(self._sums[name] + costs.get(name, 0) <= most for name, most in self._limits.items())

    def _drop(self) -> float:
        moment, costs = self._sent.popleft()
        self._sums.subtract(costs)
        return moment


def per_minute(limits: Limits) -> dict[str, float]:
    """Return the limits per minute, which a pacer keeps."""
    most = {
        "requests": limits.requests_per_minute,
        "tokens": limits.tokens_per_minute,
        "items": limits.items_per_minute,
    }
    return {what: float(limit) for what, limit in most.items() if limit is not None}


class Caller:
    """Sends the calls of one model; thread-safe."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        name: str = "",
        key_env: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        rng: Callable[[], float] = random.random,
        wall: Callable[[], float] = time.time,
        patient: bool = False,
        turns: CallTurns | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.name = name
        self._key_env = key_env
        self._clock, self._sleep, self._rng, self._wall = clock, sleep, rng, wall
        self._patient, self._timeout = patient, [self.limits.timeout_s]
        self._slots = turns or threading.BoundedSemaphore(self.limits.concurrency)
        self._wake = threading.Event()
        self._pacer = turns or Pacer(per_minute(self.limits))

    def call(
        self,
        send: Callable[[], T],
        *,
        tokens: float = 0,
        items: int = 1,
        expected: Sequence[Amount] = (),
        usage: Callable[[T], Sequence[Amount]] | None = None,
        meter: Meter | None = None,
        divisible: bool = False,
    ) -> Reply[T]:
        """Send a call, when its turn comes, until it succeeds."""
        start, wake = self._clock(), self._wake
        with self._slots:
            for attempt in range(1, self.limits.attempts + 1):
                now = self._clock()
                moment = self._pacer.book({"requests": 1, "tokens": tokens, "items": items}, now)
                if moment > now:
                    self._wait(moment - now, wake)
                reply = self._attempt(send, expected, usage, meter)
                if not isinstance(reply, Failure):
                    waited = (self._clock() - start) * 1000 - reply.ms
                    return replace(reply, waited_ms=max(0.0, waited), attempts=attempt)
                self._back_off(reply, attempt, wake, divisible=divisible)
        raise AssertionError("the last attempt raises")

    @property
    def timeout_s(self) -> float:
        """Seconds until the next attempt counts as failed; siblings share it."""
        return self._timeout[0]

    def sibling(self) -> Caller:
        """Return a copy that shares the rate limit and slots but can be interrupted independently."""
        sibling = copy.copy(self)
        sibling._wake = threading.Event()
        return sibling

    def interrupt(self) -> None:
        """End all current waits, whose calls then raise; later calls and siblings are not affected."""
        ended, self._wake = self._wake, threading.Event()
        ended.set()

    def _attempt(
        self,
        send: Callable[[], T],
        expected: Sequence[Amount],
        usage: Callable[[T], Sequence[Amount]] | None,
        meter: Meter | None,
    ) -> Reply[T] | Failure:
        held = meter.reserve(expected) if meter else None
        used: Sequence[Amount] | None = expected  # an interrupted or unreadable call may be billed
        try:
            begin = self._clock()
            value = send()
            ms = (self._clock() - begin) * 1000
            used = believable(usage(value) if usage else expected)
            return Reply(value, used, ms)
        except ClqError:  # the calling code has read the answer and knows better
            raise
        except Exception as error:
            failed = failure(error, self._wall())
            used = expected if failed.sent else None
            return failed
        finally:
            if meter and used is None:
                meter.release(held)
            elif meter:
                meter.settle(held, used or ())

    def _back_off(self, failed: Failure, attempt: int, wake: threading.Event, *, divisible: bool) -> None:
        asked = failed.retry_after
        too_long = asked is not None and asked > self.limits.longest_wait_s
        most = self.limits.attempts
        if failed.kind == "unreadable":
            most = min(most, _UNREADABLE)
        elif failed.kind == "timeout" and divisible:
            most = min(most, 1 if self._patient else _TIMEOUTS)
        elif failed.kind == "timeout" and self._patient:
            self._timeout[0] = max(self._timeout[0], min(2 * self._timeout[0], _LONGEST_TIMEOUT_S))
        if not failed.again or attempt >= most or too_long:
            raise self._error(failed, attempt)
        if asked is None:  # full jitter
            longest = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (attempt - 1))
            self._wait(self._rng() * longest, wake)
        else:  # calls that were told the same delay must not return at the same moment
            self._pacer.hold(self._clock() + asked)
            self._wait(asked + self._rng() * min(1.0, asked / 10), wake)

    def _wait(self, seconds: float, wake: threading.Event) -> None:
        if self._sleep:
            self._sleep(seconds)
        else:
            wake.wait(seconds)
        if wake.is_set():
            raise ProviderError("The call was stopped while it waited for its turn.", kind="stopped")

    def _error(self, failed: Failure, attempt: int) -> ProviderError:
        tried = f" after {attempt} attempts" if attempt > 1 else ""
        status = f" (HTTP {failed.status})" if failed.status is not None else ""
        asked = failed.retry_after
        pause = f"; it asks to wait {asked:.0f} s" if asked and failed.again else ""
        key = f" in {self._key_env}" if self._key_env else ""
        return ProviderError(
            f"No answer to use{tried}: {failed.kind}{status}{pause}: {failed.text or 'nothing was said'}.",
            kind=failed.kind,
            status=failed.status,
            where=self.name,
            do=_ADVICE[failed.kind].format(key=key),
        )


class CallTurns(Protocol):
    """Schedules one model's calls and limits their concurrency; here a `Pacer` and a semaphore."""

    def book(self, costs: Mapping[str, float], now: float) -> float:
        """Book the next slot for a call."""

    def hold(self, until: float) -> None:
        """Let nothing through before this moment."""

    def __enter__(self) -> object: ...
    def __exit__(self, *args: object) -> bool | None: ...


_turns_of: list[Callable[[str, Limits], CallTurns]] = []


def take_turns(turns_of: Callable[[str, Limits], CallTurns]) -> None:
    """Let another component schedule this process's calls, by model and service with their limits."""
    with _callers_lock:
        _callers.clear()
        _turns_of[:] = [turns_of]


_callers: dict[tuple[object, ...], Caller] = {}
_callers_lock = threading.Lock()


def caller_for(config: ModelConfig, place: Place) -> Caller:
    """Return a caller for one model of one service; all callers of it in this process share one pace."""
    identity = (config.provider, config.model, place, config.limits)
    with _callers_lock:
        if identity not in _callers:
            _callers[identity] = Caller(
                config.limits,
                name=f"{config.provider} {config.model}",
                key_env=place.key_env,
                patient=not place.known,
                turns=_turns_of[0](" ".join(map(str, identity)), config.limits) if _turns_of else None,
            )
        return _callers[identity].sibling()
