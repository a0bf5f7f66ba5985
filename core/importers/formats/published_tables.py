"""The folder of published figures that ships with the product, offered as any other folder."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.importers.account import TAKEN, Parts
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.formats.published import TAKEN_FIGURES, published_batch, read_figures
from core.importers.read.piece import Piece, Tree, head_lines
from core.importers.read.text import shown

_HEADER = [
    "table", "embedder", "dim", "mode", "ann", "reranker", "candidates_k", "metric", "k", "value",
    "n_queries", "pool", "note",
]  # fmt: skip
_INDEX = ["file", "table", "title", "source"]


class PublishedTables(Format):
    """The figures of the CLQ paper, one run per stack."""

    name, title = "published", "Published figures (data/published)"
    brings = ("usage", "aggregates")
    takes = {"aggregates": "every printed figure of a stack", "usage": "the reranker's tokens, modelled"}  # noqa: RUF012
    recognised = "the header of clq_tables.csv; the other tables are named in index.csv beside it"
    traps = ("Tables without stacks are shown on the Data page and left out here.",)

    def sniff(self, probe: Tree) -> float:
        """A table with the header of the CLQ paper's figures."""
        return SURE if any(map(_is_figures, probe.pieces)) else 0.0

    def mine(self, probe: Tree) -> tuple[Piece, ...]:
        """The figures, the list of tables, and the tables that it names."""
        lists = [piece for piece in probe.pieces if _header(piece) == _INDEX]
        named = {line.split(",")[0] for piece in lists for line in head_lines(piece)[1:]}
        return tuple(
            piece
            for piece in probe.pieces
            if _is_figures(piece) or piece in lists or piece.relative.rsplit("/", 1)[-1] in named
        )

    def parts(self, piece: Piece, options: Options) -> Parts | str | None:  # noqa: ARG002
        """Every column of the figures; of the other tables none."""
        if _is_figures(piece):
            return dict.fromkeys(_HEADER, TAKEN)
        return "a table without stacks: the Data page shows it"

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read the figures as they ship; of the options none applies."""
        pieces = [piece for tree in trees for piece in tree.pieces if _is_figures(piece)]
        return merged(_figures(piece, options) for piece in pieces)


def _header(piece: Piece) -> list[str]:
    return next(iter(head_lines(piece, 1)), "").split(",")


def _is_figures(piece: Piece) -> bool:
    return _header(piece) == _HEADER


def _figures(piece: Piece, options: Options) -> Import:
    batch = published_batch(piece)
    others = (
        read_figures(piece)
        .filter(~pl.col("metric").is_in(TAKEN_FIGURES))
        .group_by("metric")
        .len()
        .sort("metric")
    )
    return Import(
        left_out=tuple(
            LeftOut(count, f"figures of `{shown(metric)}`: there is no place for them", piece.name)
            for metric, count in others.iter_rows()
        ),
        collections=tuple(
            each for each in batch.collections if each.collection_id not in options.known_collections
        ),
        runs=batch.runs,
        frames={table: rows for table, rows in batch.frames.items() if rows.lazy().collect().height},
    )
