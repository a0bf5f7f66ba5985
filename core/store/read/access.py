"""What askers may see: filters of questions beside the metadata of passages.

A passage has its own metadata, else those of the document that it was cut from (its source). What is unknown
is not allowed: permissions fail closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from core.errors import ClqError
from core.filters import Filter, Kind, decoded, fields_of, parse
from core.metrics.access import UNFILTERED, UNKNOWN
from core.store.engine import ENGINE

_ROWS = "SELECT {columns} FROM read_parquet($files) WHERE collection_id = $collection ORDER BY 1"


class HeldPassages(NamedTuple):
    """Rows of one collection in one table: its id, and the files that hold them."""

    collection_id: str
    files: tuple[str, ...]

    def rows(self, columns: str) -> pl.DataFrame:
        """Return some columns, all of them texts but for `permission`."""
        schema = dict.fromkeys(columns.split(", "), pl.String)
        if not self.files:
            return pl.DataFrame(schema=schema)
        asked = {"files": list(self.files), "collection": self.collection_id}
        found: pl.DataFrame = ENGINE.cursor().sql(_ROWS.format(columns=columns), params=asked).pl()
        return found


class Filtered(NamedTuple):
    """Where the filters of a collection's questions are, and what its passages are known by."""

    filters: HeldPassages
    fields: HeldPassages
    metadata: tuple[
        HeldPassages, ...
    ]  # of the searched passages, then of the documents that they were cut from
    passages: HeldPassages  # the searched passages, for their sources


@dataclass(frozen=True, eq=False)
class Access:
    """Filters of a collection's questions, and the fields of its passages that they ask about."""

    filters: Mapping[str, Filter]  # by question
    permissions: frozenset[str]  # fields that say what an asker may see
    declared: Mapping[str, Kind]  # types of fields, where they are declared
    passage_ids: pl.Series  # the passages with metadata
    metadata: pl.Series  # theirs, as JSON

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields that any filter asks about."""
        return frozenset(name for asked in set(self.filters.values()) for name in asked.names)

    @cached_property
    def fields(self) -> pl.DataFrame:
        """These fields of the passages with metadata, typed; see `core.filters.fields_of`."""
        return fields_of(decoded(self.metadata), self.declared, self.names)

    @cached_property
    def left(self) -> Mapping[str, int]:
        """How many passages each question's filter leaves."""
        of_filter = {asked: int(self.mask(asked).sum()) for asked in set(self.filters.values())}
        return {query: of_filter[asked] for query, asked in self.filters.items()}

    @cached_property
    def problems(self) -> Mapping[str, str]:
        """Why a filter leaves no passage, by question."""
        of_filter = {asked: self._problem(asked) for asked in set(self.filters.values())}
        return {query: of_filter[asked] for query, asked in self.filters.items() if of_filter[asked]}

    def _problem(self, asked: Filter) -> str:
        try:
            asked.check(self.fields)
        except ClqError as error:
            return str(error)
        return "" if self.mask(asked).any() else "No passage matches the filter."

    @property
    def decides(self) -> bool:
        """Whether any filter asks about a field that says what an asker may see."""
        return not self.permissions.isdisjoint(self.names)

    def states(self, query_ids: pl.Series, passage_ids: pl.Series) -> npt.NDArray[np.int8]:
        """Return the state of each pair of question and passage, one of `core.metrics.access`."""
        filters = sorted(set(self.filters.values()), key=lambda asked: asked.text)
        place = {asked: number for number, asked in enumerate(filters)}
        numbers = {query: place[asked] for query, asked in self.filters.items()}
        known = pl.DataFrame({"passage_id": self.passage_ids}).with_row_index("row")
        rows = pl.DataFrame({"query_id": query_ids, "passage_id": passage_ids}).with_columns(
            asked=pl.col("query_id").replace_strict(numbers, default=None, return_dtype=pl.Int64)
        )
        rows = rows.join(known, on="passage_id", how="left", maintain_order="left").with_row_index("at")
        states = np.full(rows.height, UNFILTERED, dtype=np.int8)
        filtered = rows.filter(pl.col("asked").is_not_null())
        states[filtered["at"].to_numpy()] = UNKNOWN
        for (number,), of_filter in filtered.drop_nulls("row").group_by("asked"):
            states[of_filter["at"].to_numpy()] = self.mask(filters[int(str(number))], of_filter["row"])
        return states

    def mask(self, asked: Filter, rows: pl.Series | None = None) -> npt.NDArray[np.bool_]:
        """Return which passages a filter leaves, of some rows or of all; none if it can match nothing."""
        fields = self.fields if rows is None else self.fields[rows]
        if not set(asked.names) <= set(fields.columns):
            return np.zeros(fields.height, dtype=np.bool_)
        return asked.mask(fields)


@lru_cache(maxsize=8)
def access(filtered: Filtered) -> Access:
    """Read filters and metadata; cached, because files of a store never change."""
    asked = filtered.filters.rows("query_id, filter")
    parsed = {text: parse(text) for text in asked["filter"].unique()}
    said = filtered.fields.rows("field, kind, permission")
    return Access(
        filters={query: parsed[text] for query, text in asked.iter_rows()},
        permissions=frozenset(said.filter(pl.col("permission").cast(pl.Boolean))["field"]),
        declared={name: Kind(kind) for name, kind, _ in said.iter_rows() if kind is not None},
        **_known(filtered),
    )


def _known(filtered: Filtered) -> dict[str, pl.Series]:
    searched, *documents = (held.rows("passage_id, metadata") for held in filtered.metadata)
    whole = pl.concat([*documents, searched]).unique("passage_id", keep="first")
    cut = filtered.passages.rows("passage_id, source").drop_nulls("source")
    cut = cut.join(searched, on="passage_id", how="anti")
    from_document = cut.join(whole, left_on="source", right_on="passage_id").select("passage_id", "metadata")
    known = pl.concat([searched, from_document])
    return {"passage_ids": known["passage_id"], "metadata": known["metadata"]}
