"""Results of steps as folders, each complete or absent, made once and kept for later evaluations."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from core.errors import ClqError
from core.files import locked, read_json, sync, write_json
from core.pipeline.evaluate.steps import Step
from core.records import JsonMap

_ABOUT = "about.json"
AWAY = "CLQ_ARTIFACTS"  # Setting with the address of object storage, in the environment or in a secrets file


class Artifacts:
    """A folder of results of steps.

    Args:
        root: Made on first use.
        away: Object storage for machines that do not see that folder ("s3://bucket/folder"): finished results
            are put there and fetched from there.
    """

    def __init__(self, root: Path, away: str = "") -> None:
        self._root, self._away = root, away

    def find(self, step: Step) -> Path | None:
        """Return the folder of a step that has been built."""
        path = self._root / step.key
        return path if path.is_dir() else None

    def about(self, step: Step) -> JsonMap:
        """Return the notes from when a step was built; empty if it was not."""
        return read_json(self._root / step.key / _ABOUT) or {}

    def make(
        self,
        step: Step,
        fill: Callable[[Path], JsonMap],
        *,
        continues: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> Path:
        """Return the folder of a step, filled now if it has not been built."""
        done = self._root / step.key
        if done.is_dir():
            return done
        with locked(self._root / f".{step.key}.lock", wait=waiting):
            if done.is_dir():
                return done
            draft = self._root / f".{step.key}.partial"
            if not self._fetched(step, draft):
                if not (continues and draft.is_dir()):
                    shutil.rmtree(draft, ignore_errors=True)
                    draft.mkdir(parents=True)
                about = fill(draft)
                self._send(step, draft)
                write_json(draft / _ABOUT, {"kind": step.kind, "params": dict(step.params), **about})
                self._send(step, draft, _ABOUT)  # last, as it says that the others are complete
            for path in (*draft.rglob("*"), draft):
                sync(path)
            draft.rename(done)
        return done

    def _fetched(self, step: Step, draft: Path) -> bool:
        """Return whether a step was made elsewhere and has been fetched."""
        if not self._away:
            return False
        with self._storage() as (fs, storage, folder):
            if storage.get_file_info(f"{folder}/{step.key}/{_ABOUT}").type is fs.FileType.NotFound:
                return False
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            fs.copy_files(f"{folder}/{step.key}", str(draft), storage, fs.LocalFileSystem())
        return True

    def _send(self, step: Step, draft: Path, name: str = "") -> None:
        if self._away:
            with self._storage() as (fs, storage, folder):
                storage.create_dir(f"{folder}/{step.key}")
                there = f"{folder}/{step.key}/{name}" if name else f"{folder}/{step.key}"
                fs.copy_files(str(draft / name), there, fs.LocalFileSystem(), storage)

    @contextmanager
    def _storage(self) -> Iterator[tuple[ModuleType, Any, str]]:
        from pyarrow import fs  # noqa: PLC0415 - few need it

        try:
            yield fs, *fs.FileSystem.from_uri(self._away)
        except (OSError, pa.ArrowException) as error:
            raise ClqError(
                f"Object storage cannot be used ({type(error).__name__}).",  # its address may hold a key
                where=AWAY,
                do="Check its address and this machine's credentials (AWS_ACCESS_KEY_ID and so on).",
            ) from error
