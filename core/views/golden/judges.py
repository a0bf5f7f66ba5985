"""Several judges of one collection: whether they agree, and one golden set merged from theirs.

Each judge is a separate golden set, since a golden set has one grade per passage. Grades are compared after
the mapping of each set to 1..5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError, UnknownNameError
from core.importers.runs import slug
from core.records import Batch, GoldenSet
from core.stats.judges import (
    GRADES,
    Agreement,
    Policy,
    alpha_of,
    coincidences,
    confusion,
    fleiss_of,
    kappa_of,
    put_together,
    shares_of,
)
from core.store import Snapshot, Store
from core.tables import frame
from core.views import columns as cols
from core.views import text

POLICIES: Mapping[Policy, str] = {
    "latest": "the grade of the golden set that was added last",
    "majority": "the grade given most often; of those given equally often the lowest",
    "mean": "the mean of the grades, rounded; halves are rounded down",
}
KAPPA = f"{cols.COLUMNS['kappa'].help} Intervals: 95 %, 2,000 resamples of the queries, fixed seed."
MOST = 12  # Maximum judges compared: every pair of them is a row

_PAIR = ("query_id", "passage_id")
_PAIRS: Mapping[str, pl.DataType] = {
    "first": pl.String(),
    "second": pl.String(),
    "n": pl.Int64(),
    "queries": pl.Int64(),
    "grades": pl.String(),
    "same": pl.Float64(),
    **{f"{name}{end}": pl.Float64() for name in ("kappa", "quadratic") for end in ("", "_low", "_high")},
}
_SIGNIFICANT = 1.96  # Normal quantile of a two-sided test at 5 %
RELIABLE, TENTATIVE = 0.8, 0.667
"""Least alpha of judges who agree well, and for tentative conclusions (Krippendorff 2004, §11.4)."""


@dataclass(frozen=True, eq=False)
class ComparedJudges:
    """The grades of some golden sets, side by side."""

    sets: pl.DataFrame  # their rows of `Snapshot.golden_sets`, oldest first
    rows: pl.DataFrame  # query_id, passage_id, grade and judge (the golden set), grouped by set
    grades: NDArray[np.int64]  # int64 [sets, pairs], 1..5; 0 = unjudged in this set
    query: NDArray[np.int64]  # int64 [pairs], index of the query

    @property
    def names(self) -> list[str]:
        """Ids of the golden sets."""
        return [str(name) for name in self.sets["golden_set_id"]]

    @property
    def judges(self) -> NDArray[np.int64]:
        """Number of judges per pair [pairs]."""
        return np.asarray((self.grades > 0).sum(axis=0), dtype=np.int64)


def judged(snapshot: Snapshot, golden_set_ids: Sequence[str]) -> ComparedJudges:
    """Read golden sets of one collection.

    Raises:
        UnknownNameError: If one does not exist.
        InputError: If there are fewer than two or too many, they belong to several collections, or one has no
            grades of passages.
    """
    known = snapshot.golden_sets()
    for name in golden_set_ids:
        if name not in set(known["golden_set_id"]):
            raise UnknownNameError("golden set", name, known["golden_set_id"])
    sets = known.filter(pl.col("golden_set_id").is_in(list(golden_set_ids)))
    if not 2 <= sets.height <= MOST:
        raise InputError(f"{text.count(sets.height, 'golden set')} named.", do=f"Name 2 to {MOST}.")
    if sets["collection_id"].n_unique() > 1:
        collections = ", ".join(sets["collection_id"].unique().sort())
        raise InputError(
            f"These golden sets judge different collections: {collections}.",
            do="Name golden sets of one collection.",
        )
    parts = []
    for place, name in enumerate(sets["golden_set_id"]):
        rows = snapshot.judgements(name)
        if rows.is_empty():
            raise InputError(
                f"The golden set {name} has no grades of passages.",
                do="Grades that are anchored to documents cannot be compared or merged here.",
            )
        parts.append(rows.select(*_PAIR, "grade", place=pl.lit(place), judge=pl.lit(name)))
    rows = pl.concat(parts)
    pairs = rows.select(_PAIR).unique().sort(_PAIR).with_row_index("at")
    placed = rows.join(pairs, on=_PAIR)
    grades = np.zeros((sets.height, pairs.height), dtype=np.int64)
    grades[placed["place"].to_numpy(), placed["at"].to_numpy()] = placed["grade"].to_numpy()
    query = pairs["query_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
    return ComparedJudges(sets, rows, grades, query)


def agreement(judged: ComparedJudges) -> pl.DataFrame:
    """Return the agreement of every two judges.

    Returns:
        first, second (golden sets), n (passages judged by both), queries (of these passages), grades
        (given by either), same (share
        with the same grade; 0..1), kappa and quadratic (Cohen's kappa, plain and with quadratic weights; at
        most 1), each with _low and _high (95 % bootstrap interval over queries); null where not defined.
    """
    rows = []
    for one, other in combinations(range(len(judged.names)), 2):
        counts = table_of(judged, one, other)
        plain, quadratic = kappa_of(counts), kappa_of(counts, "quadratic")
        same = np.trace(counts.sum(axis=0)) / plain.n if plain.n else np.nan
        named = (judged.names[one], judged.names[other], plain.n, plain.queries, grades_of(counts), same)
        rows.append((*named, *astuple(plain)[:3], *astuple(quadratic)[:3]))
    return pl.DataFrame(rows, schema=dict(_PAIRS), orient="row").with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )


def grades_of(counts: NDArray[np.float64]) -> str:
    """Return the grades that an agreement covers: ``1-5``, ``1, 5``; "" if none."""
    total = counts.sum(axis=0) if len(counts) else np.zeros((GRADES, GRADES))
    given = [grade + 1 for grade in np.flatnonzero(total.sum(axis=0) + total.sum(axis=1))]
    whole = len(given) > 2 and given[-1] - given[0] == len(given) - 1
    return f"{given[0]}-{given[-1]}" if whole else ", ".join(map(str, given))


def table_of(judged: ComparedJudges, one: int, other: int) -> NDArray[np.float64]:
    """Return the confusion of two judges' grades by query: [queries, 5, 5]."""
    both = (judged.grades[one] > 0) & (judged.grades[other] > 0)
    return confusion(judged.grades[one][both], judged.grades[other][both], judged.query[both])


def alpha(judged: ComparedJudges) -> Agreement:
    """Return Krippendorff's alpha (ordinal) of all judges together."""
    several = int((judged.judges > 1).sum())
    return alpha_of(coincidences(judged.grades, judged.query), several)


def fleiss(judged: ComparedJudges) -> Agreement:
    """Return Fleiss' kappa of all judges together."""
    several = int((judged.judges > 1).sum())
    return fleiss_of(coincidences(judged.grades, judged.query, once=True), several)


def all_agree(judged: ComparedJudges) -> str:
    """State Fleiss' kappa of all judges, to follow the alpha of `agreed`."""
    found = fleiss(judged)
    if np.isnan(found.value):
        return "Fleiss' kappa (equal grades alone) is not defined."
    ends = text.interval(found.low, found.high)
    return f"Fleiss' kappa (equal grades alone) is {text.score(found.value)}{ends}."


def merge(judged: ComparedJudges, policy: Policy, into: str, revision: int) -> Batch:
    """Merge several golden sets into one."""
    if policy not in POLICIES:
        raise UnknownNameError("merge policy", policy, POLICIES)
    name = into.strip()
    if not name:
        raise InputError("The merged golden set needs a name.", do="Give it one.")
    judges = judged.judges
    golden = GoldenSet(
        golden_set_id=slug(name),
        collection_id=str(judged.sets["collection_id"][0]),
        name=name,
        mapping="merged, grades 1-5 of: "
        + "; ".join(f"{row['golden_set_id']} ({row['mapping']})" for row in judged.sets.to_dicts()),
        judge=", ".join(row["judge"] or row["golden_set_id"] for row in judged.sets.to_dicts()),
        notes=f"Merged by {policy} ({POLICIES[policy]}) from {', '.join(judged.names)} at revision "
        f"{revision}: {int((judges > 1).sum())} passages judged by two or more, {differing(judged)} of them "
        f"differently, {int((judges == 1).sum())} by one. Krippendorff's alpha (ordinal) "
        f"{alpha(judged).value:.3f}.",
    )
    graded = put_together(judged.rows, policy).sort(_PAIR)
    rows = graded.with_columns(golden_set_id=pl.lit(golden.golden_set_id), raw="grade")
    return Batch(golden_sets=(golden,), frames={"judgements": frame("judgements", rows.to_dict())})


def differing(judged: ComparedJudges) -> int:
    """Return the number of passages judged by two or more with different grades."""
    highest = judged.grades.max(axis=0)
    lowest = np.where(judged.grades > 0, judged.grades, GRADES + 1).min(axis=0)
    return int((lowest < highest).sum())


def write_merged(store: Store, golden_set_ids: Sequence[str], policy: Policy, into: str) -> GoldenSet:
    """Merge golden sets of a store and write the new one, in one transaction.

    Raises:
        InputError: If they cannot be merged, or the name is taken.
        UnknownNameError: If a golden set or the policy does not exist.
    """
    snapshot = store.read()
    merged = merge(judged(snapshot, golden_set_ids), policy, into, snapshot.revision)
    return write_new(store, "merge judgements", merged)


def write_new(store: Store, action: str, batch: Batch) -> GoldenSet:
    """Write a golden set under a name not yet taken, in one transaction."""
    (golden,) = batch.golden_sets
    name = golden.golden_set_id
    if name in set(store.read().golden_sets(parts=True)["golden_set_id"]):
        raise InputError(f"There is a golden set {name!r} already.", do="Give the new one another name.")
    with store.write(action, f"{name}: {golden.notes}"[:500]) as writer:
        writer.add(batch)
    return golden


def rows_first(judged: ComparedJudges, one: int, other: int) -> tuple[int, int]:
    """Return two judges, the one with more judgements first: usually a machine, audited by the other."""
    more = (judged.grades[[one, other]] > 0).sum(axis=1)
    return (other, one) if more[1] > more[0] else (one, other)


def met(judged: ComparedJudges, one: int, other: int) -> pl.DataFrame:
    """Return how often each grade of one judge coincides with each grade of another.

    Returns:
        grade (the first's), other_grade, passages, n (passages with that first grade), share (of n; null
        if n is 0) with its 95 % bootstrap interval over queries in low and high.
    """
    counts = table_of(judged, one, other)
    total = counts.sum(axis=0) if len(counts) else np.zeros((GRADES, GRADES))
    row, column = (axis.ravel() + 1 for axis in np.indices((GRADES, GRADES)))
    share, low, high = (values.ravel() for values in shares_of(counts))
    return pl.DataFrame(
        {
            "grade": row,
            "other_grade": column,
            "passages": total.ravel().astype(np.int64),
            "n": total.sum(axis=1).astype(np.int64)[row - 1],
            "share": share,
            "low": low,
            "high": high,
        }
    ).with_columns(pl.col(pl.Float64).fill_nan(None))


def met_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `met` in human-readable form.

    A row per grade, a column per grade of the other with share and interval.
    """
    said = [_percent(*row) for row in rows.select("share", "low", "high").iter_rows()]
    wide = rows.with_columns(said=pl.Series(said)).pivot("other_grade", index=["grade", "n"], values="said")
    return wide.rename({str(grade): f"to_{grade}" for grade in range(1, GRADES + 1)})


def _percent(share: float | None, low: float | None, high: float | None) -> str:
    if share is None:
        return text.NOT_APPLICABLE
    bounds = "" if low is None or high is None or low == high else f" [{100 * low:.0f}, {100 * high:.0f}]"
    return f"{100 * share:.0f} %{bounds}"


def agreed(overall: Agreement) -> str:
    """State how well judges agree, and on how many passages."""
    if not overall.n:
        return "These golden sets have no judged passage in common."
    value = "not defined" if np.isnan(overall.value) else text.score(overall.value)
    ends = text.interval(overall.low, overall.high)
    said = verdict(overall.value, overall.low)
    return f"{said}: Krippendorff's alpha (ordinal) {value}{ends}, n = {overall.n:,}."


def heading(pairs: pl.DataFrame, overall: Agreement, met: pl.DataFrame) -> str:
    """Say on how many passages two judges give the same grade, and who is stricter; of more judges, `agreed`.

    The second is called stricter or milder where a sign test of its differing grades is significant.
    """
    if pairs.height != 1 or not overall.n:
        return agreed(overall)
    lower, higher = _leans(met)
    leans = abs(lower - higher) > _SIGNIFICANT * (lower + higher) ** 0.5
    second = f"; the second is {'stricter' if lower > higher else 'milder'}" if leans else ""
    return f"Two judges grade {text.percent(pairs['same'][0])} of {overall.n:,} passages alike{second}."


def _leans(met: pl.DataFrame) -> tuple[int, int]:
    """Return how many passages the second judge of `met` grades lower and higher than the first."""
    lower, higher = pl.col("other_grade") < pl.col("grade"), pl.col("other_grade") > pl.col("grade")
    return tuple(int(met.filter(apart)["passages"].sum()) for apart in (lower, higher))  # type: ignore[return-value]


def alike(pairs: pl.DataFrame, overall: Agreement) -> str:
    """State how well two judges agree, or how often more of them give the same grade; takes `agreement`."""
    if not overall.n:
        return ""
    of = f"passages of {text.count(overall.queries, 'query')}."
    if pairs.height == 1:
        return f"{agreed(overall)} Both judged {of}"
    same = pairs["same"].mean()
    often = "" if same is None else f"The same grade for {text.percent(float(same))} of what both judged; "  # type: ignore[arg-type]
    return f"{often}{of}"


def leaning(met: pl.DataFrame, other: str) -> str:
    """Say how often another judge grades lower and higher than the first, or "" if never; takes `met`."""
    lower, higher = _leans(met)
    return f"The second, {other}, grades {lower:,} lower and {higher:,} higher." if lower or higher else ""


def verdict(alpha: float, low: float | None) -> str:
    """Say what an agreement is good enough for; `low` is the lower end of its interval."""
    if np.isnan(alpha):
        return "Agreement unknown"
    if (alpha if low is None else low) >= RELIABLE:
        return "The judges agree well"
    if alpha >= TENTATIVE:
        return "The grades allow tentative conclusions only"
    return "The judges do not agree enough to rely on"


def merging(judged: ComparedJudges) -> str:
    """Say what merging some golden sets has to settle, and by which policies."""
    both = text.count(int((judged.judges > 1).sum()), "passage")
    alone = int((judged.judges == 1).sum())
    sentence = f"{both} judged by two or more, {differing(judged):,} of them differently; {alone:,} by one."
    return f"{sentence} {'. '.join(f'{name}: {policy}' for name, policy in POLICIES.items())}."


def merged(golden_set_id: str) -> str:
    """Say that the merged golden set is written."""
    return f"Written in one transaction: golden set {golden_set_id}. Choose it in the settings."


def met_words(one: str, other: str) -> str:
    """Explain the confusion table of grades."""
    return f"Rows: grades of {one}. Columns: how {other} grades the same, share of the row, 95 % interval."
