"""Other forms of a name, a token, near misses, initials, last name first, by itself and within a query.

The forms are those of the CLQ paper, §4.2; that they are put into the queries of a collection, and how names
are told there (`core.pipeline.query.entities`), is ours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping

import numpy as np

from core.records import short_hash

NARROW = "\u202f"
_SPACED = re.compile(" ?([:;!])")
PARTICLES = frozenset(
    ["d", "d'", "d’", "da", "de", "del", "della", "der", "des", "di", "du", "la", "le", "van", "von", "zu"]
)
_CASES = (str.upper, str.lower, str.title)


def stripped(text: str) -> str:
    """Return a text without its accents."""
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(char for char in apart if unicodedata.category(char) != "Mn"))


def gibberish(name: str) -> str:
    """Return the token that stands for a name, always the same one."""
    return f"ID-{short_hash('gibberish', name)[:6].upper()}"


def near_miss(name: str, substitutions: int, seed: str) -> str:
    """Return a name in which so many letters are others; all of them where it has fewer."""
    drawn = np.random.default_rng(int(short_hash(seed, name, str(substitutions)), 16))
    letters = [place for place, char in enumerate(name) if char.isalpha()]
    chars = list(name)
    for place in drawn.choice(letters, min(substitutions, len(letters)), replace=False) if letters else ():
        others = [chr(code) for code in range(ord("a"), ord("z") + 1) if chr(code) != chars[place].lower()]
        other = others[int(drawn.integers(len(others)))]
        chars[place] = other.upper() if chars[place].isupper() else other
    return "".join(chars)


def initials(name: str) -> str:
    """Return a name with initials for the names before the family name: J.-J. Rousseau, S. de Beauvoir."""
    given, family = _parts(name)
    return " ".join([*("-".join(_initial(part) for part in each.split("-")) for each in given), family])


def inverted(name: str) -> str:
    """Return a name as "Last, First"; a single word stays as it is."""
    given, family = _parts(name)
    return f"{family}, {' '.join(given)}" if given else family


def recased(name: str, turn: int) -> str:
    """Return a name in upper, lower or title case by turns, with straight apostrophes, hyphens as spaces."""
    return _CASES[turn % len(_CASES)](name.replace("’", "'").replace("-", " "))


def decomposed(text: str) -> str:
    """Return a text in NFD, with a narrow space before : ; and !."""
    return unicodedata.normalize("NFD", _SPACED.sub(rf"{NARROW}\1", text))


def _initial(part: str) -> str:
    return part if part.endswith(".") or not part[:1].isupper() else f"{part[0]}."


def _parts(name: str) -> tuple[list[str], str]:
    """Names before the family name, and that with its particles."""
    words = name.split()
    last = len(words) - 1
    while last > 1 and words[last - 1].lower() in PARTICLES:
        last -= 1
    return words[:last], " ".join(words[last:])


def renamed(text: str, names: Collection[str], form: str, language: str = "english") -> str:
    """Put the names in a query into another form, everything else as it is.

    Args:
        text: The query.
        names: Those that it holds, as it writes them.
        form: One of `FORMS`.
        language: Of the mask.
    """
    if not names or form == OFF:
        return text
    if form == "nfd":
        return decomposed(text)
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    named = re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")
    if form == "label":
        return re.sub(rf"[^\W\d_]+\s?:\s*(?={named.pattern})", "", text)
    if form == "mask":
        return named.sub(MASKS.get(language, MASKS["english"]), text)
    return named.sub(lambda found: _other(found[0], form, text), text)


def _other(name: str, form: str, text: str) -> str:
    """Return one name in a form; what is drawn for it is drawn from the query's own text."""
    if form.isdecimal():
        return near_miss(name, int(form), text)
    if form == "case":
        return recased(name, int(short_hash(form, text), 16))
    return _FORMS[form](name)


OFF = "0"
MASKS: Mapping[str, str] = {"english": "AUTHOR_001", "french": "AUTEUR_001"}
"""What stands for every name, by language; the English one where there is none."""
_FORMS: Mapping[str, Callable[[str], str]] = {
    "gibberish": gibberish,
    "accents": stripped,
    "initials": initials,
    "inverted": inverted,
}
