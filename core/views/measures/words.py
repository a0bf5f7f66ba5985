"""Words of the Measures page: explanations of all measures from the registry, and the answers."""

from __future__ import annotations

import re

import polars as pl

from core.metrics import REGISTRY, Measure
from core.metrics.info import MeasureInfo
from core.params import show
from core.stats.correlation import CorrelationKind
from core.views import text
from core.views.measures.outcome import ALL, Curve, Samples
from core.views.measures.worked import worked

_NAME = 4  # Maximum words of a measure's full name, before the colon of its text
_NEEDS = {
    "pool": "the candidate pool",
    "sources": "passages with their source",
    "facets": "nuggets, or passages with their source",
    "answers": "answers with grades",
    "perturbed": "runs of perturbed queries",
    "nuggets": "nuggets",
    "filters": "filters of questions, metadata of passages",
}
PICK = "Choose one, or type one with cutoff and parameters: RA-nWG@3(alpha=0.5), RBP(p=0.5)@4."
CEILINGS = (
    "PROC[X] is X of the best order of the candidate pool. %PROC[X] is mean X / mean PROC[X]; "
    "%PROC-per-query[X] is the mean of X / PROC[X] over queries."
)
KINDS = "spearman: of ranks. pearson: of values. kendall-b, kendall-c: of pairs, two ways to treat ties."
TRIED = "No real answers yet: made-up ones cannot tell which measure predicts them."
NO_ANSWERS = (
    "No run here has answers with grades.",
    "Import rankings with graded answers: retrieval-response files, or an export with the table answers.",
)


def measure_table() -> pl.DataFrame:
    """Return all measures, one row each; PROC[X] and %PROC[X] are in the row of X.

    Returns:
        measure, says, formula, parameters, range, better, ceiling (the name of its PROC), needs,
        not_applicable, elsewhere (if other tools define it differently), defined_in; all of them text, empty
        if there is nothing to say.
    """
    plain = [info for info in REGISTRY.values() if "[" not in info.name]
    return pl.DataFrame(
        {
            "measure": [info.name for info in plain],
            "says": [info.text for info in plain],
            "formula": [info.formula for info in plain],
            "parameters": [
                ", ".join(f"{param.name}={show(param.default)}" for param in info.params) for info in plain
            ],
            "range": [info.range for info in plain],
            "better": [better(info) for info in plain],
            "ceiling": [f"PROC[{info.name}]" if info.ceiling else "" for info in plain],
            "needs": [needs(info) for info in plain],
            "not_applicable": [info.na or "Never." for info in plain],
            "elsewhere": [info.differs for info in plain],
            "defined_in": [info.section for info in plain],
        }
    )


def better(info: MeasureInfo) -> str:
    """Return which direction is good: "higher" or "lower"."""
    return "higher" if info.higher_is_better else "lower"


def needs(info: MeasureInfo) -> str:
    """Return what a measure needs besides rankings and judgements."""
    return ", ".join(_NEEDS[need] for need in sorted(info.needs))


def parameter_table(measure: Measure) -> pl.DataFrame:
    """Return parameters of a measure: parameter, value, default, range, type, text; all columns are text."""
    values = measure.values
    rows = [
        (param.name, show(values[param.name]), show(param.default), param.range, param.kind, param.text)
        for param in measure.info.params
    ]
    names = ("parameter", "value", "default", "range", "type", "text")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def explained(measure: Measure) -> pl.DataFrame:
    """Return one measure with its worked example: item, text.

    Args:
        measure: With or without a cutoff; the example uses its parameters.
    """
    info, example = measure.info, worked(measure)
    rows = [
        ("measure", str(measure)),
        ("says", info.text),
        ("at K", info.formula),
        ("range", f"{info.range}, {better(info)} is better"),
        ("needs", needs(info)),
        ("not applicable", info.na or "Never."),
        ("elsewhere", info.differs),
        ("defined in", info.section),
    ]
    rows += [
        (
            f"parameter {row['parameter']}",
            f"{row['value']} ({row['range']}, default {row['default']}): {row['text']}",
        )
        for row in parameter_table(measure).to_dicts()
    ]
    rows += [(f"example, step {number}", step) for number, step in enumerate(example.steps, 1)]
    rows.append((f"example, {example.measure}", result(measure)))
    return pl.DataFrame(
        [row for row in rows if row[1]], schema={"item": pl.String, "text": pl.String}, orient="row"
    )


def result(measure: Measure) -> str:
    """Return the last step of the worked example with its result, or why there is no value."""
    example = worked(measure)
    if example.value is None:
        return f"Not applicable: {example.reason}"
    return f"{example.expression} = {example.value:.6g}"


def choices() -> list[str]:
    """Return every measure by name, ceilings after all others."""
    return sorted(REGISTRY, key=lambda name: name.count("[") + name.count("%"))


def example(cutoff: int) -> str:
    """Explain the table of the worked example."""
    return f"What a run ranks for one query, and what is judged. This example has K = {cutoff}."


def headline(measure: Measure) -> tuple[str, str, str]:
    """Return a measure's meaning, further details, and its origin, as sentences."""
    info = measure.info
    says, more = (*re.split("[;:] ", info.text.rstrip("."), maxsplit=1), "")[:2]
    if more and ": " in info.text[: len(says) + 2] and len(says.split()) <= _NAME:
        says, more = more, says  # what it means comes before what its letters stand for
    needed = f" Needs {needs(info)}." if info.needs else ""
    return (
        f"{measure}: {says[:1].lower() if says[1:2].islower() else says[:1]}{says[1:]}.",
        f"{more[:1].upper()}{more[1:]}." if more else "",
        f"From {info.range}, {better(info)} is better. Defined in {info.section}.{needed}",
    )


def too_few(least: int) -> str:
    """Say that no cell is large enough."""
    return f"No cell has {least} answers; lower the bound to see smaller, less certain ones."


def answer(
    samples: Samples, table: pl.DataFrame, kind: CorrelationKind, segment: str
) -> tuple[str, dict[str, str]]:
    """Return which measure predicts the grade best, with its interval, and its caveats.

    Args:
        table: From `outcome.correlations`.

    Returns:
        A sentence, and further ones keyed by the words of their chip.
    """
    left = "; ".join(f"{text.count(count, 'answer')}: {reason}" for reason, count in samples.left_out.items())
    more = {"left out": left, "scale of grades": f"Grades are on the scale {samples.scale}."}
    best = table.row(0, named=True)
    if best["value"] is None:
        graded = text.count(samples.rows.height, "answer grade")
        return f"No measure has a defined correlation with the {graded}.", more
    # A runner-up whose interval contains the best value isn't distinguishable from it.
    close = table.filter(
        (pl.col("measure") != best["measure"]) & (pl.col("high").fill_null(-1.0) >= best["value"])
    )["measure"]
    more["perhaps as good"] = f"Not told from it: {', '.join(close)}." if len(close) else ""
    more["chosen alpha"] = (
        f"{best['measure']}: {best['note']}." if best["low"] is None and best["note"] else ""
    )
    ends = "" if best["low"] is None else f" [{best['low']:.2f}, {best['high']:.2f}]"
    of = "" if segment == ALL else f" ({segment})"
    sentence = (
        f"{best['measure']} predicts answer grades best{of}: {kind} {best['value']:.2f}{ends}, "
        f"n = {best['n']:,}."
    )
    return sentence, {"questions": f"Answers to {text.count(best['queries'], 'query')}.", **more}


def in_words(curve: Curve) -> str:
    """Return the best alpha of a curve, its optimistic value and the cross-validated one."""
    best = curve.best
    if best.best is None or best.in_sample is None:
        return f"{curve.name}: not defined."
    across = best.cross_validated
    held = "not defined across folds" if across is None else f"{across:.3f} across folds"
    return (
        f"{curve.name}: best at alpha = {best.best:g} with {best.in_sample:.3f} on the same answers "
        f"(optimistic), {held}."
    )
