"""Pages are computed in turns, which nobody can keep for long; short messages leave at once."""

from __future__ import annotations

import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.ui.serving import Turns, send_at_once

LONG_S = 3600.0


def test_turns_come_one_after_another() -> None:
    turns = Turns(LONG_S)
    under_way, most, done = 0, 0, []
    guard = threading.Lock()

    def page(number: int) -> None:
        nonlocal under_way, most
        with turns.take():
            with guard:
                under_way += 1
                most = max(most, under_way)
            threading.Event().wait(0.001)
            with guard:
                under_way -= 1
                done.append(number)

    with ThreadPoolExecutor(20) as visitors:
        list(visitors.map(page, range(200)))
    assert most == 1
    assert sorted(done) == list(range(200))


def test_who_takes_too_long_goes_on_beside_the_next() -> None:
    turns = Turns(0.05)
    left = threading.Event()
    with ThreadPoolExecutor(3) as visitors:

        def slow() -> None:
            with turns.take():
                assert left.wait(30)

        def quick() -> str:
            with turns.take():
                return "drawn"

        waiting = visitors.submit(slow)
        assert [visitors.submit(quick).result(30) for _ in range(3)] == ["drawn"] * 3
        assert not waiting.done()
        left.set()
        waiting.result(30)
        assert visitors.submit(quick).result(30) == "drawn"


def test_a_page_that_fails_passes_the_turn_on() -> None:
    turns = Turns(LONG_S)
    with pytest.raises(ZeroDivisionError), turns.take():
        raise ZeroDivisionError
    with turns.take():
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="handles are not files there")
def test_connections_send_at_once() -> None:
    with socket.socket(socket.AF_INET) as listening:  # as Streamlit binds it
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        send_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
