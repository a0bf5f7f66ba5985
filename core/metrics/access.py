"""Measures of filters: what an answer shows that its asker may not see, and what it lacks of what he may.

They compare a ranking with the passages that the question's filter leaves, and need no grades. Where the
metadata of a passage are unknown, so is whether it leaks: from its rank on, the measure of the whole run is.
"""

from __future__ import annotations

import math

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs, Tally, running_count

FORBIDDEN, ALLOWED, UNKNOWN, UNFILTERED = 0, 1, 2, 3
"""States of a passage for a question: outside of its filter; within; without metadata; there is no filter."""
NEVER = np.iinfo(np.int32).max  # Rank from which on a run is unknown, if all of its passages are known

_SECTION = "docs/filters.md"
_NA = "The question has no filter, or the metadata of a passage of the run are unknown."


def _count(inputs: Inputs, state: int) -> Tally:
    return inputs.once(("state", state), lambda: running_count(inputs.states() == state))


def _known(inputs: Inputs, out: Scores) -> None:
    """Leave out questions without a filter, and cutoffs from which on the run is unknown."""
    np.copyto(out, np.nan, where=inputs.judged.slots >= inputs.filtered()[0])


def _leak(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    np.copyto(out, _count(inputs, FORBIDDEN) > 0)
    _known(inputs, out)


def _leaked(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    np.copyto(out, _count(inputs, FORBIDDEN))
    _known(inputs, out)


def _short(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    expected = inputs.filtered()[1]
    np.copyto(out, _count(inputs, ALLOWED) < np.minimum(inputs.judged.slots, expected))
    _known(inputs, out)
    np.copyto(out, np.nan, where=expected < 0)


LEAK = MeasureInfo(
    name="Leak",
    text="Share of questions whose first K hold a passage that the asker's filter forbids.",
    formula="1 if #{Top(K): forbidden by the filter} > 0 else 0",
    section=_SECTION,
    score=_leak,
    na=_NA,
    needs=frozenset({"filters"}),
    higher_is_better=False,
)
LEAKED = MeasureInfo(
    name="Leaked",
    text="Mean number of the first K passages that the asker's filter forbids.",
    formula="#{Top(K): forbidden by the filter}",
    section=_SECTION,
    score=_leaked,
    na=_NA,
    needs=frozenset({"filters"}),
    high=math.inf,
    higher_is_better=False,
)
SHORT = MeasureInfo(
    name="Short",
    text="Share of questions with fewer allowed passages than exact filtered search returns.",
    formula="1 if #{Top(K): allowed by the filter} < min(K, what exact filtered search returns) else 0",
    section=_SECTION,
    score=_short,
    na=f"{_NA} Or what exact search returns is unknown, as of a lexical stack.",
    needs=frozenset({"filters"}),
    higher_is_better=False,
)
