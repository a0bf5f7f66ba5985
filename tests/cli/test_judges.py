import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.store import Store

TABLE = "query_id,passage_id,grade,judge\n" + "".join(
    f"q{query},p{passage},{(query + passage + (judge == 'ben') * (passage == 2)) % 5 + 1},{judge}\n"
    for query in range(3) for passage in range(4) for judge in ("anne", "ben")
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "qrels.csv").write_text(TABLE)
    call(
        tmp_path / "store",
        "import",
        str(tmp_path / "qrels.csv"),
        "--collection",
        "lab",
        "--golden-set",
        "gold",
    )
    return tmp_path / "store"


def call(store: Path, *words: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["--store", str(store), *words])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_a_table_with_a_judge_per_row_makes_a_golden_set_per_judge(store: Path):
    found = Store.open(store).read()
    assert found.golden_sets().select("golden_set_id", "judge", "judgements").rows() == [
        ("gold-anne", "anne", 12),
        ("gold-ben", "ben", 12),
    ]
    assert found.judgements("gold-ben")["judge"].unique().to_list() == ["ben"]


def test_agree_and_merge(store: Path):
    out, said = call(store, "judges", "agree", "gold-anne", "gold-ben", "--format", "json")
    (row,) = json.loads(out)
    assert (row["first"], row["second"], row["n"], row["queries"], row["same"]) == (
        "gold-anne",
        "gold-ben",
        12,
        3,
        0.75,
    )
    assert row["kappa_low"] <= row["kappa"] <= row["kappa_high"]
    assert ": Krippendorff's alpha (ordinal) 0." in said
    out, _ = call(
        store,
        "judges",
        "merge",
        "gold-anne",
        "gold-ben",
        "--policy",
        "mean",
        "--into",
        "both",
        "--format",
        "json",
    )
    (row,) = json.loads(out)
    assert (row["golden_set_id"], row["judgements"], row["judge"]) == ("both", 12, "anne, ben")
    assert row["notes"].startswith(
        "Merged by mean (the mean of the grades, rounded; halves are rounded down)"
    )
    _, said = call(store, "judges", "merge", "gold-anne", "gold-ben", "--into", "both", code=1)
    assert "already" in said


def test_a_judge_who_judged_twice_is_refused(tmp_path: Path):
    (tmp_path / "twice.csv").write_text(TABLE + "q0,p0,3,ben\n")
    _, said = call(tmp_path / "store", "import", str(tmp_path / "twice.csv"), code=1)
    assert "is judged twice by" in said
    assert "ben" in said


def test_without_results_the_page_says_what_is_missing_and_what_compares_the_judges(store: Path):
    _, said = call(store, "page", "golden", "--section", "judges", code=1)
    assert "There are judgements (gold-anne, gold-ben), but no results of a stack." in said
    assert "`judges agree gold-anne gold-ben`" in said
    assert call(store, "judges", "agree", "gold-anne", "gold-ben")[0]
