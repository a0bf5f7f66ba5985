"""Dense retrieval: vector indexes of several kinds behind one interface.

Those of `INDEXES` live in memory, by faiss; those of `ENGINES` in a database. `make_index` builds one,
`use_index` searches a table that is there, `load_index` opens a saved one; `check_metric` and `index_options`
find beforehand what cannot work, `parted` which options make another index, and `ann_recall` says what an
approximate kind misses.
"""

from core.pipeline.index.dense import DenseIndex, ann_recall
from core.pipeline.index.engines import (
    ENGINES,
    INDEX_NAMES,
    expected_bytes,
    index_options,
    is_ann,
    is_existing,
    kind_of,
    load_index,
    make_index,
    obstacles,
    parted,
    use_index,
)
from core.pipeline.index.kinds import INDEXES, METRICS, Kind, check_metric
from core.pipeline.index.outside import Outside, Place

__all__ = [
    "ENGINES",
    "INDEXES",
    "INDEX_NAMES",
    "METRICS",
    "DenseIndex",
    "Kind",
    "Outside",
    "Place",
    "ann_recall",
    "check_metric",
    "expected_bytes",
    "index_options",
    "is_ann",
    "is_existing",
    "kind_of",
    "load_index",
    "make_index",
    "obstacles",
    "parted",
    "use_index",
]
