"""One missing score removes no stack: what all have is compared, and what is missing is said."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.view import View
from core.cli.app import app
from core.importers import Options, Upload, load
from core.store import Store
from core.views.words.near import scores_missing
from core.work.imports.imports import store_import
from tests.views.made import BOOK

BASES = {"a": 0.40, "b": 0.80, "c": 0.50}
SCORES = {(name, q): round(base + q / 100, 2) for name, base in BASES.items() for q in range(10)}
MISSING = {("b", 3)}


def cell(name: str, q: int, missing: set[tuple[str, int]]) -> str:
    return "" if (name, q) in missing else str(SCORES[name, q])


def per_query(missing: set[tuple[str, int]]) -> dict[str, str]:
    rows = [f"{name},q{q},{cell(name, q, missing)},{20 + q}" for name, q in SCORES]
    return {"scores.csv": "\n".join(["stack,query_id,nDCG@10,latency_ms", *rows])}


def long(missing: set[tuple[str, int]]) -> dict[str, str]:
    rows = [f"{name},q{q},nDCG@10,{SCORES[name, q]}" for name, q in SCORES if (name, q) not in missing]
    return {"long.csv": "\n".join(["stack,query_id,measure,value", *rows])}


def ragas(missing: set[tuple[str, int]], column: str = "context_precision") -> dict[str, str]:
    head = f"user_input,retrieved_contexts,response,reference,{column}"
    return {
        f"x/{name}.csv": "\n".join(
            [head, *(f"Why {q}?,\"['T {q}.']\",A.,B.,{cell(name, q, missing)}" for q in range(10))]
        )
        for name in BASES
    }


def deepeval(missing: set[tuple[str, int]]) -> dict[str, str]:
    def case(name: str, q: int) -> dict[str, object]:
        score = None if (name, q) in missing else SCORES[name, q]
        metric = {"name": "Contextual Precision", "score": score, "success": True, "threshold": 0.5}
        return {
            "input": f"Why {q}?", "actualOutput": "A.", "expectedOutput": "B.",
            "retrievalContext": [f"T {q}."], "metricsData": [metric],
        }  # fmt: skip

    return {f"x/{name}.json": json.dumps({"testCases": [case(name, q) for q in range(10)]}) for name in BASES}


def averages(missing: set[tuple[str, int]]) -> dict[str, str]:
    rows = []
    for name in BASES:
        own = [score for (other, q), score in SCORES.items() if other == name and (name, q) not in missing]
        rows.append(f"{name},{sum(own) / len(own):.4f},{len(own)}")
    return {"means.csv": "\n".join(["stack,nDCG@10,n", *rows])}


def ranked(missing: set[tuple[str, int]]) -> dict[str, str]:
    right = {"a": 4, "b": 1, "c": 2}
    runs = {
        f"x/{name}.trec": "\n".join(
            f"q{q} Q0 {'p' if rank == right[name] else f'x{rank}'}{q} {rank} {9 - rank} {name}"
            for q in range(10)
            if (name, q) not in missing
            for rank in range(1, 6)
        )
        for name in BASES
    }
    return {**runs, "x/qrels.txt": "\n".join(f"q{q} 0 p{q} 1" for q in range(10))}


KINDS = {
    "per query": (per_query, "nDCG@10"),
    "long": (long, "nDCG@10"),
    "ragas": (ragas, "context_precision@1"),
    "deepeval": (deepeval, "Contextual Precision@1"),
}
Files = Mapping[str, str]


def on_page(files: Files, folder: Path, measure: str | None = None) -> View:
    store = Store.open(folder / "store")
    store_import(store, load([Upload(name, data.encode()) for name, data in files.items()], Options()), "x")
    return resolve(Question(measure=measure), store.read(), BOOK)


def by_command(files: Files, folder: Path, measure: str | None) -> dict[str, Any]:
    for name, data in files.items():
        (folder / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "files" / name).write_text(data)
    asked = ["--store", str(folder / "other")]
    said = ["--measure", measure] if measure else []
    for words in (["import", str(folder / "files")], ["decide", "--format", "json", *said]):
        made = CliRunner().invoke(app, [*asked, *words])
        assert made.exit_code == 0, made.output
    found: dict[str, Any] = json.loads(made.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_one_empty_cell_removes_no_stack(kind: str, tmp_path: Path):
    make, measure = KINDS[kind]
    view = on_page(make(MISSING), tmp_path, measure)
    found = by_command(make(MISSING), tmp_path, measure)
    chosen = view.table.row(view.decision.chosen or 0, named=True)
    assert view.compared.apart.is_empty()
    assert chosen["name"] == "b"
    assert found["chosen"]["stack"] == "b"
    for row in (chosen, found["chosen"]):
        assert (row["n"], row["lacks_n"]) == (9, 10)
        assert (row["quality"], row["lacks"]) == pytest.approx((7.62 / 9, 0.1))
    assert view.table["n"].to_list() == [9] * 3
    assert view.sure.pgs == 1
    assert any("on n = 9" in said for said in view.compared.sentences)
    if view.quality.range:
        assert (chosen["lacks_low"], chosen["lacks_high"]) == pytest.approx((0.762, 0.862))
        assert "b lacks 1 of 10 queries: 0.762 to 0.862 if it were 0 or 1." in found["warnings"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_that_lacks_more_than_a_tenth_is_set_apart(kind: str, tmp_path: Path):
    make, measure = KINDS[kind]
    view = on_page(make({("b", 3), ("b", 4)}), tmp_path, measure)
    assert view.compared.apart.rows() == [("b", "has scores of 8 of 10 queries")]
    assert view.table.select("name", "n").rows() == [("a", 10), ("c", 10)]


@pytest.mark.parametrize(("lost", "names"), [(1, "abc"), (2, "ac")])
def test_averages_cannot_be_cut_down(lost: int, names: str, tmp_path: Path):
    view = on_page(averages({("b", q) for q in range(lost)}), tmp_path)
    assert "".join(view.table["name"]) == names
    assert any("cannot be cut down: n = " in said for said in view.compared.sentences)


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "apart", "mean"), [(1, [], 0.9), (2, ["b"], None)])
def test_nothing_ranked_is_zero(lost: int, apart: list[str], mean: float | None, tmp_path: Path):
    files = ranked({("b", q) for q in range(lost)})
    view, found = on_page(files, tmp_path, "RR@5"), by_command(files, tmp_path, "RR@5")
    assert view.compared.apart["name"].to_list() == apart
    assert set(view.table["n"]) == {10}
    chosen = found["chosen"]
    assert chosen["stack"] == ("c" if apart else "b")
    if mean:
        assert (chosen["lacks"], chosen["lacks_low"]) == (0.1, chosen["quality"])
        assert chosen["lacks_high"] == pytest.approx(chosen["quality"] + 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "name"), [("context_precision", "context_precision@1"), ("faithfulness", "faithfulness@1")]
)
def test_a_measure_that_all_have_is_the_default(column: str, name: str, tmp_path: Path):
    """Of RAGAS files without answer_correctness too."""
    files = ragas(set(), column)
    view, found = on_page(files, tmp_path), by_command(files, tmp_path, None)
    assert (view.quality.name, found["asked"]["measure"]) == (name, name)
    assert found["chosen"]["stack"] == view.table["name"][view.decision.chosen or 0] == "b"


def test_what_is_missing_could_turn_the_choice(tmp_path: Path):
    rows = [f"{name},q{q},{0.5 + place / 50}" for q in range(10) for place, name in enumerate("ab")]
    rows = [row if not row.startswith("a,q3") else "a,q3," for row in rows]
    view = on_page({"x.csv": "\n".join(["stack,query_id,nDCG@10", *rows])}, tmp_path)
    assert scores_missing(view.table, view.decision, view.quality) == (
        "a lacks 1 of 10 queries: 0.450 to 0.550 if it were 0 or 1. "
        "By what is missing a could be the better one."
    )
