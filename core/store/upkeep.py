"""Upkeep: return a damaged store to its newest sound revision, make backups, and restore them.

A repair deletes nothing. A backup is a separate store: the current catalogue, with all history, and every
part that it lists.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import StoreDamagedError, StoreError, StoreVersionError, refusal
from core.files import replacing, sync, unwritable
from core.store.engine import ENGINE, Catalogue, as_store_error
from core.store.layout import RESTORE, Layout, copy_catalogue, remove, sealed
from core.store.read import codes
from core.store.seals import Sealed, advice, checksum
from core.store.store import Store
from core.store.writer import Writer, passed_over, publishing

_CODED = """
SELECT c.path, p.path, c.bytes, c.checksum, p.bytes, p.checksum
FROM parts AS c JOIN parts AS p ON p.path = replace(c.path, $suffix, '.parquet')
WHERE ends_with(c.path, $suffix) ORDER BY c.path
"""
_TRIES = 5
_FILES = "SELECT path, bytes, checksum FROM parts ORDER BY path"
_MADE = "SELECT revision, made_at FROM revisions ORDER BY revision"
_FIRST = "SELECT revision, made_at FROM revisions ORDER BY revision LIMIT 1"


def repair(store: Store, *, on_wait: Callable[[float], None] | None = None) -> list[str]:
    """Make the newest sound catalogue the current one, and rebuild derived files.

    If later revisions have no sound catalogue, the store continues from the newest sound one under a number
    that was never used, so that what a page caches by revision stays true. The unsound catalogues are set
    aside and their parts stay in place.

    Returns:
        What was done and what is lost, in sentences; empty if there was nothing to do.

    Raises:
        StoreError: If no catalogue is sound, or the folder cannot be written.
        StoreVersionError: If a newer release wrote it.
    """
    with store.locked("repair", on_wait=on_wait) as layout, as_store_error("repairing", store.path):
        return [*_point(layout), *_derived(layout)]


def _point(layout: Layout) -> Iterator[str]:
    """Move the pointer to a sound catalogue."""
    with suppress(StoreDamagedError):
        newer = passed_over(layout)
        if newer is not None and takes(layout, newer):
            layout.publish(newer)
            revision = layout.revision_of(newer.name)
            yield f"Revision {revision}, which CURRENT did not name, is the current one."
        current = layout.current()
        if current is None or sound(current):
            yield from set_aside(
                layout, [catalogue for catalogue in layout.published() if not _vouched(catalogue)]
            )
            return
    published = layout.published()
    chosen = next((catalogue for catalogue in published if sound(catalogue)), None)
    if chosen is None:
        raise StoreDamagedError("No catalogue is sound.", where=str(layout.root), do=RESTORE)
    damaged = published[: published.index(chosen)]
    kept, newest = layout.revision_of(chosen.name), layout.newest()
    if newest == kept:
        layout.publish(chosen)
        yield f"The newest sound catalogue, revision {kept}, is the current one."
    else:
        writer = go_on(layout, chosen, "repair", f"went back to revision {kept}")
        lost = f"revision {kept + 1}" if newest == kept + 1 else f"revisions {kept + 1} to {newest}"
        yield f"The store went back to revision {kept}, which is revision {writer.revision} now."
        yield f"Lost: what {lost} changed. Import it again, or `python -m core store restore BACKUP --back`."
    yield from set_aside(layout, damaged)


def takes(layout: Layout, newer: Path) -> bool:
    """Return whether a newer catalogue can replace the current one: it is whole, and continues from it."""
    if not sound(newer):
        return False
    catalogue, current = ENGINE.catalogue(newer), layout.current()
    if not all((layout.root / path).exists() for path in catalogue.column("SELECT path FROM parts")):
        return False
    if current is None or not sound(current):
        return True
    before = ENGINE.catalogue(current).frame(_MADE)
    return before.equals(catalogue.frame(_MADE).head(before.height))


def go_on(layout: Layout, base: Path, action: str, note: str) -> Writer:
    """Publish a catalogue's content as a revision with a number that was never used."""
    writer = Writer(layout, base, layout.newest() + 1)
    with publishing(writer, action, note):
        writer.reseal({})
    return writer


def set_aside(layout: Layout, catalogues: list[Path]) -> list[str]:
    """Take catalogues out of use and report which."""
    if catalogues:
        layout.aside.mkdir(exist_ok=True)
    for catalogue in catalogues:
        catalogue.rename(layout.aside / catalogue.name)
    return [f"The catalogue {catalogue.name} is in {layout.aside} now." for catalogue in catalogues]


def _vouched(catalogue: Path) -> bool:
    """Return whether a catalogue shows no sign of damage."""
    seal = sealed(catalogue)
    return seal is None or not seal.problem()


def sound(catalogue: Path) -> bool:
    """Return whether a catalogue is whole, by its checksum or, if it has none, by reading every row."""
    if sealed(catalogue) is not None:
        return _vouched(catalogue)
    try:
        ENGINE.catalogue(catalogue).read_all()
    except StoreVersionError:
        raise
    except (StoreError, FileNotFoundError):
        return False
    return True


def _derived(layout: Layout) -> Iterator[str]:
    """Rebuild missing or damaged codes whose part is sound."""
    current = layout.current()
    if current is None:
        return
    files = ENGINE.catalogue(current).frame(_CODED, {"suffix": codes.SUFFIX})
    changed = {}
    for path, part_path, *seals in files.iter_rows():
        file = Sealed(str(layout.root / path), *seals[:2])
        part = Sealed(str(layout.root / part_path), *seals[2:])
        if not file.problem() or part.problem():
            continue
        codes.renew(Path(part.path), codes.encode(Path(part.path)))
        new = Path(file.path)
        if file.problem():  # sound, but not the same bytes as before
            changed[path] = (new.stat().st_size, checksum(new))
        yield f"The file {path} was made anew."
    if changed:
        writer = Writer(layout, current, layout.revision_of(current.name) + 1)
        with publishing(writer, "repair", f"{len(changed)} derived files"):
            writer.reseal(changed)


@dataclass(frozen=True, slots=True)
class Copied:
    """The outcome of a backup or a restore."""

    revision: int  # the revision that the copy shows
    files: int  # parts that belong to it, and files derived from them
    copied: int  # the files that the target lacked
    size: int  # bytes of all files
    aside: int = 0  # catalogues that were taken out of use


def backup(store: Store, target: Path, *, on_wait: Callable[[float], None] | None = None) -> Copied:
    """Copy a store as it is now, while others may write to it.

    Files that the target has from an earlier backup are not copied again, but every byte of them is checked
    against its checksum. The target becomes the new copy in one final step.

    Args:
        target: An empty or new folder, or an earlier backup of the same store.

    Raises:
        StoreError: If the target holds something else, or the disk refuses.
        InputError: If the target cannot be made.
        StoreDamagedError: If the store is damaged.
    """
    copy = Store.open(target)
    if copy.path.resolve() == store.path.resolve():
        problem = "A store is not a backup of itself."
        raise StoreError(problem, where=str(copy.path), do="Name another folder.")
    with as_store_error("copying", copy.path, "The copy is unchanged."):
        try:
            copy.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if refusal(error) is None:
                raise unwritable(copy.path, error) from None
            raise
    with (
        copy.locked("backup", on_wait=on_wait) as layout,
        as_store_error("copying", copy.path, "The copy is unchanged."),
    ):
        catalogue, working = _taken(store, layout)
        try:
            held = layout.begin()
            if held is not None:
                _refuse_other(catalogue, copy)
            done = _bring(catalogue, store.path, layout)
            layout.publish(layout.finish(working, done.revision))
            layout.close_journal()
        finally:
            remove(working)
        for path in layout.superseded():
            remove(path)
        return done


def restore(
    store: Store, source: Path, *, back: bool = False, on_wait: Callable[[float], None] | None = None
) -> Copied:
    """Repair a store with the files of a backup, whatever state it is in.

    Files that are missing or damaged are replaced. The backup's revision becomes the current one if the
    store has no sound revision, or an older one. What goes out of use stays in the store: catalogues are set
    aside, and a revision that the store returns to gets a number that was never used.

    Args:
        store: The store to repair, or a new folder.
        back: Whether to return to the backup's revision even if the store has a later sound one.

    Raises:
        StoreError: If the source holds nothing, or the store is a different one and sound.
        StoreDamagedError: If the backup is damaged.
    """
    origin = Store.open(source)
    with store.locked("restore", on_wait=on_wait) as layout, as_store_error("restoring", store.path):
        catalogue, working = _taken(origin, layout)
        try:
            held = None
            with suppress(StoreDamagedError):
                held = layout.begin()
                if held is not None:
                    _refuse_other(catalogue, store)
            done = _bring(catalogue, origin.path, layout)
            newest = 0 if held is None or not sound(held) else layout.revision_of(held.name)
            if newest > done.revision and not back:
                return replace(done, revision=newest)
            final = layout.finish(working, done.revision)
        finally:
            remove(working)
        revision = done.revision
        if layout.newest() > revision:
            layout.close_journal()
            revision = go_on(layout, final, "restore", f"went back to revision {revision}").revision
        else:
            layout.publish(final)
            layout.close_journal()  # until then it is a leftover, which no doctor takes for a revision
        used = (final, layout.current())
        old = [path for path in layout.published() if layout.revision_of(path.name) >= done.revision]
        gone = set_aside(layout, [path for path in old if path not in used])
        return replace(done, revision=revision, aside=len(gone))


def _taken(store: Store, layout: Layout) -> tuple[Catalogue, Path]:
    """Return a store's current catalogue, and a copy of it under a hidden name in another store."""
    working = layout.catalogues / f".{secrets.token_hex(4)}.duckdb"
    for _ in range(_TRIES):
        catalogue = store.catalogue()
        if catalogue.path is None:
            raise StoreError("The store holds nothing yet.", where=str(store.path), do="Nothing was copied.")
        with suppress(FileNotFoundError):  # swept by a writer since
            copy_catalogue(catalogue.path, working)
            return catalogue, working
    raise StoreError("Others write too often.", where=str(store.path), do="Try again.")


def _refuse_other(catalogue: Catalogue, store: Store) -> None:
    """Refuse a store that did not begin as the one with this catalogue did."""
    own = store.catalogue()
    if own.path is not None and not own.frame(_FIRST).equals(catalogue.frame(_FIRST)):
        raise StoreError(
            "This store is not a copy of the other one, and it is not empty.",
            where=str(store.path),
            do="Name another folder.",
        )


def _bring(catalogue: Catalogue, root: Path, layout: Layout) -> Copied:
    """Copy the files that a catalogue lists from its store into another, unless they exist there."""
    files = catalogue.frame(_FILES).rows()
    copied = size = 0
    folders = set()
    for path, length, digest in files:
        size += length
        target = Sealed(str(layout.root / path), length, digest)
        if not target.problem():
            continue
        if _copy(Sealed(str(root / path), length, digest), Path(target.path)):
            copied += 1
            folders.add(Path(target.path).parent)
    for folder in folders:
        sync(folder)
    assert catalogue.path is not None  # noqa: S101 - `_taken` saw to it
    return Copied(layout.revision_of(catalogue.path.name), len(files), copied, size)


def _copy(file: Sealed, target: Path) -> bool:
    """Copy a file if it is intact; leave out a damaged one that can be rebuilt."""
    target.parent.mkdir(exist_ok=True)
    with replacing(target) as draft:
        with suppress(FileNotFoundError):
            shutil.copyfile(file.path, draft)
        if problem := file._replace(path=str(draft)).problem():
            if target.name.endswith(codes.SUFFIX):
                draft.unlink(missing_ok=True)
                return False
            where = Path(file.path)
            raise StoreDamagedError(
                f"The file {where.name} {problem}.", where=str(where.parent), do=advice(problem)
            )
        sync(draft)
    return True
