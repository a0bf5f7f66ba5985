"""Data of page What if: features for a router, and what routing can choose from.

A view's functions are cached by the sources of its stack table: other dependencies are separate arguments.
Features are of a query, and of the first stack's results for it. Options are depths or rewrites of one stack,
passages sent to its reader, or any stacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from core.analysis import families
from core.analysis.cache import cached
from core.analysis.families import (
    TAG,
    Family,
    Known,
    Option,
    Signal,
    available,
    idle,
    stacks_as_options,
    usual_stacks,
)
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.diagnostics.noise import CLEAN, kin
from core.errors import ClqError
from core.store import Snapshot
from core.views.ask import Ask
from core.views.what_if import routing, scenarios
from core.views.what_if.routing import Routable
from core.views.what_if.scenarios import ScenarioChoice

ENCODER, DIM = "wordllama", 64
"""The static encoder of the query's vector: it needs no network and takes well under a millisecond."""
WRITTEN, TAGS, DROP, VECTOR = "how it is written", "its tags", "drop when perturbed", "its vector"
FOUND = {
    "": "scores of the pool",
    "dense_": "scores of the dense search",
    "rerank_": "scores of the reranker",
}
"""Lists of scores that signs are read from, by the prefix of the signs' names."""
DROPPED = ("dense_top_margin", "dense_top1", "top_margin", "top1")
"""Signals whose drop is a sign: the margin D of the first against the second passage, and its score."""
MOST_TAGS = 12  # Maximum values of a kind of tag; more would identify single queries
ABOUT = (
    "What the router may look at. Words, letters and capitals of the query; its tags; shape of the scores "
    "that the first stack finds; drop of its margin and best score when the query is asked perturbed (CLQ "
    f"paper, §6), where such runs are stored; {DIM} numbers of {ENCODER}, which runs here without a key."
)
OF_MY_CHOICE = "stacks of my choice"
ABOUT_FAMILIES = (
    "Stacks that differ only in their candidate depth K, or only in a rewrite, or the passages that a reader "
    "was sent. Smaller K of a pointwise reranker are replayed from its deepest run; a listwise one has to be "
    "run at every K."
)
MOST_OPTIONS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Features that become available together."""

    name: str
    known: Known  # when they become known
    names: tuple[str, ...]  # [F], as in the exported file
    values: Mapping[str, tuple[float, ...]]  # query_id → [F]; NaN = unknown
    note: str = ""  # what they require at the router's runtime


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """The features of some queries."""

    names: tuple[str, ...]  # [F]
    values: Floats  # [Q, F]; NaN = unknown
    known: Known  # when the last of them becomes known
    notes: tuple[str, ...]

    @property
    def encoded(self) -> bool:
        """Whether the query's vector is among them."""
        return any(name.startswith("vector:") for name in self.names)


def feature_groups(view: View, first: Option, signals: Sequence[Signal]) -> tuple[Group, ...]:
    """Return the features of a workspace's queries that are known before they leave the first stack.

    Args:
        signals: Signals of the first option, from `families.available`.
    """
    queries = view.snapshot.queries(view.scope.collection_id)
    texts = {query_id: text or "" for query_id, text in queries.select("query_id", "text").iter_rows()}
    tags = {query_id: frozenset(of or ()) for query_id, of in queries.select("query_id", "tags").iter_rows()}
    found = [_written(texts), _tagged(signals, tags), *_scored(signals)]
    found += [_dropped(view.snapshot, first, view.scope.collection_id, signals), _encoded(texts)]
    return tuple(group for group in found if group is not None)


def together(chosen: Sequence[Group], query_ids: Sequence[str]) -> Signs:
    """Concatenate the features of some groups."""
    names = tuple(name for group in chosen for name in group.names)
    rows = [
        [value for group in chosen for value in group.values.get(query_id, (np.nan,) * len(group.names))]
        for query_id in query_ids
    ]
    late: tuple[Known, ...] = ("before", "pool", "rerank")
    known: Known = max((group.known for group in chosen), key=late.index, default="before")
    notes = tuple(group.note for group in chosen if group.note)
    return Signs(names, np.array(rows, dtype=np.float64).reshape(len(query_ids), len(names)), known, notes)


def _written(texts: Mapping[str, str]) -> Group | None:
    """Count words, letters, and the share of capitalised words after the first."""
    values = {}
    for query_id, text in texts.items():
        words = text.split()
        large = sum(word[0].isupper() for word in words[1:])
        values[query_id] = (float(len(words)), float(len(text)), large / max(len(words) - 1, 1))
    return (
        Group(WRITTEN, "before", ("words", "characters", "capitals"), values) if any(texts.values()) else None
    )


def _tagged(signals: Sequence[Signal], tags: Mapping[str, frozenset[str]]) -> Group | None:
    """Return, for every value of every kind of tag, whether the query has it."""
    kinds = {
        signal.key.removeprefix(TAG): sorted(set(signal.tags.values())) for signal in signals if signal.tags
    }
    every = [f"{kind}={value}" for kind, of in kinds.items() if len(of) <= MOST_TAGS for value in of]
    values = {query_id: tuple(float(tag in of) for tag in every) for query_id, of in tags.items()}
    note = "Tags must be known when a query comes in."
    return Group(TAGS, "before", tuple(f"tag:{tag}" for tag in every), values, note) if every else None


def _scored(signals: Sequence[Signal]) -> list[Group]:
    found = []
    for prefix, name in FOUND.items():
        mine = [signal for signal in signals if signal.values and _prefix(signal.key) == prefix]
        if mine:
            known: Known = "rerank" if prefix == "rerank_" else "pool"
            found.append(_group(name, known, {signal.key: signal.values for signal in mine}))
    return found


def _prefix(key: str) -> str:
    return next((prefix for prefix in FOUND if prefix and key.startswith(prefix)), "")


def _group(name: str, known: Known, by_sign: Mapping[str, Mapping[str, float]], note: str = "") -> Group:
    ids = dict.fromkeys(query_id for values in by_sign.values() for query_id in values)
    values = {query_id: tuple(of.get(query_id, np.nan) for of in by_sign.values()) for query_id in ids}
    return Group(name, known, tuple(by_sign), values, note)


def _dropped(
    snapshot: Snapshot, first: Option, collection_id: str, signals: Sequence[Signal]
) -> Group | None:
    """Subtract signals of the same stack on perturbed queries; None without such runs."""
    runs = snapshot.runs(collection_id).filter("has_rankings")
    every = kin(runs)
    own = every.get(first.run_id)
    if own is None or own.perturb != CLEAN:
        return None
    clean = {signal.key: signal.values for signal in signals if signal.key in DROPPED}
    clean = {key: clean[key] for key in DROPPED if key in clean}
    dense = [key for key in clean if key.startswith("dense_")] or list(clean)
    by_sign: dict[str, dict[str, float]] = {}
    for run_id, other in every.items():
        if (other.family, other.rewrite) != (own.family, own.rewrite) or other.perturb == CLEAN:
            continue
        asked = {one.key: one.values for one in available(snapshot, Option("", run_id, None), collection_id)}
        for key in dense:
            again = asked.get(key, {})
            by_sign[f"drop:{other.perturb}:{key}"] = {
                query_id: value - again[query_id]
                for query_id, value in clean[key].items()
                if query_id in again
            }
    if not any(by_sign.values()):
        return None
    ways = sorted({name.split(":")[1] for name in by_sign})
    note = (
        f"The drop asks the first stack again, perturbed ({', '.join(ways)}), for every query: that search "
        "is in no latency or cost here."
    )
    return _group(DROP, "pool", by_sign, note)


def _encoded(texts: Mapping[str, str]) -> Group | None:
    """Embed the queries; None if the encoder is not installed."""
    from core.providers.base import Purpose  # noqa: PLC0415 - takes long to load
    from core.providers.embed import make_embedder  # noqa: PLC0415

    asked = {query_id: text for query_id, text in texts.items() if text}
    try:
        vectors = make_embedder(ENCODER, DIM).embed(list(asked.values()), Purpose.QUERY) if asked else ()
    except ClqError:
        return None
    values = {
        query_id: tuple(map(float, row)) for query_id, row in zip(asked, np.asarray(vectors), strict=True)
    }
    names = tuple(f"vector:{place}" for place in range(DIM))
    note = f"The vector is {ENCODER}'s, {DIM} numbers: the exported file is given it."
    return Group(VECTOR, "before", names, values, note) if values else None


@cached()
def named(view: View) -> Mapping[str, str]:
    """Return the stacks named by the paper, by scenario."""
    return scenarios.named(view.snapshot, view.scope.collection_id)


@cached("Scoring the chosen stacks…")
def matrix(view: View, choices: tuple[ScenarioChoice, ...]) -> pl.DataFrame:
    """Return the stacks chosen by scenarios, measure by measure; see `scenarios.matrix`."""
    where = (view.snapshot, view.table, view.scope)
    return scenarios.matrix(*where, choices, view.book, quality=view.quality, latency=view.latency)


@cached("Scoring the leaderboards…", entries=16)
def leaders(view: View, end_to_end: bool) -> pl.DataFrame:
    """Return quality per second of every stack; see `scenarios.leaderboard`."""
    return scenarios.leaderboard(view.snapshot, view.scope, end_to_end=end_to_end)


@cached("Looking which stacks rewrite…", entries=16)
def rewriting(view: View) -> list[Family]:
    """Return stacks with and without rewritten queries."""
    return families.rewriting(view.snapshot, view.scope)


@cached("Looking whose answers there are…", entries=16)
def answering(view: View) -> list[Family]:
    """Return the readers whose answers show how many passages a query needs."""
    return routing.families(view)


@cached("Looking which depths can be replayed…", entries=64)
def with_replays(view: View, family: Family) -> Family:
    """Return a family with the smaller depths that its deepest run can replay."""
    return families.with_replays(view.snapshot, view.table, family)


@cached("Reading the signals…", entries=64)
def signals(view: View, option: Option) -> list[Signal]:
    """Return the signals of a depth that queries can be routed by."""
    return families.available(view.snapshot, option, view.scope.collection_id)


@cached("Reading what can be told of a query…", entries=32)
def groups(view: View, option: Option) -> tuple[Group, ...]:
    """Return the features of every query that a router can use."""
    return feature_groups(view, option, signals(view, option))


@cached("Scoring every query…", entries=64)
def routable(view: View, options: tuple[Option, ...], way: routing.RoutingWay) -> Routable | None:
    """Return quality, latency and cost of every query at every depth.

    It is None if no query has a score.
    """
    if options[0].sent is not None:
        return routing.gather_sent(view, options)
    if way.rewrites:  # runs of perturbed queries aren't offered, so the view's table lacks them
        scope = replace(view.scope, run_ids=tuple(option.run_id for option in options))
        table = stack_table(view.snapshot, scope, view.quality, view.latency, view.book)
        view = replace(view, given=table)
    return routing.gather(view, options, way=way)


def ask_options(view: View, ask: Ask, *, of_my_choice: bool = False) -> tuple[Family | None, list[Option]]:
    """Ask for a stack and its depths, rewrites or passages, or for any stacks, which have no family.

    Args:
        of_my_choice: Whether any stacks are the default; otherwise it is a stack with several depths.
    """
    within = view.feasible
    every = (*families.families(view.table), *rewriting(view), *answering(view))
    known = {family.name: family for family in every}
    names = [name for name, family in known.items() if len(family.options) > 1 or family.reranker]
    deeper = (known[name] for name in names if not (known[name].rewrites or known[name].answers))
    alive = (family for family in deeper if not idle(family, view.quality.k))
    several = (family.name for family in alive if len(_within(with_replays(view, family), within)) > 1)
    usual = OF_MY_CHOICE if of_my_choice else next(several, OF_MY_CHOICE)
    name = ask.listed("Stack", [*names, OF_MY_CHOICE], "fam", usual=usual, about=ABOUT_FAMILIES, width=400)
    if name == OF_MY_CHOICE:
        first, label = usual_stacks(within), "Stacks, two or three"
        picked = ask.stacks(view.table, view.decision, "among", usual=first, most=MOST_OPTIONS, label=label,
                            unsaid="the fastest and the best")  # fmt: skip
        return None, stacks_as_options(view.table, picked)
    family = with_replays(view, known[name])
    labels = {option.label + (" (replayed)" if option.deep else ""): option for option in family.options}
    what = "Rewrites" if family.rewrites else "Passages sent" if family.answers else "Candidates (K)"
    usual_ones = usual_options(_within(family, within) or family.options, rewrites=family.rewrites)
    chosen = [words_of for words_of, option in labels.items() if option in usual_ones]
    picked = ask.several(f"{what}, two or three", labels, "ks", usual=chosen, most=MOST_OPTIONS)
    return family, [option for words_of, option in labels.items() if words_of in picked]


def _within(family: Family, within: pl.DataFrame) -> tuple[Option, ...]:
    """Return a family's options within the limits: measured ones, and replays no deeper than these.

    Rewrites and passages sent aren't stacks of the table, which doesn't cover their limits.
    """
    if family.rewrites or family.answers:
        return family.options
    runs = set(within["run_id"])
    deepest = max(
        (option.depth or 0 for option in family.options if option.deep is None and option.run_id in runs),
        default=0,
    )
    return tuple(
        option
        for option in family.options
        if (option.run_id in runs if option.deep is None else (option.depth or 0) <= deepest)
    )


def usual_options(options: Sequence[Option], *, rewrites: bool = False) -> list[Option]:
    """Return the paper's K = 50 and 100 if available, otherwise the shallowest and the deepest."""
    paper = [option for option in options if option.depth in (50, 100) and not rewrites]
    return paper if len(paper) == 2 else [options[0], options[-1]]


def way_of(family: Family | None, known: Known) -> routing.RoutingWay:
    """Return how a query gets from the first option to a further one, if its signal is known then."""
    rewrites = family is not None and family.rewrites
    return routing.RoutingWay(
        known, family is not None and not rewrites, family is None or not family.refused, rewrites
    )
