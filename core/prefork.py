"""Several processes that serve one dashboard, if one cannot draw for all visitors.

One process accepts connections, looks at the first bytes of each and hands it to the process that has its
visitor's session; it touches nothing that follows, so each process still sees who is at the other end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from itertools import count
from typing import Any

COOKIE = "clq-process"
"""The number of the process that has a visitor's session."""
NUMBER = "CLQ_PROCESS"
"""The environment variable that tells a process its number."""
_HEAD_BYTES = 65_536
_HEAD_S = 5.0
_LOOK_S = 0.02
_BACKLOG = 128
_MOST = 4  # processes that are started by default
_LARGEST = 200_000_000  # bytes of a message, the value of `streamlit run`


class Handed(socket.socket):
    """The end of a pipe as a listening socket: another process accepts its connections."""

    def listen(self, backlog: int = 0, /) -> None:
        """Do nothing: the other process listens."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its origin.

        Raises:
            BlockingIOError: If there is none yet.
            OSError: If the other process has ended.
        """
        message, handles, *_ = socket.recv_fds(self, 1, 1)
        if not message:
            os.kill(os.getpid(), signal.SIGTERM)
            raise BlockingIOError
        connection = socket.socket(fileno=handles[0])
        return connection, connection.getpeername() if connection.family != socket.AF_UNIX else None


def loopback(host: str | None) -> bool:
    """Return whether a name or an address belongs to this machine."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host or "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def helping(host: str) -> int:
    """Return how many processes to add to a server at `host`: one core is left for everything else."""
    alone = loopback(host) or not hasattr(socket, "send_fds")
    return 1 if alone else min(max((os.cpu_count() or 1) - 1, 1), _MOST)


def process_of(head: bytes, processes: int) -> int | None:
    """Return which process has the session of a request's sender.

    Args:
        head: The request up to its body, as far as it has come.
        processes: How many there are.

    Returns:
        A number below `processes`; None if no cookie names one.
    """
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "cookie":
            with suppress(CookieError):
                named = SimpleCookie(value.strip()).get(COOKIE)
                if named and named.value.isascii() and named.value.isdigit() and len(named.value) < 4:
                    return int(named.value) % processes
    return None


def serve(app: str, listening: socket.socket, processes: int, settings: Mapping[str, str]) -> int:
    """Serve an app by several processes until one of them ends or this one is told to stop.

    Args:
        app: Path of its script.
        listening: Where visitors connect.
        processes: How many, at least 2.
        settings: Streamlit's, by name.

    Returns:
        The exit code.
    """
    pairs = [socket.socketpair() for _ in range(processes)]
    children = [_start(app, theirs, number, settings) for number, (_, theirs) in enumerate(pairs)]
    for _, theirs in pairs:
        theirs.close()
    try:
        return asyncio.run(_hand_out(listening, [ours for ours, _ in pairs], children))
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()


def _start(
    app: str, pipe: socket.socket, number: int, settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    options = {f"STREAMLIT_{name.replace('.', '_').upper()}": value for name, value in _spelt(settings)}
    command = [sys.executable, "-m", __name__, app, str(pipe.fileno())]
    return subprocess.Popen(  # noqa: S603 - our own program, without a shell
        command, env={**os.environ, **options, NUMBER: str(number)}, pass_fds=[pipe.fileno()]
    )


def _spelt(settings: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return settings in the form of environment variables: words joined by underscores."""
    return [
        ("".join(f"_{letter}" if letter.isupper() else letter for letter in name), value)
        for name, value in settings.items()
    ]


async def _hand_out(
    listening: socket.socket, pipes: Sequence[socket.socket], children: Sequence[subprocess.Popen[bytes]]
) -> int:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopped.set)
    listening.setblocking(False)
    listening.listen(_BACKLOG)
    accepting = asyncio.create_task(_accept(listening, pipes))
    try:
        while not stopped.is_set() and not accepting.done():
            if ended := [child.returncode for child in children if child.poll() is not None]:
                return abs(ended[0]) or 1
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 0.5)
    finally:
        accepting.cancel()
    return 0


async def _accept(listening: socket.socket, pipes: Sequence[socket.socket]) -> None:
    loop, turns, placing = asyncio.get_running_loop(), count(), set()
    while True:
        connection, _ = await loop.sock_accept(listening)
        task = asyncio.create_task(_place(connection, pipes, next(turns)))
        placing.add(task)
        task.add_done_callback(placing.discard)


async def _place(connection: socket.socket, pipes: Sequence[socket.socket], turn: int) -> None:
    """Hand a connection to the process of its visitor, or in turn."""
    with connection, suppress(OSError):
        number = process_of(await _head(connection), len(pipes))
        pipe = pipes[turn % len(pipes) if number is None else number]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        socket.send_fds(pipe, [b"c"], [connection.fileno()])


async def _head(connection: socket.socket) -> bytes:
    """Peek at the headers of a request, leaving them to be read; what is late or too long is cut."""
    loop = asyncio.get_running_loop()
    end, head = loop.time() + _HEAD_S, b""
    while loop.time() < end:
        with suppress(BlockingIOError):
            head = connection.recv(_HEAD_BYTES, socket.MSG_PEEK)
            if not head or b"\r\n\r\n" in head or len(head) == _HEAD_BYTES:
                break
        await asyncio.sleep(_LOOK_S)
    return head


if (
    __name__ == "__main__"
):  # one of the processes: the script of the app, and the pipe that brings connections
    import runpy

    import uvicorn

    app = runpy.run_path(sys.argv[1])["app"]
    config = uvicorn.Config(app, loop="asyncio", access_log=False, log_level="warning", ws_max_size=_LARGEST)
    uvicorn.Server(config).run(sockets=[Handed(fileno=int(sys.argv[2]))])
