"""A pipeline in a process with its own interpreter, queried over pipes, stopped if it hangs, restarted.

Its output goes to a log; the protocol is in `worker/clq_worker.py`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from core.errors import ProviderError
from core.pipeline.own.config import OwnStack
from core.records import JsonMap

WORKER = Path(__file__).parent / "worker" / "clq_worker.py"
_LOOK_S = 0.25  # Seconds between checks whether it should stop
_HEAD = struct.Struct(">I")
_PRINTED = 1_500
_MODULES = 8
_BYTES_BESIDE = 1_000_000  # Bytes of an answer besides its passages


class Ended(Exception):  # noqa: N818 - it is reported as a fault of the query
    """The process ended, or was ended, in the middle of a call."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


class OwnWorker:
    """One process, asked by one thread."""

    def __init__(self, config: OwnStack, params: Sequence[JsonMap] = ()) -> None:
        self._config, self._params = config, list(params)
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._said = ""  # the end of the previous process's output
        self._stop = threading.Event()
        self.begun = 0  # number of starts
        self.hello: JsonMap = {}  # its own description when it was ready

    def ask(self, query: str, k: int, params: JsonMap, only: JsonMap | None = None) -> dict[str, Any]:
        """Ask one query; see `ask_all`."""
        (answer,) = self.ask_all([query], k, params, () if only is None else [only])
        return answer

    def ask_all(
        self, queries: Sequence[str], k: int, params: JsonMap, filters: Sequence[JsonMap | None] = ()
    ) -> list[dict[str, Any]]:
        """Ask queries in a row, without pauses; see `clq_worker.Server` for the answers.

        Args:
            filters: What the asker of each query may see; empty = none has a filter.

        Raises:
            Ended: If they took too long, or its process ended; all of their answers are lost then.
            ProviderError: If it cannot be started, or was started too often.
        """
        self.ready()
        filtered = {"filters": list(filters)} if filters else {}
        message = {"queries": list(queries), "k": k, "params": dict(params), **filtered}
        return self._exchange(message, self._config.timeout_s, len(queries))

    def echo(self, k: int, times: int) -> list[float]:
        """Return the milliseconds of an empty pipeline asked in the same way; [] if no process runs."""
        if self._process is None or self._process.poll() is not None:
            return []
        (answer,) = self._exchange({"echo": times, "k": k}, self._config.timeout_s)
        return list(answer["ms"])

    def ready(self) -> None:
        """Start the process unless it is running."""
        if self._process is not None and self._process.poll() is None:
            return
        if self.begun > self._config.restarts:
            raise ProviderError(
                f"Its process ended {self.begun} times.",
                kind="server",
                where=self._config.name,
                do=f"Look at what it printed: {self.printed() or 'nothing'}. What was answered is kept.",
            )
        self._start()

    def _start(self) -> None:
        config = self._config
        self.close()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        folder = str((config.path or Path()).absolute())
        python = str(config.python or sys.executable)
        self.begun += 1
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the user wants to be run, without a shell
                [python, "-u", str(WORKER), folder],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise self._no_start(f"{python} cannot be started: {error.strerror or error}.") from error
        order = {
            "call": config.call,
            "input": config.input,
            "output": config.output,
            "memory_mb": config.memory_mb,
            "max_bytes": int(config.answer_mb * 1e6),
            "params": self._params,
        }
        try:
            (answer,) = self._exchange(order, config.start_s)
        except Ended as error:
            raise self._no_start(f"It did not start: {error.text}") from error
        if "fault" in answer:
            fault = answer["fault"]
            self.close()
            at = f" ({fault['where']})" if fault["where"] else ""
            if not at and "ModuleNotFoundError" in fault["text"]:
                at = f" in {folder}, which holds {_modules(Path(folder))}"
            raise self._no_start(f"{config.call} cannot be loaded: {fault['text']}{at}.")
        self.hello = answer

    def _no_start(self, found: str) -> ProviderError:
        python = self._config.python or sys.executable
        do = f"Check call, path and python; its interpreter is {python}."
        if "No module named" in found:
            do = (
                f"Name the folder of the module as path, and the interpreter that has its packages: {python}?"
            )
        return ProviderError(found, kind="refused", where=self._config.name, do=do)

    def _exchange(self, message: JsonMap, seconds: float, answers: int = 1) -> list[dict[str, Any]]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise Ended("exit", "Its process is not there.")
        body = json.dumps(message).encode("utf-8", "surrogatepass")
        try:
            process.stdin.write(_HEAD.pack(len(body)) + body)
            process.stdin.flush()
            until = time.monotonic() + seconds
            return [self._answer(process.stdout, until, seconds) for _ in range(answers)]
        except (BrokenPipeError, EOFError):
            raise self._over(*self._how_it_ended(process)) from None

    def _answer(self, stream: IO[bytes], until: float, seconds: float) -> dict[str, Any]:
        (size,) = _HEAD.unpack(self._read(stream, _HEAD.size, until, seconds))
        if size > self._config.answer_mb * 1e6 + _BYTES_BESIDE:
            raise self._over("too large", f"An answer of {size / 1e6:.1f} MB came.")
        answer: dict[str, Any] = json.loads(self._read(stream, size, until, seconds))
        return answer

    def _read(self, stream: IO[bytes], size: int, until: float, seconds: float) -> bytes:
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while len(data) < size:
                left = until - time.monotonic()
                if left <= 0:
                    raise self._over("timeout", f"No answer within {seconds:g} s.")
                if not selector.select(min(left, _LOOK_S)):
                    if self._stop.is_set():
                        self.close()
                        raise ProviderError("The call was stopped.", kind="stopped")
                    continue
                part = os.read(stream.fileno(), size - len(data))
                if not part:
                    raise EOFError
                data += part
        return bytes(data)

    def _over(self, kind: str, text: str) -> Ended:
        self.close()
        return Ended(kind, text)

    def _how_it_ended(self, process: subprocess.Popen[bytes]) -> tuple[str, str]:
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            return "exit", "It closed its pipes."
        if code >= 0:
            return "exit", f"Its process ended with exit code {code}."
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        kinds = {"SIGSEGV": "segfault", "SIGBUS": "segfault", "SIGKILL": "killed", "SIGABRT": "abort"}
        beside = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return kinds.get(name, "exit"), f"Its process was ended by {name}{beside}."

    def printed(self) -> str:
        """Return the end of its output."""
        if self._log is None:
            return self._said
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _PRINTED))
        return " ".join(self._log.read().decode("utf-8", "replace").split())

    def interrupt(self) -> None:
        """Cancel a pending call."""
        self._stop.set()

    def close(self) -> None:
        """End the process and whatever it started."""
        process, self._process = self._process, None
        self._said = self.printed()
        if self._log is not None:
            self._log.close()
            self._log = None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def _modules(folder: Path) -> str:
    files = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    return ", ".join(sorted(files - {"__init__"})[:_MODULES]) or "no module"
