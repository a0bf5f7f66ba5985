"""A browser's side of Streamlit's websocket, without the browser: it opens a page and moves a slider."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.Slider_pb2 import Slider
from websockets.asyncio.client import ClientConnection, connect

from core.ui.moves import STRIP

_T = TypeVar("_T")


def visiting(visits: Coroutine[Any, Any, _T]) -> _T:
    """Run visits in a thread of their own: the driver of a browser keeps a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, visits).result()


class Session:
    """One visitor of a page.

    Args:
        url: Address of the page, with its query.
        headers: What the browser, and whoever stands between, sends besides.

    Attributes:
        shown: Kinds of all elements that the server has sent, such as "exception".
        heading: The heading sent last.
    """

    def __init__(self, url: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.shown: set[str | None] = set()
        self.heading = ""
        self._url = url
        self._headers = headers
        self._parts = urlsplit(url)
        self._widgets: dict[str, Slider | NumberInput] = {}
        self._limits: dict[str, Any] = {}
        self._strip = self._part = ""
        self._released = 0
        self._state = ClientState(query_string=self._parts.query, page_name=self._parts.path.strip("/"))
        self._connection: ClientConnection

    async def __aenter__(self) -> Session:
        address = f"ws://{self._parts.netloc}/_stcore/stream"
        self._connection = await connect(
            address, subprotocols=["streamlit"], max_size=None, additional_headers=self._headers
        )
        await self._rerun()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    @property
    def query(self) -> str:
        """The query of the address, as the server wrote it last."""
        return self._state.query_string

    async def move(self, label: str, value: float) -> float:
        """Set a limit on its strip, a slider, or a field of a number, by how its label begins.

        Returns:
            Seconds until the server has sent everything that is new.

        Raises:
            KeyError: If the page has no such widget.
        """
        limits = {limit["label"]: limit["key"] for limit in self._limits.get("limits", ())}
        if key := next((limits[name] for name in limits if name.startswith(label)), None):
            return await self._release(key, value)
        named = next((name for name in self._widgets if name.startswith(label)), label)
        widget = self._widgets[named].id
        states = self._state.widget_states.widgets
        state = next((each for each in states if each.id == widget), None) or states.add(id=widget)
        if isinstance(self._widgets[named], NumberInput):
            state.double_value = value
        else:
            state.double_array_value.data[:] = [value]
        start = time.perf_counter()
        await self._rerun()
        return time.perf_counter() - start

    async def _release(self, limit: str, value: float) -> float:
        """Let a limit go on its strip, as the browser's script does."""
        self._released += 1
        values = {"number": self._released, "values": {**self._limits["values"], limit: value}}
        sent = self._state.widget_states.widgets.add(id=f"$$STREAMLIT_INTERNAL_KEY_{self._strip}__events")
        sent.json_trigger_value = json.dumps([{"event": "released", "value": values}])
        self._state.fragment_id = self._part
        start = time.perf_counter()
        await self._rerun()
        self._state.widget_states.widgets.remove(sent)
        self._state.fragment_id = ""
        return time.perf_counter() - start

    async def _rerun(self) -> None:
        message = BackMsg()
        message.rerun_script.CopyFrom(self._state)
        await self._connection.send(message.SerializeToString())
        while not self._finished(ForwardMsg.FromString(await self._connection.recv(decode=False))):
            pass

    def _finished(self, answer: ForwardMsg) -> bool:
        """Take what the next request depends on; whether this was the last message of a run."""
        kind = answer.WhichOneof("type")
        element = answer.delta.new_element.WhichOneof("type")
        if element:
            self.shown.add(element)
        if kind in ("new_session", "navigation"):
            self._state.page_script_hash = getattr(answer, kind).page_script_hash
            self._state.page_name = ""
        elif kind == "page_info_changed":
            self._state.query_string = answer.page_info_changed.query_string
        elif element == "heading":
            self.heading = answer.delta.new_element.heading.body
        elif element == "bidi_component" and STRIP in answer.delta.new_element.bidi_component.id:
            strip = answer.delta.new_element.bidi_component
            self._strip, self._part = strip.id, answer.delta.fragment_id
            self._limits = json.loads(strip.json)[0]
        elif element in ("slider", "number_input"):
            widget = getattr(answer.delta.new_element, element)
            self._widgets[widget.label] = widget
        return kind == "script_finished" and answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
