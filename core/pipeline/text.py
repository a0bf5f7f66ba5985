"""How text becomes the terms that BM25 counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import Stemmer
from bm25s import stopwords

from core.errors import UnknownNameError

# Language (the name of a Snowball stemmer): its stop words.
LANGUAGES: Mapping[str, frozenset[str]] = MappingProxyType({"english": frozenset(stopwords.STOPWORDS_EN)})

_WORDS = re.compile(r"(?u)\b\w\w+\b")


class Analyzer:
    """Lower-case words of two or more characters, stop words removed, stemmed.

    The same terms as ``bm25s.tokenize`` with a PyStemmer stemmer, one text at a time and without its set-up
    cost, which would otherwise be part of every query's latency.

    Args:
        language: A key of `LANGUAGES`.

    Raises:
        UnknownNameError: If the language is not known.
    """

    def __init__(self, language: str = "english") -> None:
        if language not in LANGUAGES:
            raise UnknownNameError("language", language, LANGUAGES)
        self.language = language
        self._stop_words = LANGUAGES[language]
        self._stemmer = Stemmer.Stemmer(language)

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order, with repetitions; may be empty."""
        words = [word for word in _WORDS.findall(text.lower()) if word not in self._stop_words]
        stems: list[str] = self._stemmer.stemWords(words)
        return stems
