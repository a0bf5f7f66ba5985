"""Indexes of servers, against local ones that speak the wire format; no real cluster was there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pytest_httpserver import HTTPServer

from core.errors import InputError, ProviderError
from core.filters import fields_of, parse
from core.pipeline.index import (
    ENGINES,
    METRICS,
    DatabaseIndex,
    DatabasePlace,
    is_ann,
    load_index,
    make_index,
)
from core.pipeline.index.scope import scopes_of
from tests.pipeline.index.test_outside import NAMES, QUERIES, VECTORS, extras, used
from tests.pipeline.index.wire import Database, ElasticServer, QdrantServer

SERVERS = {"qdrant": QdrantServer, "elasticsearch": ElasticServer, "opensearch": ElasticServer}
FEW = VECTORS[:60]


@pytest.fixture
def database(name: str, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Database:
    pytest.importorskip(ENGINES[name].engine.package)
    monkeypatch.setenv("SOME_URL", httpserver.url_for("").rstrip("/"))
    return SERVERS[name](httpserver)


def told(name: str, tmp_path: Path, metric: str = "cosine", **options: Any) -> DatabaseIndex:
    texts = pl.Series([f"word{number} common" for number in range(len(FEW))])
    place = DatabasePlace(tmp_path, "t", texts=texts)
    index = make_index(name, FEW, metric, {"url_env": "SOME_URL", **options}, place=place)
    assert isinstance(index, DatabaseIndex)
    return index


over_the_wire = [*extras, pytest.mark.parametrize("name", SERVERS)]


class TestWire:
    """Against servers that speak an engine's wire format; never run against a real cluster here."""

    pytestmark = over_the_wire

    @pytest.mark.parametrize("exact", ["no", "yes"])
    @pytest.mark.parametrize("metric", METRICS)
    def test_search_equals_the_flat_index(
        self, name: str, metric: str, exact: str, database: Database, tmp_path: Path
    ):
        index = told(name, tmp_path, metric, exact=exact)
        flat = make_index("flat", FEW, metric)
        pairs = zip(index.search_batch(QUERIES, 10), flat.search_batch(QUERIES, 10), strict=True)
        for found, wanted in pairs:
            assert found.passages.tolist() == wanted.passages.tolist()
            np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-5)
        assert (len(index), index.dim) == (60, 32)

    def test_a_search_looks_at_what_was_asked_for(self, name: str, database: Database, tmp_path: Path):
        told(name, tmp_path, ef_search=77).search(QUERIES[0], 5)
        assert "77" in str(database.asked[-1][2])
        told(name, tmp_path, ef_search=7).search(QUERIES[0], 12)
        assert "12" in str(database.asked[-1][2])

    def test_it_is_found_again(self, name: str, database: Database, tmp_path: Path):
        index = told(name, tmp_path)
        index.save(tmp_path / "index")
        again = load_index(tmp_path / "index")
        assert again.search(QUERIES[0], 5).passages.tolist() == index.search(QUERIES[0], 5).passages.tolist()
        assert "127.0.0.1" not in (tmp_path / "index" / "about.json").read_text()

    def test_what_is_missing_lists_what_there_is(self, name: str, database: Database, tmp_path: Path):
        told(name, tmp_path)
        with pytest.raises(InputError, match=r"no (collection|index) nowhere.*Found: t"):
            used(name, tmp_path, NAMES, url_env="SOME_URL", table="nowhere")
        with pytest.raises(InputError, match="no column nothing"):
            used(name, tmp_path, NAMES, url_env="SOME_URL", table="t", vector="nothing")

    def test_a_wrong_dimension_is_refused(self, name: str, database: Database, tmp_path: Path):
        told(name, tmp_path)
        with pytest.raises(InputError, match="32 dimensions, those of the model 16"):
            used(name, tmp_path, NAMES, dim=16, url_env="SOME_URL", table="t")

    @pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
    def test_a_refused_key_is_told_without_it(
        self, name: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("SOME_KEY", "hunter2hunter2")
        database.refusal = 401
        with pytest.raises(ProviderError) as caught:
            told(name, tmp_path, key_env="SOME_KEY")
        assert caught.value.kind == "auth"
        assert "hunter2" not in str(caught.value)
        database.refusal = 500
        with pytest.raises(ProviderError) as caught:
            told(name, tmp_path, key_env="SOME_KEY")
        assert "hunter2" not in str(caught.value)

    def test_who_does_not_answer_is_told(
        self, name: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        index = told(name, tmp_path)
        monkeypatch.setenv("SOME_URL", "http://alice:hunter2@127.0.0.1:9")
        with pytest.raises(ProviderError) as caught:
            told(name, tmp_path)
        assert caught.value.kind == "unreachable"
        assert "hunter2" not in str(caught.value)
        assert "SOME_URL" in str(caught.value)
        assert len(index.search(QUERIES[0], 3).passages) == 3


@pytest.mark.extras
@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize(("search", "first"), [("bm25", [7]), ("rrf", [7, 3])])
def test_words_are_searched_by_the_engine_and_merged_with_neighbours(
    name: str, search: str, first: list[int], database: Database, tmp_path: Path
):
    index = told(name, tmp_path, search=search)
    found = index.search(FEW[3], 2, "word7").passages.tolist()
    assert sorted(found[: len(first)]) == sorted(first)
    assert not is_ann(name, {"search": search})


@pytest.mark.extras
@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize("options", [{"search": "bm25"}, {"search": "rrf"}, {}, {"exact": "yes"}])
def test_a_filter_is_part_of_every_request(
    name: str, options: dict[str, str], database: Database, tmp_path: Path
):
    tenants = ['a"}}', "b"]
    fields = fields_of([{"tenant": tenants[at % 2]} for at in range(len(FEW))])
    (seen,) = scopes_of(fields, [parse({"tenant": tenants[0]})])
    place = DatabasePlace(tmp_path, "t", texts=pl.Series(["common"] * len(FEW)), fields=fields)
    index = make_index(name, FEW, "cosine", {"url_env": "SOME_URL", **options}, place=place)
    assert isinstance(index, DatabaseIndex)
    found = index.search(FEW[3], 40, "common", seen).passages
    assert sorted(found) == list(range(0, len(FEW), 2))
    assert "tenant" not in str(database.asked)
    assert "}}" not in "".join(re.findall(r"'f0': '[^']*'", str(database.asked)))
    assert len(index.search(FEW[3], 60, "common").passages) == len(FEW)


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_qdrant_in_a_folder_equals_the_flat_index(tmp_path: Path):
    pytest.importorskip("qdrant_client")
    index = make_index("qdrant", FEW[:20], "l2", {}, place=DatabasePlace(tmp_path, "t"))
    wanted = make_index("flat", FEW[:20], "l2").search(QUERIES[0], 5)
    index.save(tmp_path / "index")
    again = load_index(tmp_path / "index")
    assert again.search(QUERIES[0], 5).passages.tolist() == wanted.passages.tolist()
    assert (again.size_bytes or 0) > 0
