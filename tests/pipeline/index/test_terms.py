from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UnknownNameError
from core.paths import ROOT
from core.pipeline.index.terms import BLOCK, LANGUAGES, Analyzer, tokenise
from tests.pipeline.corpora import random_texts

TEXTS = {
    "english": ["The Running dogs' group_by() of DataFrames isn't sorted; naïve Café x y2 3.14"],
    "french": ["L’école qu'il a quittée jusqu'à l'été : les élèves et leurs œuvres, aujourd'hui ; ÉLÈVE"],
    "german": ["Die größten Häuser, über die Straßen hinweg — Café"],
    "spanish": ["El año que vienen las canciones; pingüinos y corazón, está"],
    "italian": ["Dell'acqua e degl'italiani, perché la città è un'università"],
    "portuguese": ["As informações do coração não são avós"],
    "dutch": ["Eén van de ideeën is het huis met vensters"],
    "danish": ["Bøgerne står på hylderne"],
    "norwegian": ["Bøkene står på hyllene"],
    "swedish": ["Böckerna står på hyllorna"],
    "russian": ["Ёлки и ещё книги стояли на полках"],
    "turkish": ["İstanbul'un kitapları ve IŞIK"],
    "none": ["The Running élèves l'école"],
}


def test_every_language_is_tried():
    assert TEXTS.keys() == LANGUAGES.keys()


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_terms_equal_those_of_bm25s_with_the_same_rules(language: str):
    texts = [*TEXTS[language], *random_texts(10, seed=1), ""]
    analyzer, rules = Analyzer(language), LANGUAGES[language]
    spelt = [" ".join(analyzer.words(text)) for text in texts]
    expected = bm25s.tokenize(
        spelt, stopwords=list(rules.stop_words), stemmer=analyzer.stems, return_ids=False, show_progress=False
    )
    assert [analyzer.terms(text) for text in texts] == expected


@pytest.mark.parametrize(
    ("language", "alike"),
    [
        ("english", ["Running", "runs", "RUN"]),
        ("english", ["cafe\u0301", "café"]),
        ("french", ["élève", "eleve", "ÉLÈVES", "l'élève", "l’élève", "d\u02bcélèves", "qu'élève"]),
        ("french", ["œuvre", "Oeuvres"]),
        ("french", ["été", "ete", "lorsqu'", "même", "meme", "à"]),
        ("french", ["français", "francaise"]),
        ("german", ["Häuser", "Haus", "hauser"]),
        ("german", ["Straße", "strasse"]),
        ("spanish", ["canciones", "canción", "cancion"]),
        ("italian", ["dell'università", "universita", "un'università"]),
        ("portuguese", ["coração", "coraçao"]),
        ("dutch", ["ideeën", "ideeen"]),
        ("russian", ["ёлка", "елка"]),
        ("turkish", ["IŞIK", "ışık"]),
        ("turkish", ["İstanbul", "istanbul"]),
    ],
)
def test_what_one_term_is(language: str, alike: list[str]):
    analyzer = Analyzer(language)
    assert len({tuple(analyzer.terms(word)) for word in alike}) == 1


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("spanish", "año", "ano"),
        ("swedish", "böcker", "bocker"),
        ("english", "résumé", "resume"),
        ("french", "sûr", "sur"),
        ("none", "dogs", "dog"),
        ("none", "élève", "eleve"),
    ],
)
def test_what_two_terms_are(language: str, one: str, other: str):
    analyzer = Analyzer(language)
    assert analyzer.terms(one) != analyzer.terms(other)


def test_none_keeps_stop_words():
    assert Analyzer("none").terms("The dogs of A") == ["the", "dogs", "of"]


def test_an_unknown_language_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"No language 'klingon'.*english"):
        Analyzer("klingon")


def test_threads_share_an_analyzer():
    analyzer = Analyzer()
    words = [f"{word}{number}s" for number in range(300) for word in ("running", "caches", "happily")]
    expected = Analyzer().stems(words)
    found: list[bool] = []

    def work() -> None:
        found.extend(analyzer.stems(words) == expected for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_an_analyzer_can_be_sent_to_a_process():
    sent = pickle.loads(pickle.dumps(Analyzer("french")))  # noqa: S301 - our own
    assert sent.terms("les élèves") == ["elev"]


def spelled_out(texts: list[str], analyzer: Analyzer, workers: int | None = None) -> list[list[str]]:
    made = tokenise(texts, analyzer, workers=workers)
    names = list(made.vocabulary)
    assert list(made.vocabulary.values()) == list(range(len(names)))
    flat = iter(made.ids.tolist())
    return [[names[next(flat)] for _ in range(length)] for length in made.lengths]


@given(
    st.lists(st.text(alphabet="abé’'sn TH1\n_", max_size=30), max_size=20),
    st.sampled_from(["english", "french", "none"]),
)
def test_a_corpus_has_the_terms_of_its_texts(texts: list[str], language: str):
    analyzer = Analyzer(language)
    assert spelled_out(texts, analyzer) == [analyzer.terms(text) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_and_processes_change_nothing(workers: int):
    texts = random_texts(997, seed=4) * (2 * BLOCK // 997) + ["", "école", "the last words"]
    analyzer = Analyzer("french")
    expected = {text: analyzer.terms(text) for text in set(texts)}
    assert len(texts) > BLOCK
    assert spelled_out(texts, analyzer, workers) == [expected[text] for text in texts]


ENDLESS = """
import multiprocessing, threading, time
from core.pipeline.index.terms import Analyzer
from core.pipeline.index.terms import tokenise

def tell():
    while len(multiprocessing.active_children()) < 2:
        time.sleep(0.02)
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)

if __name__ == "__main__":
    threading.Thread(target=tell, daemon=True).start()
    while True:
        tokenise(["many words " * 50] * 100_000, Analyzer(), workers=2)
"""


def runs(pid: str) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes by /proc")
def test_no_process_outlives_a_killed_one(tmp_path: Path):
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    started = subprocess.Popen(
        [sys.executable, tmp_path / "endless.py"],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    with started:
        assert started.stdout is not None
        children = started.stdout.readline().split()
        started.kill()
    assert len(children) == 2
    until = time.monotonic() + 30
    while any(map(runs, children)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(runs, children))
