"""Bundles of a question and five candidates that differ in name and topic (clq_ra_nwg §4.2).

C1 has the right name and topic, C2a and C2b another name and the right topic, C3 the right name and another
topic, C4 neither. Works come from the shipped lists or from a table of one's own, phrases from text files.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
import polars as pl

from core.errors import ClqError, InputError
from core.paths import DATA
from core.records import short_hash

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SHIPPED = DATA / "diagnostics"
_COLUMNS = ("entity", "topic", "title")
_FEWEST = 4
_T = TypeVar("_T")


class Work(NamedTuple):
    """What an entity is known for: an author's work, a maker's product, a part of a machine."""

    entity: str
    topic: str
    title: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """How questions and candidates are put in a language.

    Attributes:
        label: What stands before the name in a candidate.
        mask: What stands for every name of a bundle, with {number}.
        author: How a candidate names, with {label} and {entity}.
        queries: Forms of the question, with {entity} and {topic}.
        works: Forms of the rest of a candidate, with {title}.
    """

    label: str
    mask: str
    author: str
    queries: tuple[str, ...]
    works: tuple[str, ...]


class Bundle(NamedTuple):
    """One question with its five candidates."""

    number: int  # within its run
    seed: str  # of what is drawn for it
    query: str  # its form, with {entity}
    work: str  # form of the rest of a candidate, with {title}
    topic: str
    entities: tuple[str, ...]  # of C1, C2a, C2b, C3, C4
    titles: tuple[str, ...]  # of the same


@cache
def shipped(language: Language) -> tuple[Work, ...]:
    """Return the shipped works of a language; their source is in data/diagnostics/README.md."""
    return read_works(SHIPPED / f"names.{language}.csv")


@cache
def phrases(language: Language) -> Phrases:
    """Return the phrases of a language."""
    told = tomllib.loads((SHIPPED / f"templates.{language}.toml").read_text(encoding="utf-8"))
    return Phrases(
        label=told["label"],
        mask=told["mask"],
        author=told["author"],
        queries=tuple(told["queries"]),
        works=tuple(told["works"]),
    )


def read_works(path: Path) -> tuple[Work, ...]:
    """Read works from a table of one's own: .csv with columns entity, topic and title.

    Raises:
        InputError: If it cannot be read, or holds too few to draw bundles of.
    """
    try:
        rows = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"It is no table: {error}", where=str(path)) from error
    lacking = [name for name in _COLUMNS if name not in rows.columns]
    if lacking:
        raise InputError(
            f"No column {lacking[0]!r}.", where=str(path), do=f"Found: {', '.join(rows.columns)}."
        )
    given = rows.select(_COLUMNS).drop_nulls().unique(maintain_order=True)
    works = tuple(Work(*row) for row in given.iter_rows())
    try:
        require_works(works)
    except ClqError as error:
        raise InputError(error.found, where=str(path), do=error.do) from None
    return works


def works_of(passages: pl.DataFrame) -> tuple[Work, ...]:
    """Take works from the passages of a collection: a source is the entity, each of its titles a topic.

    Args:
        passages: source and title; passages that lack one of them do not count.

    Raises:
        InputError: See `require_works`.
    """
    named = passages.select("source", "title").drop_nulls().unique(maintain_order=True)
    works = tuple(Work(source, title, title) for source, title in named.iter_rows())
    require_works(works)
    return works


def require_works(works: Sequence[Work]) -> None:
    """Refuse works that no bundle can be drawn from.

    Raises:
        InputError: If there are too few entities, or none has two topics.
    """
    topics = _by_entity(works)
    if len(topics) < _FEWEST:
        raise InputError(f"{len(topics)} entities are too few.", do=f"Give at least {_FEWEST}.")
    if all(len({work.topic for work in some}) < 2 for some in topics.values()):
        raise InputError("No entity has two topics.", do="Give at least two topics each.")


def bundles(
    works: Sequence[Work], language: Language, *, run: int, queries: int, seed: str = "names"
) -> list[Bundle]:
    """Draw the bundles of one run: works, impostors and the forms of question and candidate.

    Args:
        works: What to draw from.
        language: Of the phrases.
        run: Its number; each draws anew.
        queries: How many; works come again only where there are fewer.
        seed: The same seed draws the same.
    """
    drawn = np.random.default_rng(int(short_hash(seed, language, str(run)), 16))
    forms = phrases(language)
    query, work = _one(drawn, forms.queries), _one(drawn, forms.works)
    topics = _by_entity(works)
    asked = [each for each in works if len({other.topic for other in topics[each.entity]}) > 1]
    order = [place for _ in range(-(-queries // len(asked))) for place in drawn.permutation(len(asked))]
    made = []
    for number, place in enumerate(order[:queries]):
        right = asked[place]
        others = _some(drawn, [name for name in topics if name != right.entity], 3)
        beside = _one(drawn, [each for each in topics[right.entity] if each.topic != right.topic])
        known = topics[others[2]]
        wrong = _one(drawn, [each for each in known if each.topic != right.topic] or known)
        made.append(
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
    return made


def _by_entity(works: Sequence[Work]) -> dict[str, list[Work]]:
    topics: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        topics[work.entity].append(work)
    return topics


def _one(drawn: np.random.Generator, items: Sequence[_T]) -> _T:
    return items[int(drawn.integers(len(items)))]


def _some(drawn: np.random.Generator, items: Sequence[_T], many: int) -> list[_T]:
    return [items[int(place)] for place in drawn.choice(len(items), many, replace=False)]
