"""Filters in databases equal the mask, whatever a filter or the metadata hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ClqError
from core.filters import Kind, fields_of, parse
from core.pipeline.index import DatabaseIndex, DatabasePlace, load_index, make_index
from core.pipeline.index.only import OnlyTest as Condition
from core.pipeline.index.only import only_of, rows_of
from core.pipeline.index.scope import IndexScope, scopes_of
from core.pipeline.ranking import top_k
from tests.pipeline.corpora import unit_vectors
from tests.pipeline.engines import FILTERING, kind_of

DIM, COUNT, QUERIES, K = 16, 700, 210, 15
VECTORS, ASKED = unit_vectors(COUNT, DIM, seed=1), unit_vectors(QUERIES, DIM, seed=2)
HOSTILE = [
    "'; DROP TABLE t; --", '"}]}', "' OR '1'='1", ".*", "%", "f0 IS NOT NULL", "\u202eabc", "a\x00b", "\\",
    "$1", "x" * 100_000, "{{ k }}", "%s", "",
]  # fmt: skip
NAMES = ["tenant'; --", 'f0"', "acl", "date", "n", "public"]


def passages() -> list[dict[str, Any]]:
    draw = np.random.default_rng(7)
    made = []
    for at in range(COUNT):
        row = {
            NAMES[0]: HOSTILE[at % len(HOSTILE)],
            NAMES[1]: f"group {draw.integers(4)}",
            NAMES[2]: [str(one) for one in draw.choice(HOSTILE[:5], size=draw.integers(0, 4), replace=False)],
            NAMES[3]: f"20{draw.integers(10, 26)}-03-0{draw.integers(1, 10)}T10:00Z",
            NAMES[4]: [0.1, 2.0, -3.5, 1e16][draw.integers(4)],
            NAMES[5]: bool(draw.integers(2)),
        }
        made.append({name: value for name, value in row.items() if draw.random() < 0.93})
    return made


def filters() -> list[dict[str, Any]]:
    draw, made = np.random.default_rng(8), []
    for at in range(QUERIES):
        text = HOSTILE[at % len(HOSTILE)]
        several = [str(each) for each in draw.choice(HOSTILE[:5], size=2, replace=False)]
        made.append([
            {NAMES[0]: text},
            {NAMES[0]: [text, "nobody's"], NAMES[1]: {"not": "group 1"}},
            {NAMES[2]: {"any": several}},
            {NAMES[2]: {"all": several}, NAMES[5]: True},
            {"not": {NAMES[2]: {"any": several}, NAMES[5]: False}},
            {NAMES[3]: {"gte": "2013-03-02", "lt": "2020-03-05T10:00Z"}},
            {NAMES[4]: {"not": {"gt": 0.1, "lte": 2}}, NAMES[5]: [True, False]},
            {NAMES[4]: [0.1, 1e16], NAMES[3]: {"not": "2015-03-05T10:00Z"}},
            {NAMES[0]: []},
            {NAMES[2]: {"not": {"any": []}}, NAMES[1]: [f"group {each}" for each in range(1000)]},
            {"not": {"not": {"not": {NAMES[1]: "group 2"}}}},
            {},
        ][at % 12])  # fmt: skip
    return made


DIGEST = "2d711642b726b04401627ca9fbac32f5"  # of "x"
FIELDS = fields_of(passages())
SCOPES = scopes_of(FIELDS, [parse(each) for each in filters()])


def exact(query: int, scope: IndexScope) -> list[int]:
    left = scope.positions
    return top_k(left, (VECTORS[left] @ ASKED[query]).astype(np.float64), K).passages.tolist()


def test_no_text_of_a_filter_or_of_metadata_is_in_what_an_engine_is_told():
    for scope in SCOPES:
        assert scope is not None
        only = only_of(scope.asked, scope.kinds, FIELDS.columns)
        told = json.dumps(only)
        assert len(told) < 60_000
        assert all(text not in told for text in HOSTILE if len(text) > 5)
        assert all(name not in told for name in NAMES if len(name) > 4)
    kinds, rows = rows_of(FIELDS)
    assert [kind.value for kind in kinds] == [Kind(kind).value for kind in kinds]
    assert len(rows) == COUNT
    assert max(len(json.dumps(row)) for row in rows) < 400


def test_ten_megabytes_are_a_digest():
    fields = fields_of([{"tenant": "a"}])
    (scope,) = scopes_of(fields, [parse({"tenant": "x" * 10_000_000})])
    assert scope is not None
    assert len(json.dumps(only_of(scope.asked, scope.kinds, fields.columns))) < 100


def test_conditions_keep_their_values_in_the_type_of_the_column():
    asked = parse({"date": {"gte": "1970-01-01T00:00:01Z"}, "n": 2, "public": True, "acl": {"any": "x"}})
    fields = fields_of([{"date": "2020-01-01", "n": 1, "public": True, "acl": ["x"]}])
    (scope,) = scopes_of(fields, [asked])
    assert scope is not None
    only = only_of(asked, scope.kinds, fields.columns)
    assert only.columns == ("f0", "f1", "f2", "f3")
    found = {part.column: part.values for part in only.parts if isinstance(part, Condition)}
    assert found == {
        "f0": ("2d711642b726b04401627ca9fbac32f5",),
        "f1": (1_000_000,),
        "f2": (2.0,),
        "f3": (True,),
    }
    _, (row,) = rows_of(fields)
    assert row == (["2d711642b726b04401627ca9fbac32f5"], 1_577_836_800_000_000, 1.0, True)


@pytest.mark.slow
@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestReal:
    @pytest.mark.parametrize("name", FILTERING)
    def test_every_filter_leaves_what_its_mask_leaves(
        self, name: str, address: dict[str, str], tmp_path: Path
    ):
        place = DatabasePlace(tmp_path, "t", fields=FIELDS)
        index = make_index(kind_of(name), VECTORS, "cosine", {**address, "exact": "yes"}, place=place)
        index.save(tmp_path / "index")
        again = load_index(tmp_path / "index")
        assert isinstance(again, DatabaseIndex)
        assert again.selects
        for query, scope in enumerate(SCOPES):
            assert scope is not None
            found = again.search(ASKED[query], K, scope=scope).passages.tolist()
            assert found == exact(query, scope), scope.asked.text[:200]
        again.drop()

    @pytest.mark.parametrize("name", FILTERING)
    def test_its_own_search_shows_nothing_forbidden(self, name: str, address: dict[str, str], tmp_path: Path):
        place = DatabasePlace(tmp_path, "t", fields=FIELDS)
        index = make_index(kind_of(name), VECTORS, "cosine", address, place=place)
        shares = []
        for query, scope in enumerate(SCOPES):
            assert scope is not None
            found = index.search(ASKED[query], K, scope=scope).passages
            assert scope.allowed[found].all()
            wanted = exact(query, scope)
            shares += [len(set(found.tolist()) & set(wanted)) / len(wanted)] if wanted else []
        assert np.mean(shares) > 0.9

    @pytest.mark.parametrize("name", FILTERING)
    def test_a_table_without_fields_is_never_searched_unfiltered(
        self, name: str, address: dict[str, str], tmp_path: Path
    ):
        index = make_index(kind_of(name), VECTORS, "cosine", address, place=DatabasePlace(tmp_path, "t"))
        with pytest.raises(ClqError, match="cannot filter while it searches"):
            index.search(ASKED[0], K, scope=SCOPES[0])
