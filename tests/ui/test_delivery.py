"""What scripts send reaches the event loop in order and whole, however many threads send it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from streamlit.runtime.app_session import AppSession

from core.ui.delivery import Delivery, deliver_together

THREADS, EACH = 8, 500


def test_everything_arrives_once_and_in_the_order_of_its_thread() -> None:
    delivery, arrived = Delivery(), list[tuple[int, int]]()

    async def visit() -> None:
        loop = asyncio.get_running_loop()

        def script(number: int) -> None:
            for message in range(EACH):
                delivery.put(loop, partial(arrived.append, (number, message)))

        with ThreadPoolExecutor(THREADS) as scripts:
            await asyncio.gather(*(loop.run_in_executor(scripts, script, each) for each in range(THREADS)))
        while len(arrived) < THREADS * EACH:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(visit(), 30))
    for number in range(THREADS):
        assert [message for script, message in arrived if script == number] == list(range(EACH))


def test_one_that_fails_keeps_no_other_back() -> None:
    delivery, arrived, said = Delivery(), list[str](), list[object]()

    async def visit() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: said.append(about["exception"]))
        delivery.put(loop, lambda: {}[0])
        delivery.put(loop, lambda: arrived.append("next"))
        while not arrived:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(visit(), 30))
    assert [type(each) for each in said] == [KeyError]


def test_what_is_sent_after_the_loop_has_ended_is_dropped() -> None:
    delivery, loop = Delivery(), asyncio.new_event_loop()
    loop.close()
    delivery.put(loop, lambda: pytest.fail("called"))
    delivery.put(loop, lambda: pytest.fail("called"))


def test_streamlit_delivers_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = AppSession._call_soon_on_event_loop
    monkeypatch.setattr(AppSession, "_call_soon_on_event_loop", before)
    deliver_together()
    assert AppSession._call_soon_on_event_loop is not before
