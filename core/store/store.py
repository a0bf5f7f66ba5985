"""The entrance to a store: open it, read a revision, write the next one, one writer at a time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from core.errors import StoreBusyError, StoreDamagedError, StoreError
from core.files import locked
from core.paths import DEFAULT_STORE
from core.store import migrations
from core.store.engine import ENGINE, EXAMINE, Catalogue, as_store_error
from core.store.layout import REPAIR, Layout
from core.store.read.snapshot import Snapshot
from core.store.writer import Writer, passed_over, publishing

_TELL_S = 1.0
_TRIES = 5


def holder(path: Path) -> str:
    """Return the name last written into the lock file, in words, or ""."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"process {int(said['pid'])} ({str(said['action'])[:80]})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@contextmanager
def exclusive(
    path: Path, action: str, wait_s: float, on_wait: Callable[[float], None] | None
) -> Iterator[None]:
    """Hold the writers' lock for the duration of the block."""
    with ExitStack() as held:
        with as_store_error("taking the lock", path.parent, "Nothing was changed."):
            held.enter_context(locked(path, wait=_patience(path, wait_s, on_wait)))
            path.write_text(json.dumps({"pid": os.getpid(), "action": action}), encoding="utf-8")
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                os.truncate(path, 0)


def _patience(path: Path, wait_s: float, on_wait: Callable[[float], None] | None) -> Callable[[], None]:
    """Return a function to call while another writer holds the lock."""
    started, told_at = time.monotonic(), -_TELL_S

    def wait() -> None:
        nonlocal told_at
        waited = time.monotonic() - started
        if waited >= wait_s:
            raise StoreBusyError(
                f"Another writer, {holder(path) or 'unnamed'}, did not finish within {wait_s:g} s.",
                where=str(path.parent),
                do="Try again when it is done; nothing was written.",
            )
        if on_wait is not None and waited - told_at >= _TELL_S:
            on_wait(waited)
            told_at = waited

    return wait


def default_path() -> Path:
    """Return the default location of the store.

    It is ``CLQ_STORE``, or ``data/store`` of this copy if that is not set.
    """
    named = os.environ.get("CLQ_STORE")
    return Path(named).expanduser() if named else DEFAULT_STORE


class Store:
    """A folder with evaluation results. Creating an instance touches nothing on disk.

    Attributes:
        path: The folder; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        self._layout = Layout(self.path)

    @classmethod
    def open(cls, path: Path | None = None) -> Store:
        """Open a store; one that does not exist yet reads as empty at revision 0.

        Args:
            path: Its folder; None for the default location.

        Raises:
            StoreError: If the path is a file, or a folder that holds something else.
        """
        store = cls(default_path() if path is None else path)
        with as_store_error("looking for it", store.path):
            store._layout.check()
        return store

    def revision(self) -> int:
        """Return the current revision (0: nothing was written yet); this reads one small file."""
        with as_store_error("reading", self.path, EXAMINE):
            current = self._layout.current()
        return 0 if current is None else self._layout.revision_of(current.name)

    def passed_over(self) -> int | None:
        """Return the revision of a catalogue that is newer than the one in use, or None."""
        with as_store_error("reading", self.path, EXAMINE):
            newer = passed_over(self._layout)
        return None if newer is None else self._layout.revision_of(newer.name)

    def read(self, revision: int | None = None) -> Snapshot:
        """Read the store as it is now, or as it was at an earlier revision.

        Args:
            revision: From 0 to the current one; None for the current one.

        Raises:
            StoreError: If there is no such revision, or the store is damaged.
            StoreVersionError: If a newer release wrote it.
        """
        catalogue = self.catalogue()
        if catalogue.version < migrations.MIGRATIONS[-1].number:
            with self.write("upgrade", f"schema {catalogue.version} to {migrations.MIGRATIONS[-1].number}"):
                pass
            catalogue = self.catalogue()
        current = 0 if catalogue.path is None else self._layout.revision_of(catalogue.path.name)
        if revision is not None and not 0 <= revision <= current:
            raise StoreError(
                f"There is no revision {revision}; the newest is {current}.",
                where=str(self.path),
                do="Leave the revision out to read the newest.",
            )
        return Snapshot(catalogue, self.path, current if revision is None else revision)

    def catalogue(self) -> Catalogue:
        """Return the current catalogue unchanged, even of an earlier release; for use within this package."""
        with as_store_error("reading", self.path, EXAMINE):
            for _ in range(_TRIES):  # a named file may be swept before it is opened
                try:
                    return ENGINE.catalogue(self._layout.current())
                except FileNotFoundError as error:
                    missing = error
        raise StoreDamagedError(
            f"The current catalogue is missing: {missing}.", where=str(self.path), do=REPAIR
        )

    @contextmanager
    def write(
        self,
        action: str,
        note: str = "",
        *,
        wait_s: float = 30.0,
        on_wait: Callable[[float], None] | None = None,
    ) -> Iterator[Writer]:
        """Make the next revision; an exception inside leaves the store unchanged.

        If nothing changed (everything existed already), no revision is made.

        Args:
            action: What is being done, in a word or two; stored with the revision and shown to waiting
            writers. note: More about it, stored with the revision.
            wait_s: How long to wait for another writer, in seconds.
            on_wait: Called with the seconds waited so far, about once a second.

        Raises:
            StoreBusyError: If another writer did not finish in time.
            StoreError: If the folder cannot be written or holds something else.
            StoreVersionError: If a newer release wrote the store.
        """
        with self.locked(action, wait_s=wait_s, on_wait=on_wait) as layout:
            with as_store_error("writing", self.path, "Nothing was changed."):
                base = layout.begin()
                number = 0 if base is None else layout.revision_of(base.name)
                writer = Writer(layout, base, number + 1)
            with publishing(writer, action, note):
                yield writer

    @contextmanager
    def locked(
        self, action: str, *, wait_s: float = 30.0, on_wait: Callable[[float], None] | None = None
    ) -> Iterator[Layout]:
        """Keep other writers out; for use within this package. Arguments and errors are as for `write`."""
        with as_store_error("writing", self.path, "Nothing was changed."):
            self._layout.create()
        with exclusive(self._layout.lock, action, wait_s, on_wait):
            yield self._layout
