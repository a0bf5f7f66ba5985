"""Whatever stands in a specification, it is read or refused in words; nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import ClqError
from core.pipeline.sweep import load, parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.fields import Methodic
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.model import Axes, SweepSpec
from core.pipeline.sweep.problems import Problem, SpecError
from core.providers.calls import Keys

KEYS = [*SweepSpec.model_fields, *Axes.model_fields, "path", "method", "name", "dims", "provider", "usd", "x"]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(
        ["dense", "hybrid", "rrf", "none", "wordllama", "flat", "hnsw", "sentence", "", "\x00", "é" * 99]
    ),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=5))
@settings(max_examples=150)
def test_anything_is_read_or_refused(data: dict[str, Any]):
    for problem in told(json.dumps({"collection": "c/", **data})):
        assert problem.found.endswith(".")
        assert "pydantic" not in str(problem)


def told(text: str) -> tuple[Problem, ...]:
    try:
        parse(text, "json")
    except SpecError as refused:
        return refused.problems
    return ()


names = st.sampled_from(
    ["wordllama", "fake", "voyage-3.5", "embed-english-v3.0", "none", "x", "rules", "chat:x", "y:z"]
)
methods = st.builds(
    lambda method, options: Methodic(method=method, **options),
    st.sampled_from(["rrf", "weighted", "convex", "percentile", "knee", "sentence", "page", "none", "x"]),
    st.dictionaries(
        st.sampled_from(["depth", "constant", "alpha", "weights", "size", "overlap", "late", "percentile"]),
        st.one_of(
            st.integers(-2, 300), st.sampled_from(["yes", "x"]), st.lists(st.integers(0, 2), max_size=3)
        ),
        max_size=2,
    ),
)


@pytest.mark.slow
@given(
    mode=st.sampled_from(["sparse", "dense", "hybrid"]),
    embedder=names,
    reranker=names,
    rewrite=names,
    dim=st.sampled_from([1, 64, 100, 512]),
    index=st.sampled_from(["flat", "pq", "opq", "x"]),
    metric=st.sampled_from(["cosine", "ip", "l2"]),
    fusion=methods,
    cut=methods,
    chunker=methods,
    candidates=st.sampled_from([1, 50, 500]),
    chunks_sent=st.sampled_from(["all", 1, 60]),
    deepest=st.booleans(),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_anything_that_is_read_can_be_checked(deepest: bool, **axes: Any):
    spec = parse('collection = "tests/cases"\n[budget]\nusd = 1\n')
    update = {"axes": (Axes.model_validate(axes),)}
    if deepest:
        update["latency"] = spec.latency.model_copy(update={"rerank": "deepest"})
    spec = spec.model_copy(update=update)
    for problem in check(spec, known=KnownNames(spec.models, Keys({}, ())), passages=100):
        assert problem.found.endswith(".")
        assert not isinstance(problem, ClqError)


def test_a_specification_that_was_written_down_is_read_back(tmp_path: Path):
    text = 'preset = "clq-paper"\ncollection = "c/"\ngolden_set = "g"\n[axes]\nindex = "flat"\n'
    text += '[models.mine]\nprovider = "openai"\ndims = [3]\nprefixes = { query = "q: " }\n'
    spec = parse(text, folder=tmp_path)
    path = tmp_path / "spec.json"
    for form in (spec.model_dump(mode="json"), spec.model_dump(mode="json", exclude_none=True)):
        path.write_text(json.dumps(form))
        assert load(path) == spec
