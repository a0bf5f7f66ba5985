"""Tests. A worker has one processor: threads of libraries would only hand small frames around."""

import os

for _pool in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when they are imported
    os.environ.setdefault(_pool, "1")
