"""Bundles of a question and five candidates that differ in name and topic, and their ablations.

C1 has the right name and topic, C2a and C2b another name and the right topic, C3 the right name and another
topic, C4 neither. Works come from the shipped lists or from a custom table, phrases from text files.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import polars as pl

from core.errors import ClqError, InputError
from core.paths import DATA
from core.pipeline.query.entities import (
    decomposed,
    gibberish,
    initials,
    inverted,
    near_miss,
    recased,
    stripped,
)
from core.records import short_hash

NameLanguage = Literal["en", "fr"]
LANGUAGES: tuple[NameLanguage, ...] = get_args(NameLanguage)
SHIPPED = DATA / "diagnostics"
_FEWEST = 4
_T = TypeVar("_T")
BASE, DIACRITICS = "base", "strip_diacritics"
_NEAR = (0, 1, 2, 0, 3)  # Substitutions in the name of each candidate: impostors have the true name, almost


class KnownWork(NamedTuple):
    """Something an entity is known for: an author's book, a maker's product, a part of a machine."""

    entity: str
    topic: str
    title: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """Wording of questions and candidates in a language."""

    label: str  # Text before the name in a candidate
    mask: str  # Placeholder for every name of a bundle, with {number}
    author: str  # Name in a candidate, with {label} and {entity}
    queries: tuple[str, ...]  # Forms of the question, with {entity} and {topic}
    works: tuple[str, ...]  # Forms of the rest of a candidate, with {title}


class Bundle(NamedTuple):
    """One question with its five candidates."""

    number: int  # within its run
    seed: str  # for its random draws
    query: str  # form of the question, with {entity}
    work: str  # form of the rest of a candidate, with {title}
    topic: str
    entities: tuple[str, ...]  # names in C1, C2a, C2b, C3, C4
    titles: tuple[str, ...]  # titles in the same


@cache
def shipped(language: NameLanguage) -> tuple[KnownWork, ...]:
    """Return the shipped works of a language; their source is in data/diagnostics/README.md."""
    return read_works(SHIPPED / f"names.{language}.csv")


@cache
def phrases(language: NameLanguage) -> Phrases:
    """Return the phrases of a language."""
    written: dict[str, Any] = tomllib.loads(
        (SHIPPED / f"templates.{language}.toml").read_text(encoding="utf-8")
    )
    forms: dict[str, Any] = {
        name: tuple(some) if isinstance(some, list) else some for name, some in written.items()
    }
    return Phrases(**forms)


def read_columns(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """Read some columns of a .csv as text; rows that lack one are left out."""
    try:
        rows = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"It is not a table: {error}", where=str(path)) from error
    for name in names:
        if name not in rows.columns:
            raise InputError(f"No column {name!r}.", where=str(path), do=f"Found: {', '.join(rows.columns)}.")
    return rows.select(names).drop_nulls()


def read_works(path: Path) -> tuple[KnownWork, ...]:
    """Read works from a custom table: .csv with columns entity, topic and title."""
    works = tuple(
        map(KnownWork._make, read_columns(path, KnownWork._fields).unique(maintain_order=True).iter_rows())
    )
    try:
        require_works(works)
    except ClqError as error:
        raise InputError(error.found, where=str(path), do=error.do) from None
    return works


def works_of(passages: pl.DataFrame) -> tuple[KnownWork, ...]:
    """Build works from the passages of a collection: a source is the entity, each of its titles a topic."""
    named = passages.select("source", "title").drop_nulls().unique(maintain_order=True)
    works = tuple(KnownWork(source, title, title) for source, title in named.iter_rows())
    require_works(works)
    return works


def require_works(works: Sequence[KnownWork]) -> None:
    """Refuse works that no bundle can be drawn from."""
    topics = _by_entity(works)
    if len(topics) < _FEWEST:
        raise InputError(f"{len(topics)} entities are too few.", do=f"Give at least {_FEWEST}.")
    if all(len({work.topic for work in some}) < 2 for some in topics.values()):
        raise InputError("No entity has two topics.", do="Give at least two topics each.")


def bundles(
    works: Sequence[KnownWork], language: NameLanguage, *, run: int, queries: int, seed: str = "names"
) -> list[Bundle]:
    """Draw the bundles of one run: works, impostors and the forms of question and candidate."""
    drawn = np.random.default_rng(int(short_hash(seed, language, str(run)), 16))
    forms = phrases(language)
    query, work = _one(drawn, forms.queries), _one(drawn, forms.works)
    topics = _by_entity(works)
    asked = [author for author in works if len({other.topic for other in topics[author.entity]}) > 1]
    order = [place for _ in range(-(-queries // len(asked))) for place in drawn.permutation(len(asked))]
    drawn_bundles = []
    for number, place in enumerate(order[:queries]):
        right = asked[place]
        names = [name for name in topics if name != right.entity]
        others = [names[int(at)] for at in drawn.choice(len(names), 3, replace=False)]
        beside = _one(drawn, [topic for topic in topics[right.entity] if topic.topic != right.topic])
        known = topics[others[2]]
        wrong = _one(drawn, [other_work for other_work in known if other_work.topic != right.topic] or known)
        drawn_bundles.append(
            Bundle(
                number=number,
                seed=f"{seed} {language} {run} {number}",
                query=query,
                work=work,
                topic=right.topic,
                entities=(right.entity, others[0], others[1], right.entity, wrong.entity),
                titles=(right.title, right.title, right.title, beside.title, wrong.title),
            )
        )
    return drawn_bundles


def _by_entity(works: Sequence[KnownWork]) -> dict[str, list[KnownWork]]:
    topics: dict[str, list[KnownWork]] = defaultdict(list)
    for work in works:
        topics[work.entity].append(work)
    return topics


def _one(drawn: np.random.Generator, items: Sequence[_T]) -> _T:
    return items[int(drawn.integers(len(items)))]


class BundleTexts(NamedTuple):
    """Texts of a bundle to embed."""

    query: str
    candidates: tuple[str, ...]  # C1, C2a, C2b, C3, C4


Ablation = Callable[[Bundle, Phrases], BundleTexts]


def written(
    bundle: Bundle,
    forms: Phrases,
    asked: str | None = None,
    names: Sequence[str] | None = None,
    *,
    label: bool = True,
    first: bool = False,
) -> BundleTexts:
    """Write the texts of a bundle with other names, without the label, or with the name first."""
    asked = bundle.entities[0] if asked is None else asked
    query = bundle.query.format(entity=asked, topic=bundle.topic)
    author = forms.author if label else _unlabelled(forms.author, "{label}")
    candidates = []
    for name, title in zip(names or bundle.entities, bundle.titles, strict=True):
        work = bundle.work.format(title=title)
        by = author.format(label=forms.label, entity=name)
        candidates.append(f"{by} {work}" if first else f"{work} {by}")
    return BundleTexts(query if label else _unlabelled(query, forms.label), tuple(candidates))


def _unlabelled(text: str, label: str) -> str:
    return text.replace(f"{label} ", "").replace(label, "")


def _mask(bundle: Bundle, forms: Phrases) -> BundleTexts:
    mask = forms.mask.format(number=f"{bundle.number % 1000:03d}")
    return written(bundle, forms, mask, [mask] * len(bundle.entities))


def _renamed(rename: Callable[[str], str], *, query: bool) -> Ablation:
    def ablate(bundle: Bundle, forms: Phrases) -> BundleTexts:
        names = [rename(name) for name in bundle.entities]
        return written(bundle, forms, names[0] if query else None, names)

    return ablate


def _near(bundle: Bundle, forms: Phrases) -> BundleTexts:
    true = bundle.entities[0]
    return written(bundle, forms, names=[near_miss(true, many, bundle.seed) for many in _NEAR])


def _each(change: Callable[[str], str], texts: BundleTexts) -> BundleTexts:
    return BundleTexts(change(texts.query), tuple(map(change, texts.candidates)))


def in_ascii(some: Sequence[BundleTexts]) -> dict[str, list[BundleTexts]]:
    """Return the ASCII-only bundles, unchanged and with (non-existent) accents removed."""

    def folded(text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

    base = [_each(folded, bundle) for bundle in some]
    return {BASE: base, DIACRITICS: [_each(stripped, bundle) for bundle in base]}


def _cased(bundle: Bundle, forms: Phrases) -> BundleTexts:
    return written(bundle, forms, names=[recased(name, bundle.number) for name in bundle.entities])


def _stressed(bundle: Bundle, forms: Phrases) -> BundleTexts:
    base = written(bundle, forms)
    return BundleTexts(unicodedata.normalize("NFC", base.query), tuple(map(decomposed, base.candidates)))


ABLATIONS: Mapping[str, Ablation] = MappingProxyType(
    {
        "hard_name_mask": _mask,
        "gibberish_name": _renamed(gibberish, query=True),
        "edit_distance_near_miss": _near,
        "remove_label": lambda bundle, forms: written(bundle, forms, label=False),
        "strip_diacritics": lambda bundle, forms: _each(stripped, written(bundle, forms)),
        "initials_form": _renamed(initials, query=True),
        "name_order_inversion": _renamed(inverted, query=False),
        "case_punct_perturb": _cased,
        "author_position_shift": lambda bundle, forms: written(bundle, forms, first=True),
        "unicode_normalization_stress": _stressed,
    }
)
"""Ablations by their names in the paper, in its order."""
CONDITIONS: Mapping[str, Ablation] = MappingProxyType({BASE: written, **ABLATIONS})
"""The unchanged bundle, and every ablation of it."""
