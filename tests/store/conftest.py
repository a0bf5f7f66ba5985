from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.store import Store
from tests.store import material


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that nobody has written to."""
    return Store.open(tmp_path / "store")


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with `material.small` in it, to be copied."""
    path = tmp_path_factory.mktemp("small") / "store"
    with Store.open(path).write("import", "small") as writer:
        writer.add(material.small())
    return path


@pytest.fixture
def filled(small_store: Path, store: Store) -> Store:
    """A store with `material.small` in it, at revision 1."""
    shutil.copytree(small_store, store.path)
    return store
