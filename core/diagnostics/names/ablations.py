"""The ten ablations of the name margin (clq_ra_nwg §4.2): what each makes of the texts of a bundle."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from core.diagnostics.names.bundles import Bundle, Phrases
from core.records import short_hash

BASE = "base"
NARROW = "\u202f"
_SPACED = re.compile(" ?([:;!])")
_PARTICLES = frozenset(
    ["d", "d'", "d’", "da", "de", "del", "della", "der", "des", "di", "du", "la", "le", "van", "von", "zu"]
)
_NEAR = (0, 1, 2, 0, 3)
"""Substitutions in the name of each candidate: impostors have the true name, almost."""
_CASES = (str.upper, str.lower, str.title)


class Texts(NamedTuple):
    """What is embedded of a bundle."""

    query: str
    candidates: tuple[str, ...]  # C1, C2a, C2b, C3, C4


Ablation = Callable[[Bundle, Phrases], Texts]


def written(
    bundle: Bundle,
    forms: Phrases,
    asked: str | None = None,
    names: Sequence[str] | None = None,
    *,
    label: bool = True,
    first: bool = False,
) -> Texts:
    """Return the texts of a bundle with other names, without the label, or with the name first."""
    asked = bundle.entities[0] if asked is None else asked
    query = bundle.query.format(entity=asked, topic=bundle.topic)
    author = forms.author if label else _unlabelled(forms.author, "{label}")
    candidates = []
    for name, title in zip(names or bundle.entities, bundle.titles, strict=True):
        work = bundle.work.format(title=title)
        by = author.format(label=forms.label, entity=name)
        candidates.append(f"{by} {work}" if first else f"{work} {by}")
    return Texts(query if label else _unlabelled(query, forms.label), tuple(candidates))


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


def perturbed(name: str, turn: int) -> str:
    """Return a name in upper, lower or title case by turns, with straight apostrophes, hyphens as spaces."""
    return _CASES[turn % len(_CASES)](name.replace("’", "'").replace("-", " "))


def _initial(part: str) -> str:
    return part if part.endswith(".") or not part[:1].isupper() else f"{part[0]}."


def _parts(name: str) -> tuple[list[str], str]:
    """Names before the family name, and that with its particles."""
    words = name.split()
    last = len(words) - 1
    while last > 1 and words[last - 1].lower() in _PARTICLES:
        last -= 1
    return words[:last], " ".join(words[last:])


def _unlabelled(text: str, label: str) -> str:
    return text.replace(f"{label} ", "").replace(label, "")


def _mask(bundle: Bundle, forms: Phrases) -> Texts:
    mask = forms.mask.format(number=f"{bundle.number % 1000:03d}")
    return written(bundle, forms, mask, [mask] * len(bundle.entities))


def _renamed(rename: Callable[[str], str], *, query: bool) -> Ablation:
    def ablate(bundle: Bundle, forms: Phrases) -> Texts:
        names = [rename(name) for name in bundle.entities]
        return written(bundle, forms, names[0] if query else None, names)

    return ablate


def _near(bundle: Bundle, forms: Phrases) -> Texts:
    true = bundle.entities[0]
    return written(bundle, forms, names=[near_miss(true, many, bundle.seed) for many in _NEAR])


def _without_accents(bundle: Bundle, forms: Phrases) -> Texts:
    base = written(bundle, forms)
    return Texts(stripped(base.query), tuple(map(stripped, base.candidates)))


def _cased(bundle: Bundle, forms: Phrases) -> Texts:
    return written(bundle, forms, names=[perturbed(name, bundle.number) for name in bundle.entities])


def _stressed(bundle: Bundle, forms: Phrases) -> Texts:
    base = written(bundle, forms)
    spaced = (_SPACED.sub(rf"{NARROW}\1", text) for text in base.candidates)
    return Texts(
        unicodedata.normalize("NFC", base.query), tuple(unicodedata.normalize("NFD", text) for text in spaced)
    )


ABLATIONS: Mapping[str, Ablation] = MappingProxyType(
    {
        "hard_name_mask": _mask,
        "gibberish_name": _renamed(gibberish, query=True),
        "edit_distance_near_miss": _near,
        "remove_label": lambda bundle, forms: written(bundle, forms, label=False),
        "strip_diacritics": _without_accents,
        "initials_form": _renamed(initials, query=True),
        "name_order_inversion": _renamed(inverted, query=False),
        "case_punct_perturb": _cased,
        "author_position_shift": lambda bundle, forms: written(bundle, forms, first=True),
        "unicode_normalization_stress": _stressed,
    }
)
"""By the name that the paper gives them, in its order."""
CONDITIONS: Mapping[str, Ablation] = MappingProxyType({BASE: written, **ABLATIONS})
"""The bundle as it is, and every ablation of it."""
