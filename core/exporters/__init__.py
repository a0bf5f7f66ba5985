"""Batches of records out, in formats of the field; one file per format.

Nothing here reads a store: the caller gathers a batch. What a format cannot hold is left out and said.
"""

from core.exporters.base import Written
from core.exporters.registry import FORMATS, write

__all__ = ["FORMATS", "Written", "write"]
