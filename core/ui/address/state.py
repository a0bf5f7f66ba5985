"""View state in the URL: the settings in a link, their form, and errors in them.

Widgets are bound to the URL by their key, which records non-default values; a copied URL
restores them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

from core.analysis.workspace.question import Question
from core.axes import as_offered
from core.choices import Declaring, declared
from core.decide.axes import FORMER, STEP, nearest_setting
from core.decide.switching import Terms
from core.errors import cut
from core.number_format import PER_1K, dollars_per_1k
from core.prices.calculator import CostInputs
from core.views.ask import RENAMED
from core.views.link import RULES, written

LATEST = "latest"
TAKE = "take"
PHONE = "_phone"  # Session slot: whether the window is as narrow as a phone's
HANDED_ON = "_handed_on"  # Session slot: settings that the page's script converted into others
UNMOVED = "_unmoved"  # Session slot: whether this run doesn't follow any action of the visitor
LOST = "_lost"  # Session slot: the page that the address names and that does not exist
NEXT = "_next_workspace"  # Session slot: the workspace to show from the next script run on
_DEFAULTS = "_defaults"


@dataclass(frozen=True)
class Setting:
    """A setting that may be in a URL."""

    word: str  # its readable name
    options: tuple[str, ...] = ()  # its values, if they are the same in every workspace
    number: bool = False  # whether its values are numbers
    money: bool = False  # whether they are dollars with their unit
    dependent: bool = False  # whether it is meaningful only in its workspace, and so is forgotten with it
    rare: bool = False  # whether it is behind the button "Settings", which counts it


_WORDS: Mapping[str, tuple[str, ...]] = {
    "rule": tuple(RULES),
    STEP.limit: STEP.levels,
}  # Values of question fields that are words


def _of(kind: type[Declaring]) -> dict[str, Setting]:
    """Return the settings that are choices of a dataclass, by their key."""
    return {
        field.choice.key: Setting(
            field.choice.word,
            _WORDS.get(field.choice.key, ()),
            number=field.number,
            money=field.choice.money,
            dependent=field.choice.dependent,
            rare=field.choice.rare,
        )
        for field in declared(kind).values()
        if field.choice.key
    }


SETTINGS: Mapping[str, Setting] = {
    "sec": Setting("section"),
    **_of(Question),
    "k": Setting("cutoff", dependent=True, rare=True),
    "alpha": Setting("alpha", number=True, dependent=True, rare=True),
    "cap4": Setting("cap4", number=True, dependent=True, rare=True),
    "cap3": Setting("cap3", number=True, dependent=True, rare=True),
    "beta": Setting("beta", number=True, dependent=True, rare=True),
    "patience": Setting("patience of the reader", number=True, dependent=True, rare=True),
    "mix": Setting("alpha between 0 and 1", number=True, dependent=True, rare=True),
    "p": Setting("persistence p", number=True, dependent=True, rare=True),
    "rel": Setting("relevance threshold", number=True, dependent=True, rare=True),
    "gain": Setting("gain", dependent=True, rare=True),
    "unjudged": Setting("where unjudged passages are from", dependent=True, rare=True),
    "talk": Setting("noise of the queries", number=True, dependent=True, rare=True),
    "typo": Setting("typos of the queries", number=True, dependent=True, rare=True),
    "accents": Setting("accents of the queries", number=True, dependent=True, rare=True),
    "case": Setting("case of the queries", number=True, dependent=True, rare=True),
    "names": Setting("names in the queries", dependent=True, rare=True),
    "live": Setting("traces that are watched", dependent=True),
    "proxy": Setting("proxy that is watched", dependent=True),
    "wins": Setting("windows of time", number=True),
    "drawn": Setting("share of the traces to judge, %", number=True),
    "before": Setting("judged queries for reference", number=True),
    "noisy": Setting("stack whose queries were perturbed", dependent=True),
    "typed": Setting("perturbation of the query", dependent=True),
    "depth": Setting("passages shown of a ranking"),
    "spoken": Setting("language of the names"),
    "ref": Setting("measure that is explained"),
    "kind": Setting("kind of things"),
    "held": Setting("collection of the runs"),
    "named": Setting("name of the runs"),
    "printed": Setting("published table"),
    "sets": Setting("golden sets compared", dependent=True),
    "judges": Setting("pair of judges", dependent=True),
    "queue": Setting("queue of passages to judge", dependent=True),
    "cq": Setting("queries compared on", dependent=True, rare=True),
    "figs": Setting("averages from elsewhere", dependent=True, rare=True),
    "env": Setting("machine of the latencies", dependent=True, rare=True),
    "stack": Setting("selected stack", dependent=True),
    "vs": Setting("second stack", dependent=True),
    "q": Setting("query", dependent=True),
    "colour": Setting("colour"),
    "size": Setting("size"),
    "curves": Setting("stacks in the chart", dependent=True),
    "pool": Setting("pool convention"),
    "tag": Setting("tag", dependent=True),
    "find": Setting("search"),
    "sort": Setting("sort order"),
    **_of(CostInputs),
    "base": Setting("starting stack", dependent=True),
    "swing": Setting("range of the sensitivity", number=True),
    "seg": Setting("answers", dependent=True),
    "corr": Setting("correlation"),
    "against": Setting("measure compared"),
    "less": Setting("measure compared with"),
    "kx": Setting("x axis of the curves"),
    "kgen": Setting("reader of what is sent"),
    "cutof": Setting("stack that is cut"),
    "least": Setting("answers per cell", number=True),
    "cmp": Setting("stacks compared", dependent=True),
    "also": Setting("further stacks", dependent=True),
    "each": Setting("way of comparing"),
    "ci": Setting("interval"),
    "test": Setting("test"),
    "adjust": Setting("correction"),
    "tol": Setting("tie tolerance", number=True),
    "part": Setting("grades of a chunking"),
    "lists": Setting("lists that are compared", dependent=True),
    "listk": Setting("depth of the lists", number=True),
    "listrel": Setting("grade that is relevant in the lists"),
    "listby": Setting("estimate of what is unseen"),
    "pair": Setting("pair", dependent=True),
    "change": Setting("change", dependent=True),
    "fam": Setting("stack that is routed", dependent=True),
    "among": Setting("stacks that are routed between", dependent=True),
    "ks": Setting("depths", dependent=True),
    "sig": Setting("signal", dependent=True),
    "most": Setting("share sent deeper", number=True),
    "signs": Setting("signs that a router goes by", dependent=True),
    "routby": Setting("method of a router"),
    "thrby": Setting("who sets the threshold"),
    "thr": Setting("threshold", number=True, dependent=True),
    "thr2": Setting("thresholds", number=True, dependent=True),
    "rated": Setting("stack whose ratings are weighed", dependent=True),
    "rwt": Setting("least relevance", number=True, dependent=True),
    **{f"rw{place}": Setting(f"weight {place}", number=True, dependent=True) for place in range(1, 9)},
    "rx": Setting("x axis of the routing"),
    "gbase": Setting("base time of the reader", number=True, rare=True),
    "gin": Setting("time per prompt token", number=True, rare=True),
    "gout": Setting("time per output token", number=True, rare=True),
    "gchunk": Setting("passages sent to the reader", number=True, rare=True),
    "gtok": Setting("tokens of a passage sent", number=True, rare=True),
    "gprompt": Setting("other prompt tokens", number=True, rare=True),
    "gans": Setting("tokens of an answer", number=True, rare=True),
    "lats": Setting("stacks in the latency charts", dependent=True),
    "shape": Setting("shape of the latency charts"),
    "ixat": Setting("measurement of the indexes", dependent=True),
    "ixk": Setting("neighbours asked of the indexes", number=True, dependent=True),
    "ixc": Setting("clients that ask at once", number=True, dependent=True),
    "ixloss": Setting("bearable loss of an index", number=True),
    "ixusd": Setting("price of the indexes' machine", number=True),
    "ixuse": Setting("utilisation of the indexes' machine", number=True),
    **_of(Terms),
    "from": Setting("stack that a candidate is judged against", dependent=True),
    "to": Setting("candidate beside the stack that runs", dependent=True),
    "alike": Setting("difference that does not matter", number=True),
    "view": Setting("way of drawing"),
    "form": Setting("form of the frontier"),
    "slas": Setting("latency targets"),
    "scen": Setting("own scenarios"),
    "perq": Setting("judgements per query", number=True),
    "spend": Setting("money for judging", number=True),
    "judge": Setting("cost of a judgement", number=True),
    "weak": Setting("weakness of the queries"),
    "scorer": Setting("scorer of the answers", dependent=True),
    "voice": Setting("whose scores of the answers count", dependent=True),
    "answered": Setting("stacks that readers answered from", dependent=True),
    "readers": Setting("readers", dependent=True),
    "rdx": Setting("x axis of the readers"),
    "rdby": Setting("panels of the readers"),
    "near": Setting("neighbours of k*", number=True),
    "eps": Setting("smallest gain", number=True),
    "flat": Setting("share of the best that is a plateau", number=True),
    "fig": Setting("figure of the matrix"),
    "read": Setting("stack that was read", dependent=True),
    "reader": Setting("reader", dependent=True),
    "bear": Setting("bearable loss", number=True),
    "rbk": Setting("passages sent", dependent=True),
    "crit": Setting("criteria of the generators", dependent=True),
    "genbase": Setting("baseline of the generators", dependent=True),
    "trust": Setting("judge of the answers that people correct", dependent=True),
    "over": Setting("stack that others are compared with", dependent=True),
    "goodfrom": Setting("score from which on an answer is good", number=True),
    "people": Setting("grades of answers by people"),
    "lose": Setting("answerable questions that may be refused", number=True),
    "aim": Setting("score that k is asked for", number=True),
    "gold": Setting("gold passages that count"),
    "with": Setting("grades that are put on top", dependent=True),
}
"""Every setting that may be in a URL, by its key."""

CARRIED = tuple(
    dict.fromkeys([*_of(Question), *_of(Terms), *(key for key, each in SETTINGS.items() if each.rare)])
)
"""Settings read by every page, so that every link includes them: the question to a workspace."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)
_LARGEST = 1e9
_LONGEST = 2_000
_SHOWN, _NAMED = 30, 40  # Maximum characters shown of a value, and maximum settings named


def unreadable(asked: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the URL settings that cannot be parsed at all, regardless of the options offered."""
    return [
        key
        for key, texts in asked.items()
        if key in SETTINGS and not all(_sound(key, text) for text in texts)
    ]


def renewed(said: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Convert the settings of an earlier release's URL to this release.

    A limit that also has its current name keeps that value.
    """
    return {
        key if (now := FORMER.get(key, key)) in said else now: [_renewed(now, text) for text in texts]
        for key, texts in said.items()
    }


def _renewed(key: str, text: str) -> str:
    setting = SETTINGS.get(key)
    amount = dollars_per_1k(text) if setting and setting.money and "per" not in text else None
    if amount is not None:
        return PER_1K.typed(amount)
    return RENAMED.get(key, {}).get(text, text)


def _sound(key: str, text: str) -> bool:
    if SETTINGS[key].money:
        return dollars_per_1k(text) is not None
    if SETTINGS[key].number and (key, text) != ("rev", LATEST):
        return _NUMBER.fullmatch(text) is not None and abs(float(text)) <= _LARGEST
    return 0 < len(text) <= _LONGEST


GONE = ("per",)
"""Settings that nothing asks for any more, but that old links still name."""


def problems(
    asked: Mapping[str, Sequence[str]],
    values: Mapping[str, object],
    deleted: Mapping[str, Iterable[str]] = MappingProxyType({}),
    later: Collection[str] = (),
) -> dict[str, str]:
    """Return the settings of an opened URL that could not be followed, with the reason, by key.

    Args:
        values: The values of the settings that the page asks for, by key.
        deleted: Deleted things, by the key that would name them.
        later: Keys that other pages ask for, which decide then.
    """
    found = {key: _problem(key, texts, values, deleted, later) for key, texts in asked.items()}
    return {key: reason for key, reason in found.items() if reason}


def _problem(
    key: str,
    texts: Sequence[str],
    values: Mapping[str, object],
    deleted: Mapping[str, Iterable[str]],
    later: Collection[str],
) -> str:
    """Return why a setting cannot be followed, or "" if it is, or if another page decides it."""
    setting = SETTINGS.get(key)
    if setting is None and key not in values:  # else a plug-in's section asks for it
        near = nearest_setting(key, SETTINGS)
        return f"unknown, nearest is {near}" if near else "unknown"
    if setting and (wrong := _unreadable(key, setting, texts)):
        return wrong
    if key not in values:
        return "" if key in later else "not asked here"
    held = written(values[key])
    if same(texts, held) or same([as_offered(text, held) for text in texts], held):
        return ""
    if not {*deleted.get(key, ())}.isdisjoint(texts):
        return "deleted, page Library can restore it"
    out = setting is not None and setting.number and len(texts) == 1 and key != "rev"
    return "out of range here" if out else "does not exist here"


def _unreadable(key: str, setting: Setting, texts: Sequence[str]) -> str:
    """Return why texts aren't valid for a setting in any workspace, or "" if they are."""
    if all(_sound(key, text) for text in texts):
        known = not setting.options or {*texts} <= {*setting.options}
        return "" if known else f"one of: {', '.join(setting.options)}"
    if setting.money:
        return "no amount such as 2.5per1k or 0.2per1M"
    return "no number" if setting.number else "no value"


def not_followed(asked: Mapping[str, Sequence[str]], why: Mapping[str, str]) -> str:
    """Say in one line which settings could not be followed: ``budget “abc”, SLA “x” (no number)``."""
    named: dict[str, list[str]] = {}
    for key in [*why][:_NAMED]:
        setting, text = SETTINGS.get(key), ", ".join(asked[key])
        name = f"{setting.word} “{cut(text, _SHOWN)}”" if setting else f"“{cut(key, _SHOWN)}”"
        named.setdefault(why[key], []).append(name)
    said = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in named.items())
    more = len(why) - _NAMED
    return f"{said}, and {more} more" if more > 0 else said


def same(asked: Sequence[str], taken: Sequence[str]) -> bool:
    """Return whether two texts of a setting are equivalent."""
    if len(asked) != len(taken):
        return False
    return all(a == b or number(a) == number(b) is not None for a, b in zip(asked, taken, strict=True))


def number(text: str) -> float | None:
    """Return the number in a URL's text, or None if it isn't one."""
    try:
        return float(text)
    except ValueError:
        return None


def forget_defaults() -> None:
    """Reset the defaults for other data, before the settings are drawn."""
    st.session_state[_DEFAULTS] = {}


def linked(key: str) -> dict[str, Any]:
    """Return the options that bind a widget to its URL setting."""
    return {"key": key, "bind": "query-params"}


def bound(key: str, default: object) -> dict[str, Any]:
    """Bind like `linked`, for a setting that counts as changed if it differs from its default."""
    st.session_state[_DEFAULTS][key] = default
    return linked(key)


def changed(keys: Iterable[str]) -> int:
    """Count the settings that differ from their defaults, as far as the last drawing recorded them."""
    defaults = st.session_state.get(_DEFAULTS)
    if defaults is None:
        return sum(key in st.query_params for key in keys)
    known = [key for key in keys if key in defaults]
    return sum(written(st.session_state.get(key, defaults[key])) != written(defaults[key]) for key in known)


def back_to_defaults(keys: Iterable[str]) -> None:
    """Reset changed settings to their defaults (a callback)."""
    for key in keys:
        if key in st.session_state[_DEFAULTS]:
            st.session_state[key] = st.session_state[_DEFAULTS][key]
