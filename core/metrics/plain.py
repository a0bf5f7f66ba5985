"""Measures of other packages: a function of the grades at the first K ranks, or a declaration.

The product's own measures compute every K at once from shared counts. A function here is called once for
each K, which is slower but takes five lines to write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from core.arrays import Floats
from core.errors import InputError
from core.metrics.info import Fill, MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs
from core.params import Param
from core.plugins import blamed

Function = Callable[..., Floats]
"""Grades int8 [queries, K] (1..5, 0 = unjudged or an empty slot) and its parameters to values [queries]."""
_NAME = re.compile(r"[^\s@()\[\],=]{1,40}")


def measure_of(
    name: str,
    function: Function,
    *,
    formula: str = "",
    na: str = "",
    low: float = 0.0,
    high: float = 1.0,
    higher_is_better: bool = True,
    source: str = "",
) -> MeasureInfo:
    """Declare a measure that a function computes from the grades of the first K passages.

    Args:
        name: Name without cutoff, as written before ``@K``.
        function: See `Function`; its docstring begins with what it returns, and its keyword-only arguments
            with a number as default are the measure's parameters.
        formula: The definition, as text.
        na: Why a query may have no value (NaN); empty if each has one.
        low: Smallest possible value.
        high: Largest possible value.
        higher_is_better: Which direction is good.
        source: Where it is defined.

    Raises:
        InputError: If the name cannot be written as a measure, or an argument has no number as default.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name[:40]!r} is not a name of a measure.", do="Use one word, as in Median-rank.")
    text = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").strip()
    return MeasureInfo(
        name=name,
        text=text or f"The value of {name}.",
        formula=formula or f"{name}(grades of Top(K))",
        section=source or getattr(function, "__module__", ""),
        score=_at_every_k(function),
        na=na,
        params=tuple(_params(function, name)),
        higher_is_better=higher_is_better,
        low=low,
        high=high,
    )


def _params(function: Function, name: str) -> list[Param]:
    """Return the declared parameters: keyword-only arguments with a number as default."""
    given = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for each in given:
        if not isinstance(each.default, int | float):
            raise InputError(f"Argument {each.name} of {name} has no number as its default.", where=name)
    return [Param(name=each.name, default=each.default, text=f"{each.name} of {name}") for each in given]


def _at_every_k(function: Function) -> Fill:
    def score(inputs: Inputs, values: Values, out: Scores) -> None:
        depth, runs, queries = inputs.shape
        grades = np.maximum(np.moveaxis(inputs.grades, 0, -1), 0).reshape(runs * queries, depth)
        arguments: dict[str, Any] = dict(values)
        for k in range(1, depth + 1):
            with blamed(getattr(function, "__name__", "")):
                found = np.asarray(function(grades[:, :k], **arguments), dtype=np.float64)
            if found.shape != (runs * queries,):
                raise InputError(
                    f"A measure returned shape {found.shape} for {runs * queries} queries.",
                    where=getattr(function, "__name__", ""),
                    do="Return one value per query.",
                )
            out[k - 1] = found.reshape(runs, queries)

    return score


def made(name: str, value: object) -> MeasureInfo:
    """Return the measure that an entry point refers to: a declaration, or a function of the grades.

    Raises:
        InputError: If it is neither.
    """
    if isinstance(value, MeasureInfo):
        return value
    if callable(value):
        return measure_of(name, value)
    raise InputError(f"{name} is not a measure.", do="Refer to a function of grades or to `measure_of(…)`.")
