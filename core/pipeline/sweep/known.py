"""What can stand in a stack here: registries of engines and providers, and a specification's own models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.providers.config import ModelConfig
from core.records import JsonMap

if TYPE_CHECKING:
    from core.pipeline.sweep.model import SweepSpec

_FUSIONS: Mapping[str, JsonMap] = {
    "rrf": {"constant": 60, "depth": 100},
    "weighted": {"normalise": "minmax", "depth": 100},
    "convex": {"alpha": 0.5, "normalise": "minmax", "depth": 100},
}


@dataclass(frozen=True)
class Known:
    """Facade of the registries, so that a specification can be expanded and checked without loading a model.

    Attributes:
        models: The specification's own models by name.
    """

    models: Mapping[str, ModelConfig] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: SweepSpec) -> Known:
        """What a specification can name."""
        return cls(spec.models)

    def dims(self, name: str) -> tuple[int, ...]:
        """Dimensions that an embedder has; empty = any, or not known before it is loaded."""
        return {"wordllama": (64, 128, 256)}.get(name, ())

    def default_dim(self, name: str) -> int | None:
        """The dimension that is taken when none is asked for: the longest."""
        return {"fake": 64}.get(name) or max(self.dims(name), default=None)

    def fusion(self, table: JsonMap) -> JsonMap:
        """A fusion with all of its parameters."""
        usual = _FUSIONS.get(table["method"], {})
        return {"method": table["method"], **usual, **table}

    def index_params(self, name: str, params: JsonMap) -> dict[str, Any]:  # noqa: ARG002
        """Parameters of an index that are not its defaults."""
        return dict(params)

    def cut(self, table: JsonMap) -> JsonMap:
        """A cut with its parameters."""
        return dict(table)

    def chunker(self, table: JsonMap) -> JsonMap:
        """A chunker with its parameters."""
        return dict(table)
