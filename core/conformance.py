"""Checks of plug-ins: a measure must keep its range and shape, a format must leave other tools' files alone.

Each suite yields a sentence for everything that is broken, and nothing if all is well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from core.importers.base import ACCEPTED, Format, Options
from core.importers.formats import PLUGGED
from core.importers.read.source import opened
from core.metrics import Counts, Grades, Measure, MeasureInfo, Scores, score_all
from core.metrics.measure import MEASURES

_QUERIES, _DEPTH = 40, 12
_STRANGE: Mapping[str, bytes] = MappingProxyType(
    {
        "empty.txt": b"",
        "run.txt": b"q1 Q0 p1 1 3.5 x\nq1 Q0 p2 2 3.1 x\n",
        "table.csv": b"stack,query_id,nDCG@10\na,q1,0.5\na,q2,0.25\n",
        "rows.jsonl": b'{"query_id": "q1", "passages": ["p1", "p2"]}\n{"query_id": "q2"}\n',
        "object.json": b'{"results": [], "n": 3}',
        "bytes.bin": bytes(range(256)) * 4,
    }
)
"""Foreign files, which no format of a single tool may claim."""


def measure_faults(info: MeasureInfo) -> Iterator[str]:
    """Try a measure on random grades: its range, one value per query, and independence of other queries."""
    if info.needs:  # sources, answers and other inputs that no random ranking has
        return
    random = np.random.default_rng(7)
    grades = random.integers(0, 6, (1, _QUERIES, _DEPTH)).astype(np.int8)
    grades[0, 0], grades[0, 1] = 1, 5
    counts = np.stack([(grades == grade).sum(axis=-1) for grade in range(1, 6)], axis=-1)
    before, measure = grades.copy(), Measure(info.name)

    def values_of(some: Grades, judged: Counts) -> Scores:
        return score_all((measure,), some, judged)[measure]

    try:
        values = values_of(grades, counts)
        alone = values_of(grades[:, :5].copy(), counts[:, :5].copy())
        shallow = values_of(grades[..., :5].copy(), counts)
    except Exception as error:
        yield f"It raises {type(error).__name__}: {error}"
        return
    known = values[~np.isnan(values)]
    if known.size and (known.min() < info.low - 1e-9 or known.max() > info.high + 1e-9):
        yield f"Its values lie from {known.min():.3g} to {known.max():.3g}; it declares {info.range}."
    if np.isnan(values).any() and not info.na:
        yield "It has no value for some queries, and does not say why (na)."
    if not np.array_equal(alone, values[:, :5], equal_nan=True):
        yield "Its value of a query depends on the other queries."
    deepest = 5 // info.ahead
    if not np.array_equal(shallow[..., :deepest], values[..., :deepest], equal_nan=True):
        yield "Its value at K depends on passages beyond K."
    if not np.array_equal(before, grades):
        yield "It changes the grades that it is given."


def format_faults(form: Format) -> Iterator[str]:
    """Try a format on files of other formats, which it must not claim."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in _STRANGE.items():
            path = Path(folder) / name
            path.write_bytes(content)
            try:
                with opened([path], Options().limits) as archives:
                    taken = [form.sniff(archive) for archive in archives]
            except Exception as error:
                yield f"On {name} it raises {type(error).__name__}: {error}"
                continue
            if any(not 0 <= sure <= 1 for sure in taken):
                yield f"On {name} it is sure by {max(taken)}, which is not a share."
            elif any(sure >= ACCEPTED for sure in taken):
                yield f"It takes {name}, which is not a file of its tool."


def faults(group: str, name: str) -> tuple[str, ...]:
    """Return the faults of a loaded plug-in; groups without a suite have none."""
    if group == "clq.measures":
        return tuple(fault for info in MEASURES if info.name == name for fault in measure_faults(info))
    if group == "clq.importers":
        return tuple(fault for form in PLUGGED if form.name == name for fault in format_faults(form))
    return ()
