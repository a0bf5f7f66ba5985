"""Groups of a workspace's questions: the units of its intervals, tests and chances.

Questions of one document, session, template or user are alike. Intervals that treat them as independent
are too short (metrics.md §10), so that all of a group are drawn, left out or swapped together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.scope import AUTO, SINGLY, Scope
from core.arrays import Floats
from core.errors import UnknownNameError
from core.golden.adding import ancestry
from core.number_format import count
from core.records import GROUPS, group_kind
from core.stats.intervals import CLUSTERS, Labels, Sample
from core.store import Snapshot
from core.store.read.memory import Memory
from core.tables import remembered

FEW_GROUPS = f"unknown: fewer than {CLUSTERS} groups"
_GOOD = 4  # The lowest grade of a passage that answers
_KEPT = Memory(8 << 20)
_OF_ITEM = "document"
WORDS_IN_QUOTE = "words in quote"
"""Tag of a question made from a place: the share of its words that stand there."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a workspace's questions."""

    kind: str = ""  # a key of `GROUPS`, or the name of a tag; "" if each question is independent
    of: Mapping[str, str] = field(default_factory=dict)  # by question; one without a group is its own

    def labels(self, query_ids: Sequence[str]) -> Labels | None:
        """Return a number per question, the same within a group, or None if no two of them share one."""
        known = {name: self.of[name] for name in query_ids if name in self.of}
        if len(set(known.values())) == len(known):
            return None
        number: dict[tuple[bool, str], int] = {}
        keys = [(name in known, known.get(name, name)) for name in query_ids]
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.intp)

    def counts(self, values: Floats, query_ids: Sequence[str]) -> pl.Series:
        """Return for each row of values [S, Q] the number of groups among the queries with a value.

        It is null if each query is its own group.
        """
        labels = self.labels(query_ids)
        units = [None] * len(values) if labels is None else Sample.means(values, labels).units.tolist()
        return pl.Series(units, dtype=pl.Int32)


EACH = Groups()
"""For questions that share no group."""


def groupings(snapshot: Snapshot, collection_id: str, golden_set_id: str | None) -> Mapping[str, Groups]:
    """Return the ways to group the questions of a collection, the default one first.

    These are a column's groups, a tag with such a name, and the document of a known item.
    """
    key = (str(snapshot.catalogue.path), snapshot.revision, collection_id, golden_set_id)
    found = partial(_groupings, snapshot, collection_id, golden_set_id)
    return _KEPT.once(key, found, lambda some: 200 * sum(len(groups.of) for groups in some.values()))


def _groupings(snapshot: Snapshot, collection_id: str, golden_set_id: str | None) -> Mapping[str, Groups]:
    rows = snapshot.clusters(collection_id).select("query_id", "kind", "cluster").rows()
    for query_id, tags in snapshot.queries(collection_id).select("query_id", "tags").iter_rows():
        parts = (tag.partition("=") for tag in tags or ())
        rows += [(query_id, group_kind(name), value) for name, _, value in parts if value]
    found: dict[str | None, dict[str, str]] = {}
    for query_id, kind, cluster in rows:
        found.setdefault(kind, {}).setdefault(query_id, cluster)
    if _OF_ITEM not in found:
        found[_OF_ITEM] = _documents(snapshot, golden_set_id)
    known = {kind: found[kind] for kind in GROUPS if kind in found}
    return {kind: Groups(kind, of) for kind, of in known.items() if 1 < len(set(of.values())) < len(of)}


@cached(entries=8)
def one_known(snapshot: Snapshot, golden_set_id: str | None) -> bool:
    """Return whether a golden set names one relevant passage per question and nothing else."""
    if golden_set_id is None or not snapshot.golden_sets().filter(golden_set_id=golden_set_id)["spans"].sum():
        return False
    spans = snapshot.spans(golden_set_id)
    return bool(spans["query_id"].is_unique().all() and (spans["grade"] >= _GOOD).all())


def began_with_one(snapshot: Snapshot, golden_set_id: str | None) -> bool:
    """Return whether a golden set names one relevant passage per question, or did before additions."""
    if golden_set_id is None:
        return False
    return one_known(snapshot, ancestry(snapshot.golden_sets(), golden_set_id)[0])


@cached(entries=8)
def made_up(snapshot: Snapshot, scope: Scope) -> bool:
    """Return whether the questions were made from the places that answer them, whoever graded since."""
    if not began_with_one(snapshot, scope.golden_set_id):
        return False
    tags = snapshot.queries(scope.collection_id)["tags"].explode()
    return bool(tags.str.starts_with(f"{WORDS_IN_QUOTE}=").any())


def _documents(snapshot: Snapshot, golden_set_id: str | None) -> dict[str, str]:
    """Return each question's document if a golden set began with one known passage per question."""
    if golden_set_id is None or not began_with_one(snapshot, golden_set_id):
        return {}
    first = ancestry(snapshot.golden_sets(), golden_set_id)[0]
    return dict(snapshot.spans(first).select("query_id", "source").iter_rows())


def groups(snapshot: Snapshot, scope: Scope) -> Groups:
    """Return the groups of a workspace's questions, as the workspace requests them.

    Raises:
        UnknownNameError: If they have no such groups.
    """
    if scope.cluster_by == SINGLY:
        return EACH
    known = groupings(snapshot, scope.collection_id, scope.golden_set_id)
    if scope.cluster_by == AUTO:
        return next(iter(known.values()), EACH)
    if scope.cluster_by not in known:
        raise UnknownNameError("group of questions", scope.cluster_by, [AUTO, SINGLY, *known])
    return known[scope.cluster_by]


@remembered
def about_groups(table: pl.DataFrame) -> str:
    """Describe how many groups the queries of a stack table form, or return "" if each is its own."""
    rows = table.drop_nulls("clusters").sort("n", descending=True)
    if rows.is_empty():
        return ""
    n, clusters, kind = rows.select("n", "clusters", "cluster_kind").row(0)
    said = f"{count(n, 'question')} from {count(clusters, kind)}"
    return f"{said}: intervals, tests and chances take each {kind} as one."
