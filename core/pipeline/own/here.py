"""A custom pipeline in this process, as in a notebook: called here, without limits.

An importable function runs in a separate process, see `process`: it is stopped if it hangs, and may crash.
Only this process can ask a notebook's function, a closure or an object that holds a model.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, BinaryIO

from core.errors import ProviderError
from core.pipeline.own.config import OwnStack
from core.pipeline.own.worker.clq_worker import Server
from core.records import JsonMap

MODULE = "clq_here"
"""The module that stands for this process in `call`: MODULE:NAME."""
_OFFERED = ModuleType(MODULE, "Custom pipelines that live in this process.")


def offer(name: str, target: object) -> str:
    """Offer a pipeline of this process under a name; return the text that stands for it in `call`."""
    setattr(_OFFERED, name, target)
    sys.modules[MODULE] = _OFFERED
    return f"{MODULE}:{name}"


def offered(config: OwnStack) -> bool:
    """Return whether this very process offered a pipeline."""
    module, _, name = (config.call or "").partition(":")
    return module == MODULE and hasattr(_OFFERED, name)


class Here:
    """Asks a pipeline of this process; see `core.pipeline.own.process.Worker`."""

    def __init__(self, config: OwnStack) -> None:
        self._config = config
        nothing: BinaryIO = io.BytesIO()
        self._server = Server(nothing, nothing)
        self._said = io.StringIO()
        self.begun = 0
        self.hello: JsonMap = {}

    def ask(self, query: str, k: int, params: JsonMap, only: JsonMap | None = None) -> dict[str, Any]:
        """Ask one query; see `ask_all`."""
        (answer,) = self.ask_all([query], k, params, () if only is None else [only])
        return answer

    def ask_all(
        self, queries: Sequence[str], k: int, params: JsonMap, filters: Sequence[JsonMap | None] = ()
    ) -> list[dict[str, Any]]:
        """Ask queries in a row; see `clq_worker.Server` for the answers.

        Raises:
            KeyboardInterrupt: If it was interrupted.
        """
        self.ready()
        with contextlib.redirect_stderr(self._said):
            filtered = {"filters": list(filters)} if filters else {}
            answers = self._server.ask({"queries": queries, "k": k, "params": dict(params), **filtered})
        if any(
            str(each.get("fault", {}).get("text", "")).startswith("KeyboardInterrupt") for each in answers
        ):
            raise KeyboardInterrupt
        return answers

    def echo(self, k: int, times: int) -> list[float]:
        """Return the milliseconds that an empty pipeline takes when asked in the same way."""
        return list(self._server.echo(k, times)["ms"]) if self.begun else []

    def ready(self) -> None:
        """Look up the pipeline to ask.

        Raises:
            ProviderError: If it has nothing that can be asked.
        """
        if not self.begun:
            self.begun = 1
            order = {"call": self._config.call, "input": self._config.input, "output": self._config.output}
            with contextlib.redirect_stderr(self._said):
                self.hello = self._server.begin(order)
            if fault := self.hello.get("fault"):
                raise ProviderError(
                    f"It cannot be asked: {fault['text']}.", kind="refused", where=self._config.name
                )

    def printed(self) -> str:
        """Return the end of the output of its failures."""
        return " ".join(self._said.getvalue()[-1_500:].split())

    def interrupt(self) -> None:
        """Do nothing, as a call ends by itself."""

    def close(self) -> None:
        """Do nothing, as nothing is open."""
