"""A path that cannot be written ends every command in one sentence, and nothing is left there."""

import shutil

import pytest

import core as clq
from core.errors import ClqError
from tests.cli.test_gate import BEFORE, LIMITS, call, store

WRITERS = {
    "record": ("record", "{path}.json", *LIMITS),
    "snapshot": ("snapshot", "{path}.html", *LIMITS),
    "page": ("page", "decision", "--out", "{path}.html", "--format", "html"),
    "compare": ("compare", "good", "cheap", "--out", "{path}.md", "--format", "md"),
    "views": ("store", "views", "{path}.sql"),
    "junit": ("gate", "{record}", "--junit", "{path}.xml"),
    "markdown": ("gate", "{record}", "--markdown", "{path}.md"),
    "json": ("gate", "{record}", "--json", "{path}.json"),
    "backup": ("store", "backup", "{path}"),
    "every-k": ("score", "--measures", "RR", "--every-k", "{path}.parquet"),
    "export": ("export", "{path}", "--format", "own"),
    "zip": ("export", "{path}.zip", "--format", "own"),
    "trec": ("export", "{path}", "--format", "trec"),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A store and the record of its decision; to be read only."""
    folder = tmp_path_factory.mktemp("before")
    made = call(store(folder / "store", **BEFORE), "record", folder / "r.json", *LIMITS)
    assert made.exit_code == 0, made.output
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["/proc", "file", "absent"])
@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS.keys())
def test_what_cannot_be_written_is_one_sentence(tmp_path, before, words, folder):
    (tmp_path / "file").write_text("a file, no folder")
    place = folder if folder.startswith("/") else tmp_path / folder
    given = [word.format(path=f"{place}/x", record=before / "r.json") for word in words]
    done = call(before / "store", *given)
    if done.exit_code == 0:  # some make the folder
        assert folder == "absent"
        assert (tmp_path / "absent").is_dir()
        return
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert "x" in errors[0] or str(place) in errors[0]
    assert not (tmp_path / "absent").exists()


def test_a_gate_writes_the_files_that_can_be_written(tmp_path, before):
    shutil.copy(before / "r.json", tmp_path)
    words = ["gate", tmp_path / "r.json", "--junit", "/proc/x.xml", "--json", tmp_path / "gate.json"]
    assert call(before / "store", *words).exit_code == 1
    assert '"cause": "refused"' in (tmp_path / "gate.json").read_text()


@pytest.mark.parametrize("option", ["--junit", "--markdown", "--json"])
def test_a_gate_refuses_its_files_before_it_computes(monkeypatch, before, option):
    monkeypatch.setattr("core.cli.deciding.gate.compared", lambda *_, **__: pytest.fail("It computes."))
    done = call(before / "store", "gate", before / "r.json", option, "/proc/x.xml")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "error: /proc/x.xml: It cannot be written" in done.stderr


@pytest.mark.parametrize("folder", ["/proc/x", "/dev/null/x"])
def test_a_backup_that_cannot_be_written_names_the_target(before, folder):
    done = call(before / "store", "store", "backup", folder)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {folder}: It cannot be written: ")
    assert "doctor" not in done.stderr


def test_python_says_it_in_one_sentence_too(before):
    decision = clq.open(before / "store").decide(measure="RR@10")
    for write in (decision.record, decision.page("decision").save):
        with pytest.raises(ClqError, match=r"/proc/x\.json"):
            write("/proc/x.json")
