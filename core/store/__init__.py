"""The store: one folder with every result, written by one process at a time and read by many.

Bulk rows are immutable Parquet parts; what is small and changes (records, events, the list of parts) is a
DuckDB catalogue that every transaction copies, changes and publishes under a new name by swapping a pointer
as its last step. So a reader never meets a lock or half a run, and what a killed writer leaves is invisible.
Nothing is deleted: what was removed is an event, and any earlier revision can be read from the newest
catalogue.

Why not one DuckDB file: it is open to one writer or to many readers, never to both. Measured by
``tests/bench/store_concurrency.py`` (one writer, four readers, a million ranking rows, 20 s; 2 cores,
2026-11, load average about 10 from other work, so read the ratios): no failed read and no lost write here;
against a single file that every operation opens with retries, the 95th percentile was 2.3 and 7.9 times
shorter for reads (255 and 159 ms here) and 1.5 and 8.4 times for writes (730 and 400 ms here), and the file
refused an operation after five seconds of retries in one of these two runs. Processor time of a read, on the
same busy machine: 11–17 ms (runs and one query's ranking) and 39–51 ms (a whole run graded), about 20 ms more
right after a publication.
"""

from core.store.graded import Graded
from core.store.snapshot import Snapshot
from core.store.store import Store, default_path
from core.store.writer import Writer

__all__ = ["Graded", "Snapshot", "Store", "Writer", "default_path"]
