"""How much an offered file may make us read. Every bound is a parameter, none is a guess at import time."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on untrusted input.

    Attributes:
        total_bytes: Most bytes one offer may unfold to.
        ratio: Most bytes that one stored byte may unfold to, judged once more than `grace_bytes` came out.
        grace_bytes: Unfolded bytes that are fine at any ratio (a small file of one repeated line).
        members: Most files in one folder or archive.
        columns: Most columns of a table.
        cell_bytes: Longest cell of a table, in bytes of UTF-8.
        line_bytes: Longest line of a text file, in bytes.
        block_bytes: How much text is taken into memory at a time while streaming.
        table_bytes: Text of a table that is read at once; a larger one of rankings is read in blocks.
        rows_in_memory: Rows of rankings that one offer holds in memory; those beyond wait on disk.
    """

    total_bytes: int = 16 * GIB
    ratio: int = 200
    grace_bytes: int = 64 * MIB
    members: int = 20_000
    columns: int = 10_000
    cell_bytes: int = 10 * MIB
    line_bytes: int = 64 * MIB
    block_bytes: int = 16 * MIB
    table_bytes: int = 128 * MIB
    rows_in_memory: int = 3_000_000
