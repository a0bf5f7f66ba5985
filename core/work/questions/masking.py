"""Personal data in people's questions, masked: by pattern, by a custom list, and by a model of names.

Addresses are found by their street, in English, French and German notation; names by list or model alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.extras import needed

REQUIREMENTS = "requirements-names.txt"
_PEOPLE = frozenset({"PER", "PERSON"})  # Labels of people in spaCy's models
_UNUSED = ("tagger", "parser", "lemmatizer", "morphologizer", "attribute_ruler", "senter")
_WORD = re.compile(r"\w+")
_CAPITAL = r"[A-ZÀ-ÖØ-Ý][\w'’.-]*"
_OF = r"(?:(?:de|du|des|la|le|les|aux?) |[dl]['’])*"
_STREETS = (
    re.compile(  # 221B Baker Street; 10 downing street
        rf"(?<![\w.])\d{{1,5}}[A-Za-z]?,? (?:{_CAPITAL} ){{1,3}}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Drive|Dr"
        r"|Boulevard|Blvd|Court|Square|Place|Way|Terrace|Close|Crescent)\b\.?"
        r"|(?<![\w.])\d{1,5}[a-z]?,? (?:\w+ ){1,2}(?:street|avenue|boulevard|lane)(?=[,;.?!]| in | [A-Z\d]|$)"
    ),
    re.compile(  # 12 bis, rue de la Paix
        r"(?<![\w.])\d{1,4}(?: ?(?:bis|ter))?,? "
        rf"(?:(?i:rue|avenue|boulevard|bd|allée|chemin|impasse|quai) {_OF}[\w'’-]+"
        rf"|(?i:place|cours|route|square) {_OF}{_CAPITAL})(?: {_CAPITAL}){{0,3}}"
    ),
    re.compile(  # Bahnhofstraße 12a
        r"\b[A-Za-zÄÖÜäöüß-]*(?:straße|strasse|gasse|allee) \d{1,4} ?[a-z]?\b"
        r"|\b[A-ZÄÖÜ][a-zäöüß-]+(?:str\.|weg|platz) \d{1,4}[a-z]?\b"
    ),
)
_CARD = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?!\w)")
_MASKS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("[email]", re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")),
    ("[iban]", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")),
    (
        "[ip]",
        re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])"),
    ),
    ("[ip]", re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}(?::?[0-9a-fA-F]{1,4}){1,4}(?![\w:])")),
    (
        "[phone]",
        re.compile(
            r"(?<![\w.])(?:\+\d{1,3}[ .-]?(?:\(0\)[ .-]?)?|\(?0)\d{1,4}\)?(?:[ .-]?\d{2,4}){2,5}(?!\w)"
        ),
    ),
    ("[phone]", re.compile(r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w-])")),
    *(("[address]", pattern) for pattern in _STREETS),
)


def mask(
    texts: Sequence[str], *, listed: Path | None = None, names: str | None = None
) -> tuple[list[str], int]:
    """Mask personal data.

    Args:
        listed: A file with a name, an address or other text to hide on each line; case is ignored.
        names: A spaCy model that recognises names of people, installed by its name or a folder.

    Returns:
        The texts and the number of masked pieces.

    Raises:
        InputError: If there is no such list or model.
        ClqError: If spaCy is not installed and a model is named.
    """
    by_pattern = [by_patterns(text) for text in texts]
    said, count = [text for text, _ in by_pattern], sum(times for _, times in by_pattern)
    finders = [ListedNames.read(listed).places] if listed else []
    if names:
        found = list(_people(said, names))
        said, times = _hidden(said, found, "[name]")
        count += times
    for finder in finders:
        said, times = _hidden(said, [finder(text) for text in said], "[hidden]")
        count += times
    return said, count


def by_patterns(text: str) -> tuple[str, int]:
    """Return a text with pattern matches masked, and their number: addresses, cards, accounts, numbers.

    Digits count as a card if their check digit is right (Luhn).
    """
    text, count = _without_cards(text)
    for mark, pattern in _MASKS:
        text, times = pattern.subn(mark, text)
        count += times
    return text, count


def _without_cards(text: str) -> tuple[str, int]:
    count = 0

    def card(found: re.Match[str]) -> str:
        nonlocal count
        digits = [int(digit) for digit in found[0] if digit.isdigit()]
        doubled = [
            digit if at % 2 == 0 else sum(divmod(2 * digit, 10)) for at, digit in enumerate(digits[::-1])
        ]
        right = sum(doubled) % 10 == 0
        count += right
        return "[card]" if right else found[0]

    return _CARD.sub(card, text), count


class ListedNames:
    """Names to hide, matched as whole words."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._by_first: dict[str, set[tuple[str, ...]]] = {}
        for line in lines:
            words = tuple(_WORD.findall(line.casefold()))
            if words:
                self._by_first.setdefault(words[0], set()).add(words)

    @classmethod
    def read(cls, path: Path) -> ListedNames:
        """Read a list, one name per line.

        Raises:
            InputError: If it cannot be read as text, or is empty.
        """
        try:
            listed = cls(path.read_text(encoding="utf-8-sig").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                "The list of names cannot be read.",
                where=str(path),
                do="Name a text file, a name on each line.",
            ) from error
        if not listed._by_first:
            raise InputError("The list of names is empty.", where=str(path), do="Write a name on each line.")
        return listed

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the positions of names in a text, the longest at each."""
        words = [(found.start(), found.end(), found[0].casefold()) for found in _WORD.finditer(text)]
        said = [word for *_, word in words]
        found, at = [], 0
        while at < len(words):
            known = self._by_first.get(said[at], ())
            long = max((len(name) for name in known if tuple(said[at : at + len(name)]) == name), default=0)
            if long:
                found.append((words[at][0], words[at + long - 1][1]))
            at += max(long, 1)
        return found


def _people(texts: Sequence[str], model: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the positions of people's names found by a spaCy model."""
    spacy = needed("spacy", REQUIREMENTS, "Masking names by a model")
    try:
        read: Any = spacy.load(model, exclude=_UNUSED)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No model of spaCy: {model}.",
            where="log.names",
            do=f"Install it (python -m spacy download {model}), or name a list of names (mask).",
        ) from error
    for known in read.pipe(texts):
        yield [(one.start_char, one.end_char) for one in known.ents if one.label_ in _PEOPLE]


def _hidden(
    texts: Sequence[str], places: Sequence[Sequence[tuple[int, int]]], mark: str
) -> tuple[list[str], int]:
    masked = []
    for text, found in zip(texts, places, strict=True):
        said = text
        for start, end in reversed(found):
            said = f"{said[:start]}{mark}{said[end:]}"
        masked.append(said)
    return masked, sum(map(len, places))
