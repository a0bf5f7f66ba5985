"""Comparability of a workspace's stacks: their differences, how they are handled, and what remains sound.

A workspace is one collection and one golden set, and a page shows one measure at one cutoff. What may still
differ: the queries of the runs (`workspace.query_sets`), the basis of averages from elsewhere,
the machine that latencies were taken on, and the convention of the candidate pool that a ceiling belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
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

MANY_HOLES = 0.1  # Share of a Top-K from which on holes reflect the judging more than the stack
NAMED = 2  # Maximum number of stacks with many holes to name, the worst first
_NOTES = "notes on comparability"
SHARED, EVERY = "shared queries", "all queries"
SAME, ALL = "comparable ones", "all"
PROCESSOR_TIME = "processor time"
NO_WAITING = "processor time, no network or queue"
ALL_MACHINES = "all machines"
LATENCY = ("latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis")
_UNIMPORTANT = frozenset({"load_average", "packages", "python", "system", "memory_gib"})
"""Parts of an environment that may differ while latencies still compare, within the jitter band."""


APART = pl.Schema({"name": pl.String(), "why": pl.String()})


@dataclass(frozen=True)
class Comparability:
    """Differences between the stacks of a workspace, for people."""

    # The differences, how the page handles them, and alternatives; empty = all match
    sentences: tuple[str, ...] = ()
    # The runs left out of the comparison: name, why
    apart: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=APART))
    offers: tuple[str, ...] = ()  # further differences that are not handled, and possible remedies
    grouped: str = ""  # the note that the questions form groups, and how many

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the remarks on all numbers: groups of questions, and differences between stacks."""
        return (*filter(None, [self.grouped]), *self.sentences)

    def unjudged(self, table: pl.DataFrame) -> float:
        """Return the largest share of unjudged results, 0..1, if the chip is about it, otherwise 0."""
        most: Any = table["hole"].max() if self.offers and not self.apart.height else None
        return float(most or 0.0)

    def chip(self, table: pl.DataFrame) -> str:
        """Return the main difference between the stacks of a table, in a few words."""
        if self.apart.height:
            return f"{count(self.apart.height, 'stack')} set apart"
        if unjudged := self.unjudged(table):
            many = len(_holey(table))
            whose = "" if many in (0, table.height) else f" of {count(many, 'stack')}"
            return f"up to {100 * unjudged:.0f} % of results{whose} unjudged"
        return count(len(self.sentences) + len(self.offers), "note on comparability", _NOTES)


@remembered
def _holey(table: pl.DataFrame) -> NDArray[np.intp]:
    """Return the rows of the stacks with many unjudged results in the Top-K, the most first."""
    hole = floats(table, "hole")
    rows = np.flatnonzero(hole > MANY_HOLES)
    return rows[np.argsort(-hole[rows], kind="stable")]


def unjudged_words(table: pl.DataFrame, top: str, *, among: int) -> str:
    """List the stacks of a table with more than a tenth of their Top-K unjudged, or return "" if none.

    Args:
        top: The part of the ranking, as ``Top-10``.
        among: The total number of stacks.
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
    """Return the machines of the known latencies in a stack table, with the number of stacks on each."""
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


def timed_elsewhere(table: pl.DataFrame, run_ids: Collection[str]) -> str:
    """Say that the latency of new stacks is unknown beside those of another machine, or return ""."""
    counts = machines(table)
    if len(counts) < 2:
        return ""
    chosen = next(iter(counts))
    unknown = at_machine(table, chosen).filter(pl.col("latency_ms").is_null())["run_id"]
    new = table.filter(
        pl.col("run_id").is_in(list(run_ids)),
        pl.col("run_id").is_in(unknown.implode()),
        pl.col("latency_ms").is_not_null(),
    )
    if new.is_empty():
        return ""
    return (
        f"Beside the others the latency of {', '.join(new['name'])} counts as unknown: "
        f"{count(counts[chosen], 'stack')} were timed on another machine ({chosen}). Measure them here, or "
        "compare all as they are: --together, in Python together=True."
    )


@remembered
def answering(table: pl.DataFrame) -> bool:
    """Return whether all known latencies of a stack table were reported for whole flows with answering."""
    timed = table.filter(pl.col("latency_ms").is_not_null())["environment"].unique()
    return not timed.is_empty() and all(
        json.loads(environment).get("reported") == WHOLE_FLOW for environment in timed
    )


def machine(environment: str, origin: str) -> str:
    """Return a machine's name, from the identifying parts of a run's environment (JSON)."""
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
    """Describe where the latencies of a stack table were measured, by the processors on record."""
    known = {json.loads(environment).get("cpu") for environment in table["environment"].unique()} - {None, ""}
    if not known:
        return "The machine that was timed is not on record."
    if len(known) > 1:
        return f"Timed on {len(known)} different machines: latencies do not compare."
    how = {json.loads(environment).get("reported") for environment in table["environment"].unique()}
    told = f": {shorten(str(how.pop()), 120)}" if len(how) == 1 and None not in how else ""
    return f"Timed on {known.pop()}{told}."


def clock(reported: object) -> str:
    """Return the timed quantity in a few words if it isn't elapsed time: ``processor time, no …``."""
    return NO_WAITING if str(reported).startswith(PROCESSOR_TIME) else ""


def at_machine(table: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Limit a stack table to one machine's latencies; the others become unknown, with the reason."""
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
    """Return averages from elsewhere with a different basis than most of the others.

    Averages over different queries cannot be restricted to the common ones. They compare while the numbers of
    queries are within a tenth of the largest: the group of these with most stacks, of equal ones the largest.

    Returns:
        Why each of the others does not compare, by run_id, and a sentence without its end; "" if all
        have the same number.
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
    """Return runs that searched different texts of the same passages than most did.

    Ids alone do not show this: one run may search titles with texts, or an excerpt made for searching.

    Returns:
        Why each of them does not compare, by run_id, and a sentence without its end; "" if all match.
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
    """Describe how queries differ, or return "" if all stacks have the same."""
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
    """Describe the effect of averages from elsewhere, or return "" if none; `offer` as in `about_queries`.

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
    """State that latencies come from several machines, or return "" if there is one."""
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
    """State that one chart shows ceilings of several pool conventions, or return ""."""
    names = sorted({name or "not stated" for name in pools})
    if len(names) < 2:
        return ""
    return f"PROC of different pools does not compare: {', '.join(names)}."
