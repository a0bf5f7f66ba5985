"""Nuggets in a table, a row for each supporting passage; a row without a passage lists a nugget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from core.contrib.importers.nuggetizer import ROWS, SUPPORT, VITAL, nugget_set
from core.importers.base import LOOK_ROWS, SURE, Format, Import, Look, Options, merged
from core.importers.naming import ROLES as KNOWN_ROLES
from core.importers.naming import roles_by
from core.importers.read.member import Archive, Member
from core.importers.read.rows import identified, refuse
from core.importers.read.tabular import Table, columns, kind_of, read_table
from core.importers.read.text import no_column
from core.importers.report import TAKEN, FileReport, settled

_ROLES: Mapping[str, tuple[str, ...]] = {
    "nugget": ("nugget", "nugget_text", "fact"),
    "query_id": ("query_id", *KNOWN_ROLES["query_id"].aliases),
    "passage_id": ("passage_id", *KNOWN_ROLES["passage_id"].aliases),
    "importance": ("importance",),
    "support": ("support", "assignment"),
}
_NEEDS = "Nuggets need query_id, nugget and passage_id; importance and support may be left out."
_SHARES = "or a number from 0 to 1"


class NuggetRows(Format):
    """Tables of nuggets and the passages that support them."""

    name, title = "nugget-rows", "Nuggets and the passages that support them (CSV, TSV, JSONL, Parquet)"
    takes = {
        "nuggets": "each nugget, and each passage that supports it, fully or in part",
        "judgements": "of passages: 5 supports a vital nugget, 4 another, 3 in part, 1 none",
    }
    recognised = "columns query_id, nugget (its text) and passage_id; importance and support may be left out"
    traps = (
        "Without importance a nugget is vital; without support a passage supports it fully.",
        "A row without a passage lists a nugget that none supports.",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        names = columns(probe.members[0])
        return SURE if {"query_id", "nugget", "passage_id"} <= _roles(names, {}, probe.name).keys() else 0.0

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        return Look(_opened(archive.members[0], LOOK_ROWS).texts)

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        for member in (archive.members[0] for archive in archives):
            names = _opened(member, LOOK_ROWS).rows.columns
            taken = dict.fromkeys(_roles(names, options.columns, member.name).values(), TAKEN)
            yield settled(member.name, "column", names, taken)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all tables, each a golden set."""
        return merged(_read(archive.members[0], options) for archive in archives)


def _roles(names: Sequence[str], given: Mapping[str, str], name: str) -> dict[str, str]:
    return roles_by(names, given, _ROLES, name)


def _opened(member: Member, most: int | None = None) -> Table:
    return read_table(member, kind_of(member), most, do=_NEEDS)


def _read(member: Member, options: Options) -> Import:
    table = _opened(member)
    roles = _roles(table.rows.columns, options.columns, member.name)
    for role in ("query_id", "nugget", "passage_id"):
        if role not in roles:
            raise no_column(role, table.rows.columns, member.name, _NEEDS)
    usual = {"importance": "vital", "support": "support"}
    rows = table.taking(roles).with_columns(
        pl.lit(said).alias(role) for role, said in usual.items() if role not in roles
    )
    rows = identified(rows, member.name, "query_id")
    refuse(rows.filter(pl.col("nugget").fill_null("") == ""), "The nugget is empty.", member.name, "nugget")
    passage = pl.when(pl.col("passage_id") != "").then("passage_id")
    rows = rows.with_columns(
        passage.alias("passage_id"),
        pl.col("importance", "support").str.strip_chars().str.to_lowercase(),
    ).with_columns(
        pl.col("importance").replace("", None).fill_null("vital"),
        vital=pl.col("importance").replace("", None).fill_null("vital").replace_strict(VITAL, default=None),
        share=pl.coalesce(
            pl.col("support").replace_strict(SUPPORT, default=None, return_dtype=pl.Float64),
            pl.col("support").cast(pl.Float64, strict=False),
        ),
    )
    bad = rows.filter(pl.col("vital").is_null())
    refuse(bad, "The importance is {importance}; it is vital or okay.", member.name, "importance")
    assigned = pl.col("passage_id").is_not_null()
    bad = rows.filter(assigned & ~pl.col("share").is_between(0, 1).fill_null(value=False))
    told = f"The support is {{support}}; it is one of {', '.join(SUPPORT)}, {_SHARES}."
    refuse(bad, told, member.name, "support")
    share = pl.when(assigned).then("share").alias("support")
    held = rows.select("query_id", "passage_id", "vital", share, "line", text="nugget").select(list(ROWS))
    return nugget_set(held, member.name, member.stem, options)
