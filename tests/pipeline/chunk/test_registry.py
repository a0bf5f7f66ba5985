from __future__ import annotations

import pytest

from core.errors import InputError, UnknownNameError
from core.pipeline.chunk.methods import CHUNKERS, canonical, chunking_name, is_late


def test_defaults_are_written_out():
    assert canonical({"method": "sentence"}) == {
        "method": "sentence",
        "size": 500,
        "overlap": 70,
        "metadata": "breadcrumb",
        "language": "english",
        "tokenizer": "o200k_base",
        "late": "no",
    }
    for method in CHUNKERS:
        whole = canonical({"method": method})
        assert canonical(whole) == whole


def test_names_stand_for_all_parameters():
    name = chunking_name({"method": "sentence", "size": 200})
    assert name is not None
    assert name.startswith("sentence-200-")
    assert len(name) == len("sentence-200-") + 4
    assert chunking_name({"size": 200, "method": "sentence", "overlap": 70}) == name
    assert chunking_name({"method": "sentence", "size": 200, "overlap": 60}) != name
    assert chunking_name({"method": "none"}) is None


def test_late():
    assert is_late({"method": "fixed", "late": True})
    assert is_late({"method": "fixed", "late": "yes"})
    assert not is_late({"method": "fixed", "late": False})
    assert not is_late({"method": "none"})
    assert not is_late(None)


@pytest.mark.parametrize(
    ("chunker", "error", "message"),
    [
        ({}, UnknownNameError, "No chunker ''.*fixed, none"),
        ({"method": "x"}, UnknownNameError, "No chunker 'x'"),
        ({"method": "none", "size": 5}, UnknownNameError, "size.*chunker none|chunker none.*size"),
        ({"method": "fixed", "size": 5}, InputError, "size=5 is not allowed.*16 to 32768"),
        ({"method": "fixed", "size": 20.5}, InputError, "size=20.5"),
        ({"method": "fixed", "size": 100, "overlap": 50}, InputError, "overlap=50 is not below half"),
        ({"method": "sentence", "language": "latin"}, InputError, "language=latin.*english"),
        ({"method": "sentence", "metadata": ["x"]}, InputError, "metadata"),
        ({"method": "fixed", "tokenizer": "gpt-1"}, InputError, "tokenizer=gpt-1.*estimate"),
    ],
)
def test_what_is_refused(chunker, error, message):
    with pytest.raises(error, match=message):
        canonical(chunker)
