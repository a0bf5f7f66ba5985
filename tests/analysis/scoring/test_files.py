"""Scores of files without a store are those of the same files in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.scoring.files import evidence_of, score_files
from core.analysis.scoring.table import Over, score_table
from core.errors import InputError, UnknownNameError
from core.importers import Import, Options, load
from core.metrics import REGISTRY, Measure, parse_list
from core.store import Store

FILES = {
    "a.trec": "q1 Q0 b 1 9 a\nq1 Q0 x 2 8 a\nq1 Q0 a 3 7 a\nq9 Q0 a 1 9 a\nq8 Q0 a 1 9 a\n",
    "b.trec": "q2 Q0 d 1 9 b\nq1 Q0 c 1 9 b\nq9 Q0 z 1 3 b\n",
    "pool.csv": "run,query_id,stage,rank,passage_id\n"
    "c,q1,final,1,b\nc,q1,pool,1,a\nc,q1,pool,2,b\nc,q3,final,1,a\n",
    "qrels": "q1 0 a 3\nq1 0 b 2\nq1 0 c 0\nq2 0 d 1\nq3 0 a 0\n",
}
MORE = {"sources", "answers", "perturbed", "nuggets", "facets", "filters"}
"""What files of rankings and judgements do not bring."""
MEASURES = [Measure(name, 2) for name, info in REGISTRY.items() if not info.needs & MORE]


@pytest.fixture
def made(tmp_path: Path) -> Import:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return load([tmp_path / name for name in FILES], Options(collection_id="c", grades="0-3"))


@pytest.mark.slow
@pytest.mark.parametrize("per_query", [False, True])
def test_as_in_a_store(made: Import, tmp_path: Path, per_query: bool):
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    snapshot = store.read()
    (golden,) = made.golden_sets
    wanted = score_table(snapshot, snapshot.runs(), golden.golden_set_id, MEASURES, per_query=per_query)
    keys = ["run", "measure", *(["query_id"] if per_query else [])]
    found = score_files(made, MEASURES, per_query=per_query)
    assert found.columns == wanted.columns
    assert found.sort(keys).equals(wanted.sort(keys))
    assert evidence_of(made).unjudged_queries.sum() == 3
    own = score_files(made, MEASURES, per_query=per_query, over=Over.OWN)
    kept = score_table(
        snapshot, snapshot.runs(), golden.golden_set_id, MEASURES, per_query=per_query, over=Over.OWN
    )
    assert own.sort(keys).equals(kept.sort(keys))
    assert not own.sort(keys).equals(found.sort(keys))


@pytest.mark.parametrize(
    ("names", "golden_set", "error", "message"),
    [
        (["qrels"], None, InputError, "no rankings"),
        (["a.trec"], None, InputError, "no judgements.*--qrels"),
        (["a.trec", "qrels"], "other", UnknownNameError, "other"),
        (["a.trec", "qrels", "qrels2"], None, InputError, "2 golden sets"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, names: list[str], golden_set: str | None, error: type[Exception], message: str
):
    for name in names:
        (tmp_path / name).write_text(FILES["qrels" if name == "qrels2" else name])
    offered = load([tmp_path / name for name in names], Options(collection_id="c", grades="0-3"))
    with pytest.raises(error, match=message):
        score_files(offered, parse_list("P@2"), golden_set_id=golden_set)


def test_a_measure_of_sources_says_what_it_needs(made: Import):
    with pytest.raises(InputError, match="source of every passage"):
        score_files(made, parse_list("Novelty-RA-nWG@2"))
    with pytest.raises(InputError, match="no cutoff"):
        score_files(made, parse_list("P"))


def test_clean_files_say_nothing_of_perturbed_queries(made: Import):
    robust = next(Measure(name, 2) for name, info in REGISTRY.items() if "perturbed" in info.needs)
    with pytest.raises(InputError, match="perturbed"):
        score_files(made, [robust])
