"""Models whose vendors have announced an end: the date, the recommended successor, and the source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from core.paths import DATA

KEYS = ("retires", "successor", "ends")
"""Keys of a model in ``data/models.toml`` that describe its end: date, successor, and source."""

PARTS = ("embedder", "reranker", "rewrite", "generator")
"""Keys of a stack's specification that name a model, some after a method and a colon."""


@dataclass(frozen=True, slots=True)
class End:
    """An announced end of a model."""

    kind: str  # embed, rerank or chat
    provider: str
    model: str
    retires: date  # the day from which on it no longer answers
    successor: str | None  # the vendor's recommended replacement; None = unknown
    source: str  # address of the announcement
    read: date  # when it was read


def ends_of(spec: Mapping[str, Any]) -> list[End]:
    """Return the announced ends of the models in a stack's specification, the first to come first."""
    named = {str(spec.get(key, "")).rpartition(":")[2] for key in PARTS}
    return [end for model, end in ends().items() if model in named]


@cache
def ends() -> Mapping[str, End]:
    """Return the announced ends by model, the earliest first."""
    kinds: dict[str, Any] = tomllib.loads((DATA / "models.toml").read_text(encoding="utf-8"))
    found = [
        End(
            kind,
            provider,
            own["model"],
            own["retires"],
            own.get("successor"),
            **{**vendor.get("ends", {}), **own.get("ends", {})},
        )
        for kind, vendors in kinds.items()
        for provider, vendor in vendors.items()
        for own in vendor["models"]
        if "retires" in own
    ]
    return {end.model: end for end in sorted(found, key=lambda end: (end.retires, end.model))}
