"""Ids of an import against those of its collection, on the command line."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_commands import Cli, cli, counts

__all__ = ["cli"]
CORPUS = {
    "corpus.jsonl": "".join(json.dumps({"_id": name, "text": name}) + "\n" for name in ("1", "2", "3")),
    "queries.jsonl": '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n',
}
FOREIGN = "a Q0 d-1 1 2.0 mine\na Q0 d-2 2 1.0 mine\nb Q0 d-3 1 2.0 mine\n"


@pytest.mark.parametrize(
    ("options", "code", "collection", "known"),
    [
        (("--collection", "c"), 1, None, {"queries": 2, "passages": 0}),
        (("--collection", "c", "--strip", "passages=d-*"), 0, "c", {"queries": 2, "passages": 3}),
        (("--collection", "c", "--unmatched", "take"), 0, "c", {"queries": 2, "passages": 0}),
        (("--collection", "c", "--unmatched", "own"), 0, "c mine", {}),
        (("--workspace", "c"), 0, "mine", {}),
        (("--workspace", "c", "--strip", "passages=d-*"), 0, "c", {"queries": 2, "passages": 3}),
        (("--collection", "c", "--strip", "d-*"), 1, None, None),
    ],
)
def test_ids_are_matched_with_the_collection(
    cli: Cli, options: tuple[str, ...], code: int, collection: str | None, known: dict[str, int] | None
) -> None:
    cli("import", *(cli.file(name, text) for name, text in CORPUS.items()), "--collection", "c")
    run = cli.file("mine.trec", FOREIGN)
    if known is not None:
        looked = cli.rows("import", run, *options, "--dry-run")
        assert counts(looked, "match") == known
        assert [row["status"] for row in looked].count("refused") == code
    said = cli("import", run, *options, "--format", "json", code=code)
    assert cli.store.read().runs()["collection_id"].to_list() == ([collection] if collection else [])
    if code == 0:
        assert counts(json.loads(said.stdout), "match") == known
    elif known is not None:
        assert "--strip 'passages=d-*'" in said.stderr


def test_the_collection_that_the_ids_are_of_is_taken_and_named(cli: Cli) -> None:
    cli("import", *(cli.file(name, text) for name, text in CORPUS.items()), "--collection", "c c")
    rows = cli.rows("import", cli.file("mine.trec", FOREIGN.replace("d-", "")), "--dry-run")
    found = [str(row["detail"]) for row in rows if row["status"] == "match"]
    assert len(found) == 2
    assert all(each.endswith("exist in c c") for each in found)
    notes = [str(row["detail"]) for row in rows if row["status"] == "note"]
    assert any(note.startswith("It goes into c c") and "--collection" in note for note in notes)


def test_ids_with_other_texts_are_said_and_refused(cli: Cli) -> None:
    cli("import", *(cli.file(name, text) for name, text in CORPUS.items()), "--collection", "c")
    alike = "query_id,question,passage_id,rank\na,One?,1,1\nb,two,2,1\n"
    other = alike.replace("One?", "how long may I wait").replace("two", "where is my parcel")
    looked = cli.rows("import", cli.file("alike.csv", alike), "--workspace", "c", "--dry-run")
    assert counts(looked, "match") == {"queries": 2, "passages": 2}
    looked = cli.rows("import", cli.file("other.csv", other), "--collection", "c", "--dry-run")
    assert counts(looked, "match") == {"queries": 0, "passages": 2}
    (line,) = [row["detail"] for row in looked if row["status"] == "match" and row["what"] == "queries"]
    assert line == "2 of 2 query ids exist in c, 0 with the same text"
    offered = cli.rows("import", cli.file("other.csv", other), "--dry-run")
    assert not [row for row in offered if row["status"] == "match"], "no collection is proposed"
    said = cli("import", cli.file("other.csv", other), "--collection", "c", code=1)
    assert "a is “how long may I wait” in the files, and “one” in c." in said.stderr
    cli("import", cli.file("other.csv", other), "--workspace", "c")
    assert cli.store.read().runs()["collection_id"].to_list() == ["other"]
