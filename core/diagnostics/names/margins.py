"""Margins of name and topic, and what remains of them after an ablation (clq_ra_nwg §4.2, §4.3).

On a collection's own questions (ours), there are no bundles with other authors' works. Instead, a question
with a name is paired with its best judged passage that contains the name, and with the same passage under
two other names, drawn from the collection's questions. D_name is the cosine of the question and the
unchanged passage minus the better of the other two. Only the question is perturbed: passages keep
their names, so that a mask leaves a margin near 0 rather than exactly 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats, Mask, Vectors
from core.diagnostics.names.bundles import ABLATIONS, BASE, DIACRITICS, BundleTexts
from core.pipeline.query.entities import Names
from core.pipeline.query.perturb import perturbed
from core.records import JsonMap, short_hash
from core.stats.means import mean_interval

LEAST = 0.02  # Rows whose margin is smaller without an ablation have no percent change (clq_ra_nwg §4.3)
MEASURED = "Measured"
"""Source of figures; it is followed by the name of the measured data, if they are custom."""
MARGINS = ("d_name", "d_topic", "d_both")
CHANGE, DELTA, ASCII = "dd_name_pct", "delta_name", "ascii_delta_max"
RATIO = "name_topic_ratio"
MASK = "hard_name_mask"

Embed = Callable[[Sequence[str]], Vectors]
_OF = ("embedder", "dim", "language")
MOST = 300  # Default maximum of measured questions
LIMITED = "names in questions"


def margins(queries: Vectors, candidates: Vectors) -> Floats:
    """Compute D_name, D_topic and D_both [n, 3] of queries [n, dim] and C1, C2a, C2b, C3, C4 [n, 5, dim].

    Equal texts have exactly equal cosines, so that a margin between them is exactly 0.
    """
    cosines = (unit(queries)[:, None, :] * unit(candidates)).sum(axis=-1)
    right = cosines[:, 0]
    rivals = np.stack([cosines[:, 1:3].max(axis=1), cosines[:, 3], cosines[:, 4]], axis=1)
    distances: Floats = np.subtract(right[:, None], rivals)
    return distances


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Return rows scaled to length 1; rows of zeros stay."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    scaled: Floats = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return scaled


def looked_up(embed: Embed, texts: Iterable[str]) -> Embed:
    """Embed distinct texts once; return a function that looks up their vectors."""
    different = list(dict.fromkeys(texts))
    vectors, places = embed(different), {text: place for place, text in enumerate(different)}
    return lambda wanted: vectors[[places[text] for text in wanted]]


def of_run(
    found: Mapping[str, Floats],
    plain: Mask,
    folded: Mapping[str, Floats] | None = None,
) -> list[dict[str, Any]]:
    """Summarise one run: condition, measure, value and n; conditions without any bundle are left out.

    Args:
        found: By condition, `margins` of the same bundles.
        plain: [n], whether every text of a bundle is ASCII.
        folded: `margins` of bundles converted to ASCII, used if no bundle is ASCII already.
    """
    base = found[BASE]
    counts = base[:, 0] >= LEAST
    rows = []
    for condition, values in found.items():
        figures = [(name, values[:, at]) for at, name in enumerate(MARGINS)]
        if condition != BASE:
            moved = values[:, 0] - base[:, 0]
            figures += [(DELTA, moved), (CHANGE, 100 * (moved[counts] / base[counts, 0]))]
        rows += [
            {"condition": condition, "measure": name, "value": float(some.mean()), "n": some.size}
            for name, some in figures
            if some.size
        ]
    pair = {name: found[name][plain] for name in (BASE, DIACRITICS) if name in found}
    pair = pair if plain.any() else dict(folded or {})
    if len(pair) > 1:
        moved = np.abs(pair[DIACRITICS] - pair[BASE])
        rows.append({"condition": DIACRITICS, "measure": ASCII, "value": float(moved.max()), "n": len(moved)})
    return rows


def ascii_only(texts: Sequence[BundleTexts]) -> Mask:
    """Return whether the question and candidates of each bundle are ASCII."""
    return np.array(
        [all(candidate.isascii() for candidate in (some.query, *some.candidates)) for some in texts]
    )


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Average over runs.

    Args:
        rows: embedder, dim, language, run, condition, measure, value and n of single runs.

    Returns:
        embedder, dim, language, condition, measure, value (mean over runs), sd (between them; null for one
        run), runs and n (bundles that counted, over all runs); with the name/topic ratio of the base, its
        n the runs' bundles; sorted by condition in the paper's order.
    """
    ratios = _ratios(rows)
    order = pl.Enum([BASE, *ABLATIONS])
    return (
        pl.concat([rows.select(ratios.columns), ratios])
        .group_by(*_OF, "condition", "measure")
        .agg(
            pl.col("value").mean(),
            pl.col("value").std().alias("sd"),
            pl.len().alias("runs"),
            pl.col("n").sum(),
        )
        .sort(*_OF, pl.col("condition").cast(order), "measure")
    )


def _ratios(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the name/topic ratio of every run; a run whose topic margin isn't positive has none."""
    of = (*_OF, "run", "condition", "n")
    base = rows.filter(pl.col("condition") == BASE)
    topics = base.filter(pl.col("measure") == "d_topic", pl.col("value") > 0).select(*of, topic="value")
    both = base.filter(pl.col("measure") == "d_name").join(topics, on=of, nulls_equal=True)
    ratio = pl.col("value") / pl.col("topic")
    return both.select(*_OF, "run", "condition", measure=pl.lit(RATIO), value=ratio, n="n")


class ModelCheck(NamedTuple):
    """A built-in check of a diagnosis."""

    embedder: str
    dim: int
    language: str
    name: str  # the checked condition
    passed: bool | None  # None if nothing could be checked
    value: float | None  # the figure furthest from its expected value
    n: int  # number of bundles checked


def checks(rows: pl.DataFrame) -> list[ModelCheck]:
    """Check that the mask removes the name margin, and that ASCII texts have no accents to lose.

    Args:
        rows: As for `summary`.
    """
    return [
        _check(some, condition, measure, must)
        for _, some in rows.sort(_OF).group_by(_OF, maintain_order=True)
        for condition, measure, must in ((MASK, CHANGE, -100.0), (DIACRITICS, ASCII, 0.0))
    ]


def _check(some: pl.DataFrame, condition: str, measure: str, must: float) -> ModelCheck:
    embedder, dim, language = some.select(_OF).row(0)
    values = some.filter(condition=condition, measure=measure)
    far = None if values.is_empty() else max(values["value"].to_list(), key=lambda value: abs(value - must))
    return ModelCheck(
        embedder, dim, language, condition, None if far is None else far == must, far, int(values["n"].sum())
    )


class NamedQuestion(NamedTuple):
    """A question that names something, and three forms of a passage that answers it."""

    text: str
    names: tuple[str, ...]  # all of them, as spelled in the question
    passages: tuple[str, str, str]  # unchanged, and with two other names


def questions(asked: Sequence[tuple[str, str]], names: Names, *, most: int = MOST) -> list[NamedQuestion]:
    """Pair questions with passages.

    Args:
        asked: Text of each question and of the best passage that is judged for it.
        names: The names in the questions; a question whose passage holds none of them is left out.
    """
    every = sorted({name for some in names.values() for name in some})
    paired: list[NamedQuestion] = []
    for text, passage in sorted(set(asked), key=lambda pair: short_hash(LIMITED, *pair)):
        if len(paired) == most:
            break
        held = [name for name in names.get(text, ()) if _of([name]).search(passage)]
        drawn = np.random.default_rng(int(short_hash(LIMITED, text), 16)).permutation(len(every))
        tried = (every[place] for place in drawn if held)
        free = (name for name in tried if name not in names[text] and name not in passage)
        others = list(islice(free, 2))
        if len(others) > 1:
            right = _of(held)
            one, other = (right.sub(name.replace("\\", r"\\"), passage) for name in others)
            paired.append(NamedQuestion(text, names[text], (passage, one, other)))
    return paired


def _of(names: Sequence[str]) -> re.Pattern[str]:
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")


def texts_of(asked: Sequence[NamedQuestion], ways: Mapping[str, JsonMap]) -> tuple[set[str], set[str]]:
    """Return all texts to embed: the questions in every form, and the passages."""
    forms = {perturbed(question.text, way, question.names) for way in ways.values() for question in asked}
    return forms | {question.text for question in asked}, {
        text for question in asked for text in question.passages
    }


def by_question(
    asked: Sequence[NamedQuestion],
    ways: Mapping[str, JsonMap],
    embed_queries: Embed,
    embed_passages: Embed,
) -> dict[str, Floats]:
    """Measure D_name of every question [n], unchanged ("") and in other forms, by the name of the form."""
    passages = looked_up(embed_passages, (text for question in asked for text in question.passages))
    forms = unit(np.array([passages(question.passages) for question in asked]))

    def margin(texts: Sequence[str]) -> Floats:
        queries = unit(looked_up(embed_queries, texts)(texts))
        cosines = (queries[:, None, :] * forms).sum(axis=-1)
        return np.asarray(cosines[:, 0] - cosines[:, 1:].max(axis=1))

    put = {
        name: [perturbed(question.text, way, question.names) for question in asked]
        for name, way in ways.items()
    }
    return {"": margin([question.text for question in asked])} | {
        name: margin(texts) for name, texts in put.items()
    }


def asked_margins(
    asked: Sequence[NamedQuestion],
    ways: Mapping[str, JsonMap],
    embed_queries: Embed,
    embed_passages: Embed,
) -> pl.DataFrame:
    """Measure D_name with the questions unchanged, and with them perturbed.

    Args:
        ways: Functions that perturb the questions, by the name of the perturbation.

    Returns:
        condition ("" = unchanged), measure (d_name, delta_name, dd_name_pct), value, low, high (95 %, over
        questions, paired for a change) and n; percent changes count questions of D_name >= 0.02.
    """
    measured = by_question(asked, ways, embed_queries, embed_passages)
    base = measured[""]
    rows = [("", MARGINS[0], base)]
    counts = base >= LEAST
    for name in ways:
        now = measured[name]
        change = np.full(len(base), np.nan)
        change[counts] = 100 * (now - base)[counts] / base[counts]
        rows += [(name, MARGINS[0], now), (name, DELTA, now - base), (name, CHANGE, change)]
    table = np.vstack([values for _, _, values in rows])
    low, high = mean_interval(table, "differences")
    known = np.isfinite(table).sum(axis=1)
    means = np.nansum(table, axis=1) / np.where(known, known, np.nan)
    frame = pl.DataFrame(
        [(name, measure) for name, measure, _ in rows], schema=["condition", "measure"], orient="row"
    )
    frame = frame.with_columns(value=means, low=low, high=high, n=pl.Series(known, dtype=pl.Int32))
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls("value")
