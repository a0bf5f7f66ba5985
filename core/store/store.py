"""The way in: open a store, read a revision, write the next one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import StoreError
from core.paths import DEFAULT_STORE
from core.store import migrations
from core.store.engine import ENGINE, Catalogue
from core.store.layout import Layout
from core.store.lock import exclusive
from core.store.snapshot import Snapshot
from core.store.writer import Writer

_TRIES = 5


def default_path() -> Path:
    """Where the store is unless a command says otherwise: ``CLQ_STORE``, else ``data/store`` of this copy."""
    named = os.environ.get("CLQ_STORE")
    return Path(named).expanduser() if named else DEFAULT_STORE


class Store:
    """A folder with evaluation results. Making one of these touches nothing on disk.

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
            path: Its folder; None for the default place.

        Raises:
            StoreError: If the path is a file, or a folder that holds something else.
        """
        store = cls(default_path() if path is None else path)
        store._layout.check()
        return store

    def revision(self) -> int:
        """The current revision (0: nothing was written yet). Reads one small file."""
        current = self._layout.current()
        return 0 if current is None else self._layout.revision_of(current.name)

    def read(self, revision: int | None = None) -> Snapshot:
        """What the store holds, now or at an earlier revision.

        Args:
            revision: From 0 to the current one; None for the current one.

        Raises:
            StoreError: If there is no such revision, or the store is damaged.
            StoreVersionError: If a newer release wrote it.
        """
        catalogue = self._catalogue()
        if catalogue.version < migrations.MIGRATIONS[-1].number:
            with self.write("upgrade", f"schema {catalogue.version} to {migrations.MIGRATIONS[-1].number}"):
                pass
            catalogue = self._catalogue()
        current = 0 if catalogue.path is None else self._layout.revision_of(catalogue.path.name)
        if revision is not None and not 0 <= revision <= current:
            raise StoreError(
                f"There is no revision {revision}; the newest is {current}.",
                where=str(self.path),
                do="Leave the revision out to read the newest.",
            )
        return Snapshot(catalogue, self.path, current if revision is None else revision)

    def _catalogue(self) -> Catalogue:
        """Follow the pointer; again when the file it named was swept before it was opened."""
        for _ in range(_TRIES):
            try:
                return ENGINE.catalogue(self._layout.current())
            except FileNotFoundError as error:
                missing = error
        raise StoreError(
            f"The current catalogue is missing: {missing}.", where=str(self.path), do="Restore a backup."
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
        """Make the next revision. An exception inside leaves the store as it was.

        When nothing changed (everything was there already), no revision is made.

        Args:
            action: What is being done, in a word or two; kept with the revision and shown to waiting writers.
            note: More about it; kept with the revision.
            wait_s: How long to wait for another writer, in seconds.
            on_wait: Called with the seconds waited so far, about once a second.

        Raises:
            StoreBusyError: If another writer did not finish in time.
            StoreError: If the folder cannot be written or holds something else.
            StoreVersionError: If a newer release wrote the store.
        """
        try:
            self._layout.create()
        except OSError as error:
            raise StoreError(f"The store cannot be written: {error}", where=str(self.path)) from error
        with exclusive(self._layout.lock, action, wait_s, on_wait):
            writer = Writer(self._layout)
            try:
                yield writer
                writer.publish(action, note)
            except BaseException:
                writer.discard()
                raise
