"""Rows of an Optuna storage that no trial takes, counted by the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from core.importers.base import LeftOut

_KEYS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "studies": ("study_id", "study_id"),
        "study_directions": ("study_id", "objective"),
        "trial_values": ("trial_id", "objective"),
        "trial_params": ("trial_id", "param_name"),
        "trial_user_attributes": ("trial_id", "key"),
    }
)
"""Table → the column that leads to a trial, and the one that tells the rows of a trial or study apart."""
_ODD: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "directions of no objective": ("study_directions", "typeof(objective) <> 'integer'"),
        "values of no objective": ("trial_values", "typeof(objective) <> 'integer'"),
        "values of objectives that are no finite number: missing, not 0": (
            "trial_values", "typeof(value) NOT IN ('integer', 'real') OR value IN (9e999, -9e999)",
        ),
    }
)  # fmt: skip
"""Reason → the table, and which of its rows are left out for it."""
_NAMES = {
    "attributes of studies other than the names of objectives": (
        "study_system_attributes", "key IS NOT 'study:metric_names'",
    )
}  # fmt: skip


def untaken(ask: Callable[[str], Iterator[tuple[Any, ...]]], name: str, *, has_names: bool) -> list[LeftOut]:
    """What the tables hold beyond what trials take."""
    counts: dict[str, str] = {}
    for table, (key, own) in _KEYS.items():
        led = f"COUNT(CASE WHEN {key} IN (SELECT {key} FROM trials) THEN 1 END)"  # noqa: S608
        single = f"(SELECT COUNT(*) FROM (SELECT DISTINCT {key}, {own} FROM {table}))"  # noqa: S608
        counts[f"rows of `{table}` without a trial"] = f"COUNT(*) - {led} FROM {table}"
        counts[f"rows of `{table}` that stand twice: one counts"] = f"COUNT(*) - {single} FROM {table}"
    for reason, (table, odd) in {**_ODD, **(_NAMES if has_names else {})}.items():
        counts[reason] = f"COUNT(*) FROM {table} WHERE {odd}"
    found = {reason: next(ask(f"SELECT {query}"))[0] for reason, query in counts.items()}
    return [LeftOut(count, reason, name) for reason, count in found.items() if count]
