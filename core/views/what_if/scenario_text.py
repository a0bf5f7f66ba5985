"""Scenarios: a name, what is best, and limits, in a line of text that a link carries.

``Ours: quality, sla 500, budget 2.5; Cheap: cost, floor 0.7, K 100`` are two scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast, get_args

from core.decide.rules import Rule
from core.errors import InputError, UnknownNameError
from core.views import text
from core.views.link import RULES

MOST = 12  # Scenarios that one text may hold
_RESERVED = ":;,"
_KEYS: Mapping[str, str] = {
    "sla": "sla_ms",
    "budget": "budget",
    "floor": "floor",
    "harm": "max_harm",
    "dim": "dim",
    "K": "depth",
}
_RULES = {rule: words for words, rule in RULES.items()}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one scenario asks for; None = not asked for."""

    name: str  # what people call it
    rule: Rule = "quality"  # what is best among the stacks that are left
    sla_ms: float | None = None  # highest latency; ms
    budget: float | None = None  # highest cost; $ per 1,000 queries
    floor: float | None = None  # worst quality; 0..1
    dim: float | None = None  # most dimensions of the embedding
    depth: float | None = None  # fewest candidates K
    # width of the jitter band, where it is not the sidebar's; ms. Not part of the text
    jitter_ms: float | None = None
    max_harm: float | None = None  # highest harm; 0..1

    def words(self, *, higher_is_better: bool = True) -> str:
        """What it asks for, as people read it; the argument is the direction of the quality."""
        parts = [_RULES[self.rule]]
        if self.sla_ms is not None:
            parts.append(f"at most {text.ms(self.sla_ms)}")
        if self.budget is not None:
            parts.append(f"at most {text.usd(self.budget)}")
        if self.floor is not None:
            parts.append(f"quality at {'least' if higher_is_better else 'most'} {self.floor:.3g}")
        if self.max_harm is not None:
            parts.append(f"harm at most {self.max_harm:.3g}")
        if self.dim is not None:
            parts.append(f"at most {self.dim:g} dimensions")
        if self.depth is not None:
            parts.append(f"K at least {self.depth:g}")
        return ", ".join(parts)


def parse(line: str) -> list[Scenario]:
    """Read scenarios from their text.

    Raises:
        InputError: If a part cannot be read; the message names it.
        UnknownNameError: If a rule or limit does not exist.
    """
    found: list[Scenario] = []
    for part in filter(None, (each.strip() for each in line.split(";"))):
        name, colon, rest = part.partition(":")
        if not colon or not name.strip():
            raise InputError(
                f"“{part[:60]}” is no scenario.", do="Write NAME: quality, sla 500, budget 2.5, for example."
            )
        if name.strip() in {each.name for each in found}:
            raise InputError(f"Two scenarios are called “{name.strip()}”.", do="Rename one of them.")
        found.append(_scenario(name.strip(), rest))
    if len(found) > MOST:
        raise InputError(f"{len(found)} scenarios are too many to compare.", do=f"Keep {MOST} at most.")
    return found


def _scenario(name: str, rest: str) -> Scenario:
    words = [each.strip() for each in rest.split(",") if each.strip()]
    rule: Rule = "quality"
    if words and len(words[0].split()) == 1:
        rule = cast(Rule, words.pop(0))
        if rule not in get_args(Rule):
            raise UnknownNameError("rule", rule[:40], get_args(Rule))
    given: dict[str, float] = {}
    for word in words:
        key, _, value = word.partition(" ")
        if key not in _KEYS:
            raise UnknownNameError("limit", key[:40], tuple(_KEYS))
        if key in given:
            raise InputError(f"“{name}” sets {key} twice.", do="Keep one of them.")
        given[key] = _number(name, key, value)
    return Scenario(name, rule, **{_KEYS[key]: value for key, value in given.items()})


def _number(name: str, key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        raise InputError(
            f"“{name}” has the {key} “{value[:20]}”.", do="Write a number from 0, as in sla 500."
        )
    return number


def written(scenarios: Sequence[Scenario]) -> str:
    """The text that `parse` reads."""
    parts = []
    for each in scenarios:
        limits = [
            f"{key} {value:.10g}"
            for key, field in _KEYS.items()
            if (value := getattr(each, field)) is not None
        ]
        parts.append(f"{each.name}: {', '.join([each.rule, *limits])}")
    return "; ".join(parts)


def with_one(line: str, scenario: Scenario) -> str:
    """A text of scenarios with one more, or with the one of the same name replaced.

    Raises:
        InputError: If its name is empty, or holds a character with a meaning in the text.
    """
    name = " ".join(scenario.name.split())
    if not name or any(char in _RESERVED for char in name):
        raise InputError(f"“{name[:60]}” is no name.", do="Use a name without colon, semicolon or comma.")
    kept = {each.name: each for each in parse(line)}
    kept[name] = replace(scenario, name=name, jitter_ms=None)
    return written(list(kept.values()))
