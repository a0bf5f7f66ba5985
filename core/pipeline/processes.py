"""Processes that share work."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this process when the one that started it has ended, however that happened.

    The initializer of a pool: workers of a killed process would otherwise wait for work for ever.
    """

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
