"""Results of steps in folders: each whole or not there, made once, kept for the next evaluation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from core.files import locked, read_json, sync, write_json
from core.pipeline.evaluate.steps import Step
from core.records import JsonMap

_ABOUT = "about.json"


class Artifacts:
    """A folder of results of steps.

    Args:
        root: Made on first use.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, step: Step) -> Path | None:
        """The folder of a step that has been built."""
        path = self._root / step.key
        return path if path.is_dir() else None

    def about(self, step: Step) -> JsonMap:
        """What was noted when a step was built; empty if it was not."""
        return read_json(self._root / step.key / _ABOUT) or {}

    def make(
        self,
        step: Step,
        fill: Callable[[Path], JsonMap],
        *,
        continues: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> Path:
        """The folder of a step, filled now if it has not been built."""
        done = self._root / step.key
        if done.is_dir():
            return done
        with locked(self._root / f".{step.key}.lock", wait=waiting):
            if done.is_dir():
                return done
            draft = self._root / f".{step.key}.partial"
            if not (continues and draft.is_dir()):
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True)
            about = fill(draft)
            write_json(draft / _ABOUT, {"kind": step.kind, "params": dict(step.params), **about})
            for each in (*draft.rglob("*"), draft):
                sync(each)
            draft.rename(done)
        return done
