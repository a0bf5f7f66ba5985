"""The axes that stacks differ in, and each stack's value on them, for naming stacks to add."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from core.analysis.workspace.stacks import AXES
from core.axes import as_read
from core.pipeline.own.config import OWN
from core.records import JsonMap

_WORDS = {"candidates": "K", "dim": "dimensions", "sparse": "sparse index"}
_Pipeline = tuple[str, str]  # Name and version of a custom pipeline
_Value = TypeVar("_Value")
_OF = "\n"  # Separates a pipeline's path and its parameter in the name of an axis


@dataclass(frozen=True)
class Levels:
    """The axes that stacks differ in, and each stack's value on them.

    A custom pipeline has its own axes, its parameters and its K, so that no step leads from one
    pipeline to another, or to a stack that isn't one.
    """

    frame: pl.DataFrame  # a row per stack of the table; null = it lacks this axis
    pipelines: Sequence[_Pipeline]

    @classmethod
    def of(cls, table: pl.DataFrame) -> Levels:
        """Read the levels from a stack table."""
        specs = [json.loads(spec) for spec in table["spec"]] if "spec" in table.columns else []
        owned = [spec.get("mode") == OWN for spec in specs] or [False] * table.height
        frame = table.select(
            pl.when(~pl.Series(owned, dtype=pl.Boolean)).then(pl.col(axis)).alias(axis) for axis in AXES
        )
        pipelines = list(dict.fromkeys(_pipeline(spec) for spec in specs if spec.get("mode") == OWN))
        steps = [
            _own_levels(spec, pipelines.index(_pipeline(spec))) if spec.get("mode") == OWN else {}
            for spec in specs
        ]
        names = dict.fromkeys(name for step in steps for name in step)
        own = [pl.Series(name, [step.get(name) for step in steps], pl.String) for name in names]
        whole = frame.with_columns(own)
        return cls(whole.select(col for col in whole if not col.is_null().all()), pipelines)

    def read(self, stack: tuple[_Value, ...]) -> tuple[_Value | None, ...]:
        """Return a stack's value on each axis that one of its parts reads, None on the others."""
        axes = self.frame.columns
        stated = {axis: value for axis, value in zip(axes, stack, strict=True) if value is not None}
        kept = as_read(stated)
        return tuple(kept.get(axis) for axis in axes)

    def spec(self, values: Mapping[str, Any]) -> JsonMap:
        """Return the specification of the stack at these values."""
        own = {axis.partition(_OF): value for axis, value in values.items() if _OF in axis and value}
        if not own:
            return values
        name, version = self.pipelines[int(next(iter(own))[0])]
        params = {param: value for (_, _, param), value in own.items()}
        depth = {"candidates": params.pop("")} if "" in params else {}
        return {"mode": OWN, "name": name, "version": version, "params": params, **depth}

    @staticmethod
    def step(axis: str, before: object, after: object) -> str:
        """Describe a step on an axis: ``K 20 → 50``."""
        word = (axis.partition(_OF)[2] or "K") if _OF in axis else _WORDS.get(axis, axis)
        return f"{word} {before} → {after}"


def _pipeline(spec: JsonMap) -> _Pipeline:
    return str(spec.get("name", "")), str(spec.get("version", ""))


def _own_levels(spec: JsonMap, place: int) -> dict[str, str]:
    params = {**(spec.get("params") or {}), "": spec.get("candidates")}
    return {f"{place}{_OF}{name}": str(value) for name, value in params.items() if value is not None}
