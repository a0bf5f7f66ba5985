"""Confidence in a decision: beliefs about the stacks, drawn once per table, and their consequences."""

from __future__ import annotations

from dataclasses import replace

from core.analysis.cache import cached
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.noise import Noise, noise, with_noise
from core.analysis.workspace.view import View
from core.decide.beliefs import Beliefs, beliefs
from core.decide.joint import JointSample
from core.decide.rules import Decision
from core.decide.selection import Assessment, assess
from core.number_format import ms
from core.stats.intervals import RESAMPLES


@cached("Reading the results per query…", entries=8)
def sample(view: View) -> JointSample | None:
    """Return the results per query of all stacks."""
    return joint_sample(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)


@cached("Simulating judge noise…", entries=16)
def drawn(view: View, reference: str | None) -> Noise | None:
    """Return the judge noise of the stacks, or None if it is off."""
    known = None if reference is None else sample(view)
    if reference is None or known is None:
        return None
    return noise(
        view.snapshot, view.table, view.scope, view.quality, reference,
        seed=view.seed, queries=known.query_ids,
    )  # fmt: skip


@cached("Resampling the queries…", entries=8)
def believed(view: View, reference: str | None) -> Beliefs | None:
    """Return the beliefs about the stacks, with the judge noise of a reference or without."""
    known = with_noise(view.table, sample(view), drawn(view, reference))
    return None if known is None else beliefs(known, seed=view.seed)


def draws(view: View) -> int | None:
    """Return the number of draws behind the chances, or None without any."""
    if (held := believed(view, view.noise)) is not None:
        return len(held.drawn)
    return None if sample(view) is None else RESAMPLES


def assessed(view: View) -> Assessment:
    """Return the confidence in a workspace's decision, and its alternatives."""
    return assess(view.table, view.decision, view.constraints, believed(view, view.noise), view.paired)


def joint(view: View) -> JointSample | None:
    """Return the results per query with the draws of quality behind the confidence."""
    known, held = sample(view), believed(view, view.noise)
    if known is None or held is None:
        return known
    return replace(known, noisy=held.leading(), again=held.again())


def good_enough(decision: Decision) -> str:
    """Describe a good selection: ``within 0.01 of the best``."""
    if decision.rule == "cost":
        return "within 1 % of the cheapest"
    if decision.rule == "latency":
        return f"within {ms(decision.jitter_ms)} of the fastest"
    return f"within {decision.delta:.3g} of the best"
