"""Queries as a person might have typed them: other names, small talk, slips, no accents.

Forms of names follow the CLQ paper, §4.2, noise levels §4.4; the other ways are ours. Random choices are
seeded by the query's own text, so that a query always gets the same ones; a level of noise or typos includes
what the level below added.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from core.errors import InputError
from core.metrics.robust import PERTURBATIONS
from core.params import ParamValue, read_options
from core.pipeline.query.entities import OFF, renamed
from core.records import JsonMap, short_hash

LANGUAGES: Mapping[str, str] = {"english": "en", "french": "fr"}
"""Languages that small talk is written in, and their files."""
WAYS = tuple(perturbation.name for perturbation in PERTURBATIONS)
NAMES = "names"
_FOLDER = Path(__file__).parent / "small_talk"
_Item = TypeVar("_Item")
_WORD = re.compile(r"[^\W\d_]{4,}")


def perturbed(text: str, perturb: JsonMap, names: Collection[str] = ()) -> str:
    """Perturb a query.

    Args:
        perturb: Ways and levels, and the language if it is not English.
        names: The names in it, for the way "names".

    Returns:
        The perturbed query; the query itself if every level is 0.
    """
    language = perturb.get("language", "english")
    said, _ = _said(language)
    typed = renamed(text, names, str(perturb.get(NAMES, OFF)), language)
    for number in _slips(typed, int(perturb.get("typo", 0))):
        typed = _slip(typed, number, f"{number} {text}", said["keyboard"])
    typed = _among_small_talk(text, typed, int(perturb.get("noise", 0)), said)
    if perturb.get("accents"):
        parts = unicodedata.normalize("NFD", typed)
        typed = unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c)))
    return (typed, typed.lower(), typed.upper())[int(perturb.get("case", 0))]


def perturb_table(levels: Mapping[str, ParamValue], language: str) -> dict[str, Any]:
    """Return ways and levels above 0, with the language unless it is English.

    Empty if nothing is perturbed.
    """
    perturb: dict[str, Any] = {way: level for way, level in levels.items() if str(level) != OFF}
    return {**perturb, "language": language} if perturb and language != "english" else perturb


def check_perturb(perturb: JsonMap) -> None:
    """Make sure that ways and levels are known.

    Raises:
        UnknownNameError: If there is no such way.
        InputError: If a level is out of range, or there is no small talk in the language.
    """
    read_options(
        PERTURBATIONS, {way: level for way, level in perturb.items() if way != "language"}, where="perturb"
    )
    language = perturb.get("language", "english")
    if perturb.get("noise") and language not in LANGUAGES:
        raise InputError(f"There is no small talk in {language}.", do=f"Use {' or '.join(LANGUAGES)}.")


def identified(perturb: JsonMap, names: str = "") -> JsonMap:
    """Return ways and levels with identifiers of the texts and names that they draw from."""
    return {
        **perturb,
        "source": _said(perturb.get("language", "english"))[1],
        **({"of": names} if perturb.get(NAMES) else {}),
    }


def shown(perturb: JsonMap) -> str:
    """Format ways and levels for people: "noise 4 typo 1"."""
    return " ".join(f"{way} {perturb[way]}" for way in WAYS if str(perturb.get(way, OFF)) != OFF)


@cache
def _said(language: str) -> tuple[Mapping[str, list[str]], str]:
    """Return a language's small talk and keyboard, with English as fallback, and their identifier."""
    text = (_FOLDER / f"{LANGUAGES.get(language, 'en')}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text), short_hash(text)


def _among_small_talk(text: str, typed: str, level: int, said: Mapping[str, list[str]]) -> str:
    """Add greeting, digression and filler before a text and emoji after it, the more the higher the level."""
    kinds = ("greeting", "filler", "digression", "emoji")[:level]
    drawn = {kind: _drawn(said[kind], kind, text) for kind in kinds}
    before = [drawn[kind] for kind in ("greeting", "digression", "filler") if kind in drawn]
    return " ".join([*before, typed, *([drawn["emoji"]] if "emoji" in drawn else [])])


def _slips(text: str, count: int) -> list[int]:
    """Return the positions of the words to mistype, fewer in a text of few words."""
    words = range(len(_WORD.findall(text)))
    return sorted(words, key=lambda number: short_hash("word", str(number), text))[:count]


def _drawn(items: Sequence[_Item], *key: str) -> _Item:
    """Draw an item by key, always the same, on every machine."""
    return items[int(short_hash(*key), 16) % len(items)]


def _slip(text: str, number: int, key: str, keyboard: list[str]) -> str:
    """Return the text with a letter of a word mistyped or two swapped; the word's first letter stays."""
    word = list(_WORD.finditer(text))[number]
    letters = list(word[0])
    rows = ["".join(row for row in keyboard if letter.lower() in row) for letter in letters]
    swaps = [at for at in range(1, len(letters) - 1) if letters[at] != letters[at + 1]]
    keys = [at for at in range(1, len(letters)) if rows[at]]
    if swaps and (not keys or _drawn((True, False), "swap", key)):
        at = _drawn(swaps, "place", key)
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    elif keys:
        at = _drawn(keys, "place", key)
        place = rows[at].index(letters[at].lower())
        near = _drawn(
            [rows[at][column] for column in (place - 1, place + 1) if 0 <= column < len(rows[at])], key
        )
        letters[at] = near.upper() if letters[at].isupper() else near
    return text[: word.start()] + "".join(letters) + text[word.end() :]
