"""Names in a question (people, places, products, modules, part numbers), and other forms of them.

A question's own tags may state them ("entity=MG-200", several separated by ";"). Otherwise names come from
the collection's metadata (sources and titles of its passages) and what the question itself writes as a name:
capitals within the sentence, and words with an underscore, an inner full stop, or letters before digits. That
is our own rule of thumb. The forms come from the CLQ paper, §4.2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from core.records import short_hash

NARROW = "\u202f"
_SPACED = re.compile(" ?([:;!])")
PARTICLES = frozenset(
    ["d", "d'", "d’", "da", "de", "del", "della", "der", "des", "di", "du", "la", "le", "van", "von", "zu"]
)
_CASES = (str.upper, str.lower, str.title)
OFF = "0"
MASKS: Mapping[str, str] = {"english": "AUTHOR_001", "french": "AUTEUR_001"}
"""The token that replaces every name, by language; English is the fallback."""
TAG = "entity="
_WORD = re.compile(r"\w+(?:[-.]\w+)*")
_LONGEST = 8  # Maximum words of a name in metadata; anything longer is a heading
_SHORTEST = 3
_BETWEEN = (" ", "-", "'", "’")
_BEGINS = re.compile(r"[.?!:;\"“«(]")
Names = Mapping[str, tuple[str, ...]]  # Names by the text of the question that holds them


def stripped(text: str) -> str:
    """Return a text without its accents."""
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(char for char in apart if unicodedata.category(char) != "Mn"))


def gibberish(name: str) -> str:
    """Return the token that stands for a name, always the same one."""
    return f"ID-{short_hash('gibberish', name)[:6].upper()}"


def near_miss(name: str, substitutions: int, seed: str) -> str:
    """Return a name with this many letters changed; all of them if it has fewer."""
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
    return " ".join([*("-".join(map(_initial, part.split("-"))) for part in given), family])


def inverted(name: str) -> str:
    """Return a name as "Last, First"; a single word is left unchanged."""
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
    """Return the names before the family name, and the family name with its particles."""
    words = name.split()
    last = len(words) - 1
    while last > 1 and words[last - 1].lower() in PARTICLES:
        last -= 1
    return words[:last], " ".join(words[last:])


def renamed(text: str, names: Collection[str], form: str, language: str = "english") -> str:
    """Put the names in a query into another form, everything else as it is."""
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
    return named.sub(lambda match: _other(match[0], form, text), text)


def _other(name: str, form: str, text: str) -> str:
    """Return one name in a form; random choices are seeded by the query's own text."""
    if form.isdecimal():
        return near_miss(name, int(form), text)
    if form == "case":
        return recased(name, int(short_hash(form, text), 16))
    return _FORMS[form](name)


_FORMS: Mapping[str, Callable[[str], str]] = {
    "gibberish": gibberish,
    "accents": stripped,
    "initials": initials,
    "inverted": inverted,
}


def named(queries: pl.DataFrame, passages: pl.DataFrame | None = None) -> Names:
    """Find the questions of a collection that name something.

    Args:
        queries: text, and tags if there are any.
        passages: title and source of its passages; None = only what the questions themselves say.

    Returns:
        Texts with their names; questions that name nothing are left out.
    """
    known = frozenset() if passages is None else known_names(passages)
    tags = queries["tags"].to_list() if "tags" in queries.columns else [None] * queries.height
    pairs = zip(queries["text"].to_list(), tags, strict=True)
    by_text = {text: names_in(text, known, _given(own)) for text, own in pairs if text}
    return {text: names for text, names in by_text.items() if names}


def names_hash(names: Names) -> str:
    """Return a hash of names."""
    return short_hash(*(part for text in sorted(names) for part in (text, *names[text])))


def known_names(passages: pl.DataFrame) -> frozenset[str]:
    """Take names from passages: sources, and titles (up to a bracket) that are not all in lower case."""
    sources, titles = (passages[name].drop_nulls().unique().to_list() for name in ("source", "title"))
    heads = (title.partition("(")[0].strip() for title in titles)
    every = {*sources, *(head for head in heads if head != head.lower() or _is_code(head))}
    return frozenset(
        name for name in every if len(name) >= _SHORTEST and len(_WORD.findall(name)) <= _LONGEST
    )


def names_in(text: str, known: Collection[str] = (), given: Sequence[str] = ()) -> tuple[str, ...]:
    """Find the names in a question, each once, in their order."""
    own = [name for name in given if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    return tuple(dict.fromkeys(own or _names(text, known)))


def tagged(column: pl.Series) -> pl.Series:
    """Turn a column of names, several separated by ";", into tags of the questions."""
    tags = [[f"{TAG}{name}" for name in _several(text or "")] for text in column]
    return pl.Series("tags", tags, dtype=pl.List(pl.String))


def _given(tags: Sequence[str] | None) -> list[str]:
    return [name for tag in tags or () if tag.startswith(TAG) for name in _several(tag.removeprefix(TAG))]


def _several(text: str) -> list[str]:
    return [name for name in map(str.strip, text.split(";")) if name]


def _names(text: str, known: Collection[str]) -> Iterator[str]:
    words = list(_WORD.finditer(text))
    place, shouted = 0, text.upper() == text
    while place < len(words):
        written = place if shouted else _run(text, words, place)
        end = max(_listed(text, words, place, known), written)
        if end > place:
            yield text[words[place].start() : words[end - 1].end()]
        place = max(end, place + 1)


def _listed(text: str, words: Sequence[re.Match[str]], place: int, known: Collection[str]) -> int:
    """Return the end of the longest known name that begins here, or `place` if there is none."""
    start = words[place].start()
    for end in range(min(place + _LONGEST, len(words)), place, -1) if known else ():
        if text[start : words[end - 1].end()] in known:
            return end
    return place


def _run(text: str, words: Sequence[re.Match[str]], place: int) -> int:
    """Return the end of a word that is written like a name here, or `place` if there is none."""
    word = words[place][0]
    if _is_code(word):
        return place + 1
    before = text[words[place - 1].end() : words[place].start()] if place else "."
    initial = len(word) == 1 and _gap(text, words, place) == ". "
    acronym = len(word) > 1 and word.isupper()
    if not word[0].isupper() or not (acronym or initial or (len(word) > 1 and not _BEGINS.search(before))):
        return place
    end = place + 1
    while end < len(words) and (further := _further(text, words, end)) > end:
        end = further
    return place if initial and end == place + 1 else end


def _further(text: str, words: Sequence[re.Match[str]], end: int) -> int:
    """Return the end of a name that reached `end`, extended over initials and particles to a capital."""
    at = end
    while at < len(words) and words[at][0] in PARTICLES and _gap(text, words, at - 1) in _BETWEEN:
        at += 1
    if at == len(words) or not words[at][0][0].isupper():
        return end
    gap = _gap(text, words, at - 1)
    return at + 1 if gap in _BETWEEN or (gap == ". " and len(words[at - 1][0]) == 1) else end


def _gap(text: str, words: Sequence[re.Match[str]], place: int) -> str:
    return text[words[place].end() : words[place + 1].start()] if place + 1 < len(words) else ""


def _is_code(word: str) -> bool:
    """Return whether a word looks like a name in code or a part number: group_by, numpy.clip, MG-200, x86."""
    if not re.search(r"[^\W\d_]", word) or " " in word:
        return False
    inner = re.search(r"\w{2}[.]\w{2}", word) is not None and not word[0].isdigit()
    digits = any(char.isdigit() for char in word)
    return (
        "_" in word or inner or (digits and not word[0].isdigit() and ("-" not in word or word[0].isupper()))
    )
