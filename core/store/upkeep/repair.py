"""Bringing a damaged store back to the newest revision that is sound. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import StoreDamagedError, StoreError, StoreVersionError
from core.store.engine import ENGINE, told
from core.store.layout import RESTORE, Layout, sealed
from core.store.read import codes
from core.store.seals import Sealed, checksum
from core.store.store import Store
from core.store.writer import Writer, publishing


def repair(store: Store, *, on_wait: Callable[[float], None] | None = None) -> list[str]:
    """Make the newest sound catalogue the current one, and derived files anew.

    Where later revisions have no sound catalogue, the store goes on from the newest that has one under a
    number that was never used: what a page keeps by revision stays true. Their catalogues are set aside and
    their parts stay where they are.

    Returns:
        What was done and what is lost, in sentences; empty where there was nothing to do.

    Raises:
        StoreError: If no catalogue is sound, or the folder cannot be written.
        StoreVersionError: If a newer release wrote it.
    """
    with store.locked("repair", on_wait=on_wait) as layout, told("repairing", store.path):
        return [*_point(layout), *_derived(layout)]


def _point(layout: Layout) -> Iterator[str]:
    """Bring the pointer to a sound catalogue."""
    with suppress(StoreDamagedError):
        current = layout.current()
        if current is None or sound(current):
            yield from set_aside(layout, [each for each in layout.published() if not _vouched(each)])
            return
    published = layout.published()
    chosen = next((each for each in published if sound(each)), None)
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


def go_on(layout: Layout, base: Path, action: str, note: str) -> Writer:
    """Publish a catalogue's content as a revision with a number that was never used."""
    writer = Writer(layout, base, layout.newest() + 1)
    with publishing(writer, action, note):
        writer.reseal({})
    return writer


def set_aside(layout: Layout, catalogues: list[Path]) -> list[str]:
    """Take catalogues out of use; says which."""
    if catalogues:
        layout.aside.mkdir(exist_ok=True)
    for each in catalogues:
        each.rename(layout.aside / each.name)
    return [f"The catalogue {each.name} is in {layout.aside} now." for each in catalogues]


def _vouched(catalogue: Path) -> bool:
    """Whether nothing says that a catalogue is damaged."""
    seal = sealed(catalogue)
    return seal is None or not seal.problem()


def sound(catalogue: Path) -> bool:
    """Whether a catalogue is whole: by its checksum, or where it has none by reading every row."""
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
    """Make codes anew that are missing or damaged, where their part is sound."""
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


_CODED = """
SELECT c.path, p.path, c.bytes, c.checksum, p.bytes, p.checksum
FROM parts AS c JOIN parts AS p ON p.path = replace(c.path, $suffix, '.parquet')
WHERE ends_with(c.path, $suffix) ORDER BY c.path
"""
