"""Loaded by a server under test: writes down where it connects, and what its sessions import."""

import os
import sys
import threading
from pathlib import Path


def _watch(path: str) -> None:
    log = Path(path).open("a", buffering=1)  # noqa: SIM115 - as long as the process

    def heard(event: str, args: tuple[object, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
            log.write(f"{event} {args}\n")
        elif event == "import" and threading.current_thread() is not threading.main_thread():
            log.write(f"import {args[0]}\n")

    sys.addaudithook(heard)


if os.environ.get("WATCH_LOG"):
    _watch(os.environ["WATCH_LOG"])
