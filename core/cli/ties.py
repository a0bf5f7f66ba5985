"""Whose order passages with equal scores have, as an option of `import` and `score`."""

from __future__ import annotations

from enum import StrEnum


class Ties(StrEnum):
    """The file's own ranks, or trec_eval's order."""

    FILE = "file"
    TREC_EVAL = "trec_eval"
