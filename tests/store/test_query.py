"""SQL of one's own: what it answers, what it refuses, and the same tables in DuckDB itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.errors import InputError
from core.paths import ROOT
from core.store import Store
from core.store.engine import ENGINE
from core.store.query import query, statements
from core.store.rules import rows_of
from core.tables import frame
from tests.stores import Lab

DOCUMENT = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with a live run and a deleted one; to be read only."""
    lab = Lab().ask({"q1": "it's", "q2": "two"}).judge({"q1": {"p1": 5}}, by="it's me")
    lab.run("a", final={"q1": ["p1", "p2"]}, ms={"retrieve": [1.0]}).run(
        "b", label="O'Neil", final={"q1": ["p2"]}
    )
    made = lab.write(tmp_path_factory.mktemp("asked") / "store")
    with made.write("delete", "b") as writer:
        writer.remove("run", ["b"])
    return made


@pytest.mark.slow
def test_live_rows_are_there_under_their_names(store: Store):
    assert query(store, "SELECT run_id FROM runs")["run_id"].to_list() == ["a"]
    assert query(store, "SELECT DISTINCT run_id FROM rankings")["run_id"].to_list() == ["a"]
    assert query(store, "FROM queries ORDER BY query_id")["text"].to_list() == ["it's", "two"]
    assert query(store, "FROM rankings", rows=1).height == 1
    assert query(store, "FROM scores").is_empty()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE runs",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1) TO '{parts}/x.csv'",
        "ATTACH '{parts}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '90GB'",
        "PRAGMA database_list",
        "CREATE TABLE x AS FROM runs",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{parts}/x.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{root}/CURRENT')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('http://127.0.0.1:1/x.parquet')",
        "FROM nothere",
        "SELEC",
        "",
        "EXPORT DATABASE '{parts}'",
        "INSERT INTO runs VALUES (1)",
        "CALL pragma_version()",
        "VACUUM",
        "CHECKPOINT",
        "SELECT getenv('HOME')",
    ],
)
def test_what_does_more_than_read_the_store_is_refused(store: Store, sql: str):
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*")}
    with pytest.raises(InputError):
        query(store, sql.format(parts=store.path / "parts", root=store.path))
    assert {path: path.stat().st_mtime_ns for path in store.path.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM range(100000000000) AS a, range(1000) AS b", "SELECT pg_sleep(60)"]
)
def test_it_ends(store: Store, sql: str):
    with pytest.raises(InputError, match=r"longer than 0\.5 s"):
        query(store, sql, seconds=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list(i) FROM range(500000000) AS t(i)",
        "SELECT repeat('x', 2000000000)",  # DuckDB's own limit lets it take 6 GB
        "SELECT repeat('x', 100000000) FROM range(1000)",
    ],
)
def test_its_memory_is_bounded(store: Store, sql: str):
    with pytest.raises(InputError, match="takes more memory than 50MB"):
        query(store, sql, memory="50MB")


@pytest.mark.slow
def test_its_answer_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.store.query.BYTES", 1 << 20)
    with pytest.raises(InputError, match="The answer is larger than"):
        query(store, "FROM range(1000000000)")
    assert query(store, "FROM range(1000000000)", rows=5).height == 5


@pytest.mark.parametrize("memory", ["", "a lot", "-1GB", "1KB", "1e9GB", "9999999999GB"])
def test_an_amount_of_memory_is_asked_for(store: Store, memory: str):
    with pytest.raises(InputError, match="not an amount of memory"):
        query(store, "FROM runs", memory=memory)


@pytest.mark.slow
def test_types_that_no_table_holds_are_named(store: Store):
    assert query(store, "SELECT TIMESTAMPTZ '2026-01-01' AS t, [1] AS l, 1.5::DECIMAL(9, 2) AS d").width == 3
    for sql in ("SELECT INTERVAL 1 DAY AS odd", "SELECT [{'a': 1::UNION(a INT)}] AS odd"):
        with pytest.raises(InputError, match="type of column odd"):
            query(store, sql)


@pytest.mark.slow
def test_nothing_beside_the_parts_is_in_reach(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """DuckDB allows its folder for what does not fit in memory, .tmp where it was begun."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "x.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="Cannot access"):
        query(store, f"FROM read_csv('{tmp_path / '.tmp' / 'x.csv'}')")


def test_duckdb_itself_finds_the_same(store: Store, tmp_path: Path):
    target = tmp_path / "store.sql"
    done = CliRunner().invoke(app, ["--store", str(store.path), "store", "views", str(target)])
    assert done.exit_code == 0, done.output
    with duckdb.connect(str(tmp_path / "mine.duckdb")) as db:
        db.execute(target.read_text(encoding="utf-8"))
        assert db.sql("SELECT label FROM runs").fetchall() == [("a",)]
        assert db.sql("SELECT judge FROM golden_sets").fetchall() == [("it's me",)]
        assert db.sql("SELECT count(*) FROM rankings").fetchall() == [(2,)]
        assert db.sql("SELECT grade FROM judgements").fetchall() == [(5,)]


@pytest.mark.slow
def test_an_empty_store_has_empty_tables(tmp_path: Path):
    nothing = Store.open(tmp_path / "none")
    assert query(nothing, "FROM runs").is_empty()
    assert query(nothing, "FROM answers").is_empty()


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_documented_questions(demo_store: Path, sql: str):
    found = query(Store.open(demo_store), sql)
    assert found.width > 1
    with duckdb.connect() as db:
        store = Store.open(demo_store)
        db.execute(statements(store.read(), store.path))
        assert db.sql(sql).pl().height == found.height


def test_there_are_ten_of_them():
    assert len(QUESTIONS) == 10


@pytest.mark.slow
def test_from_the_command_line(store: Store):
    words = ["--store", str(store.path), "sql", "SELECT label FROM runs", "--format", "json"]
    assert json.loads(CliRunner().invoke(app, words).stdout) == [{"label": "a"}]
    words[3] = "DROP TABLE runs"
    assert CliRunner().invoke(app, words).exit_code == 1


def test_ratings_of_the_last_release_have_no_reason(tmp_path: Path) -> None:
    old = pl.DataFrame({"run_id": ["a"], "rating": [4.0]})
    old.write_parquet(tmp_path / "old.parquet")
    new = frame("ratings", [{"run_id": "b", "rating": 3.0, "reason": "why"}])
    new.write_parquet(tmp_path / "new.parquet")
    for files, expect in ((["old"], [("a", None)]), (["old", "new"], [("a", None), ("b", "why")])):
        listed = [str(tmp_path / f"{name}.parquet") for name in files]
        sql = f"SELECT run_id, reason FROM {rows_of('ratings', '$files')} ORDER BY run_id"  # noqa: S608
        assert ENGINE.cursor().execute(sql, {"files": listed}).fetchall() == expect
