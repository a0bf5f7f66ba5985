"""Loaded by a server under test: writes down where it connects and what its sessions import, and when."""

import os
import sys
import threading
import time
from pathlib import Path


def _watch(path: str) -> None:
    log = Path(path).open("a", buffering=1)  # noqa: SIM115 - as long as the process

    def heard(event: str, args: tuple[object, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
            log.write(f"{event} {args}\n")
        elif event == "import" and threading.current_thread() is not threading.main_thread():
            log.write(f"import {args[0]}\n")

    def wait() -> None:
        for there in (True, False):
            while any(thread.name == "imports" for thread in threading.enumerate()) != there:
                time.sleep(0.05)
        log.write("all imported\n")

    sys.addaudithook(heard)
    threading.Thread(target=wait, daemon=True).start()


if os.environ.get("WATCH_LOG"):
    _watch(os.environ["WATCH_LOG"])
