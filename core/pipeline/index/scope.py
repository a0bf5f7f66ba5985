"""Searching within what an asker may see: masks of filters, and the ways in which a search honours them.

* pre: only allowed passages are candidates.
* post:N: N times the depth is searched, then forbidden passages are dropped; fewer than asked may be left.
* partition:FIELD: an index for each value of a field; those are searched that hold allowed passages.
* none: the filter is ignored, and forbidden passages are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError
from core.extras import later
from core.filters import Filter, Kind, kinds
from core.pipeline.ranking import Hits

if TYPE_CHECKING:
    import faiss
else:  # not needed for stored results
    faiss = later("faiss")

NONE, PRE, POST, PARTITION = "none", "pre", "post", "partition"
MOST_TIMES = 1000  # Largest factor of a post-filter
MOST_PARTS = 10_000  # Largest number of partitions
_DIGITS = re.compile(r"[1-9][0-9]{0,3}")
_FITTING = (Kind.TEXT, Kind.NUMBER, Kind.BOOL)  # Types of a field whose values can have indexes of their own


class FilterWay(NamedTuple):
    """One way of honouring filters."""

    kind: str  # "none", "pre", "post" or "partition"
    times: int = 1  # how many times the depth a post-filter searches
    field: str = ""  # the field whose values have partitions; "" = the one that all filters ask about


def filter_way(text: str) -> FilterWay:
    """Read a way as a specification names it.

    Raises:
        InputError: If there is no such way.
    """
    kind, _, detail = text.partition(":")
    if kind in (NONE, PRE) and text == kind:
        return FilterWay(kind)
    if kind == POST and _DIGITS.fullmatch(detail) and int(detail) <= MOST_TIMES:
        return FilterWay(kind, times=int(detail))
    if kind == PARTITION and (detail or text == kind):
        return FilterWay(kind, field=detail)
    raise InputError(
        f"There is no way of filtering {text[:60]!r}.",
        do=f"Choose among none, pre, post:4 (1 to {MOST_TIMES}) and partition, or partition:FIELD.",
    )


def filters_in(filtering: object) -> bool:
    """Return whether a stack with this setting honours filters."""
    return bool(filtering) and filtering != NONE


@dataclass(frozen=True, eq=False)
class IndexScope:
    """What the askers of one filter may see of a corpus, or of a part of it."""

    asked: Filter  # the filter
    allowed: NDArray[np.bool_]  # whether it leaves each passage
    kinds: Mapping[str, Kind]  # types of the fields of the corpus

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the allowed passages, ascending."""
        return np.flatnonzero(self.allowed)

    @cached_property
    def selector(self) -> faiss.IDSelector:
        """The mask in the form in which faiss takes it."""
        selector: faiss.IDSelector = faiss.IDSelectorBitmap(np.packbits(self.allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]  # a wrong stub
        return selector

    def within(self, positions: NDArray[np.int64]) -> IndexScope:
        """Return what is seen of a part of the corpus."""
        return IndexScope(self.asked, self.allowed[positions], self.kinds)


def scopes_of(fields: pl.DataFrame, filters: Sequence[Filter | None]) -> list[IndexScope | None]:
    """Return what the asker of each query may see; a mask is made once for each different filter.

    Args:
        fields: The fields of the passages, see `core.filters.fields_of`.
        filters: The filter of each query; None = it sees all.
    """
    known = kinds(fields)
    made = {asked: IndexScope(asked, asked.mask(fields), known) for asked in {*filters} - {None} if asked}
    return [None if asked is None else made[asked] for asked in filters]


def kept(hits: Hits, scope: IndexScope | None, k: int) -> Hits:
    """Drop forbidden hits, and keep the first `k`."""
    if scope is not None:
        left = scope.allowed[hits.passages]
        hits = Hits(hits.passages[left], hits.scores[left])
    return Hits(hits.passages[:k], hits.scores[:k])


def partition(fields: pl.DataFrame, field: str) -> list[NDArray[np.int64]]:
    """Return the positions of the passages of each partition, in the order of its first passage.

    Passages without a value share one.

    Raises:
        InputError: If no passage has the field, or its values cannot have indexes of their own.
    """
    of_fields = kinds(fields)
    if of_fields.get(field) not in _FITTING:
        known = ", ".join(name for name, kind in of_fields.items() if kind in _FITTING)
        problem = "is of no passage" if field not in of_fields else f"holds {of_fields[field].value}"
        raise InputError(
            f"The field {field[:60]!r} {problem}, so that its values cannot have indexes of their own.",
            where="filtering",
            do=f"Partition by one of: {known or 'none fits'}.",
        )
    groups = pl.DataFrame({"held": fields.get_column(field)}).with_row_index("at")
    listed = groups.group_by("held", maintain_order=True).agg(pl.col("at").cast(pl.Int64))["at"]
    if len(listed) > MOST_PARTS:
        raise InputError(
            f"The field {field[:60]!r} has {len(listed):,} values, each of which would need an index.",
            where="filtering",
            do=f"Partition by a field of at most {MOST_PARTS:,} values.",
        )
    return [positions.to_numpy() for positions in listed]
