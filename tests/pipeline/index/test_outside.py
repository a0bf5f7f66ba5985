"""Indexes that databases keep: exact ones equal the flat one, and what is refused is said clearly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ClqError, InputError, ProviderError, UnknownNameError
from core.pipeline.index import (
    ENGINES,
    METRICS,
    DatabaseIndex,
    DatabasePlace,
    ann_recall,
    expected_bytes,
    index_options,
    is_ann,
    load_index,
    make_index,
    obstacles,
    outside,
    use_index,
)
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, without_secrets
from tests.pipeline.corpora import unit_vectors
from tests.pipeline.engines import kind_of

VECTORS = unit_vectors(600, 32, seed=1)
QUERIES = unit_vectors(12, 32, seed=2)
NAMES = [f"p{number}" for number in range(len(VECTORS))]
URL = "postgresql://alice:hunter2@127.0.0.1:1/db"


@pytest.mark.parametrize("name", ENGINES)
def test_without_its_package_the_error_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    engine = ENGINES[name].engine
    monkeypatch.setenv("SOME_URL", f"{engine.schemes[0]}://127.0.0.1:1" if engine.schemes else str(tmp_path))
    for module in [each for each in sys.modules if each.partition(".")[0] == engine.package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, engine.package, None)
    with pytest.raises(ClqError) as caught:
        make_index(name, VECTORS, params={"url_env": "SOME_URL"}, place=DatabasePlace(tmp_path, "t"))
    assert caught.value.do == f"Install it: pip install -r {engine.requirements}"
    assert (Path(__file__).parents[3] / engine.requirements).exists()


def test_equal_scores_are_in_the_order_of_the_corpus_whatever_an_engine_returns(tmp_path: Path):
    class Backwards(ENGINES["lancedb"]):  # type: ignore[misc]  # any will do: nothing is asked of it
        def _create(self, vectors: Any) -> None: ...

        def _look(self) -> DatabaseFacts:
            return DatabaseFacts(32, 600, None)

        def _nearest(self, query: Any, k: int, text: str) -> DatabaseHits:
            return [(9, 0.5), (7, 0.5), (2, 0.1), (8, 0.9), (1, 0.5)]

    index = Backwards.build(DatabasePlace(tmp_path, "t"), VECTORS, "cosine", index_options("lancedb", {}))
    found = index.search(QUERIES[0], 4)
    assert found.passages.tolist() == [8, 1, 7, 9]
    assert found.scores.tolist() == [0.9, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"url_env": "has space"}, InputError),
        ({"url_env": "http://alice:secret@host"}, InputError),
        ({"url_env": "X", "exact": "perhaps"}, InputError),
        ({"url_env": "X", "colour": "red"}, UnknownNameError),
    ],
)
@pytest.mark.parametrize("name", ENGINES)
def test_options_are_checked_before_anything_is_built(
    name: str, options: dict[str, Any], error: type[ClqError]
):
    with pytest.raises(error):
        index_options(name, options)


@pytest.mark.parametrize("name", ENGINES)
def test_a_variable_that_is_not_set_is_told_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_URL", raising=False)
    told = [each.found for each in obstacles(name, {"url_env": "NO_SUCH_URL"})]
    assert told[-1] == "The environment variable NO_SUCH_URL is not set."
    assert list(obstacles("flat")) == []


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (name, param.name)
        for name, index in ENGINES.items()
        for param in index.engine.options
        if param.name in ("url_env", "key_env")
    ],
)
def test_only_variables_that_the_operator_lists_are_read(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    engine = ENGINES[name].engine
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANOTHER_SECRET", "sk-not-to-be-shown")
    given = {"url_env": "SOME_URL", key: "ANOTHER_SECRET"}
    monkeypatch.setenv("SOME_URL", f"{engine.schemes[0]}://127.0.0.1:1" if engine.schemes else "/folder")
    options, read = engine.read(given), outside.address if key == "url_env" else outside.secret
    with pytest.raises(InputError, match=r"ANOTHER_SECRET may not be read.*CLQ_ALLOW_ENV") as caught:
        read(engine, options)
    assert "sk-not" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("value", ["sk-a-key-of-some-kind", "relative/folder", "file:///etc", "ftp://host"])
def test_what_is_no_address_is_neither_used_nor_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_URL", value)
    with pytest.raises(InputError, match="SOME_URL holds no address") as caught:
        make_index(
            name, VECTORS, params={"url_env": "SOME_URL"}, place=DatabasePlace(tmp_path / "place", "t")
        )
    assert value not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "ann"),
    [
        ("flat", {}, False),
        ("hnsw-f32", {}, True),
        ("pgvector", {}, True),
        ("pgvector", {"exact": "yes"}, False),
        ("opensearch", {"search": "rrf"}, False),
    ],
)
def test_what_may_miss_neighbours(name: str, options: dict[str, Any], ann: bool):
    assert is_ann(name, options) is ann


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            'missing "=" after "hunter2" in connection info string',
            'missing "=" after "…" in connection info string',
        ),
        ("user alice of db2 at 127.0.0.1", "user … of db2 at …"),
    ],
)
def test_no_part_of_an_address_is_told(words: str, told: str):
    assert without_secrets(words, URL) == told


@pytest.mark.parametrize("name", ENGINES)
def test_the_expected_size_grows_with_passages_and_dimensions(name: str):
    options = {"url_env": "X"}
    sizes = [
        expected_bytes(name, dim=d, passages=n, options=options) for d, n in ((64, 10), (64, 20), (128, 20))
    ]
    assert 64 * 4 * 10 <= sizes[0] < sizes[1] < sizes[2]


# With the extras


REAL = ("pgvector", "lancedb folder", "lancedb storage", "qdrant-edge folder", "milvus folder", "redis")
everywhere = pytest.mark.parametrize("name", REAL)
extras = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def built(
    name: str, tmp_path: Path, metric: str = "cosine", table: str = "t", **options: Any
) -> DatabaseIndex:
    index = make_index(kind_of(name), VECTORS, metric, options, place=DatabasePlace(tmp_path, table))
    assert isinstance(index, DatabaseIndex)
    return index


class TestReal:
    """Against the real thing."""

    pytestmark = extras

    @pytest.mark.parametrize("metric", METRICS)
    @everywhere
    def test_exact_search_equals_the_flat_index(
        self, name: str, metric: str, address: dict[str, str], tmp_path: Path
    ):
        index = built(name, tmp_path, metric, **address, exact="yes")
        flat = make_index("flat", VECTORS, metric)
        for found, wanted in zip(
            index.search_batch(QUERIES, 10), flat.search_batch(QUERIES, 10), strict=True
        ):
            assert found.passages.tolist() == wanted.passages.tolist()
            np.testing.assert_allclose(found.scores, wanted.scores, atol=2e-6)
        assert len(index) == 600
        assert index.dim == 32
        assert index.size_bytes is None or index.size_bytes > VECTORS.nbytes
        assert address.get("url_env") is None or "hunter" not in str(index.parameters)

    @pytest.mark.parametrize(
        ("name", "options", "least"),
        [
            ("pgvector", {"method": "hnsw"}, 0.95),
            ("pgvector", {"method": "hnsw", "type": "halfvec"}, 0.95),
            ("pgvector", {"method": "ivfflat", "lists": 10, "probes": 10}, 0.99),
            ("lancedb folder", {"method": "hnsw"}, 0.9),
            ("lancedb folder", {"method": "hnsw", "ef_search": 10, "refine": 10}, 0.9),
            ("lancedb folder", {"method": "ivf_pq", "partitions": 2, "parts": 8, "refine": 10}, 0.9),
            ("lancedb storage", {"method": "hnsw"}, 0.9),
            ("qdrant-edge folder", {}, 0.95),
            ("qdrant-edge folder", {"type": "float16"}, 0.95),
            ("qdrant-edge folder", {"type": "int8"}, 0.95),
            ("qdrant-edge folder", {"type": "int8", "exact": "yes"}, 1.0),
            ("milvus folder", {}, 0.95),
            ("redis", {}, 0.95),
        ],
    )
    def test_an_approximate_index_finds_most(
        self, name: str, options: dict[str, Any], least: float, address: dict[str, str], tmp_path: Path
    ):
        index = built(name, tmp_path, **address, **options)
        flat = make_index("flat", VECTORS)
        pairs = zip(index.search_batch(QUERIES, 10), flat.search_batch(QUERIES, 10), strict=True)
        assert np.mean([ann_recall(*pair, 10) for pair in pairs]) >= least

    @everywhere
    def test_it_is_found_again_where_it_was_saved(self, name: str, address: dict[str, str], tmp_path: Path):
        index = built(name, tmp_path, **address)
        index.save(tmp_path / "index")
        again = load_index(tmp_path / "index")
        assert again.parameters == index.parameters
        assert again.build_s == index.build_s
        assert again.search(QUERIES[0], 5).passages.tolist() == index.search(QUERIES[0], 5).passages.tolist()

    @everywhere
    def test_a_missing_table_lists_those_there_are(self, name: str, address: dict[str, str], tmp_path: Path):
        built(name, tmp_path, table="present", **address)
        with pytest.raises(InputError, match=r"no (table|collection|index) nowhere.*present"):
            used(name, tmp_path, NAMES, **address, table="nowhere")

    @everywhere
    def test_a_wrong_dimension_is_refused(self, name: str, address: dict[str, str], tmp_path: Path):
        index = built(name, tmp_path, table="present", **address)
        with pytest.raises(InputError, match="16 dimensions, the index 32"):
            index.search(QUERIES[0][:16], 5)
        with pytest.raises(InputError, match="32 dimensions, those of the model 16"):
            used(
                name,
                tmp_path,
                NAMES,
                dim=16,
                **address,
                table="present",
                **COLUMNS.get(kind_of(name), {}),
            )

    @everywhere
    def test_a_missing_column_lists_those_there_are(self, name: str, address: dict[str, str], tmp_path: Path):
        built(name, tmp_path, table="present", **address)
        with pytest.raises(InputError, match=r"no column nothing.*(id|one without a name|embedding)"):
            used(name, tmp_path, NAMES, **address, table="present", vector="nothing")

    @everywhere
    def test_a_table_that_is_there_is_searched_by_the_names_of_its_passages(
        self, name: str, address: dict[str, str], tmp_path: Path
    ):
        built(name, tmp_path, table="present", exact="yes", **address)
        names = [str(number) for number in reversed(range(600))]
        options = {
            **address,
            "table": "present",
            "exact": "yes",
            **COLUMNS.get(kind_of(name), {}),
        }
        index = used(name, tmp_path, names, **options)
        wanted = make_index("flat", VECTORS[::-1]).search(QUERIES[0], 5)
        assert index.search(QUERIES[0], 5).passages.tolist() == wanted.passages.tolist()
        with pytest.raises(InputError, match="a passage that the collection lacks"):
            used(name, tmp_path, names[:10], **options).search(QUERIES[0], 5)

    @pytest.mark.parametrize("name", ["milvus folder", "redis"])
    def test_a_graph_is_not_taken_for_exact(self, name: str, address: dict[str, str], tmp_path: Path):
        built(name, tmp_path, table="present", **address)
        with pytest.raises(InputError, match="The index of present is HNSW, which does not compare every"):
            used(name, tmp_path, NAMES, **address, table="present", exact="yes")

    def test_who_does_not_answer_is_told_without_an_address(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        pytest.importorskip("psycopg")
        for url, kind in ((URL, "unreachable"), ("postgres://hunter2@[", "unreachable")):
            monkeypatch.setenv("SOME_URL", url)
            with pytest.raises(ProviderError) as caught:
                built("pgvector", tmp_path, url_env="SOME_URL")
            assert caught.value.kind == kind
            assert "hunter2" not in str(caught.value)
            assert "SOME_URL" in str(caught.value)

    def test_a_lost_connection_is_told_and_the_next_search_connects_again(
        self, postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        import psycopg

        monkeypatch.setenv("SOME_URL", postgres)
        index = built("pgvector", tmp_path, url_env="SOME_URL")
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            )
        with pytest.raises(ProviderError) as caught:
            index.search(QUERIES[0], 5)
        assert caught.value.kind == "unreachable"
        assert len(index.search(QUERIES[0], 5).passages) == 5

    def test_a_name_is_quoted_and_never_sql(
        self, postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        monkeypatch.setenv("SOME_URL", postgres)
        evil = 't"; DROP TABLE t; --'
        index = built("pgvector", tmp_path, table=evil, url_env="SOME_URL")
        assert len(index.search(QUERIES[0], 5).passages) == 5
        with pytest.raises(InputError, match="no table"):
            used("pgvector", tmp_path, NAMES, url_env="SOME_URL", table="x'--")


COLUMNS = {"pgvector": {"vector": "embedding"}, "lancedb": {"vector": "vector"}}


def used(name: str, tmp_path: Path, names: list[str], *, dim: int = 32, **options: Any) -> DatabaseIndex:
    return use_index(kind_of(name), "cosine", options, place=DatabasePlace(tmp_path, "", names), dim=dim)
