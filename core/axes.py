"""Keys of a stack's specification and stages of a query, declared once for all their readers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

AxisSpec = Mapping[str, Any]
AxisStep = Literal["none", "rebuild", "embed"]
"""What a change of a running stack needs, the least first: only a new setting, a new index over the
existing vectors or texts, or a new embedding of all passages."""
TOGETHER = ("embedder", "dim")
"""Keys whose values change only in observed combinations: each model has its own dimensions."""
SAID_K = r",? K = \d+"
"""K in the name of a stack; without a reranker nothing reads it, so that the name omits it."""
SAID_REST = r"( : [\d.]+| alpha [\d.]+)(?: (?:constant|depth|normalise) [\w.]+)+"
"""Weights of a fusion (the group) and further settings, which a name omits where they set nothing apart."""
_CUT = "its final ranking was cut, so the scores of the rest of the pool are not kept"
NEAR_COPIES = "dedup"  # The key of the step that removes near copies from a pool
_USUAL_FUSION = {"method": "rrf", "constant": 60, "depth": 100, "normalise": "minmax"}
QUERY_STAGES: Mapping[str, str] = {
    "rewrite": "rewrite",
    "variant": "rewrite",
    "embed": "embed",
    "search": "retrieve",
    "sparse": "sparse",
    "fuse": "fuse",
    "dedup": "dedup",
    "rerank": "rerank",
    "cut": "cut",
    "own": "pipeline",
}
"""Kinds of steps that a query goes through, in the order in which a stack runs them, and the stage under
which their time and usage are recorded."""


def settings(table: AxisSpec, *shown: str) -> str:
    """Write a method with all or some of its settings: ``rrf 1 : 1.3 constant 10``."""
    keys = [key for key in table if key != "method" and (not shown or key in shown)]
    return " ".join([str(table["method"]), *(_setting(key, table[key]) for key in sorted(keys, key=_behind))])


def _behind(key: str) -> bool:
    return key != "weights"


def _setting(key: str, value: object) -> str:
    if isinstance(value, list | tuple):  # one number per ranking
        return " : ".join(f"{one:g}" for one in value)
    return f"{key} {value}"


def params_words(spec: AxisSpec) -> str:
    """Write the parameters of a custom pipeline: ``alpha 0.3, ef 64``, or "" if it has none."""
    params = spec.get("params") if spec.get("mode") == "own" else None
    return ", ".join(f"{key} {value}" for key, value in (params or {}).items())


def _chunker(chunker: AxisSpec) -> str:
    return settings(chunker, "size", "overlap") + " late" * (chunker.get("late") == "yes")


def _rewrite(rewrite: object) -> str:
    return "" if rewrite == "none" else str(rewrite)


def _perturb(told: object) -> str:
    ways = told.items() if isinstance(told, Mapping) else ()
    return " ".join(f"{way} {level}" for way, level in ways if way != "language")


def _fusion(fusion: AxisSpec) -> str:
    named = {key: value for key, value in fusion.items() if _USUAL_FUSION.get(key) != value}
    return settings({"method": fusion["method"], **named}) if named and fusion.get("method") else ""


def _filtering(way: str) -> str:
    """Write a way of honouring filters: ``post-filter 4 ×``, ``partition by tenant``."""
    kind, _, detail = way.partition(":")
    if kind == "none":
        return "unfiltered"
    if kind == "partition":
        return f"partition by {detail}"
    return f"{kind}-filter" + (f" {detail} ×" if detail else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a specification.

    Attributes:
        kind: Type of its value.
        alone: Whether two stacks may differ in this key alone.
        name: Its name in comparisons of stacks; by default the key.
        usual: What to show, in words, for a stack that does not set it.
        label: Words for a value in the name of a stack; empty for none.
        names_method: Whether its value is a table that names a method.
        planned: Whether a plan can find out the candidate pool of a stack that sets it.
        read: Whether anything in a stack reads it, so that its value can change the results.
        drops: Whether it drops some of the first K passages, so that K changes which are left.
        replay: Why smaller depths cannot be replayed from a run that sets it; "" if they can.
        step: What a running stack needs before the value can change.
    """

    kind: type
    alone: bool = True
    name: str = ""
    usual: str = "none"
    label: Callable[[Any], str] = lambda _: ""
    names_method: bool = False
    planned: bool = True
    read: Callable[[AxisSpec], bool] = lambda _: True
    drops: bool = False
    replay: str = ""
    step: AxisStep = "none"


def _depth_read(spec: AxisSpec) -> bool:
    """Return whether K changes a ranking: something reranks, cuts or answers, or unknown code may read it."""
    plain = spec.get("reranker") == "none" and spec.get("mode") != "own" and spec.keys() <= KEYS.keys()
    return not plain or drops(spec) or bool(spec.get("generator"))


KEYS: Mapping[str, Key] = {
    "mode": Key(kind=str, alone=False),
    "sparse": Key(kind=str, alone=False, step="rebuild"),
    "embedder": Key(kind=str, alone=False, step="embed"),
    "dim": Key(kind=int, alone=False, step="embed"),
    "index": Key(kind=str, alone=False, step="rebuild"),
    "candidates": Key(kind=int, alone=False, read=_depth_read),
    "name": Key(kind=str, alone=False),
    "generator": Key(kind=str, alone=False),
    "chunker": Key(kind=dict, label=_chunker, names_method=True, step="embed"),
    "rewrite": Key(kind=str, label=_rewrite),
    "perturb": Key(kind=dict, label=_perturb),
    "reranker": Key(kind=str),
    "bm25": Key(
        kind=dict,
        name="BM25 parameters",
        usual="default",
        label=lambda bm25: settings({"method": "bm25", **bm25}),
        step="rebuild",
    ),
    "index_params": Key(
        kind=dict,
        alone=False,
        label=lambda params: settings({"method": "index", **params}),
        step="rebuild",
    ),
    "metric": Key(kind=str, name="distance", usual="cosine", label=str, step="rebuild"),
    "fusion": Key(kind=dict, label=_fusion),
    "dedup": Key(
        kind=dict,
        name="near copies",
        label=lambda dedup: f"without copies ({settings(dedup, 'threshold')})",
        names_method=True,
        planned=False,
        drops=True,
        replay="near copies were taken out of its pool, so a smaller pool is not simply its first part",
    ),
    "filtering": Key(
        kind=str, name="filtering", usual="unfiltered", label=_filtering, planned=False, step="rebuild"
    ),
    "cut": Key(kind=dict, name="cutoff", label=settings, names_method=True, drops=True, replay=_CUT),
    "chunks_sent": Key(kind=int, name="chunks sent", usual="all", label="{} sent".format, replay=_CUT),
}
"""Every key by name, in the order of a stack's name; stacks of others may set more keys."""


def drops(spec: AxisSpec) -> bool:
    """Return whether a stack drops some of its first K passages."""
    return any(key.drops and spec.get(name) for name, key in KEYS.items())


def as_read(spec: AxisSpec) -> dict[str, Any]:
    """Return a specification without keys that nothing in it reads, so that equivalent stacks are equal."""
    return {name: value for name, value in spec.items() if name not in KEYS or KEYS[name].read(spec)}


def stack_key(spec: AxisSpec) -> str:
    """Return a text that is equal for equivalent stacks: the keys of their specification that are read."""
    return json.dumps(as_read(spec), sort_keys=True, ensure_ascii=False)


def completed(label: str, spec: AxisSpec) -> str:
    """Return a stored label with each setting in it that departs from the default.

    A label such as ``BM25 ⊕ MiniLM · rrf 1 : 1.3`` may leave out the constant of its fusion.
    """
    head, *parts = label.split(" · ")
    whole = qualities(spec) if parts else []
    said = (next((full for full in whole if full.startswith(f"{part} ")), part) for part in parts)
    return " · ".join([head, *said])


def also_called(label: str, spec: AxisSpec) -> set[str]:
    """Return the names that a stack with a stored label has in any workspace or older release."""
    whole = {label, completed(label, spec)}
    whole |= {re.sub(SAID_K, "", name) for name in whole}
    return whole | {re.sub(SAID_REST, r"\1", name) for name in whole}


def is_called(name: str | None, label: str, spec: AxisSpec) -> bool:
    """Return whether a name is that of a stack, or of its custom pipeline."""
    return name is not None and (name in also_called(label, spec) or name == spec.get("name"))


def as_offered(name: Any, offered: Collection[object]) -> Any:  # noqa: ANN401 - whatever a list offers
    """Return a choice in the form the list has.

    The name of a stack may hold settings that set nothing apart here, and until 0.2 a K that nothing reads;
    it may lack settings that set it apart here.
    """
    if name in offered or not isinstance(name, str):
        return name
    former = (name, re.sub(SAID_K, "", name))
    longer = [one for one in offered if str(one).partition(" constant ")[0] in former]
    shorter = (former[1], *(re.sub(SAID_REST, r"\1", one) for one in former))
    return next((one for one in shorter if one in offered), longer[0] if len(longer) == 1 else name)


def qualities(spec: AxisSpec) -> list[str]:
    """List how a stack departs from the defaults, besides its models and depth."""
    words = [key.label(spec[name]) for name, key in KEYS.items() if spec.get(name)]
    if spec.get("mode") == "own":
        words.append(", ".join(filter(None, (params_words(spec), str(spec.get("version") or "")))))
    return [word for word in words if word]
