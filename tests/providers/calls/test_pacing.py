import threading

from hypothesis import given
from hypothesis import strategies as st

from core.providers.calls import Pacer

CALLS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30)), max_size=40
)  # seconds since the call before, tokens


@given(CALLS, st.integers(1, 5), st.integers(10, 60))
def test_no_minute_holds_more_than_allowed(calls: list[tuple[int, int]], requests: int, tokens: int):
    pacer = Pacer({"requests": requests, "tokens": tokens})
    now, sent = 0.0, []
    for gap, size in calls:
        now += gap
        moment = pacer.book({"requests": 1, "tokens": size}, now)
        assert moment >= now
        sent.append((moment, size))
    assert [moment for moment, _ in sent] == sorted(moment for moment, _ in sent)
    for end, size in sent:
        window = [tokens for moment, tokens in sent if end - 60 < moment <= end]
        assert len(window) <= requests
        assert sum(window) <= max(tokens, size)


@given(CALLS, st.integers(1, 5), st.integers(30, 60))
def test_nobody_waits_longer_than_necessary(calls: list[tuple[int, int]], requests: int, tokens: int):
    """Every moment is the earliest whole second that the naive rule allows."""
    pacer = Pacer({"requests": requests, "tokens": tokens})
    now, sent = 0, []
    for gap, size in calls:
        now += gap
        earliest = max([now, *(moment for moment, _ in sent)])
        while True:
            window = [tokens for moment, tokens in sent if earliest - 60 < moment]
            if len(window) < requests and sum(window) + size <= tokens:
                break
            earliest += 1
        assert pacer.book({"requests": 1, "tokens": size}, now) == earliest
        sent.append((earliest, size))


def test_without_limits_nobody_waits():
    pacer = Pacer({})
    assert [pacer.book({"tokens": 10**9}, now) for now in (0.0, 0.0, 5.0)] == [0, 0, 5]


def test_a_call_beyond_the_limit_goes_alone():
    pacer = Pacer({"tokens": 10})
    assert [pacer.book({"tokens": size}, 0.0) for size in (5, 50, 1)] == [0, 60, 120]


def test_a_hold_moves_everyone():
    pacer = Pacer({})
    pacer.hold(30.0)
    pacer.hold(20.0)
    assert [pacer.book({}, now) for now in (0.0, 40.0)] == [30, 40]


def test_threads_share_the_pace():
    pacer, moments = Pacer({"requests": 10}), []
    threads = [
        threading.Thread(target=lambda: moments.append(pacer.book({"requests": 1}, 0.0))) for _ in range(35)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(moments) == [0.0] * 10 + [60.0] * 10 + [120.0] * 10 + [180.0] * 5
