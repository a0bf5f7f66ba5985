"""A format must leave other tools' files alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from core.importers.base import ACCEPTED, Format, Options
from core.importers.read.source import opened

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
