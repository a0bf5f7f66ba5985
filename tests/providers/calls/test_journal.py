import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.errors import JournalError, ProviderError
from core.paths import ROOT
from core.providers.base import Amount, Reply
from core.providers.calls import Journal, call_key, text_hash
from core.records import Basis
from tests import warm

VALUES = [
    np.array([0.5, -1.25, 3e-8], dtype=np.float32),
    np.arange(6, dtype=np.float64).reshape(2, 3),
    np.array([], dtype=np.float32),
    "text with ünïcode \ud800",
    {"a": [1, None, "b"]},
    [],
]


def reply(value: object) -> Reply[object]:
    usage = (
        Amount("m", "input_tokens", 12.5, Basis.MEASURED),
        Amount("m", "search_units", None, Basis.MODELLED),
    )
    return Reply(value, usage, 1.5, 2.5, 3, True, {"chars_per_second": 8.0})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "folder" / "replies.sqlite")


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_reply_comes_back_as_it_was(journal: Journal, value: object):
    journal.put("k", reply(value))
    journal.close()
    found = Journal(journal.path).get("k")
    assert found is not None
    np.testing.assert_array_equal(found.value, value)
    assert type(found.value) is type(value)
    assert found.usage == reply(value).usage
    assert (found.ms, found.waited_ms, found.attempts, found.fresh) == (1.5, 2.5, 3, False)
    assert found.details == {"chars_per_second": 8.0}


def test_many_at_once(journal: Journal):
    assert len(journal) == 0
    assert journal  # being empty is no reason to be passed over
    keys = [f"k{n}" for n in range(1203)]
    journal.put_many({key: Reply(n) for n, key in enumerate(keys)})
    found = journal.get_many([*keys, "other"])
    assert {key: each.value for key, each in found.items()} == {f"k{n}": n for n in range(1203)}
    assert (len(journal), journal.get("other"), journal.get_many([])) == (1203, None, {})


def test_float32_takes_four_bytes(journal: Journal):
    journal.put("k", Reply(np.ones(1024, dtype=np.float32)))
    with sqlite3.connect(journal.path) as db:
        assert db.execute("SELECT length(value) FROM replies").fetchone() == (4096,)
    db.close()


@pytest.mark.parametrize("column", ["form", "value", "about", "mark"])
@pytest.mark.parametrize("damage", [b"", b"\x00", b"<f4 7", None])
def test_a_damaged_entry_is_missing(journal: Journal, column: str, damage: bytes | None):
    journal.put_many({"good": Reply("good"), "bad": Reply(np.ones(3, dtype=np.float32))})
    db = sqlite3.connect(journal.path)
    db.execute(f"UPDATE replies SET {column} = ? WHERE key = 'bad'", [damage])  # noqa: S608
    db.commit()
    db.close()
    assert journal.get("bad") is None
    assert journal.get_many(["good", "bad"]).keys() == {"good"}
    journal.put("bad", Reply("again"))
    assert journal.get("bad").value == "again"  # type: ignore[union-attr]


def test_a_damaged_file_is_named(tmp_path: Path):
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"this is not a database, whatever it says" * 200)
    with pytest.raises(JournalError, match=r"replies\.sqlite.*move the file away"):
        Journal(path)


def test_damaged_pages_are_missing_entries(journal: Journal):
    journal.put_many({f"k{n}": Reply(np.full(2048, n, dtype=np.float32)) for n in range(64)})
    db = sqlite3.connect(journal.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    journal.close()
    with journal.path.open("r+b") as file:
        file.seek(journal.path.stat().st_size // 2)
        file.write(os.urandom(40_000))
    found = Journal(journal.path).get_many([f"k{n}" for n in range(64)])
    assert len(found) < 64
    for key, each in found.items():  # never a wrong answer
        np.testing.assert_array_equal(each.value, np.full(2048, int(key[1:]), dtype=np.float32))


def test_a_newer_file_is_refused(journal: Journal):
    db = sqlite3.connect(journal.path)
    db.execute("PRAGMA user_version=99")
    db.close()
    journal.close()
    with pytest.raises(JournalError, match="newer release"):
        Journal(journal.path)


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="permissions"):
        Journal(tmp_path / "file" / "replies.sqlite")


def test_it_can_be_sent_to_another_process(journal: Journal):
    journal.put("k", Reply("v"))
    assert pickle.loads(pickle.dumps(journal)).get("k").value == "v"  # noqa: S301 - made here
    assert str(journal.path) in repr(journal)


def _write(path: Path, worker: int) -> None:
    journal = Journal(path)
    for n in range(30):
        journal.put(f"{worker}-{n}", Reply(np.full(64, n, dtype=np.float32)))
        assert journal.get(f"{worker}-{n}") is not None


@pytest.mark.slow
def test_several_processes_write_at_once(tmp_path: Path):
    path = tmp_path / "replies.sqlite"
    workers = [warm.process(_write, path, n) for n in range(2)]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(Journal(path)) == 60


KILLED = """
import sys
from pathlib import Path
import numpy as np
from core.providers.base import Reply
from core.providers.calls.journal import Journal
journal = Journal(Path(sys.argv[1]))
for n in range(10**6):
    journal.put(f"k{n}", Reply(np.full(256, n, dtype=np.float32)))
    print(n, flush=True)
"""


@pytest.mark.slow
def test_nothing_that_was_put_is_lost_by_a_kill(tmp_path: Path):
    path = tmp_path / "replies.sqlite"
    last = -1
    for wanted in (3, 40):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout
        for line in process.stdout:
            last = int(line)
            if last >= wanted:
                os.kill(process.pid, signal.SIGKILL)
                break
        rest = process.stdout.read().split()
        last = int(rest[-1]) if rest else last
        process.stdout.close()
        process.wait()
        journal = Journal(path)
        found = journal.get_many([f"k{n}" for n in range(last + 1)])
        journal.close()
        assert len(found) == last + 1


def test_keys_of_calls_differ_where_answers_may():
    base = ("voyage", "voyage-3.5", {"dim": 256, "type": "query"}, [text_hash("a"), text_hash("b")], "")
    same = call_key("voyage", "voyage-3.5", {"type": "query", "dim": 256}, base[3])
    assert same == call_key(*base)
    others = [
        call_key("cohere", *base[1:]),
        call_key(base[0], "voyage-3.5-lite", *base[2:]),
        call_key(*base[:2], {"dim": 512, "type": "query"}, *base[3:]),
        call_key(*base[:3], base[3][::-1], ""),
        call_key(*base[:3], [text_hash("ab")], ""),
        call_key(*base[:4], "repeat 2"),
    ]
    assert len({same, *others}) == 7
    assert json.dumps(same)  # plain text


def test_every_text_has_its_hash():
    texts = ["", "a", "A", "a ", "ä", "a\u0308", "\ud800"]
    assert len({text_hash(text) for text in texts}) == len(texts)
    assert text_hash("a") == text_hash("a")


SENT = [
    # keys of the call, how it ended, keys sent by the next process, calls of unknown outcome sent again
    (["a"], None, ["a"], 1),
    (["a", "b"], None, ["a", "b"], 1),
    (["a", "b"], None, ["b", "c"], 1),
    (["a"], None, ["b"], 0),
    (["a"], "kept", ["a"], 0),
    (["a"], "timeout", ["a"], 1),
    (["a"], "unreachable", ["a"], 1),
    (["a"], "refused", ["a"], 0),
    (["a"], "busy", ["a"], 0),
    (["a"], "stopped", ["a"], 0),
]


@pytest.mark.parametrize(("sent", "how", "then", "again"), SENT)
def test_calls_of_unknown_outcome_are_counted_when_they_are_sent_again(
    tmp_path: Path, sent: list[str], how: str | None, then: list[str], again: int
):
    path = tmp_path / "replies"
    first, told = Journal(path), list[int]()
    if how in {None, "kept"}:
        with first.sending(sent):
            pass  # it was answered, and the process is killed before that is kept
        if how:
            first.put_many(dict.fromkeys(sent, reply("x")))
    else:
        with pytest.raises(ProviderError), first.sending(sent):
            raise ProviderError("no", kind=str(how))
    with first.sending(["other"]):
        second = Journal(path, told.append)  # while the first is under way with something else
        for _ in range(2):
            with second.sending(then):
                pass
    assert sum(told) == again


def test_a_call_that_is_sent_again_in_two_parts_is_one(tmp_path: Path):
    first, told = Journal(tmp_path / "replies"), list[int]()
    with first.sending(["a", "b"]):
        pass
    second = Journal(tmp_path / "replies", told.append)
    for key in ("a", "b"):
        with second.sending([key]):
            second.put(key, reply("x"))
    assert told == [1]
    with Journal(tmp_path / "replies", told.append).sending(["a", "b"]):
        assert told == [1]


def test_a_file_of_an_earlier_release_takes_note_too(tmp_path: Path, journal: Journal):
    journal.put("k", reply("x"))
    journal.close()
    with sqlite3.connect(journal.path) as db:
        db.execute("DROP TABLE sent")
    db.close()
    with Journal(journal.path).sending(["k"]) as noted:
        assert noted is None
