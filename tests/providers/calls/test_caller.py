import threading
from collections.abc import Callable
from typing import Any

import pytest

from core.errors import BudgetError, ClqError, ProviderError
from core.providers.base import Amount
from core.providers.calls import Caller, Limits, caller_for
from core.providers.config import ModelConfig, place_of
from core.records import Basis
from tests.providers.calls.made import Ledger, Time, caller

TOKENS = [Amount("model", "input_tokens", 10.0, Basis.MODELLED)]


class HttpError(Exception):
    """As the vendors' clients raise them."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.body = {"message": f"said {status}"}


class ReadTimeoutError(Exception):
    pass


def script(time: Time, *steps: Any, takes: float = 0.25) -> Callable[[], Any]:
    left = list(steps)

    def send() -> Any:
        time.now += takes
        step = left.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step

    return send


def test_a_call_that_succeeds_at_once():
    time = Time()
    reply = caller(time).call(script(time, "answer"), expected=TOKENS)
    assert (reply.value, reply.ms, reply.waited_ms, reply.attempts, reply.fresh) == (
        "answer",
        250,
        0,
        1,
        True,
    )
    assert reply.usage == tuple(TOKENS)


def test_the_time_of_the_call_leaves_out_failures_and_waits():
    time = Time()
    send = script(time, HttpError(500), HttpError(429, retry_after="7"), ReadTimeoutError(), "answer")
    reply = caller(time).call(send)
    assert (reply.value, reply.attempts, reply.ms) == ("answer", 4, 250)
    # full jitter: half of 1 s, then what was asked and a little, then half of 4 s
    assert time.slept == [0.5, 7.35, 2.0]
    assert reply.waited_ms == pytest.approx(sum(time.slept) * 1000 + 3 * 250)


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry_after": "3"}, 3.0),
        ({"Retry_After": "2.5"}, 2.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Thu, 01 Jan 1970 00:17:00 GMT"}, 19.75),  # at 1020 s; it is 1000.25 s
        ({"retry_after": "Thu, 01 Jan 1970 00:16:00 GMT"}, 0.0),  # in the past
        ({"retry_after": "soon"}, 0.0),
        ({"retry_after": "nan"}, 0.0),
        ({"retry_after": "-5"}, 0.0),
    ],
)
def test_retry_after_is_honoured(headers: dict[str, str], least: float):
    time = Time()
    caller(time, jitter=0.0).call(script(time, HttpError(429, **headers), "answer"))
    assert time.slept == [least]


@pytest.mark.parametrize("jitter", [0.0, 0.3, 1.0])
def test_backoff_doubles_up_to_a_minute(jitter: float):
    time = Time()
    caller(time, jitter=jitter, attempts=9).call(script(time, *[HttpError(503)] * 8, "answer"))
    assert time.slept == [jitter * most for most in (1, 2, 4, 8, 16, 32, 60, 60)]


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (HttpError(401), "auth", "SOME_KEY"),
        (HttpError(403), "auth", "SOME_KEY"),
        (HttpError(402), "quota", "credit"),
        (HttpError(400), "refused", "name and its settings"),
        (HttpError(404), "refused", "name and its settings"),
        (HttpError(413), "too large", "batch_tokens"),
    ],
)
def test_a_refusal_is_not_tried_again(error: Exception, kind: str, says: str):
    time = Time()
    with pytest.raises(ProviderError, match=says) as raised:
        caller(time).call(script(time, error))
    assert (raised.value.kind, raised.value.where, time.slept) == (kind, "vendor model", [])
    assert raised.value.__cause__ is raised.value.__context__ is None  # it may carry headers


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (HttpError(429), "busy", "after 3 attempts: busy .HTTP 429.: said 429.*requests_per_minute"),
        (HttpError(500), "server", "HTTP 500.*later"),
        (ReadTimeoutError("read timed out"), "timeout", "timeout_s"),
        (ConnectionRefusedError("refused"), "unreachable", "base_url"),
        (KeyError("data"), "unreadable", "KeyError"),
    ],
)
def test_the_last_attempt_says_what_to_do(error: Exception, kind: str, says: str):
    time = Time()
    with pytest.raises(ProviderError, match=says) as raised:
        caller(time, attempts=3).call(script(time, error, error, error))
    assert raised.value.kind == kind
    assert len(time.slept) == 2


def test_a_vendor_that_asks_to_wait_too_long_is_not_waited_for():
    time = Time()
    with pytest.raises(ProviderError, match="asks to wait 3600 s"):
        caller(time, longest_wait_s=60).call(script(time, HttpError(429, retry_after="3600")))
    assert time.slept == []


def test_a_pause_that_is_asked_for_holds_all_calls():
    time = Time()
    line = caller(time, jitter=0.0, requests_per_minute=1000)
    line.call(script(time, HttpError(429, retry_after="5"), "answer"))
    line._pacer.hold(time.now + 3)
    line.call(script(time, "other"))
    assert time.slept == [5.0, 3.0]


@pytest.mark.parametrize(
    ("error", "spent", "events"),
    [
        (HttpError(429), 4, ["reserve", "release", "reserve", "settle"]),
        (HttpError(500), 4, ["reserve", "release", "reserve", "settle"]),
        (ConnectionRefusedError(), 4, ["reserve", "release", "reserve", "settle"]),
        # these may have been billed
        (ReadTimeoutError(), 14, ["reserve", "settle", "reserve", "settle"]),
        (ValueError("no JSON"), 14, ["reserve", "settle", "reserve", "settle"]),
        (ConnectionResetError(), 14, ["reserve", "settle", "reserve", "settle"]),
    ],
)
def test_every_attempt_is_reserved_first(error: Exception, spent: float, events: list[str]):
    time, ledger = Time(), Ledger()
    used = [Amount("model", "input_tokens", 4.0, Basis.MEASURED)]
    send = script(time, error, "answer")
    reply = caller(time).call(send, expected=TOKENS, usage=lambda _: used, meter=ledger)
    assert reply.usage == tuple(used)
    assert (ledger.spent, ledger.reserved, ledger.events) == (spent, 0, events)


def test_nothing_is_sent_beyond_the_budget():
    time, ledger = Time(), Ledger(most=15)
    sent: list[int] = []

    def send() -> str:
        sent.append(1)
        raise ReadTimeoutError

    with pytest.raises(BudgetError):
        caller(time).call(send, expected=TOKENS, meter=ledger)
    assert (len(sent), ledger.spent, ledger.reserved) == (1, 10, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ClqError("this cannot be used")])
def test_what_ends_a_call_from_within_is_settled(error: BaseException):
    time, ledger = Time(), Ledger()
    with pytest.raises(type(error)):
        caller(time).call(script(time, error), expected=TOKENS, meter=ledger)
    assert (ledger.spent, ledger.reserved) == (10, 0)


def test_calls_wait_for_their_turn():
    time = Time()
    line = caller(time, requests_per_minute=2, tokens_per_minute=100)
    for tokens in (10, 10, 10, 95):
        line.call(lambda: None, tokens=tokens)
    assert time.slept == [60, 60]  # the third for the requests, the fourth for the tokens


def test_no_more_calls_at_once_than_allowed():
    line = Caller(Limits(concurrency=2))
    inside, most, full = 0, 0, threading.Event()
    lock = threading.Lock()

    def send() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            if inside == 2:
                full.set()
        full.wait(5)  # both places are taken before anyone leaves
        with lock:
            inside -= 1

    threads = [threading.Thread(target=line.call, args=(send,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


def waiting_call(line: Caller) -> tuple[threading.Thread, list[str]]:
    """A call that a vendor has asked to wait for minutes, in a thread, and how it ended."""
    waiting, ended = threading.Event(), []

    def send() -> None:
        waiting.set()
        raise HttpError(429, retry_after="250")

    def work() -> None:
        try:
            line.call(send)
        except ProviderError as error:
            ended.append(error.kind)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    waiting.wait(5)
    return thread, ended


def interrupt(line: Caller, thread: threading.Thread) -> None:
    while thread.is_alive():  # until it waits, there is nothing to end
        line.interrupt()
        thread.join(0.01)


def test_interrupt_ends_the_waits_under_way_only():
    line = Caller(Limits(attempts=2), rng=lambda: 1.0)
    thread, ended = waiting_call(line)
    interrupt(line, thread)
    assert ended == ["stopped"]
    fresh = Caller()
    fresh.interrupt()
    assert fresh.call(lambda: 1).value == 1


def shared(model: str, url: str | None = None, **limits: int) -> Caller:
    config = ModelConfig(provider="voyage", model=model, base_url=url, limits=Limits(**limits))
    place = place_of(config)
    assert place is not None
    return caller_for(config, place)


def test_siblings_share_the_pace_but_not_the_interruption():
    one = shared("shared", requests_per_minute=1)
    other = shared("shared", requests_per_minute=1)
    first, first_ended = waiting_call(one)
    second_ended: list[str] = []

    def work() -> None:
        try:
            other.call(lambda: None)  # a minute from now
        except ProviderError as error:
            second_ended.append(error.kind)

    second = threading.Thread(target=work, daemon=True)
    second.start()
    interrupt(one, first)
    assert (first_ended, second_ended, second.is_alive()) == (["stopped"], [], True)
    interrupt(other, second)
    assert second_ended == ["stopped"]


def test_a_model_has_one_pace_in_a_process():
    one = shared("model")
    assert shared("model")._pacer is one._pacer
    assert shared("other")._pacer is not one._pacer
    assert shared("model", "http://here")._pacer is not one._pacer


def test_an_answer_that_stays_unreadable_is_not_paid_for_too_often():
    time, ledger = Time(), Ledger()
    with pytest.raises(ProviderError, match="after 3 attempts: unreadable"):
        caller(time, attempts=9).call(script(time, *[KeyError("data")] * 9), expected=TOKENS, meter=ledger)
    assert ledger.spent == 30
