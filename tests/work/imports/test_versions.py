"""Importing what was changed: refused until somebody says how; the same again is nothing new."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.importers import Options, Upload, load
from core.store import LedgerKind, Store
from core.work.imports.background import AFTER_DELETION, CHOICES, ChangedError, IfStored, offers
from core.work.imports.imports import store_import

RUN = "q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\n"
OTHER, THIRD = RUN.replace("p2", "p3"), RUN.replace("p2", "p4")
QRELS = "q1 0 p1 5\nq1 0 p2 1\n"
CORPUS = '{"_id": "p1", "title": "", "text": "one"}\n'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def offer(store: Store, choice: IfStored | None = None, **files: str) -> bool:
    known = frozenset(store.read().collections()["collection_id"])
    names = {"run": "mine.trec", "qrels": "gold.qrels", "corpus": "corpus.jsonl"}
    uploads = [Upload(names[name], text.encode()) for name, text in files.items()]
    made = load(uploads, Options(collection_id="c", known_collections=known))
    return store_import(store, made, "", choice=choice).fresh


def labels(store: Store) -> list[str]:
    return sorted(store.read().runs()["label"])


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_the_store_lacks_is_added_without_a_question(store: Store) -> None:
    assert offer(store, run=RUN)
    assert offer(store, corpus=CORPUS)
    assert offer(store, qrels=QRELS)
    assert labels(store) == ["mine"]


def remove(store: Store, kind: LedgerKind, *ids: str) -> None:
    with store.write("delete") as writer:
        writer.remove(kind, ids)


@pytest.mark.slow
def test_a_deleted_golden_set_is_restored_or_imported_as_a_new_version(store: Store) -> None:
    assert offer(store, qrels=QRELS)
    remove(store, "golden_set", "c-gold")
    with pytest.raises(
        ChangedError, match=r"was deleted: golden set 'c-gold'.*--if-changed restore"
    ) as refused:
        offer(store, qrels=QRELS)
    assert offers([str(each) for each in refused.value.changes]) is AFTER_DELETION
    assert store.revision() == 2
    assert offer(store, "restore", qrels=QRELS)
    assert store.read().golden_sets()["golden_set_id"].to_list() == ["c-gold"]
    assert not offer(store, qrels=QRELS)
    remove(store, "golden_set", "c-gold")
    assert offer(store, "new", qrels=QRELS)
    assert store.read().golden_sets()["golden_set_id"].to_list() == ["c-gold-2"]
    assert not offer(store, qrels=QRELS), "the new one has it"


@pytest.mark.slow
def test_another_content_under_the_name_of_a_deleted_golden_set(store: Store) -> None:
    assert offer(store, qrels=QRELS)
    remove(store, "golden_set", "c-gold")
    right = QRELS.replace("p2 1", "p2 4")
    for choice in (None, "restore"):
        with pytest.raises(ChangedError, match=r"'c-gold' \(deleted, had other content\)") as refused:
            offer(store, choice, qrels=right)
    assert offers([str(each) for each in refused.value.changes]) is CHOICES
    assert offer(store, "replace", qrels=right)
    assert store.read().judgements("c-gold")["grade"].to_list() == [5, 4]
    assert store.read(1).judgements("c-gold")["grade"].to_list() == [5, 1]
    remove(store, "golden_set", "c-gold")
    assert offer(store, "new", qrels=QRELS)
    remove(store, "golden_set", "c-gold-2")
    assert offer(store, "new", qrels=right.replace("p2 4", "p2 3"))
    assert store.read().golden_sets()["golden_set_id"].to_list() == ["c-gold-3"], "names are not used again"


@pytest.mark.slow
def test_files_of_a_deleted_collection(store: Store) -> None:
    everything = {"corpus": CORPUS, "run": RUN, "qrels": QRELS}
    assert offer(store, **everything)
    remove(store, "collection", "c")
    for files in (everything, {"run": RUN}, {"qrels": QRELS}):
        with pytest.raises(ChangedError, match="was deleted: collection 'c'"):
            offer(store, **files)
    with pytest.raises(ChangedError, match=r"other content: collection 'c' \(deleted\), run 'mine'"):
        offer(store, run=OTHER)
    with pytest.raises(ChangedError, match="other content: run 'mine'"):
        offer(store, "restore", run=OTHER)
    assert offer(store, "restore", run=OTHER.replace("mine", "other"))
    snapshot = store.read()
    assert (snapshot.collections().height, snapshot.golden_sets().height) == (1, 1)
    assert labels(store) == ["mine", "other"]
    remove(store, "collection", "c")
    assert offer(store, "replace", run=THIRD)
    assert labels(store) == ["mine", "other"]
    remove(store, "collection", "c")
    assert offer(store, "new", **everything)
    assert store.read().collections()["collection_id"].to_list() == ["c-2"]
    assert store.read().golden_sets("c-2")["golden_set_id"].to_list() == ["c-gold-2"]
    assert labels(store) == ["mine"]
