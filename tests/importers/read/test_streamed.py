"""Rankings that are put in order on disk: the same rows, rules, notes and errors as in memory."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.importers import ReadLimits
from core.importers.read import ordering, streamed
from core.importers.read.streamed import Streamed, ordered_blocks
from tests.importers.helpers import read, rows, up

COLUMNS = {"run": pl.String, "stage": pl.String, "query_id": pl.String, "passage_id": pl.String,
           "rank": pl.Int64, "score": pl.Float64}  # fmt: skip
ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["final", "pool"]),
        st.sampled_from("123"),
        st.integers(0, 9).map("d{}".format),
        st.sampled_from([None, 0, 1, 2, 3]),
        st.sampled_from([None, 1.0, 2.0, 3.0]),
    ),
    min_size=1,
    max_size=14,
)
ORDER = [*ordering.KEY, "rank", "passage_id", "score"]


def both(table: pl.DataFrame, size: int) -> tuple[object, object]:
    """Rows, rules and notes; or the error: in memory, and in blocks of some rows on disk."""

    def tried(on_disk: bool) -> object:
        blocks = [table[at : at + size] for at in range(0, table.height, size)]
        try:
            done = ordered_blocks(blocks, "f", 0) if on_disk else ordering.ordered(table, "f")
        except InputError as error:
            return str(error)
        assert isinstance(done, Streamed) == on_disk
        placed = done.rows.lazy().select(ORDER).sort(ORDER).collect().rows()
        return placed, done.rules, set(done.notes), done.repeats

    return tried(False), tried(True)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 6), st.sampled_from(["as drawn", "together", "ranked"]), st.booleans())
def test_on_disk_as_in_memory(drawn, size, kind, repeated):
    table = pl.DataFrame(drawn, schema=COLUMNS, orient="row")
    if not repeated:
        table = table.unique([*ordering.KEY, "passage_id"], keep="first", maintain_order=True)
    if kind != "as drawn":
        table = table.sort(ordering.KEY, maintain_order=True)
    if kind == "ranked":
        counted = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(ordering.KEY)
        table = table.with_columns(counted.alias("rank"))
    memory, disk = both(
        table.with_row_index("line", offset=2).with_columns(pl.col("line").cast(pl.Int64)), size
    )
    assert disk == memory


@pytest.mark.parametrize("together", [True, False])
def test_a_passage_that_occurs_twice_is_refused(together):
    names = ["q1", "q1", "q1", "q2"] if together else ["q1", "q2", "q1", "q1"]
    lines = [f"{query} Q0 d{1 if place != 3 else 2} 7 {place}.5 t" for place, query in enumerate(names)]
    text = "\n".join(lines) + "\n"
    small = ReadLimits(rows_in_memory=0, block_bytes=20)
    with pytest.raises(InputError, match="Passage 'd1' occurs twice for query 'q1'") as error:
        read(up("x", text), limits=small)
    with pytest.raises(InputError) as plain:
        read(up("x", text))
    assert str(error.value) == str(plain.value)


def test_a_list_that_is_too_long_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr(streamed, "_LONGEST", 3)
    lines = "".join(f"q1 Q0 d{place} {place} 1.5 t\n" for place in range(1, 9))
    with pytest.raises(InputError, match="x:1: A ranking of more than 3 passages"):
        read(up("x", lines), limits=ReadLimits(rows_in_memory=0, block_bytes=20))


def test_files_beyond_the_first_rows_wait_on_disk_and_bring_the_same():
    files = [
        up(name, "".join(f"q{q} Q0 d{r} {r} {9 - r} {name}\n" for q in range(3) for r in range(1, 4)))
        for name in ("one", "two", "three")
    ]
    plain = read(*files, collection_id="c")
    mixed = read(*files, collection_id="c", limits=ReadLimits(rows_in_memory=10, block_bytes=32))
    assert len(mixed.held) == 2
    assert mixed.taken == plain.taken
    assert mixed.runs == plain.runs or [run.run_id for run in mixed.runs] == [
        run.run_id for run in plain.runs
    ]
    order = ["run_id", "query_id", "rank"]
    assert rows(mixed, "rankings").sort(order).equals(rows(plain, "rankings").sort(order))
    folder = mixed.held[0].path
    assert folder.is_dir()
    del mixed
    assert not folder.exists()
