"""The ten ablations of the name margin (clq_ra_nwg §4.2): what each makes of the texts of a bundle."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from core.diagnostics.names.bundles import Bundle, Phrases
from core.pipeline.query.names import (
    decomposed,
    gibberish,
    initials,
    inverted,
    near_miss,
    recased,
    stripped,
)

BASE, DIACRITICS = "base", "strip_diacritics"
_NEAR = (0, 1, 2, 0, 3)
"""Substitutions in the name of each candidate: impostors have the true name, almost."""


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
    return _each(stripped, written(bundle, forms))


def _each(change: Callable[[str], str], texts: Texts) -> Texts:
    return Texts(change(texts.query), tuple(map(change, texts.candidates)))


def in_ascii(some: Sequence[Texts]) -> dict[str, list[Texts]]:
    """Return bundles with ASCII alone, as they are and without the accents that they do not have."""

    def folded(text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

    base = [_each(folded, each) for each in some]
    return {BASE: base, DIACRITICS: [_each(stripped, each) for each in base]}


def _cased(bundle: Bundle, forms: Phrases) -> Texts:
    return written(bundle, forms, names=[recased(name, bundle.number) for name in bundle.entities])


def _stressed(bundle: Bundle, forms: Phrases) -> Texts:
    base = written(bundle, forms)
    return Texts(unicodedata.normalize("NFC", base.query), tuple(map(decomposed, base.candidates)))


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
