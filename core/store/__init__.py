"""The store: one folder with every result, written by one process at a time and read by many."""

from core.store.graded import Graded
from core.store.snapshot import Snapshot
from core.store.store import Store, default_path
from core.store.writer import Writer

__all__ = ["Graded", "Snapshot", "Store", "Writer", "default_path"]
