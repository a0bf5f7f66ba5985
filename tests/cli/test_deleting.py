"""``delete`` and ``restore`` of golden sets and collections: counts, refusals, one transaction."""

import pytest

from tests.cli.test_commands import QRELS, RUN, Cli


@pytest.fixture
def cli(tmp_path) -> Cli:
    found = Cli(tmp_path)
    runs = found.file("r", RUN + RUN.replace("bm25", "dense"))
    found("import", runs, found.file("g.qrels", QRELS), "--golden-set", "gold", "--collection", "c")
    return found


def test_a_golden_set_is_deleted_and_restored_with_its_counts(cli):
    expected = {"kind": "golden set", "id": "gold", "along": "2 judgements"}
    (row,) = cli.rows("delete", "--golden-set", "gold", "--dry-run")
    assert {**row, **expected, "status": "would delete"} == row
    assert cli.store.revision() == 1
    (row,) = cli.rows("delete", "--golden-set", "gold")
    assert {**row, **expected, "status": "deleted"} == row
    assert cli.rows("list", "golden-sets") == []
    (row,) = cli.rows("list", "golden-sets", "--removed")
    assert row["judgements"] == 2
    assert "No golden set 'gold'" in cli("decide", "--golden-set", "gold", code=1).stderr
    assert "No golden set 'gold'" in cli("score", "--measures", "P@1", "--golden-set", "gold", code=1).stderr
    (row,) = cli.rows("restore", "--golden-set", "gold")
    assert {**row, **expected, "status": "restored"} == row
    assert len(cli.rows("list", "golden-sets")) == 1


def test_a_collection_takes_along_what_it_holds(cli):
    cli("delete", "dense")
    (row,) = cli.rows("delete", "--collection", "c")
    assert row["along"] == "1 run, 1 golden set"
    for kind in ("runs", "golden-sets", "collections", "stacks"):
        assert cli.rows("list", kind) == []
    assert cli.rows("list", "runs", "--removed") == []
    assert [each["collection_id"] for each in cli.rows("list", "collections", "--removed")] == ["c"]
    assert "hidden with the deleted collection 'c'. Restore that." in cli("restore", "bm25", code=1).stderr
    assert "hidden with" in cli("restore", "--golden-set", "gold", code=1).stderr
    done = cli.rows("restore", "dense", "--collection", "c")
    assert [(row["kind"], row["along"]) for row in done] == [
        ("collection", "1 run, 1 golden set"),
        ("run", ""),
    ]
    assert len(cli.rows("list", "runs")) == 2
    assert cli.store.revision() == 4


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["delete"], 2, "Name runs, a --golden-set or a --collection"),
        (["restore"], 2, "Name runs"),
        (["delete", "--golden-set", "nope"], 1, "No golden set 'nope'. Found: gold."),
        (["delete", "--collection", "nope"], 1, "No collection 'nope'. Found: c."),
        (["restore", "--collection", "c"], 1, "No collection 'c'. Found: none."),
        (["delete", "bm25", "--golden-set", "nope"], 1, "No golden set 'nope'"),
    ],
)
def test_names_that_cannot_be(cli, words, code, message):
    assert message in cli(*words, code=code).stderr
    assert cli.store.revision() == 1
