"""Several judges as a panel, each with the weight that its agreement with the others earns.

Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied
Statistics 28: the true class of every item is unknown, every judge confuses classes in its own way, and
expectation and maximisation take turns. A weak prior keeps a judge of few items from 0 and 1. The model
assumes that judges err independently of one another given the truth; two models of one family do not, and
it then trusts them too much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Ints

ROUNDS, ENOUGH = 200, 1e-7
_PRIOR = (
    0.5  # Items that a judge is taken to have confused each way, and to have got right, before any was seen
)
_RIGHT = 1.0  # Extra correct items in the prior: without them the classes could swap their names


@dataclass(frozen=True, slots=True)
class JudgePanel:
    """Joint verdict of several judges."""

    likely: Floats  # [items, classes], how likely each class is; rows add up to 1
    confusion: Floats  # [judges, classes, classes]: how often a judge says the column if the row is true
    sizes: Floats  # [classes], shares of the items
    weight: Floats  # [judges], sums to 1: each judge's share of the information about the truth
    rounds: int

    @property
    def said(self) -> Ints:
        """The likeliest class of each item, the lowest of equal ones: [items]."""
        return np.asarray(self.likely.argmax(axis=1))


def dawid_skene(said: Ints, classes: int, known: Ints | None = None) -> JudgePanel:
    """Weigh judges by their agreement with one another.

    Args:
        said: [items, judges], class from 0; -1 = not judged.
        classes: Number of classes.
        known: [items], the true class, as people graded it; -1 = unknown. None = nothing is known.

    Returns:
        The panel; an item that nobody judged gets the overall shares of the classes.
    """
    seen = np.stack([said == one for one in range(classes)], axis=2).astype(np.float64)  # [items, judges, C]
    votes = seen.sum(axis=1)
    likely = (votes + 1 / classes) / (votes + 1 / classes).sum(axis=1, keepdims=True)
    fixed = None if known is None else known >= 0
    truth = None if known is None else np.eye(classes)[np.maximum(known, 0)]
    before = np.full_like(likely, np.nan)
    prior = _PRIOR + _RIGHT * np.eye(classes)
    done = 0
    for done in range(1, ROUNDS + 1):  # noqa: B007
        if fixed is not None and truth is not None:
            likely = np.where(fixed[:, None], truth, likely)
        confusion = np.einsum("it,ijs->jts", likely, seen) + prior
        confusion /= confusion.sum(axis=2, keepdims=True)
        sizes = (likely.sum(axis=0) + 1) / (len(likely) + classes)
        if np.abs(likely - before).max(initial=0.0) < ENOUGH:
            break
        before = likely
        logs = np.log(sizes) + np.einsum("ijs,jts->it", seen, np.log(confusion))
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
    told = _information(confusion, sizes)
    return JudgePanel(likely, confusion, sizes, told / max(told.sum(), 1e-12), done)


def _information(confusion: Floats, sizes: Floats) -> Floats:
    """Return each judge's information on the true class, in bits: mutual information [judges]."""
    joint = sizes[None, :, None] * confusion
    expected = sizes[None, :, None] * joint.sum(axis=1)[:, None, :]
    return np.asarray((joint * np.log2(joint / expected)).sum(axis=(1, 2)))


def majority(said: Ints, classes: int) -> Ints:
    """Return the class that most judges give to each item, the lowest on ties: [items]; -1 if unjudged."""
    votes = np.stack([(said == one).sum(axis=1) for one in range(classes)], axis=1)
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
