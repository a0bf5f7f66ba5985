from __future__ import annotations

from pathlib import Path

import pytest

from core.store import Store
from tests.store import material


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that nobody has written to."""
    return Store.open(tmp_path / "store")


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with `material.small` in it, at revision 1."""
    with store.write("import", "small") as writer:
        writer.add(material.small())
    return store
