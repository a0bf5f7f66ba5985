"""The columns of the tables of the compare page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.ui import show


def signed_column(label: str, help_text: str = "") -> Any:
    """A column of differences with their sign."""
    return st.column_config.NumberColumn(label, format="%+.3f", help=help_text or None)


NUMBERS: Mapping[str, Any] = {
    "difference": signed_column("difference", "Mean over the queries that count for both."),
    "low": signed_column("low", "Lower end of the 95 % interval, of this comparison by itself."),
    "high": signed_column("high", "Upper end of the 95 % interval, of this comparison by itself."),
    "p_holm": show.number_column(
        "p adjusted", 4, "Paired randomisation test, Holm-adjusted over this table."
    ),
    "verdict": show.text_column("verdict", "Real where the adjusted p is below 0.05."),
    "n": show.number_column("n", 0, "Queries that count for both."),
    "wins": show.number_column("wins", 0),
    "ties": show.number_column("ties", 0),
    "losses": show.number_column("losses", 0),
    "superiority": show.score_column(
        "P(better)", "Probability of superiority: share of queries won, plus half of those exactly equal."
    ),
    "d_z": show.number_column("d_z", 2, "Effect size: mean difference / standard deviation of differences."),
    "detectable": show.score_column(
        "detectable", "Smallest true difference that n queries show with 80 % power (normal approximation)."
    ),
    "needed": show.number_column("n needed", 0, "Queries that would show the observed difference (80 %)."),
    "p": show.number_column("p", 4, "Unadjusted."),
}
"""The columns of a table of comparisons, behind those that say what is compared."""

DIFFERENCES: Mapping[str, Any] = {
    "second": show.text_column("stack", width="medium"),
    "first": show.text_column("against", width="medium"),
    **NUMBERS,
    "if_judged": signed_column(
        "if judged",
        "The difference if every unjudged passage in the Top-K of the stack behind alone were of grade 5, "
        "and of the stack ahead alone of grade 1.",
    ),
    "overlap": show.number_column("overlap", 2, "Mean share of passages that the two Top-K have in common."),
    "tau": show.number_column("tau-b", 2, "Mean Kendall's tau-b: are the shared passages ordered alike?"),
}
TAGS: Mapping[str, Any] = {"tag": show.text_column("tag"), **NUMBERS}
EFFECTS: Mapping[str, Any] = {
    "before": show.text_column("before", width="medium"),
    "after": show.text_column("after", width="medium"),
    **NUMBERS,
}
SOURCES: Mapping[str, Any] = {
    "measure": show.text_column("measure"),
    "says": show.text_column("what it says", width=290),
    "value_first": show.score_column("first"),
    "value_second": show.score_column("second"),
    "difference": signed_column("difference"),
    "low": signed_column("low"),
    "high": signed_column("high"),
    "p": show.number_column("p", 4, "Paired randomisation test, not adjusted: the three go together."),
    "n": show.number_column("n", 0),
}
QUERIES: Mapping[str, Any] = {
    "query_id": show.text_column("query"),
    "text": show.text_column("question", width="large"),
    "outcome": show.text_column("outcome"),
    "delta": signed_column("difference"),
    "score": show.score_column("second"),
    "other": show.score_column("first"),
    "overlap": show.number_column("overlap", 2, "Shared passages of the two Top-K / the longer Top-K."),
    "tau": show.number_column("tau-b", 2, "Kendall's tau-b: do both order the shared passages alike?"),
    "tags": st.column_config.ListColumn("tags"),
    "note": show.text_column("note"),
}
