"""View state in the address: which settings a link carries, what it looks like, what is wrong with one.

Widgets are bound to the address by their key, so a copied address restores them. A link made by `build`
besides names every setting, defaults included, and pins the revision of the store, so that it shows the same
numbers when the data or the defaults have changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from core.views.link import pinned, written

LATEST = "latest"

SETTINGS: Mapping[str, str] = {
    "sec": "section",
    "ws": "workspace",
    "gs": "golden set",
    "runs": "runs",
    "m": "measure",
    "k": "cutoff",
    "alpha": "alpha",
    "cap4": "cap4",
    "cap3": "cap3",
    "beta": "beta",
    "mix": "alpha between 0 and 1",
    "p": "persistence p",
    "rel": "relevance threshold",
    "gain": "gain",
    "ref": "measure that is explained",
    "on": "latency percentile",
    "lat": "latency scope",
    "sla": "SLA",
    "budget": "budget",
    "floor": "quality floor",
    "cap": "quality cap",
    "harm": "harm cap",
    "jitter": "jitter band",
    "held": "collection of the runs",
    "named": "name of the runs",
    "sets": "golden sets compared",
    "judges": "pair of judges",
    "cq": "queries compared on",
    "figs": "averages from elsewhere",
    "env": "machine of the latencies",
    "gq": "golden sets that judge the queries",
    "jq": "share of the Top-K that is judged",
    "book": "price book",
    "price": "changed price",
    "rev": "data revision",
    "stack": "selected stack",
    "vs": "second stack",
    "q": "query",
    "colour": "colour",
    "size": "size",
    "curves": "stacks in the chart",
    "pool": "pool convention",
    "tag": "tag",
    "find": "search",
    "sort": "sort order",
    "queries": "queries per month",
    "base": "starting stack",
    "cand": "candidates",
    "tokc": "tokens per candidate",
    "tokq": "query tokens",
    "emb": "embedder",
    "rer": "reranker",
    "chunks": "chunks sent",
    "toks": "tokens per chunk",
    "gen": "generator",
    "prompt": "prompt tokens",
    "out": "output tokens",
    "cpu": "local machine time",
    "gpu": "local graphics time",
    "npas": "passages",
    "tokp": "tokens per passage",
    "spread": "queries that the corpus is spread over",
    "idx": "index",
    "dims": "dimensions",
    "copies": "copies of the index",
    "swing": "range of the sensitivity",
    "seg": "answers",
    "corr": "correlation",
    "against": "measure compared",
    "less": "measure compared with",
    "kx": "x axis of the curves",
    "kgen": "generator that reads what is sent",
    "cutof": "stack that is cut",
    "least": "answers per cell",
    "cmp": "stacks compared",
    "each": "way of comparing",
    "ci": "interval",
    "tol": "tie tolerance",
    "part": "grades of a chunking",
    "pair": "pair",
    "change": "change",
    "fam": "stack that is routed",
    "among": "stacks that are routed between",
    "ks": "depths",
    "sig": "signal",
    "most": "share sent deeper",
    "thrby": "who sets the threshold",
    "thr": "threshold",
    "thr2": "thresholds",
    "rx": "x axis of the routing",
    "gbase": "base time of the generator",
    "gin": "time per prompt token",
    "gout": "time per output token",
    "gchunk": "chunks sent to the generator",
    "gtok": "tokens per chunk sent",
    "gprompt": "other prompt tokens",
    "gans": "tokens of an answer",
    "lats": "stacks in the latency charts",
    "shape": "shape of the latency charts",
    "rule": "what is best",
    "view": "way of drawing",
    "form": "form of the frontier",
    "slas": "latency targets",
    "per": "price of a step",
    "scen": "own scenarios",
    "perq": "judgements per query",
    "spend": "money for judging",
    "judge": "cost of a judgement",
}
"""Every setting that may stand in an address, by its key, with the word that people read."""


NUMBERS = frozenset({
    "alpha", "cap4", "cap3", "beta", "mix", "p", "rel", "sla", "budget", "floor", "cap", "harm", "jitter",
    "queries",
    "cand", "tokc", "tokq", "chunks", "toks", "prompt", "out", "cpu", "gpu", "npas", "tokp", "spread",
    "dims", "copies", "swing", "least", "tol", "most", "thr", "thr2", "gbase", "gin", "gout", "gchunk",
    "gtok", "gprompt", "gans", "perq", "spend", "judge", "rev",
})  # fmt: skip
"""The settings whose values are numbers."""
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)
_LARGEST = 1e9
_LONGEST = 2_000


def unreadable(asked: Mapping[str, Sequence[str]]) -> list[str]:
    """Which settings of an address are no values at all, whatever the widgets offer.

    Args:
        asked: The address's settings as they came, whoever wrote them.

    Returns:
        Keys of `SETTINGS` with an empty or an endless value, or with one that should be a number and is none
        from -1e9 to 1e9. What is left may still not be on offer; that the widgets find out.
    """
    return [
        key
        for key, texts in asked.items()
        if key in SETTINGS and not all(_sound(key, text) for text in texts)
    ]


def _sound(key: str, text: str) -> bool:
    if key in NUMBERS and (key, text) != ("rev", LATEST):
        return _NUMBER.fullmatch(text) is not None and abs(float(text)) <= _LARGEST
    return 0 < len(text) <= _LONGEST


def build(address: str, values: Mapping[str, object], revision: int) -> str:
    """A link that opens the same view of the same data anywhere.

    Args:
        address: The address that the page is open at; its query is replaced.
        values: Current values by key; keys outside `SETTINGS` and empty values are left out.
        revision: The revision that the numbers on screen come from.

    Returns:
        The link, every setting named and the revision pinned.
    """
    return pinned(address, {key: values.get(key) for key in SETTINGS}, revision)


def problems(
    asked: Mapping[str, Sequence[str]],
    values: Mapping[str, object],
    deleted: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> list[str]:
    """What of an opened address could not be followed.

    Args:
        asked: The address's settings as they came.
        values: The values that the widgets took, by key; a key that no widget of this page has is absent.
        deleted: Values that were there until somebody deleted them, by key.

    Returns:
        A plain sentence per setting that is unknown or was refused; empty when the link was followed.
    """
    found = []
    for key, texts in asked.items():
        if key not in SETTINGS:
            found.append(f"unknown setting “{key[:40]}”")
        elif key in values and not _same(texts, written(values[key])):
            gone = not {*deleted.get(key, ())}.isdisjoint(texts)
            why = "was deleted, and page Library can restore it" if gone else "does not exist here"
            found.append(f"{SETTINGS[key]} “{', '.join(texts)[:60]}” {why}")
    return found


def _same(asked: Sequence[str], taken: Sequence[str]) -> bool:
    if len(asked) != len(taken):
        return False
    return all(a == b or _number(a) == _number(b) is not None for a, b in zip(asked, taken, strict=True))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
