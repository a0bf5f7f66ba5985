"""The order of a foreign ranking: by its rank column if it has one, otherwise by scores as in trec_eval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from core.importers.read.rows import again, refuse
from core.importers.read.text import place

KEY = ["run", "stage", "query_id"]
OwnIds = Literal["keep", "drop"]
TieOrder = Literal["file", "trec_eval"]
"""Whose order a ranking has: the file's own ranks if it has them, or trec_eval's."""
_FULL = pl.all_horizontal(pl.col("ranks", "span", "ranked") == pl.col("n"))
_GOOD = (_FULL & pl.col("lowest").is_in([0, 1])).fill_null(value=False)
"""Whether the ranks of a list count 1..n or 0..n-1."""
_IS_ONE = pl.when((pl.col("ranked") > 0) & (pl.col("ranks") > 1)).then(_GOOD).otherwise("falling")
"""Whether rows are one list rather than several of stacks that nothing distinguishes."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Passages that are repeated in lists; the first position of each counts."""

    count: int = 0
    where: str = ""  # location of the first repeat


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rankings in order, and the rule that ordered each run."""

    rows: pl.DataFrame  # run, stage, query_id, passage_id, score, rank (1..n in each run, stage and query)
    rules: dict[str, str]  # run → "rank", "score", "trec_eval" (scores in single precision) or "file"
    notes: tuple[str, ...]  # the rules as sentences
    repeats: Repeats  # passages that lists repeated, which are not among the rows


def ordered(rows: pl.DataFrame, name: str, ties: TieOrder = "file") -> Ordered:
    """Rank every row within run, stage and query.

    The rank column decides if it counts 1..n or 0..n-1 in every query of the run. Otherwise scores decide,
    highest first, ties by descending passage id (byte order) as in trec_eval. Without either, the order of
    the file stands.
    """
    return as_it_stands(rows, name) or worked_out(rows, name, ties)


def worked_out(rows: pl.DataFrame, name: str, ties: TieOrder = "file") -> Ordered:
    """Order rows as `ordered` does, after examining all of them closely."""
    rules = decided([tally(rows, name)], name, ties)
    done = put_in_order(rows, rules)
    notes = [*rule_notes(rules, name), *against(done.filter(pl.col("rule") == "rank")).notes(name)]
    decided_by = dict(rules.select("run", "rule").iter_rows())
    return Ordered(done.drop("rule"), decided_by, tuple(notes), repeats(rules, name))


def as_it_stands(rows: pl.DataFrame, name: str) -> Ordered | None:
    """Return rows that are lists one after the other, each with ranks 1..n, or None if they are not.

    Most files are like this, and nothing needs to be done.
    """
    new = (pl.struct(KEY) != pl.struct(KEY).shift(1)).fill_null(value=True)
    at = rows.select(new=new).with_row_index("at")
    begins = at.filter("new")["at"].to_numpy().astype(np.int64)
    begin = np.repeat(begins, np.diff(begins, append=rows.height))
    counted = pl.Series("rank", np.arange(1, rows.height + 1) - begin, dtype=pl.Int32)
    if rows["rank"].null_count() or not (rows["rank"] == counted).all():
        return None
    lists = rows[begins].select(KEY).with_row_index("list").sort(KEY)
    if lists.select(pl.struct(KEY).n_unique()).item() < lists.height:
        return None
    # Rows with different hashes are different; rows with equal ones are examined more closely elsewhere.
    hashes = rows.select(pl.struct(pl.Series("list", begin), "passage_id").hash())
    if hashes.to_series().n_unique() < rows.height:
        return None
    done = _in_order(rows.with_columns(counted), begins, lists["list"].to_numpy())
    notes = [f"{name}: ordered by its rank column.", *against(done).notes(name)]
    return Ordered(done, dict.fromkeys(lists["run"].unique().sort(), "rank"), tuple(notes), Repeats())


def _in_order(rows: pl.DataFrame, begins: np.ndarray, order: np.ndarray) -> pl.DataFrame:
    """Return the lists that begin at some rows, put into the given order."""
    if (np.diff(order.astype(np.int64)) == 1).all():
        return rows
    lengths = np.diff(begins, append=rows.height)[order]
    shifts = begins[order] - (np.cumsum(lengths) - lengths)
    places = pl.Series(np.arange(rows.height) + np.repeat(shifts, lengths))
    return rows.select(pl.all().gather(places))


def tally(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Count, from complete lists, the figures that decide the rule of each run.

    Raises:
        InputError: A list repeats a passage, so it isn't a single list.
    """
    by_query, again_at = _counted(rows), pl.lit(None, pl.Int64)
    if by_query.filter(pl.col("distinct") < pl.col("n")).height:
        twice = again(rows.sort("line"), *KEY, "passage_id")
        once = rows.unique([*KEY, "passage_id", "rank", "score"], keep="first", maintain_order=True)
        by_query = _counted(once)
        several = by_query.join(twice, on=KEY, how="semi").filter(~_IS_ONE)
        problem = "Passage {passage_id} occurs twice for query {query_id}."
        do = "A ranking holds a passage once; name the stack of each row (run) if these are several."
        refuse(twice.join(several, on=KEY, how="semi", maintain_order="left"), problem, name, do=do)
        counts = twice.group_by(KEY).agg(pl.len().alias("again"), pl.col("line").min().alias("again_at"))
        by_query, again_at = by_query.join(counts, on=KEY, how="left"), pl.col("again_at")
    again_count = pl.col("again").sum() if "again" in by_query.columns else pl.lit(0)
    return (
        by_query.with_columns(good=_GOOD)
        .group_by("run")
        .agg(
            pl.col("ranked").sum(),
            (pl.col("scored") == pl.col("n")).all().alias("scored"),
            pl.col("good").not_().sum().alias("bad"),
            pl.len().alias("queries"),
            pl.col("line").filter(~pl.col("good")).min().alias("line"),
            again_count.cast(pl.Int64).alias("again"),
            again_at.min().alias("again_at"),
        )
    )


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(KEY).agg(
        pl.len().alias("n"),
        pl.col("passage_id").n_unique().alias("distinct"),
        pl.col("rank").n_unique().alias("ranks"),
        pl.col("rank").count().alias("ranked"),
        (pl.col("rank").max() - pl.col("rank").min() + 1).alias("span"),
        pl.col("rank").min().alias("lowest"),
        pl.col("score").count().alias("scored"),
        pl.col("line").min().alias("line"),
        (pl.col("score").sort_by("line").diff() <= 0).all().alias("falling"),
    )


def decided(tallies: Sequence[pl.DataFrame], name: str, ties: TieOrder = "file") -> pl.DataFrame:
    """Return the rule of each run, from the tallies of all its lists: run, rule, and the sums of `tally`."""
    by_score = "score" if ties == "file" else ties
    holds = {"rank": pl.col("bad") == 0, by_score: pl.col("scored"), "file": pl.col("ranked") == 0}
    rules = (
        pl.concat(tallies)
        .group_by("run")
        .agg(
            pl.col("ranked", "bad", "queries", "again").sum(),
            pl.col("scored").all(),
            pl.col("line", "again_at").min(),
        )
        .sort("run")
        .with_columns(rule=pl.coalesce(pl.when(when).then(pl.lit(rule)) for rule, when in holds.items()))
    )
    problem = (
        "The ranks of run {run} are not 1..n in {bad} of {queries} queries, and it has no scores to order by."
    )
    refuse(rules.filter(pl.col("rule").is_null()), problem, name)
    return rules


def put_in_order(rows: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
    """Give complete lists their ranks 1..n, each ordered by its run's rule in `rules`."""
    ruled = rows.join(rules.select("run", "rule"), on="run", how="left")
    return _sorted(ruled, once=(rules["again"] > 0).any())


def repeats(rules: pl.DataFrame, name: str) -> Repeats:
    """Return the repeats in lists, according to the rule of each run."""
    count, line = rules.select(pl.col("again").sum(), pl.col("again_at").min()).row(0)
    return Repeats(count, place(name, line)) if count else Repeats()


def rule_notes(rules: pl.DataFrame, name: str) -> list[str]:
    """Return the rules as sentences, each once."""
    return list(dict.fromkeys(_note(name, row) for row in rules.iter_rows(named=True)))


def _sorted(rows: pl.DataFrame, *, once: bool) -> pl.DataFrame:
    by_rank = rows.filter(pl.col("rule") == "rank").sort([*KEY, "rank"])
    by_score, by_single = (
        rows.filter(pl.col("rule") == rule).sort(
            [*KEY, score, "passage_id"], descending=[False] * len(KEY) + [True, True]
        )
        for rule, score in (("score", pl.col("score")), ("trec_eval", pl.col("score").cast(pl.Float32)))
    )
    by_file = rows.filter(pl.col("rule") == "file").sort([*KEY, "line"])
    together = pl.concat([part for part in (by_rank, by_score, by_single, by_file) if part.height] or [rows])
    if once:
        together = together.filter(pl.struct(*KEY, "passage_id").is_first_distinct())
    # Rows of a key are neighbours now: the rank is a row's position minus that of the key's first row.
    new = pl.struct(KEY) != pl.struct(KEY).shift(1)
    together = together.with_row_index("at").with_columns(new.fill_null(value=True).alias("new"))
    first = pl.when("new").then(pl.col("at")).forward_fill()
    return together.with_columns((pl.col("at") - first + 1).cast(pl.Int32).alias("rank")).drop("at", "new")


def _note(name: str, row: dict[str, object]) -> str:
    if row["rule"] == "rank":
        return f"{name}: ordered by its rank column."
    if row["rule"] == "file":
        return f"{name}: no rank and no score; rows are taken in the order of the file."
    why = (
        "no rank column is used"
        if not row["ranked"]
        else f"its rank column does not count 1..n in {row['bad']} of {row['queries']} queries "
        f"(first at line {row['line']})"
    )
    return f"{name}: {why}, so it is ordered by score, ties by descending passage id, as trec_eval does."


@dataclass(frozen=True, slots=True)
class RankedAgainst:
    """Number of lists, ordered by rank column, that trec_eval would order differently."""

    scores: int = 0  # lists in which a score is higher than the one before it
    ties: int = 0  # other lists in which passages of equal score are not in descending order of ids

    def __add__(self, other: RankedAgainst) -> RankedAgainst:
        return RankedAgainst(self.scores + other.scores, self.ties + other.ties)

    def notes(self, name: str) -> list[str]:
        """Return notes on the ranking rules, or [] if there is nothing to say."""
        other = "--tie-order trec_eval takes its order"
        sentences = []
        if self.scores:
            sentences.append(
                f"{name}: rank column and scores disagree in {self.scores} rankings; "
                f"trec_eval would order by score ({other})."
            )
        if self.ties:
            sentences.append(
                f"{name}: scores tie in {self.ties} rankings, where trec_eval would order by descending "
                f"passage id; the file's own ranks are used ({other})."
            )
        return sentences


NONE = RankedAgainst()


def against(rows: pl.DataFrame) -> RankedAgainst:
    """Return how the order by rank column differs from trec_eval's."""
    later = pl.col("rank") > 1
    higher = later & (pl.col("score") > pl.col("score").shift(1))
    tied = later & (pl.col("score") == pl.col("score").shift(1))
    tied &= pl.col("passage_id") > pl.col("passage_id").shift(1)
    lists = rows.select(*KEY, higher=higher, tied=tied).filter(pl.col("higher") | pl.col("tied"))
    counted = lists.group_by(KEY).agg(pl.col("higher").any())
    scores = counted.filter("higher").height
    return RankedAgainst(scores, counted.height - scores)


def as_trec_eval(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows without their ranks if they have scores, by which trec_eval orders them."""
    return rows.with_columns(pl.when(pl.col("score").is_null()).then("rank").alias("rank"))
