"""Splits texts, singly or as a whole corpus, into the terms that BM25 counts.

Words are runs of two or more letters, digits or underscores, in lower case, Unicode NFC. An apostrophe ends a
word, so French and Italian elisions ("l'eau", "qu'il", "dell'acqua") are split into the article, which is a
stop word or a single letter, and the word itself. Scripts without spaces are not segmented.

Accents: the Snowball stemmer sees the word as written. In the languages where accents mark a vowel and are
often left out when typing (French, Spanish, Italian, Portuguese, Dutch, German) they are removed from the
stem afterwards, so that "élève", "eleve" and "élèves" are one term; ñ stays a separate letter. In the others
(English, the Scandinavian languages, Turkish, Russian) the stem stays as the stemmer leaves it.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import MappingProxyType

import numpy as np
import Stemmer
from bm25s import stopwords
from numpy.typing import NDArray

from core.errors import UnknownNameError
from core.jobs import cores, spread

_WORDS = re.compile(r"(?u)\b\w\w+\b")
_MARKS = frozenset(
    "\u0300\u0301\u0302\u0303\u0308\u0327"
)  # grave, acute, circumflex, tilde, diaeresis, cedilla
# Ligatures of French as most keyboards type them, and the two letters i of Turkish, which `str.lower` mixes.
_LIGATURES = (("œ", "oe"), ("Œ", "OE"), ("æ", "ae"), ("Æ", "AE"))
_TURKISH_I = (("I", "ı"), ("İ", "i"))
_FRENCH_ARTICLES = "qu jusqu lorsqu puisqu quoiqu"
_ITALIAN_ARTICLES = "gl coll pell quest quell"
BLOCK = 20_000
"""Number of texts per task."""
PARALLEL_FROM = 100_000
"""Number of texts from which several processes are worth their start (about a second)."""
_Part = tuple[NDArray[np.int32], NDArray[np.int64], list[str]]


def _without_accents() -> dict[int, str]:
    table = {}
    for code in range(0xC0, 0x180):
        parts = unicodedata.normalize("NFD", chr(code))
        if len(parts) > 1 and _MARKS.issuperset(parts[1:]) and chr(code) not in "ñÑ":
            table[code] = parts[0]
    return table


FOLD: Mapping[int, str] = MappingProxyType(_without_accents())


@dataclass(frozen=True, slots=True)
class TermLanguage:
    """The stemmer, stop words and spelling of a language."""

    stemmer: str | None  # name of a Snowball stemmer; None to keep words as they are
    stop_words: frozenset[str]  # words that aren't terms
    fold: bool = False  # whether stems lose their accents; stop words are then known without them, too
    spelling: tuple[tuple[str, str], ...] = ()  # spellings to replace


def _language(
    stemmer: str,
    words: Iterable[str],
    *,
    articles: str = "",
    fold: bool = False,
    spelling: tuple[tuple[str, str], ...] = (),
) -> TermLanguage:
    stop_words = frozenset((*words, *articles.split()))
    if fold:
        stop_words |= {word.translate(FOLD) for word in stop_words}
    return TermLanguage(stemmer, stop_words, fold, spelling)


LANGUAGES: Mapping[str, TermLanguage] = MappingProxyType(
    {
        "english": _language("english", stopwords.STOPWORDS_EN),
        "french": _language(
            "french", stopwords.STOPWORDS_FRENCH, articles=_FRENCH_ARTICLES, fold=True, spelling=_LIGATURES
        ),
        "german": _language("german", stopwords.STOPWORDS_GERMAN, fold=True),
        "spanish": _language("spanish", stopwords.STOPWORDS_SPANISH, fold=True),
        "italian": _language("italian", stopwords.STOPWORDS_ITALIAN, articles=_ITALIAN_ARTICLES, fold=True),
        "portuguese": _language("portuguese", stopwords.STOPWORDS_PORTUGUESE, fold=True),
        "dutch": _language("dutch", stopwords.STOPWORDS_DUTCH, fold=True),
        "danish": _language("danish", stopwords.STOPWORDS_DANISH),
        "norwegian": _language("norwegian", stopwords.STOPWORDS_NORWEGIAN),
        "swedish": _language("swedish", stopwords.STOPWORDS_SWEDISH),
        "russian": _language("russian", stopwords.STOPWORDS_RUSSIAN),
        "turkish": _language("turkish", stopwords.STOPWORDS_TURKISH, spelling=_TURKISH_I),
        "none": TermLanguage(None, frozenset()),
    }
)
"""Languages by name; "none" keeps every word as written, in lower case."""


class Analyzer:
    """Turns text into terms: words, stop words removed, stemmed.

    It gives the same terms as ``bm25s.tokenize`` with the same stop words and stemmer, for one text at a time
    and without its set-up cost, which would add to every query's latency. Threads may share one.
    """

    def __init__(self, language: str = "english") -> None:
        if language not in LANGUAGES:
            raise UnknownNameError("language", language, LANGUAGES)
        self.language = language
        self._rules = LANGUAGES[language]
        self._of_thread = threading.local()

    def __reduce__(self) -> tuple[type[Analyzer], tuple[str]]:
        return type(self), (self.language,)

    def words(self, text: str) -> list[str]:
        """Return the words of a text in order, before stop words and stemming; may be empty."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text).replace("\u02bc", "'")  # which is a letter to Unicode
        for written, meant in self._rules.spelling:
            text = text.replace(written, meant)
        return _WORDS.findall(text.lower())

    def is_stop_word(self, word: str) -> bool:
        """Return whether a word from `words` is not a term."""
        return word in self._rules.stop_words

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the terms of words from `words`, one for each."""
        if self._rules.stemmer is None:
            return list(words)
        stems: list[str] = self._stemmer(self._rules.stemmer).stemWords(words)
        if self._rules.fold:
            return [stem if stem.isascii() else stem.translate(FOLD) for stem in stems]
        return stems

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order, with repetitions; may be empty."""
        stop_words = self._rules.stop_words
        return self.stems([word for word in self.words(text) if word not in stop_words])

    def _stemmer(self, name: str) -> Stemmer.Stemmer:
        # A stemmer has state and serves one thread; without its cache it is as fast, and always equally so.
        if not hasattr(self._of_thread, "stemmer"):
            self._of_thread.stemmer = Stemmer.Stemmer(name, 0)
        return self._of_thread.stemmer


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of texts."""

    ids: NDArray[np.int32]  # int32 [sum of `lengths`], the terms of all texts, one text after the other
    lengths: NDArray[np.int64]  # number of terms of each text
    vocabulary: dict[str, int]  # term → its number, which counts from 0 in the order of first appearance


def tokenise(texts: Sequence[str], analyzer: Analyzer, *, workers: int | None = None) -> Terms:
    """Return the terms of texts, like `Analyzer.terms` for each."""
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    if workers is None:
        workers = 1 if len(texts) < PARALLEL_FROM else cores()
    return spread(partial(_part, analyzer), blocks, workers, _merged)


class _Numbers(dict[str, int]):
    """Numbers words in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _part(analyzer: Analyzer, texts: Sequence[str]) -> _Part:
    words = _Numbers()
    numbers = [list(map(words.__getitem__, analyzer.words(text))) for text in texts]
    lengths = np.fromiter(map(len, numbers), np.int64, len(numbers))
    flat = np.fromiter(chain.from_iterable(numbers), np.int32, int(lengths.sum()))

    kept = [word for word in words if not analyzer.is_stop_word(word)]
    terms = _Numbers()
    term_of_word = np.full(len(words) + 1, -1, dtype=np.int32)
    term_of_word[[words[word] for word in kept]] = [terms[stem] for stem in analyzer.stems(kept)]
    ids = term_of_word[flat]
    counted = ids >= 0
    ends = np.concatenate(([0], np.cumsum(counted)))[np.cumsum(lengths)]
    return ids[counted], np.diff(ends, prepend=0), list(terms)


def _merged(parts: Iterable[_Part]) -> Terms:
    vocabulary = _Numbers()
    ids: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    lengths: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for part_ids, part_lengths, terms in parts:
        ids.append(np.array([vocabulary[term] for term in terms], dtype=np.int32)[part_ids])
        lengths.append(part_lengths)
    return Terms(np.concatenate(ids), np.concatenate(lengths), dict(vocabulary))
