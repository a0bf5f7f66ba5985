"""Sweeps: a specification in, stacks and what running them will take out."""

from core.pipeline.sweep.load import json_schema, load, parse, presets
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.problems import Problem, SpecError

__all__ = ["Problem", "SpecError", "SweepSpec", "json_schema", "load", "parse", "presets"]
