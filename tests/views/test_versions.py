"""Importing what was changed: refused until somebody says how; the same again is nothing new."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.importers import Options, Upload, load
from core.store import Store
from core.views.imports import bring
from core.views.versions import ChangedError, Choice

RUN = "q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\n"
OTHER, THIRD = RUN.replace("p2", "p3"), RUN.replace("p2", "p4")
QRELS = "q1 0 p1 5\nq1 0 p2 1\n"
CORPUS = '{"_id": "p1", "title": "", "text": "one"}\n'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def offer(store: Store, choice: Choice | None = None, **files: str) -> bool:
    known = frozenset(store.read().collections()["collection_id"])
    names = {"run": "mine.trec", "qrels": "gold.qrels", "corpus": "corpus.jsonl"}
    uploads = [Upload(names[name], text.encode()) for name, text in files.items()]
    made = load(uploads, Options(collection_id="c", known_collections=known))
    return bring(store, made, "", choice=choice)[0]


def labels(store: Store) -> list[str]:
    return sorted(store.read().runs()["label"])


def test_a_changed_run_is_refused_kept_beside_or_put_in_its_place(store: Store) -> None:
    assert offer(store, run=RUN)
    first = store.read().runs()["run_id"][0]
    with pytest.raises(ChangedError, match=r"run 'mine'.*--if-changed new.*--if-changed replace"):
        offer(store, run=OTHER)
    assert store.revision() == 1
    assert offer(store, "new", run=OTHER)
    assert labels(store) == ["mine", "mine (2)"]
    for text in (RUN, OTHER):
        assert not offer(store, run=text), "both are known now"
    assert offer(store, "replace", run=THIRD)
    assert labels(store) == ["mine", "mine (2)"]
    assert not offer(store, run=THIRD)
    assert store.read().runs(removed=True).height == 1
    with pytest.raises(ChangedError):
        offer(store, run=OTHER)
    assert offer(store, "replace", run=OTHER), "what was removed comes back in the place of the other"
    assert store.read().runs().height == 2
    assert first in store.read().runs()["run_id"]
    assert store.revision() == 4


def test_a_changed_golden_set(store: Store) -> None:
    assert offer(store, qrels=QRELS)
    changed = QRELS.replace("p2 1", "p2 2")
    with pytest.raises(ChangedError, match="golden set 'c-gold'"):
        offer(store, qrels=changed)
    assert offer(store, "new", qrels=changed)
    assert store.read().golden_sets()["golden_set_id"].to_list() == ["c-gold", "c-gold-2"]
    assert not offer(store, qrels=changed)
    third = QRELS.replace("p2 1", "p2 3")
    assert offer(store, "replace", qrels=third)
    snapshot = store.read()
    assert snapshot.golden_sets()["golden_set_id"].to_list() == ["c-gold", "c-gold-2"]
    assert snapshot.judgements("c-gold-2")["grade"].to_list() == [5, 3]
    assert snapshot.judgements("c-gold")["grade"].to_list() == [5, 1]
    assert not offer(store, qrels=third)


def test_a_changed_corpus_takes_runs_and_judgements_with_it_to_its_new_version(store: Store) -> None:
    assert offer(store, corpus=CORPUS, qrels=QRELS)
    changed = CORPUS.replace("one", "two")
    with pytest.raises(ChangedError, match="collection 'c'"):
        offer(store, corpus=changed)
    assert offer(store, "new", corpus=changed, run=RUN, qrels=QRELS)
    snapshot = store.read()
    assert snapshot.collections()["collection_id"].to_list() == ["c", "c-2"]
    assert snapshot.runs()["collection_id"].to_list() == ["c-2"]
    assert snapshot.golden_sets("c-2")["golden_set_id"].to_list() == ["c-gold-2"]
    assert not offer(store, corpus=changed)
    assert offer(store, "replace", corpus=CORPUS.replace("one", "three"))
    assert store.read().passages("c-2")["text"].to_list() == ["three"]
    assert store.read().passages("c")["text"].to_list() == ["one"]


def test_what_the_store_lacks_is_added_without_a_question(store: Store) -> None:
    assert offer(store, run=RUN)
    assert offer(store, corpus=CORPUS)
    assert offer(store, qrels=QRELS)
    assert labels(store) == ["mine"]
