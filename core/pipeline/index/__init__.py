"""Dense retrieval: vector indexes of several kinds behind one interface, by faiss.

`make_index` builds one from the registry `INDEXES`, `load_index` opens a saved one; `check_metric` and
`index_options` find beforehand what cannot work, and `ann_recall` says what an approximate kind misses.
"""

from core.pipeline.index.dense import DenseIndex, ann_recall, load_index, make_index
from core.pipeline.index.kinds import INDEXES, METRICS, Kind, check_metric, expected_bytes, index_options

__all__ = [
    "INDEXES",
    "METRICS",
    "DenseIndex",
    "Kind",
    "ann_recall",
    "check_metric",
    "expected_bytes",
    "index_options",
    "load_index",
    "make_index",
]
