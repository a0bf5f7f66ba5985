"""Parts as integers, and the join that is made from them, against a join in loops."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.records import Batch
from core.store import Store, doctor
from core.store.read import codes, graded
from core.store.read.lists import LINEAR, gains_of
from core.store.read.memory import Memory
from core.tables import frame
from tests.store import material
from tests.store.material import CORPUS, GOLD, run


@pytest.fixture(autouse=True)
def _nothing_remembered():
    graded.forget()


def parts(store: Store) -> dict[str, Path]:
    return {path.stem: path for path in store.path.glob("parts/*/*.parquet")}


def filed(store: Store, table: str) -> codes.Filed:
    (only,) = store.read()._filed(table, ["a", "gold"])
    return only


def without_codes(store: Store) -> Store:
    """The store as an earlier release left it."""
    for file in store.path.glob("parts/*/*.codes.arrow"):
        file.unlink()
    graded.forget()
    return store


def arrays(coded: codes.Coded) -> dict[str, list[object]]:
    texts = {"ids": coded.ids.to_pylist(), "owners": list(coded.owners), "queries": list(coded.queries)}
    numbers = ("owner", "query", "stage", "start", "code", "rank", "grade", "raw")
    return texts | {
        name: None if getattr(coded, name) is None else getattr(coded, name).tolist() for name in numbers
    }


def test_every_part_that_is_joined_has_its_codes(filled: Store) -> None:
    for table in codes.CODED:
        part = parts(filled)[table]
        assert codes.path_of(part).is_file()
        assert arrays(codes.coded(filed(filled, table))) == arrays(codes.encode(part))
    assert doctor.examine(filled).sound


def test_codes_name_the_rows(filled: Store) -> None:
    coded = codes.coded(filed(filled, "rankings"))
    rows = pl.read_parquet(parts(filled)["rankings"])
    lists = np.repeat(np.arange(len(coded.owner)), coded.length)
    assert [coded.owners[place] for place in coded.owner[lists]] == rows["run_id"].to_list()
    assert [coded.queries[place] for place in coded.query[lists]] == rows["query_id"].to_list()
    assert [codes.STAGES[place] for place in coded.stage[lists]] == rows["stage"].to_list()
    assert [coded.ids[place].as_py() for place in coded.code] == rows["passage_id"].to_list()
    assert coded.rank is None


@pytest.mark.parametrize("alike", [False, True])
def test_large_parts_are_coded_step_by_step(
    filled: Store, monkeypatch: pytest.MonkeyPatch, alike: bool
) -> None:
    part = parts(filled)["rankings"]
    at_once = codes.encode(part)
    monkeypatch.setattr(codes, "_AT_ONCE", 0)
    monkeypatch.setattr(codes, "_STEP", 3)
    if alike:  # every id has the same hash
        monkeypatch.setattr(codes, "_hashes", lambda texts: np.zeros(len(texts), dtype=np.uint64))
    stepwise = codes.encode(part)
    assert stepwise.ids.take(stepwise.code).to_pylist() == at_once.ids.take(at_once.code).to_pylist()
    assert len(stepwise.ids) == len(at_once.ids)
    assert arrays(stepwise)["owner"] == arrays(at_once)["owner"]


def test_a_part_without_codes_is_coded_when_it_is_read(filled: Store) -> None:
    before = filled.read().graded(["a", "b"], "gold")
    after = without_codes(filled).read().graded(["a", "b"], "gold")
    assert after.grades.tolist() == before.grades.tolist()
    assert after.pool_counts.tolist() == before.pool_counts.tolist()


@pytest.mark.parametrize("content", [b"", b"ARROW1\0\0 and then nothing"])
def test_damaged_codes_are_made_again_and_the_doctor_tells(filled: Store, content: bytes) -> None:
    before = filled.read().graded(["a", "b"], "gold").grades.tolist()
    file = codes.path_of(parts(filled)["rankings"])
    written = file.read_bytes()
    file.write_bytes(content)
    graded.forget()
    (finding,) = doctor.examine(filled).findings
    assert (finding.level, file.name in finding.found) == (doctor.Level.MISSING, True)
    assert filled.read().graded(["a", "b"], "gold").grades.tolist() == before
    assert file.read_bytes() == written
    assert not doctor.examine(filled).findings


def test_the_first_release_is_read_by_the_same_join(tmp_path: Path) -> None:
    shutil.unpack_archive(Path(__file__).with_name("first_light.zip"), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    assert not list(store.path.glob("parts/*/*.arrow"))
    snapshot = store.read()
    found = snapshot.graded(["a"], snapshot.golden_sets()["golden_set_id"][0])
    assert found.grades.tolist() == [[[5, 0, 1], [0, -1, -1]]]


PASSAGES = [f"p{number}" for number in range(9)]
QUERIES = [f"q{number}" for number in range(4)]


@st.composite
def stores(draw):
    """Judgements, and per run, stage and query a ranking with ranks that may skip numbers."""
    judged = draw(
        st.dictionaries(
            st.sampled_from(QUERIES[:3]),
            st.dictionaries(st.sampled_from(PASSAGES), st.integers(1, 5), min_size=1),
        )
    )
    ranked = {}
    gaps = draw(st.booleans())
    for name in ("r1", "r2", "r3"):
        for stage in codes.STAGES:
            for query in draw(st.sets(st.sampled_from(QUERIES))):
                passages = draw(st.permutations(PASSAGES))[: draw(st.integers(1, 6))]
                ranks = sorted(draw(st.permutations(range(1, 12)))[: len(passages)]) if gaps else None
                ranked[name, stage, query] = dict(zip(ranks or range(1, 7), passages, strict=False))
    return judged, ranked


def write(store: Store, judged: dict, ranked: dict, split: int) -> None:
    """The first `split` runs in one part, the others in one each."""
    rows = [
        {"run_id": name, "query_id": query, "stage": stage, "rank": rank, "passage_id": passage}
        for (name, stage, query), ranks in ranked.items()
        for rank, passage in ranks.items()
    ]
    rankings = frame("rankings", rows)
    runs = [run(name) for name in ("r1", "r2", "r3")]
    groups = [runs[:split], *([each] for each in runs[split:])]
    with store.write("import") as writer:
        writer.add(
            Batch(
                collections=(CORPUS,),
                golden_sets=(GOLD,),
                runs=tuple(runs),
                frames={"judgements": material.judgements(judged)} if judged else {},
            )
        )
    for group in groups:
        names = [each.run_id for each in group]
        with store.write("import") as writer:
            writer.add(Batch(frames={"rankings": rankings.filter(pl.col("run_id").is_in(names))}))


def naive(judged: dict, ranked: dict, run_ids: list[str], stage: str, depth: int | None) -> list:
    wide = depth
    if wide is None:
        of_judged = [key for key in ranked if key[0] in run_ids and key[1] == stage and key[2] in judged]
        wide = max((max(ranked[key]) for key in of_judged), default=0)
    return [
        [
            [
                -1 if passage is None else judged[query].get(passage, 0)
                for passage in (ranked.get((name, stage, query), {}).get(rank) for rank in range(1, wide + 1))
            ]
            for query in sorted(judged)
        ]
        for name in run_ids
    ]


@pytest.mark.slow
@settings(max_examples=15)
@given(stores(), st.integers(0, 3), st.sampled_from([None, 1, 3, 20]), st.booleans())
def test_the_join_equals_a_join_in_loops(tmp_path_factory, world, split, depth, old) -> None:
    judged, ranked = world
    store = Store.open(tmp_path_factory.mktemp("join") / "store")
    write(store, judged, ranked, split)
    if old:
        without_codes(store)
    for cells, run_ids, stage in product((1, 1 << 24), (["r3", "r1", "r2"], ["r2"]), codes.STAGES):
        graded.forget()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graded, "_CELLS", cells)
            patch.setattr(graded, "_PIECE", cells)
            patch.setattr(graded, "_MEMORY", Memory(cells))
            found = store.read().graded(run_ids, "gold", stage=stage, depth=depth)
        assert found.grades.tolist() == naive(judged, ranked, run_ids, stage, depth)
        strange = [
            sum(1 for name, at, query in ranked if (name, at) == (each, stage) and query not in judged)
            for each in run_ids
        ]
        assert found.unjudged_queries.tolist() == strange
        assert found.query_ids == tuple(sorted(judged))


def test_what_was_joined_is_kept_and_read_only(filled: Store) -> None:
    first, again = (filled.read().graded(["a", "b"], "gold") for _ in range(2))
    assert again is first
    assert filled.read().graded(["b", "a"], "gold") is not first
    for array in (first.grades, first.pool_counts, first.unjudged_queries):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_what_is_too_large_to_be_kept_is_joined_again_only_in_part(
    store: Store, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    judged = {"q1": {"p1": 5, "p2": 1}}
    ranked = {(name, "final", "q1"): {1: "p2", 2: "p1", 3: "p3"} for name in ("r1", "r2", "r3")}
    write(store, judged, ranked, 2)
    runs, joined, fill = ["r1", "r2", "r3"], [], graded._fill

    def count(grades: np.ndarray, *args: object) -> None:
        joined.append(len(grades))
        fill(grades, *args)

    monkeypatch.setattr(graded, "_fill", count)
    monkeypatch.setattr(graded, "_MEMORY", Memory(3 * room))
    monkeypatch.setattr(graded, "_PIECE", 3)
    for asked in (3, 3 - room, 3 - room):
        joined.clear()
        found = store.read().graded(runs, "gold")
        assert found.grades.tolist() == naive(judged, ranked, runs, "final", None)
        assert sum(joined) == asked


@pytest.mark.parametrize(
    ("pairs", "gains"),
    [
        ([(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)], (1, 2, 3, 4, 5)),
        ([(1, 0), (5, 1)], (0, 0, 0, 0, 1)),
        ([(1, 0), (1, -2), (3, 1), (5, 2)], (0, 0, 1, 1, 2)),
        ([(1, 0), (3, 1), (4, 2), (5, 3)], (0, 0, 1, 2, 3)),
        ([(5, 1), (4, 2), (1, 5)], LINEAR),  # reversed: the lowest is the best
        ([(1, 0), (1, 1), (5, 2)], LINEAR),  # two given grades of which the mapping made one
        ([(5, 9)], (0, 0, 0, 0, 9)),
        ([], LINEAR),
        ([(2, 2), (4, 4)], LINEAR),
    ],
)
def test_gains_are_the_grades_as_given_where_they_rise(pairs, gains) -> None:
    grade, raw = (np.array([pair[side] for pair in pairs], dtype=np.int16) for side in (0, 1))
    assert gains_of(grade.astype(np.int8), raw) == gains


def test_gains_travel_with_the_grades(store: Store) -> None:
    rows = material.judgements({"q1": {"p1": 5, "p2": 1}, "q2": {"p3": 1}})
    binary = rows.with_columns((pl.col("grade") == 5).cast(pl.Int16).alias("raw"))
    unknown = replace(GOLD, golden_set_id="unknown")
    other = rows.with_columns(pl.lit("unknown").alias("golden_set_id"), pl.lit(None, pl.Int16).alias("raw"))
    with store.write("import") as writer:
        writer.add(
            Batch(
                collections=(CORPUS,),
                golden_sets=(GOLD, unknown),
                runs=(run("a"),),
                frames={
                    "judgements": pl.concat([binary, other]),
                    "rankings": material.rankings("a", {"q1": ["p2"]}),
                },
            )
        )
    snapshot = store.read()
    assert snapshot.graded(["a"], "gold").gains == (0, 0, 0, 0, 1)
    assert snapshot.graded(["a"], "unknown").gains == LINEAR
    assert snapshot.graded(["a"], "unknown").pool_counts.tolist() == [[1, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


def test_a_memory_keeps_what_was_used_last() -> None:
    made: list[str] = []

    def ask(memory: Memory, key: str, size: int = 4) -> str:
        return memory.once(key, lambda: (made.append(key), key)[1], lambda _: size)

    memory = Memory(10)
    for key in ("a", "b", "a", "c", "a", "b"):  # c takes the place of b, which was used longest ago
        assert ask(memory, key) == key
    assert made == ["a", "b", "c", "b"]
    made.clear()
    for _ in range(2):
        ask(memory, "large", 11)
    assert made == ["large", "large"]
    memory.clear()
    ask(memory, "a")
    assert made[-1] == "a"


def test_pieces_of_one_whole_do_not_take_each_others_place() -> None:
    made: list[str] = []
    memory = Memory(10)

    def ask(key: str, of: str | None) -> None:
        memory.once(key, lambda: made.append(key), lambda _: 4, of=of)

    for _ in range(2):
        for piece in ("w1", "w2", "w3"):
            ask(piece, "w")
    assert made == ["w1", "w2", "w3", "w3"]
    made.clear()
    for key in ("v1", "v2", "v3", "v1", "a", "v1", "v2"):
        ask(key, "v" if key != "a" else None)
    assert made == ["v1", "v2", "v3", "a", "v2"]
