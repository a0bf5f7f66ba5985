"""Effects of passages on readers: the scores of their answers by reader, stack and passages sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import polars as pl

from core.analysis.prompt_tokens import tokens_sent
from core.analysis.workspace.clusters import EACH, Groups, groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import BY_PEOPLE, TOP_K
from core.prices import PriceBook
from core.readers.curves import CURVE, POINT, depths, gains, points, slices
from core.readers.depth import DELTA, EPSILON, PLATEAU
from core.stats.intervals import Alike
from core.store import Snapshot

USUAL = ("f1", "exact_match", "correctness", "similarity", "substring", "rougeL")
"""Scorers that come first, in this order, if a workspace has them."""
GOLD_FROM = 4  # Grade from which a passage is gold
MEASURED = "measured"
NO_SCORES = "No graded answers yet."
WITH, WITHOUT, EVERY = "gold in Top(k)", "no gold in Top(k)", "all questions here"
"""Parts of the questions, by the passages found."""
SENT = {
    "top_k": "Top(k)",
    "gold_only": "gold passages of Top(k)",
    "no_gold": "Top(k) without gold",
    "gold": "all gold passages",
    "none": "closed book",
    "harm_before": "k harmful before the gold",
    "harm_after": "k harmful after the gold",
    "contradicted": "k contradicted after the gold",
    "dated": "k outdated after the gold",
    "adversarial": "k adversarial after the gold",
}
"""Passages that each mode sends to the reader."""
AnyAll = Literal["any", "all"]
JUDGES, PEOPLE = "judges", "people"
"""Whose scores count: the mean of all judges (or what is computed), or the mean of people's grades."""
_BY_HAND = pl.col("source").eq_missing(pl.lit(BY_PEOPLE))


class Rules(NamedTuple):
    """Thresholds for k*, RSS, RSC and the shape; see `core.readers.depth`."""

    delta: int = DELTA
    epsilon: float = EPSILON
    plateau: float = PLATEAU


@dataclass(frozen=True)
class Answered:
    """The scored answers of a workspace."""

    runs: pl.DataFrame  # run_id, name, has_rankings of the runs with answers, by name
    scores: pl.DataFrame  # rows of "answer_scores"; a mode is never null
    # A row per point: POINT, answers (count), truncated (count; null = unknown), tokens (sent, mean)
    # and usd_per_1k of the reader; null unless all are known
    spent: pl.DataFrame
    scorers: tuple[str, ...]  # the usual ones first, then by how many answers they scored
    groups: Groups = EACH  # groups of the questions


def answered(snapshot: Snapshot, scope: Scope, book: PriceBook) -> Answered:
    """Read the scored answers of a workspace; unbilled ones are priced by the reader's tokens."""
    having = {*snapshot.sizes("answers")["id"], *snapshot.sizes("answer_scores")["id"]}
    runs = runs_in(snapshot, scope).filter(pl.col("run_id").is_in(list(having))).sort("name")
    ids = runs["run_id"].to_list()
    usual = pl.when(pl.col("k") == 0).then(pl.lit("none")).otherwise(pl.lit("top_k"))
    mode = pl.col("mode").fill_null(usual)
    scores = snapshot.answer_scores(ids).with_columns(mode)
    runs = runs.filter(pl.col("run_id").is_in(scores["run_id"].unique().to_list()))
    counts = scores.group_by("scorer").len().sort("len", "scorer", descending=[True, False])["scorer"]
    scorers = sorted(counts, key=lambda name: USUAL.index(name) if name in USUAL else len(USUAL))
    spent = _spent(snapshot.answers(ids).with_columns(mode), book)
    named = runs.select("run_id", "name", "has_rankings")
    return Answered(named, scores, spent, tuple(scorers), groups(snapshot, scope))


def _spent(answers: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Average the usage of the answers at every point."""
    readers = answers["reader"].drop_nulls().unique().to_list()
    usd = pl.lit(0.0)
    for unit in ("input_tokens", "output_tokens"):
        prices = {name: price.each for name in readers if (price := book.find(name, unit))}
        unit_price = pl.col("reader").replace_strict(prices, default=None, return_dtype=pl.Float64)
        usd = usd + pl.col(unit) * unit_price
    whole = {
        "tokens": pl.col("input_tokens").cast(pl.Float64),
        "usd_per_1k": 1000 * pl.coalesce("usd", usd),
    }
    known = [
        pl.when(value.is_not_null().all()).then(value.mean()).alias(name) for name, value in whole.items()
    ]
    cut = pl.when(pl.col("truncated").is_not_null().any()).then(pl.col("truncated").sum()).alias("truncated")
    return answers.group_by(POINT).agg(pl.len().cast(pl.Int64).alias("answers"), cut.cast(pl.Int64), *known)


def voices(answered: Answered, scorer: str) -> list[str]:
    """List the sources of a scorer's scores: judges together, each judge if there are several, people."""
    rows = answered.scores.filter(pl.col("scorer") == scorer)
    models = rows.filter(~_BY_HAND)["judge"].unique().sort()
    several = models.drop_nulls().to_list() if len(models) > 1 else []
    judges = [JUDGES] if len(models) else []
    return [*judges, *several, *([PEOPLE] if len(models) < rows["judge"].n_unique() else [])]


def of_voice(answered: Answered, scorer: str, voice: str = "") -> Answered:
    """Return answers with the scores of one of `voices`; of the first by default, and never of both mixed."""
    chosen = voice or next(iter(voices(answered, scorer)), JUDGES)
    kept = {JUDGES: ~_BY_HAND, PEOPLE: _BY_HAND}.get(chosen, ~_BY_HAND & (pl.col("judge") == chosen))
    return replace(answered, scores=answered.scores.filter((pl.col("scorer") != scorer) | kept))


def curve_table(answered: Answered, scorer: str) -> pl.DataFrame:
    """Score every reader's answers at every k.

    Returns:
        POINT, name (of the stack), label (of the reader), sent (the mode in words), value, low, high (points
        0..100), n, queries, gain, gain_low, gain_high (over the closed book), answers, truncated, tokens,
        usd_per_1k, counted.
    """
    keys: dict[str, Any] = {"on": POINT, "how": "left", "nulls_equal": True, "maintain_order": "left"}
    alike = answered.groups.labels
    paired = gains(answered.scores, scorer, alike=alike)
    paired = paired.select(*POINT, gain="value", gain_low="low", gain_high="high")
    rows = points(answered.scores, scorer, alike=alike).join(paired, **keys).join(answered.spent, **keys)
    measured = pl.when(pl.col("tokens").is_not_null()).then(pl.lit(MEASURED)).alias("counted")
    named = answered.runs.select("run_id", "name")
    return (
        rows.join(named, on="run_id", maintain_order="left")
        .with_columns(label_of(rows), measured, sent=pl.col("mode").replace_strict(SENT))
        .sort("name", "label", "mode", "k")
    )


def label_of(rows: pl.DataFrame) -> pl.Expr:
    """Return a reader's name, with its prompt and temperature if those differ."""
    reader = pl.col("reader").fill_null("reader unknown")
    prompt = pl.format(" · {}", pl.col("prompt").fill_null("prompt unknown"))
    warm = pl.format(" · T = {}", pl.col("temperature").cast(pl.String).fill_null("?"))
    parts = [reader]
    parts += [prompt] if rows["prompt"].n_unique() > 1 else []
    parts += [warm] if rows["temperature"].n_unique() > 1 else []
    return pl.concat_str(parts).alias("label")


def with_sent(table: pl.DataFrame, snapshot: Snapshot, answered: Answered, book: PriceBook) -> pl.DataFrame:
    """Count the tokens of Top(k) if the answers do not record them."""
    top = (pl.col("mode") == "top_k") & pl.col("tokens").is_null()
    missing = table.filter(top)
    if missing.is_empty():
        return table
    runs = answered.runs.filter(pl.col("run_id").is_in(missing["run_id"].unique().to_list()))
    deepest = int(missing["k"].max() or 1)  # type: ignore[arg-type]
    sent = tokens_sent(snapshot, runs, None, book, depth=deepest)
    weights = sent.select("name", "k", pl.col("tokens").alias("estimate"), pl.col("counted").alias("by"))
    weighed = table.join(weights, on=["name", "k"], how="left", maintain_order="left")
    estimated = top & pl.col("estimate").is_not_null()
    return weighed.with_columns(
        tokens=pl.when(estimated).then("estimate").otherwise("tokens"),
        counted=pl.when(estimated).then("by").otherwise("counted"),
    ).drop("estimate", "by")


def depth_table(table: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Compute depth figures for every curve: its best k, how stable that is, how far it scales.

    Args:
        table: From `curve_table`.

    Returns:
        A row per curve, the best first: what `depths` returns, name, label, and at k* low, high, n, queries,
        gain, gain_low, gain_high, truncated and answers; send is the smallest k within epsilon of the best.
    """
    read = depths(table, **rules._asdict())
    if read.is_empty():
        return pl.DataFrame()
    top = table.filter(pl.col("mode") == TOP_K, pl.col("k") > 0)
    figures = ("low", "high", "n", "queries", "gain", "gain_low", "gain_high", "truncated", "answers")
    at = top.select(*CURVE, "name", "label", *figures, k_star="k")
    rows = read.join(at, on=[*CURVE, "k_star"], nulls_equal=True, maintain_order="left")
    near = top.join(read.select(*CURVE, "best"), on=CURVE, nulls_equal=True)
    near = near.filter(pl.col("value") > pl.col("best") - rules.epsilon).group_by(CURVE).agg(send=pl.min("k"))
    rows = rows.join(near, on=CURVE, nulls_equal=True, maintain_order="left")
    return rows.sort("best", descending=True, maintain_order=True)


def slice_table(
    snapshot: Snapshot, scope: Scope, answered: Answered, *, scorer: str, run_id: str, need: AnyAll = "any"
) -> pl.DataFrame:
    """Score a stack's answers separately with and without gold passages in Top(k) (RAGGED §6).

    Returns:
        part (`WITH`, `WITHOUT` or `EVERY`, in this order), sent (the mode in words), label and the columns
        of `points`; the closed book is over the questions of each k and part.
    """
    scores = answered.scores.filter(pl.col("run_id") == run_id)
    ks = scores.filter(pl.col("k") > 0)["k"].unique().sort().to_list()
    ranked = bool(answered.runs.filter(pl.col("run_id") == run_id)["has_rankings"].any())
    parts = _parts(snapshot, scope, scores, ks, need) if ranked else ()
    alike = answered.groups.labels
    rows = pl.concat(_part(scores, scorer, part, only, alike) for part, only in (*parts, (EVERY, None)))
    order = [pl.col("part").cast(pl.Enum([WITH, WITHOUT, EVERY])), pl.col("mode").cast(pl.Enum(list(SENT)))]
    label = label_of(answered.scores.filter(pl.col("scorer") == scorer))
    return rows.with_columns(label, sent=pl.col("mode").replace_strict(SENT)).sort("label", *order, "k")


def _part(
    scores: pl.DataFrame, scorer: str, part: str, only: pl.DataFrame | None, alike: Alike
) -> pl.DataFrame:
    """Score one part, with the closed book over the same questions at every k."""
    scored = points(scores, scorer, only=only, alike=alike).filter(pl.col("mode") != "none")
    paired = gains(scores, scorer, only=only, alike=alike).filter(pl.col("mode") == "top_k")
    keys = {name: pl.col(name) for name in POINT}
    base = (
        scored.select(*POINT, pl.col("value").alias("top"))
        .join(paired, on=POINT, nulls_equal=True)
        .select(
            **{**keys, "mode": pl.lit("none")},
            value=pl.col("top") - pl.col("value"),
            low=pl.lit(None, pl.Float64),
            high=pl.lit(None, pl.Float64),
            n="n",
            queries="queries",
        )
    )
    columns = [*POINT, "value", "low", "high", "n", "queries"]
    return pl.concat([scored.select(columns), base.select(columns)]).with_columns(part=pl.lit(part))


def _parts(
    snapshot: Snapshot, scope: Scope, scores: pl.DataFrame, ks: Sequence[int], need: AnyAll
) -> Sequence[tuple[str, pl.DataFrame]]:
    """Return the answers of either part; none if the gold passages are unknown."""
    if scope.golden_set_id is None or not ks:
        return ()
    asked = scores.select("run_id", "query_id").drop_nulls().unique()
    run_id = scores["run_id"][0]
    judges = snapshot.judging([run_id], scope.golden_set_id)[run_id]
    gold = snapshot.within(judges).filter(pl.col("grade") >= GOLD_FROM)
    rankings = snapshot.rankings([run_id], stage="final").filter(pl.col("rank") <= max(ks))
    sliced = slices(rankings, gold, ks, need=need, asked=asked)
    kept = pl.col("with_gold")
    return (WITH, sliced.filter(kept)), (WITHOUT, sliced.filter(~kept))
