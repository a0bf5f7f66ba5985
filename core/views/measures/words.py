"""What the Measures page says."""

from __future__ import annotations

import polars as pl

from core.metrics import Measure
from core.stats.correlation import Kind
from core.views import text
from core.views.measures.outcome import Curve, Samples
from core.views.measures.reference import better, needs

PICK = "Choose one, or type one with cutoff and parameters: RA-nWG@3(alpha=0.5), RBP(p=0.5)@4."
CEILINGS = "PROC[X] is X of the best order of the candidate pool, %PROC[X] the share of it that is reached."
KINDS = "spearman: of ranks. pearson: of values. kendall-b, kendall-c: of pairs, two ways to treat ties."
NO_ANSWERS = (
    "No run here has answers with grades.",
    "Import rankings with graded answers: retrieval-response files, or an export with the table answers.",
)


def example(cutoff: int) -> str:
    """What the table of the worked example is."""
    return f"What a run ranks for one query, and what is judged. K is {cutoff} unless you write another."


def headline(measure: Measure) -> tuple[str, str]:
    """What a measure says, and where it comes from, as two sentences."""
    info = measure.info
    needed = f" Needs {needs(info)}." if info.needs else ""
    return (
        f"{measure}: {info.text}",
        f"From {info.range}, {better(info)} is better. Defined in {info.section}.{needed}",
    )


def too_few(least: int) -> str:
    """That no cell is large enough."""
    return f"No cell has {least} answers; lower the bound to see smaller, less certain ones."


def answer(found: Samples, table: pl.DataFrame, kind: Kind, segment: str) -> tuple[str, dict[str, str]]:
    """Which measure foretells the grade best, with its interval, and what weakens that.

    Args:
        table: Of `outcome.correlations`.

    Returns:
        A sentence, and further ones by the words of their chip.
    """
    left = "; ".join(f"{text.count(count, 'answer')}: {reason}" for reason, count in found.left_out.items())
    more = {"left out": left, "scale of grades": f"Grades are on the scale {found.scale}."}
    best = table.row(0, named=True)
    if best["value"] is None:
        graded = text.count(found.rows.height, "answer grade")
        return f"No measure has a defined correlation with the {graded}.", more
    # A runner-up whose interval holds the best value cannot be told from it.
    close = table.filter(
        (pl.col("measure") != best["measure"]) & (pl.col("high").fill_null(-1.0) >= best["value"])
    )["measure"]
    more["perhaps as good"] = f"Not told from it: {', '.join(close)}." if len(close) else ""
    more["chosen alpha"] = (
        f"{best['measure']}: {best['note']}." if best["low"] is None and best["note"] else ""
    )
    sentence = (
        f"{best['measure']} predicts the answer's grade best ({segment}): {kind} "
        f"{best['value']:.2f}{_interval(best)}, n = {best['n']:,} answers to "
        f"{text.count(best['queries'], 'query', 'queries')}."
    )
    return sentence, more


def _interval(row: dict[str, object]) -> str:
    low, high = row["low"], row["high"]
    return f" [{low:.2f}, {high:.2f}]" if isinstance(low, float) and isinstance(high, float) else ""


def in_words(curve: Curve) -> str:
    """The best alpha of a curve, its optimistic figure and the cross-validated one."""
    best = curve.best
    if best.best is None or best.in_sample is None:
        return f"{curve.name}: not defined."
    across = best.cross_validated
    held = "not defined across folds" if across is None else f"{across:.3f} across folds"
    return (
        f"{curve.name}: best at alpha = {best.best:g} with {best.in_sample:.3f} on the same answers "
        f"(optimistic), {held}."
    )
