"""Value of a better stack to a reader: relative to the recall it gains, and combined with a better prompt.

RAGGED §7.1 divides the reader's gain by the recall's; §6.3 and §7.2 ask whether the gains of a reranker and
of a prompt add up. Scores are points, averaged over the k that all parts have, and paired by question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from core.answers import TOP_K
from core.readers.curves import by_query
from core.stats.fieller import fieller
from core.stats.intervals import Alike, Sample, singly
from core.stats.means import mean_interval
from core.tables import schema

WHO = ("reader", "prompt", "temperature")
PER_RECALL = schema(
    "reader prompt temperature:float reader_gain:float recall_gain:float per_recall:float "
    "per_recall_low:float per_recall_high:float paired:int64"
)
EFFECTS = ("stack_first", "stack_second", "prompt_base", "prompt_of", "interaction")
"""Gain of the stack with the first and the second prompt, gain of the second prompt on either stack, and the
stack's additional gain with the second prompt."""
CROSSED = schema(
    "reader temperature:float first second "
    + " ".join(f"{name}:float {name}_low:float {name}_high:float" for name in EFFECTS)
    + " paired:int64"
)


def per_recall(
    scores: pl.DataFrame, scorer: str, of: str, base: str, recall: pl.DataFrame, *, alike: Alike = singly
) -> pl.DataFrame:
    """Divide a reader's gain from one stack over another by the gain in recall (RAGGED §7.1).

    Args:
        scores: Rows of "answer_scores".
        of: The run_id of the first stack; the stack `base` is subtracted from it.
        recall: run_id, query_id, k, value (0..1) of both.
        alike: As in `core.readers.curves.points`.

    Returns:
        `PER_RECALL`, a row per reader: gains in points; the interval is Fieller's, and null if recall does
        not significantly differ or questions are few. Only questions with every k of both and a recall count.
    """
    rows = _top(scores, scorer).join(
        recall.select("run_id", "query_id", "k", recall=100 * pl.col("value")), on=["run_id", "query_id", "k"]
    )
    on = [*WHO, "query_id", "k"]
    own, other = (rows.filter(run_id=run_id).select(*on, "value", "recall") for run_id in (of, base))
    less = own.join(other, on=on, nulls_equal=True, suffix="_base").select(
        *on, value=pl.col("value") - pl.col("value_base"), recall=pl.col("recall") - pl.col("recall_base")
    )
    told = []
    for who, part in _over_k(less, WHO, ("value", "recall")).items():
        labels = alike(part["query_id"].to_list())
        sample = Sample.ratios(part["value"].to_numpy(), part["recall"].to_numpy(), labels)
        ends = (float(end[0]) for end in fieller(sample))
        ratio = float(sample.estimate()[0])
        told.append((*who, part["value"].mean(), part["recall"].mean(), ratio, *ends, part.height))
    made = pl.DataFrame(told, schema=PER_RECALL, orient="row")
    return made.with_columns(pl.col("per_recall", "per_recall_low", "per_recall_high").fill_nan(None))


def crossed(scores: pl.DataFrame, scorer: str, of: str, base: str, alike: Alike = singly) -> pl.DataFrame:
    """Estimate whether the gains of a stack and of a prompt add up: two stacks × two prompts.

    Returns:
        `CROSSED`, a row per reader and pair of its prompts, over questions answered by all four from the same
        k; effects in points with 95 % intervals.
    """
    rows = _top(scores, scorer).filter(pl.col("run_id").is_in([of, base]))
    told = []
    for (reader, temperature), part in rows.group_by("reader", "temperature", maintain_order=True):
        prompts = part["prompt"].drop_nulls().unique().sort().to_list()
        pairs = [(one, two) for at, one in enumerate(prompts) for two in prompts[at + 1 :]]
        told += [
            (reader, temperature, *pair, *figures)
            for pair in pairs
            if (figures := _effects(part, pair, (base, of), alike))
        ]
    return pl.DataFrame(told, schema=CROSSED, orient="row")


def _effects(
    part: pl.DataFrame, prompts: Sequence[str], runs: Sequence[str], alike: Alike
) -> list[float | int | None]:
    """Return the effects of one reader, each with its interval, and the number of questions."""
    cells = [part.filter(run_id=run, prompt=prompt).select("query_id", "k", "value")
             for prompt in prompts for run in runs]  # fmt: skip
    joined = cells[0].rename({"value": "v0"})
    for at, cell in enumerate(cells[1:], 1):
        joined = joined.join(cell.rename({"value": f"v{at}"}), on=["query_id", "k"])
    names = [f"v{at}" for at in range(4)]
    whole = joined.filter(pl.len().over("query_id") == pl.col("k").n_unique())
    single = whole.group_by("query_id", maintain_order=True).agg(pl.col(names).mean())
    if single.is_empty():
        return []
    base_first, of_first, base_second, of_second = single.select(names).to_numpy().T
    first, second = of_first - base_first, of_second - base_second
    effects = np.stack([first, second, base_second - base_first, of_second - of_first, second - first])
    low, high = mean_interval(effects, "differences", clusters=alike(single["query_id"].to_list()))
    ends = np.stack([effects.mean(axis=1), low, high], axis=1).ravel()
    return [*(None if np.isnan(end) else float(end) for end in ends), single.height]


def _top(scores: pl.DataFrame, scorer: str) -> pl.DataFrame:
    rows = by_query(scores, scorer)
    return rows.filter(pl.col("mode") == TOP_K, pl.col("k") > 0, pl.col("query_id").is_not_null())


def _over_k(
    rows: pl.DataFrame, who: Sequence[str], values: Sequence[str]
) -> Mapping[tuple[object, ...], pl.DataFrame]:
    """Average over k for questions that have every k: a frame of questions by `who`."""
    whole = rows.filter(pl.len().over(*who, "query_id") == pl.col("k").n_unique().over(who))
    means = whole.group_by(*who, "query_id", maintain_order=True).agg(pl.col(values).mean())
    return means.partition_by(who, as_dict=True, include_key=False, maintain_order=True)
