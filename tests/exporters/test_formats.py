"""What is exported comes back: rankings, judgements, texts; the own format as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from core.analysis.export import batch_of
from core.errors import InputError, UnknownNameError
from core.exporters import FORMATS, file_names, scored, write
from core.importers import Options, load
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame
from tests.importers.helpers import read, rows

RANKINGS = [
    # run, query, rank, passage, score: strictly falling; ties; rising; none
    ("r1", "q1", 1, "a", 9.5), ("r1", "q1", 2, "b", 9.25), ("r1", "q2", 1, "b", 1e-9),
    ("r2", "q1", 1, "a", 2.0), ("r2", "q1", 2, "b", 2.0), ("r2", "q1", 3, "c", 1.0),
    ("r3", "q1", 1, "b", 1.0), ("r3", "q1", 2, "a", 3.0),
    ("r4", "q2", 2, "c", None), ("r4", "q2", 5, "a", None),
    ("r5", "q1", 1, "c", 1.0 + 1e-9), ("r5", "q1", 2, "a", 1.0),
    ("r6", "q1", 1, "c", 3.0), ("r6", "q1", 2, "a", 2.0),
]  # fmt: skip
JUDGED = [("g", "q1", "a", 5, 2), ("g", "q1", "b", 1, 0), ("g", "q2", "c", 3, 1)]


def table(name: str, columns: str, *found: tuple[object, ...]) -> pl.DataFrame:
    return frame(name, [dict(zip(columns.split(), row, strict=True)) for row in found])


def run(run_id: str) -> Run:
    return Run(
        run_id=run_id, collection_id="c", stack=Stack({"name": run_id}), label=run_id, origin=Origin.IMPORT
    )


@pytest.fixture(scope="module")
def batch() -> Batch:
    ranked = [(*row[:2], "final", *row[2:]) for row in RANKINGS]
    pool = ("r1", "q1", "pool", 1, "c", 1.0)
    mapping = "0-2: 0→1, 1→3, 2→5"
    return Batch(
        collections=(Collection(collection_id="c", name="C"),),
        golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="G", mapping=mapping),),
        runs=tuple(run(run_id) for run_id in sorted({row[0] for row in RANKINGS})),
        frames={
            "queries": table(
                "queries",
                "collection_id query_id text tags",
                *(("c", f"q{n}", f'say "{n}"\n', ["type=wide"]) for n in (1, 2)),
            ),
            "passages": table(
                "passages",
                "collection_id passage_id title text source",
                ("c", "a", "A", "text\ta é", "doc a"),
                ("c", "b", "B", "b", None),
                ("c", "c", None, "", "doc c"),
            ),
            "rankings": table("rankings", "run_id query_id stage rank passage_id score", *ranked, pool),
            "judgements": table("judgements", "golden_set_id query_id passage_id grade raw", *JUDGED),
        },
    )


def order(found: pl.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Run's label and query → passages."""
    final = found.filter(pl.col("stage") == "final").sort("run", "query_id", "rank")
    grouped = final.group_by("run", "query_id", maintain_order=True).agg("passage_id")
    return {(run, query): passages for run, query, passages in grouped.iter_rows()}


def expected() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for run, query, _, passage, _ in sorted(RANKINGS, key=lambda row: row[:3]):
        found.setdefault((run, query), []).append(passage)
    return found


@pytest.mark.parametrize("name", ["trec", "ranx"])
@pytest.mark.parametrize("ending", ["", ".zip"])
def test_rankings_and_judgements_come_back(batch: Batch, tmp_path: Path, name: str, ending: str):
    path = tmp_path / f"out{ending}"
    written = write(batch, path, name)
    assert written.counts == {"runs": 6, "rankings": 14, "judgements": 3}
    made = read(path, collection_id="c", golden_set_id="g")
    labels = {run.run_id: run.label for run in made.runs}
    found = rows(made, "rankings").with_columns(run=pl.col("run_id").replace_strict(labels))
    assert order(found) == expected()
    assert made.golden_sets[0].mapping == "0-2: 0→1, 1→3, 2→5"
    judged = (
        rows(made, "judgements")
        .select("query_id", "passage_id", "grade", "raw")
        .sort("query_id", "passage_id")
    )
    assert judged.rows() == [row[1:] for row in JUDGED]
    said = " ".join(written.notes)
    assert "1 rows of candidate pools are left out" in said
    assert f"{ {'trec': 4, 'ranx': 5}[name] } runs have new scores" in said
    assert "2 queries, 3 passages" in said
    assert "0→1, 1→3, 2→5" in said


def test_a_run_keeps_scores_that_fall(batch: Batch):
    found, replaced = scored(batch)
    by = {run: part["score"].to_list() for (run,), part in found.partition_by("run_id", as_dict=True).items()}
    assert by["r1"] == [9.5, 9.25, 1e-9]
    assert by["r6"] == [3.0, 2.0]
    assert by["r2"] == [3.5, 2.5, 1.5]
    assert by["r5"] == [2.5, 1.5], "equal in single precision, which trec_eval reads"
    assert replaced == 4


@pytest.mark.slow
@given(
    st.lists(
        st.lists(
            st.one_of(st.none(), st.floats(allow_nan=True), st.sampled_from([1.0, 2.0])),
            min_size=1,
            max_size=6,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_trec_evals_rule_gives_the_ranks_back(lists: list[list[float | None]]):
    made = [
        {
            "run_id": "r",
            "query_id": f"q{query}",
            "stage": "final",
            "rank": rank,
            "passage_id": f"p{rank * 7 % 10}",
            "score": score,
        }
        for query, scores in enumerate(lists)
        for rank, score in enumerate(scores, 1)
    ]
    found, _ = scored(Batch(frames={"rankings": frame("rankings", made)}))
    single = found.with_columns(pl.col("score").cast(pl.Float32))
    again = single.sort(["query_id", "score", "passage_id"], descending=[False, True, True])
    assert again["rank"].to_list() == found.sort("query_id", "rank")["rank"].to_list()


def test_trec_files_score_the_same_in_another_tool(batch: Batch, tmp_path: Path):
    import ir_measures

    write(batch, tmp_path / "out", "trec")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels" / "g.qrels")))
    for run in ("r2", "r3", "r4"):
        ranked = list(ir_measures.read_trec_run(str(tmp_path / "out" / "runs" / f"{run}.run")))
        found = ir_measures.calc_aggregate([ir_measures.RR(rel=2)], qrels, ranked)
        lists = {query: passages for (name, query), passages in expected().items() if name == run}
        want = np.mean(
            [
                1 / (lists[q].index("a") + 1) if q == "q1" and q in lists and "a" in lists[q] else 0
                for q in ("q1", "q2")
            ]
        )
        assert found[ir_measures.RR(rel=2)] == pytest.approx(want)


def test_a_collection_comes_back_from_beir(batch: Batch, tmp_path: Path):
    written = write(batch, tmp_path / "out.zip", "beir")
    assert written.counts == {"passages": 3, "queries": 2, "judgements": 3}
    assert "15 rankings" in " ".join(written.notes)
    made = read(tmp_path / "out.zip", collection_id="c", golden_set_id="g")
    for table in ("passages", "queries"):
        assert_frame_equal(rows(made, table), batch.frames[table].lazy().collect())
    judged = (
        rows(made, "judgements")
        .select("query_id", "passage_id", "grade", "raw")
        .sort("query_id", "passage_id")
    )
    assert judged.rows() == [row[1:] for row in JUDGED]


def test_several_golden_sets_become_splits(batch: Batch, tmp_path: Path):
    more = GoldenSet(golden_set_id="h", collection_id="c", name="H")
    judged = batch.frames["judgements"].lazy().collect()
    both = pl.concat([judged, judged.with_columns(golden_set_id=pl.lit("h"))])
    sets = (*batch.golden_sets, more)
    made = Batch(collections=batch.collections, golden_sets=sets, frames={"judgements": both})
    write(made, tmp_path / "out", "beir")
    assert sorted(file.name for file in (tmp_path / "out" / "qrels").iterdir()) == ["g.tsv", "h.tsv"]


@pytest.mark.slow
def test_the_own_format_holds_the_store(demo_store: Path, tmp_path: Path):
    before = batch_of(Store.open(demo_store).read(), collection_id="clq-paper")
    written = write(before, tmp_path / "out.zip", "own")
    assert written.counts["runs"] == len(before.runs)
    store = Store.open(tmp_path / "again")
    with store.write("import") as writer:
        writer.add(load([tmp_path / "out.zip"], Options()).batch)
    after = batch_of(store.read())
    assert (after.collections, after.golden_sets) == (before.collections, before.golden_sets)
    assert sorted(after.runs, key=lambda run: run.run_id) == sorted(before.runs, key=lambda run: run.run_id)
    assert after.frames.keys() == before.frames.keys()
    for table, held in before.frames.items():
        assert_frame_equal(after.frames[table].lazy().collect(), held.lazy().collect(), check_row_order=False)


@pytest.mark.parametrize(
    ("name", "query", "passage", "words"),
    [
        ("trec", "a query", "p", "has a blank"),
        ("trec", "#q", "p", "begins with #"),
        ("trec", "q", "p\n", "has a blank"),
        ("beir", "q\t1", "p", "has a tab"),
    ],
)
def test_ids_that_a_format_cannot_hold_are_refused(
    tmp_path: Path, name: str, query: str, passage: str, words: str
):
    judged = frame(
        "judgements", [{"golden_set_id": "g", "query_id": query, "passage_id": passage, "grade": 1}]
    )
    made = Batch(
        collections=(Collection(collection_id="c", name="C"),),
        golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="G"),),
        frames={"judgements": judged},
    )
    with pytest.raises(InputError, match=words):
        write(made, tmp_path / "out", name)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said(batch: Batch, tmp_path: Path):
    for name in FORMATS:
        with pytest.raises(InputError, match="exists already"):
            write(batch, tmp_path, name)
    with pytest.raises(UnknownNameError, match="export format"):
        write(batch, tmp_path / "x", "pickle")
    with pytest.raises(InputError, match="one collection, not 2: c, d"):
        write(
            Batch(collections=(*batch.collections, Collection(collection_id="d", name="D"))),
            tmp_path / "x",
            "beir",
        )
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write(batch, tmp_path / "file" / "x", "trec")


def test_file_names_are_safe_and_unique():
    found = file_names(["../a", "a", "A", "", "x" * 200, "a/b", "ä ö"])
    assert found == {
        "../a": "a",
        "a": "a-2",
        "A": "A-3",
        "": "unnamed",
        "x" * 200: "x" * 80,
        "a/b": "a-b",
        "ä ö": "ä-ö",
    }
