"""Comparability of the stacks of a workspace: what keeps them apart, what is done about it, what is sound.

A workspace is one collection and one golden set, and a page shows one measure at one cutoff. What may still
differ: the queries that the runs were asked (`workspace.query_sets`), what averages from elsewhere rest on,
the machine that latencies were taken on, and the convention of the candidate pool that a ceiling belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.analysis.workspace.pools import SEARCHED
from core.analysis.workspace.query_sets import COSTS, QuerySets
from core.decide.axes import floats
from core.number_format import UNKNOWN, count, percent, shorten
from core.records import BASES, WHOLE_FLOW, Origin
from core.tables import remembered

MANY_HOLES = 0.1  # Share of a Top-K from which on holes say more about the judging than about the stack
NAMED = 2  # Stacks with many holes that are named; of more than these the worst
_NOTES = "notes on comparability"
SHARED, EVERY = "shared queries", "all queries"
SAME, ALL = "comparable ones", "all"
PROCESSOR_TIME = "processor time"
ALL_MACHINES = "all machines"
LATENCY = ("latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis")
_UNIMPORTANT = frozenset({"load_average", "packages", "python", "system", "memory_gib"})
"""Parts of an environment that change while latencies still compare, within the jitter band."""


APART = pl.Schema({"name": pl.String(), "why": pl.String()})


@dataclass(frozen=True)
class Comparability:
    """Differences between the stacks of a workspace, for people."""

    # What differs, what the page does about it, and what else could be done; empty = all match
    sentences: tuple[str, ...] = ()
    # The runs that are not compared with the others: name, why
    apart: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=APART))
    offers: tuple[str, ...] = ()  # what else differs that nothing is done about, and what could be
    grouped: str = ""  # that the questions come in groups, and of how many they are

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what is said of all numbers: the groups of their questions, and what differs."""
        return (*filter(None, [self.grouped]), *self.sentences)

    def unjudged(self, table: pl.DataFrame) -> float:
        """Return the largest share of unjudged results, 0..1, where the chip is about it; else 0."""
        most: Any = table["hole"].max() if self.offers and not self.apart.height else None
        return float(most or 0.0)

    def chip(self, table: pl.DataFrame) -> str:
        """Say what differs most between the stacks of a table, in a few words."""
        if self.apart.height:
            return f"{count(self.apart.height, 'stack')} set apart"
        if unjudged := self.unjudged(table):
            many = len(_holey(table))
            whose = "" if many in (0, table.height) else f" of {count(many, 'stack')}"
            return f"up to {100 * unjudged:.0f} % of results{whose} unjudged"
        return count(len(self.sentences) + len(self.offers), "note on comparability", _NOTES)


@remembered
def _holey(table: pl.DataFrame) -> NDArray[np.intp]:
    """Return the rows of the stacks of whose Top-K many results are unjudged, the most first."""
    hole = floats(table, "hole")
    rows = np.flatnonzero(hole > MANY_HOLES)
    return rows[np.argsort(-hole[rows], kind="stable")]


def unjudged_words(table: pl.DataFrame, top: str, *, among: int) -> str:
    """Name the stacks of a table of whose Top-K more than a tenth is unjudged; empty without any.

    Args:
        top: What is looked at, as ``Top-10``.
        among: Of how many stacks these are.
    """
    rows = _holey(table)
    named = rows[:NAMED].tolist()
    shares = [f"{percent(table['hole'][row])} of {table['name'][row]}" for row in named]
    if not shares:
        return ""
    if len(rows) <= NAMED:
        return f"Unjudged results in the {top}, which count as not relevant: {' and '.join(shares)}."
    return (
        f"{len(rows):,} of {count(among, 'stack')} have over {100 * MANY_HOLES:.0f} % of their {top} "
        f"unjudged, which counts as not relevant; most: {shares[0]}."
    )


@remembered
def machines(table: pl.DataFrame) -> dict[str, int]:
    """Give machines that the known latencies of a stack table were taken on, and how many stacks on each."""
    timed = table.filter(pl.col("latency_ms").is_not_null())
    stacks_on = timed.group_by("environment", "origin").agg(pl.len().alias("stacks"))
    counts: dict[str, int] = {}
    here: set[str] = set()
    for environment, origin, stacks in stacks_on.sort("environment", "origin").iter_rows():
        name = machine(environment, origin)
        counts[name] = counts.get(name, 0) + stacks
        if origin == Origin.RUN:
            here.add(name)
    order = sorted(counts, key=lambda name: (-counts[name], name not in here, name))
    return {name: counts[name] for name in order}


@remembered
def answering(table: pl.DataFrame) -> bool:
    """Tell whether all known latencies of a stack table were reported for whole flows, answering included."""
    timed = table.filter(pl.col("latency_ms").is_not_null())["environment"].unique()
    return not timed.is_empty() and all(
        json.loads(environment).get("reported") == WHOLE_FLOW for environment in timed
    )


def machine(environment: str, origin: str) -> str:
    """Name what tells one machine from another in a run's environment (JSON)."""
    features = {name: value for name, value in json.loads(environment).items() if name not in _UNIMPORTANT}
    parts = [str(features.pop("cpu"))] if features.get("cpu") else []
    if features.get("cores"):
        parts.append(count(int(features.pop("cores")), "core"))
    parts += [
        str(value) if name == "reported" else f"{name} {value}"
        for name, value in sorted(features.items())
        if value not in (None, "", [], {})
    ]
    described = shorten(", ".join(parts), 120) or "machine not stated"
    return described if origin == Origin.RUN else f"{described} ({BASES.get(origin, origin)})"


@remembered
def environment(table: pl.DataFrame) -> str:
    """Say where the latencies of a stack table were measured, by the processors on record."""
    known = {json.loads(environment).get("cpu") for environment in table["environment"].unique()} - {None, ""}
    if not known:
        return "The machine that was timed is not on record."
    if len(known) > 1:
        return f"Timed on {len(known)} different machines: latencies do not compare."
    how = {json.loads(environment).get("reported") for environment in table["environment"].unique()}
    told = f": {shorten(str(how.pop()), 120)}" if len(how) == 1 and None not in how else ""
    return f"Timed on {known.pop()}{told}."


def clock(reported: object) -> str:
    """Name what was timed, in two words, where that is not the time that passes: ``processor time``."""
    return PROCESSOR_TIME if str(reported).startswith(PROCESSOR_TIME) else ""


def at_machine(table: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Time a stack table on one machine only; latencies of others count as unknown, with why."""
    if chosen is None:
        return table
    pairs = table.select("environment", "origin").unique()
    elsewhere = pairs.filter(
        [machine(environment, origin) != chosen for environment, origin in pairs.iter_rows()]
    )
    marked = table.join(
        elsewhere.with_columns(_other=True), on=["environment", "origin"], how="left", maintain_order="left"
    )
    other = pl.col("_other").fill_null(value=False) & pl.col("latency_ms").is_not_null()
    note = pl.lit("measured on another machine: not comparable")
    return marked.with_columns(
        *(pl.when(~other).then(pl.col(name)).alias(name) for name in LATENCY),
        pl.when(other).then(note).otherwise(pl.col("latency_note")).alias("latency_note"),
    ).drop("_other")


@remembered
def foreign_figures(table: pl.DataFrame) -> tuple[dict[str, str], str]:
    """Return averages from elsewhere that do not rest on what most of the others rest on.

    Averages over different queries cannot be cut down to those in common. They compare while the numbers of
    queries lie within a tenth of the largest: the group of these with most stacks, of equal ones the largest.

    Returns:
        Why each of the others does not compare, by run_id, and a sentence without its end; empty where all
        rest on the same number.
    """
    known = table.filter(pl.col("quality").is_not_null())
    reported = known.filter(pl.col("unjudged_queries").is_null())
    if reported.is_empty():
        return {}, ""
    if reported.height < known.height:
        why = "an average from elsewhere, not scored with this golden set"
        words = (
            f"{count(reported.height, 'stack')} came as averages of an evaluation elsewhere "
            f"({_ns(reported)}); the others are scored with this golden set"
        )
        return dict.fromkeys(reported["run_id"], why), words
    counts = reported.drop_nulls("n").group_by("n").len().sort("n")
    if counts.height < 2:
        return {}, ""
    ns, stacks = (counts[name].to_numpy() for name in ("n", "len"))
    near = (ns >= (1 - COSTS) * ns[:, None]) & (ns <= ns[:, None])
    most = int(np.lexsort((ns, near @ stacks))[-1])
    odd = reported.filter(pl.col("n").is_not_null(), ~pl.col("n").is_in(ns[near[most]]))
    words = f"The averages rest on different numbers of queries, which cannot be cut down: {_ns(reported)}"
    if odd.is_empty():
        return {}, f"{words}; these lie within {percent(COSTS)} of one another"
    return (
        {run_id: f"rests on {count(n, 'query')}" for run_id, n in odd.select("run_id", "n").iter_rows()},
        f"{words}; {_ns(odd)} is more than {percent(COSTS)} off",
    )


@remembered
def other_texts(table: pl.DataFrame) -> tuple[dict[str, str], str]:
    """Return runs that searched other texts of the same passages than most did.

    Ids alone do not tell: one may search titles with texts, or an excerpt that was made for searching.

    Returns:
        Why each of them does not compare, by run_id, and a sentence without its end; empty where all match.
    """
    known = table.select("run_id", "chunking", "created_at", texts=SEARCHED).drop_nulls("texts")
    of = known.group_by("chunking", "texts").agg(pl.len().alias("runs"), pl.min("created_at"))
    usual = of.sort("runs", "created_at", descending=[True, False]).unique("chunking", keep="first")
    odd = known.join(usual, on=["chunking", "texts"], how="anti", nulls_equal=True)
    if odd.is_empty():
        return {}, ""
    words = f"{count(odd.height, 'stack')} searched other texts of the same passages"
    return dict.fromkeys(odd["run_id"], "searched other texts of the same passages"), words


def _ns(rows: pl.DataFrame) -> str:
    ns = [UNKNOWN if n is None else str(n) for n in rows["n"].unique().sort()]
    return f"n = {', '.join(ns[:4])}{'…' * (len(ns) > 4)}"


def about_queries(sets: QuerySets, *, shared: bool, offer: bool = True) -> str:
    """Say how queries differ; empty where all stacks have the same."""
    n = len(sets.shared.ids)
    if not sets.differ:
        nobody = f"{sets.unasked} of {sets.judged} judged queries are ranked by no stack"
        said, other = (f"left out: n = {n}", EVERY) if shared else ("count as 0", SHARED)
        does = "counts them as 0" if shared else "leaves them out"
        more = f"; “{other}” in Settings {does}" if offer else ""
        return f"{nobody} and {said}{more}." if sets.ranked and sets.unasked else ""
    range_ = f"{sets.fewest} to {sets.most} of {sets.judged}"
    asked, absent = (
        (f"was asked the same queries ({range_} judged)", "A query that a stack does not rank counts as 0")
        if sets.ranked
        else (f"has a score of every query ({range_})", "Each stack has the mean of its own")
    )
    if not shared:
        more = f"; “{SHARED}” in Settings compares on the {n} in common" if offer else ""
        return f"Not every stack {asked}. {absent} here, so the order says little{more}."
    many = count(len(sets.apart), "stack")
    some = f" Set apart for want of more than {percent(COSTS)} of these: {many}."
    more = f" “{EVERY}” in Settings: {absent[:1].lower()}{absent[1:]}." if offer else ""
    zero = " One for which a compared stack ranks nothing counts as 0." if sets.ranked else ""
    return f"Not every stack {asked}. They are compared on n = {n}.{zero}{some if sets.apart else ''}{more}"


def about_figures(words: str, *, odd: bool, together: bool, offer: bool = True) -> str:
    """Say what averages from elsewhere mean, empty for none; `offer` as in `about_queries`.

    Args:
        odd: Whether any does not compare.
    """
    if not words or not odd:
        return words and f"{words}."
    if together:
        more = f" because “{ALL}” is chosen in Settings" if offer else ", though they do not compare"
        return f"{words}. They stand on one scale{more}."
    more = f"; “{ALL}” under Stacks in Settings shows them together" if offer else ""
    return f"{words}. They are set apart{more}."


def about_machines(by_machine: Mapping[str, int], chosen: str | None) -> str:
    """Say that latencies come from several machines; empty where there is one."""
    if len(by_machine) < 2:
        return ""
    if chosen is None:
        return f"Latencies come from {len(by_machine)} machines, so they do not compare; quality and cost do."
    others = sum(by_machine.values()) - by_machine.get(chosen, 0)
    return (
        f"Latencies come from {len(by_machine)} machines. Shown are those of {chosen}; "
        f"{count(others, 'stack keeps', 'stacks keep')} quality and cost only (latency not comparable)."
    )


def about_pools(pools: Iterable[str | None]) -> str:
    """Say that ceilings of several pool conventions stand on one chart; else empty."""
    names = sorted({name or "not stated" for name in pools})
    if len(names) < 2:
        return ""
    return f"Ceilings of different pool conventions do not compare: {', '.join(names)}."
