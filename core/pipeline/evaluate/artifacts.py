"""What was built, kept on disk under the name of its content, for all evaluations of a store.

A folder with the name of a step is complete: it is filled under another name and renamed. What a killed
process has filled is found again, so that long work (embedding a corpus) goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.pipeline.evaluate.files import empty_folder, locked, read_json, sync_folder, write_json
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
        """The folder of a step, filled now if it has not been built.

        Args:
            step: What is built; part of its name is the hash of all that it depends on.
            fill: Puts the files into a folder; returns what is to be noted about them (JSON).
            continues: Whether `fill` goes on with what a killed process left there; else it finds nothing.
            waiting: Called again and again while another process builds the same; it may raise.
        """
        done = self._root / step.key
        if done.is_dir():
            return done
        with locked(self._root / f".{step.key}.lock", wait=waiting):
            if done.is_dir():
                return done
            draft = self._root / f".{step.key}.partial"
            if not (continues and draft.is_dir()):
                empty_folder(draft)
            about = fill(draft)
            write_json(draft / _ABOUT, {"kind": step.kind, "params": dict(step.params), **about})
            sync_folder(draft)
            draft.rename(done)
        return done
