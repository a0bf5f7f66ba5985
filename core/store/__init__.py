"""The store: one folder with every result, written by one process at a time and read by many.

Bulk rows are immutable Parquet parts; small and changing data (records, events, the list of parts) is a
DuckDB catalogue that every transaction copies, changes and publishes under a new name by swapping a pointer
as its last step. So a reader never meets a lock or half a run, and what a killed writer leaves is invisible.
Nothing is erased: a deletion is an event, and any earlier revision can be read from the newest
catalogue.

Why not one DuckDB file: it is open to one writer or to many readers, never to both. Measured by
``bench/store_concurrency.py`` (one writer, four readers, a million ranking rows, 20 s; 2 idle cores,
2026-11): no failed read and no lost write. Reads took 23 ms at the median and 60 ms at
the 95th percentile, writes 132 ms at the 95th; a single file that every operation opens with retries took 2.2
and 2.6 times as long for reads, 1.4 times for writes. The goal of 50 ms for the 95th percentile of reads is
not met: every fourth read grades a whole run of 100,000 rows, and the first read after a write loads the
new catalogue, each about 30 ms of processor time, while five processes share two cores. One thread per reader
did not help.
"""

from core.store.ledger import LedgerKind
from core.store.read.graded import Graded
from core.store.read.lists import gains_of
from core.store.read.snapshot import Snapshot
from core.store.store import Store, default_path
from core.store.writer import Writer

__all__ = ["Graded", "LedgerKind", "Snapshot", "Store", "Writer", "default_path", "gains_of"]
