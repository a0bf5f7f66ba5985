"""Name margins on a collection's own questions: what other names in a question leave of D_name.

Where a bundle has other authors' works (clq_ra_nwg §4.2), a question that names something has the best
passage that is judged for it and holds the name, and the same passage with two other names in its place,
drawn from what the collection's questions name (ours). D_name is the cosine of the question with the passage
as it is minus the better of these two. Only the question is put into another form: passages keep their names,
so that a mask leaves a margin about 0 and not exactly 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.diagnostics.names.margins import CHANGE, DELTA, LEAST, MARGINS, Vectors, unit
from core.pipeline.query.entities import Names
from core.pipeline.query.perturb import perturbed
from core.records import JsonMap, short_hash
from core.stats.intervals import SEED, bootstrap_means

MOST = 300  # Questions that are measured unless more are asked for
LIMITED = "names in questions"
_D_NAME = MARGINS[0]


class Question(NamedTuple):
    """A question that names something, and three forms of a passage that answers it."""

    text: str
    names: tuple[str, ...]  # all of it, as it writes them
    passages: tuple[str, str, str]  # as it is, and with two other names


def questions(asked: Sequence[tuple[str, str]], names: Names, *, most: int = MOST) -> list[Question]:
    """Pair questions with passages.

    Args:
        asked: Text of each question and of the best passage that is judged for it.
        names: What the questions name; a question whose passage holds none of it is left out.
    """
    every = sorted({name for some in names.values() for name in some})
    made: list[Question] = []
    for text, passage in sorted(set(asked), key=lambda each: short_hash(LIMITED, *each)):
        if len(made) == most:
            break
        held = [name for name in names.get(text, ()) if _of([name]).search(passage)]
        others = _impostors(every, text, passage, names) if held else []
        if len(others) > 1:
            right = _of(held)
            forms = (passage, right.sub(_as_is(others[0]), passage), right.sub(_as_is(others[1]), passage))
            made.append(Question(text, names[text], forms))
    return made


def _impostors(every: Sequence[str], text: str, passage: str, names: Names) -> list[str]:
    """Draw two names that neither the question nor the passage holds; fewer where there are none."""
    drawn = np.random.default_rng(int(short_hash(LIMITED, text), 16))
    tried = (every[place] for place in drawn.permutation(len(every)))
    return list(islice((name for name in tried if name not in names[text] and name not in passage), 2))


def _of(names: Sequence[str]) -> re.Pattern[str]:
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")


def texts_of(asked: Sequence[Question], ways: Mapping[str, JsonMap]) -> tuple[set[str], set[str]]:
    """Return the questions in every form, and the passages, that are embedded."""
    forms = {perturbed(each.text, told, each.names) for told in ways.values() for each in asked}
    return forms | {each.text for each in asked}, {text for each in asked for text in each.passages}


def _as_is(name: str) -> Callable[[re.Match[str]], str]:
    """Put a name in as it is written, without reading it as a template."""
    return lambda _: name


Embed = Callable[[Sequence[str]], Vectors]


def asked_margins(
    asked: Sequence[Question],
    ways: Mapping[str, JsonMap],
    embed_queries: Embed,
    embed_passages: Embed,
    *,
    seed: int = SEED,
) -> pl.DataFrame:
    """Measure D_name with the questions as they are, and put into other forms.

    Args:
        ways: What perturbs the questions, by the name of the perturbation.

    Returns:
        condition ("" = as they are), measure (d_name, delta_name, dd_name_pct), value, low, high (95 %, over
        questions, paired where it is a change) and n; percent changes count questions of D_name >= 0.02.
    """
    held = list(dict.fromkeys(text for each in asked for text in each.passages))
    place = {text: at for at, text in enumerate(held)}
    found = unit(embed_passages(held))
    passages = found[np.array([[place[text] for text in each.passages] for each in asked])]

    def margin(texts: Sequence[str]) -> NDArray[np.float64]:
        different = list(dict.fromkeys(texts))
        at = {text: number for number, text in enumerate(different)}
        queries = unit(embed_queries(different))[[at[text] for text in texts]]
        cosines = (queries[:, None, :] * passages).sum(axis=-1)
        return np.asarray(cosines[:, 0] - cosines[:, 1:].max(axis=1))

    base = margin([each.text for each in asked])
    rows = [("", _D_NAME, base)]
    counts = base >= LEAST
    for name, told in ways.items():
        now = margin([perturbed(each.text, told, each.names) for each in asked])
        change = np.full(len(base), np.nan)
        change[counts] = 100 * (now - base)[counts] / base[counts]
        rows += [(name, _D_NAME, now), (name, DELTA, now - base), (name, CHANGE, change)]
    table = np.vstack([values for _, _, values in rows])
    low, high = bootstrap_means(table, seed=seed)
    known = np.isfinite(table).sum(axis=1)
    means = np.nansum(table, axis=1) / np.where(known, known, np.nan)
    made = pl.DataFrame(
        [(name, measure) for name, measure, _ in rows], schema=["condition", "measure"], orient="row"
    )
    made = made.with_columns(value=means, low=low, high=high, n=pl.Series(known, dtype=pl.Int32))
    return made.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls("value")
