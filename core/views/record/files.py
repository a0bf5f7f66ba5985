"""The decision record as files: one self-contained HTML file, Markdown, or JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import urljoin

import plotly.graph_objects as go

from core.clq.intervals import SEED
from core.clq.rules import JITTER_MS
from core.views import link
from core.views.comparable import ALL, ALL_MACHINES, EVERY, SHARED
from core.views.document.html import html
from core.views.document.markdown import markdown
from core.views.judged import WORDS
from core.views.matched import matched
from core.views.pareto import pareto
from core.views.record.data import Case, record_data
from core.views.record.json import record_json
from core.views.record.parts import Data
from core.views.record.words import record_document
from core.views.scope import Apart, Judging, Latency
from core.views.stacks import runs_in
from core.views.verdict import Verdict

RUNS_NAMED = 20
"""Chosen runs that a command names one by one; with more there is no command."""
_WRITERS: Mapping[str, Callable[[Data, go.Figure], str]] = {
    ".html": lambda data, chart: html(record_document(data, chart)),
    ".md": lambda data, chart: markdown(record_document(data, chart)),
    ".json": lambda data, _: record_json(data),
}
ENDINGS = tuple(_WRITERS)
"""Endings of the files that a record can be written as."""


def record_file(ending: str, case: Case, found: Verdict, *, address: str, made_at: datetime) -> str:
    """Write the record of a decision.

    Args:
        ending: One of `ENDINGS`.
        case: What was asked, and where.
        found: What was decided.
        address: The pinned link to this view, see `core.views.link`.
        made_at: The time of the record; the only thing in the file that depends on when it is made.

    Returns:
        The file.
    """
    data = record_data(case, found, link=address, made_at=made_at)
    return _WRITERS[ending](data, chart(case, found))


def chart(case: Case, found: Verdict) -> go.Figure:
    """The Pareto chart of a case."""
    asked = case.asked
    drawn = pareto(
        found.table, found.decision, asked.constraints, quality=asked.quality, latency=asked.latency
    )
    return drawn.figure


def pinned_link(case: Case, dashboard: str) -> str:
    """The link that opens a case in a dashboard.

    Args:
        case: What was asked, and where.
        dashboard: Its address.
    """
    asked = case.asked
    values = link.settings(
        case.scope,
        asked.quality,
        asked.latency,
        asked.constraints,
        book=case.book.name,
        runs=_named(case, "name"),
    )
    if case.scope.shared:
        values["cq"] = SHARED
    if case.remarks and not _narrowed(case):
        values |= {"cq": EVERY, "figs": ALL, "env": ALL_MACHINES}
    elif asked.latency.machine:
        values["env"] = asked.latency.machine
    if asked.rule != "quality":  # the other pages know no rule
        words = next(words for words, rule in link.RULES.items() if rule == asked.rule)
        values, dashboard = {**values, "rule": words}, urljoin(dashboard, "certainty")
    return link.pinned(dashboard, values, case.snapshot.revision)


def command(case: Case) -> str | None:
    """What decides a case on the command line; None where that cannot be said there.

    That is so where many runs would have to be named, where what does not compare was left out in
    another way than the command does, and where the latency holds the generator, whose model has settings of
    its own.
    """
    asked, usual = case.asked, Latency()
    limits, runs = asked.constraints, _named(case, "run_id")
    if (
        len(runs) > RUNS_NAMED
        or (_narrowed(case) and not _as_usual(case))
        or asked.latency.scope == "end-to-end"
    ):
        return None
    if asked.latency.generation is not None:  # no option says how fast the generator is
        return None
    options: list[tuple[str, object, object]] = [
        ("--collection", case.scope.collection_id, None),
        ("--golden-set", case.scope.golden_set_id, None),
        *(("--run", run_id, None) for run_id in runs),
        ("--measure", asked.quality.name, None),
        ("--sla-ms", limits.sla_ms, None),
        ("--on", asked.latency.percentile, usual.percentile),
        ("--latency", asked.latency.scope, usual.scope),
        ("--budget", limits.budget, None),
        ("--min-quality", limits.floor, None),
        ("--rule", asked.rule, "quality"),
        ("--judged", WORDS.get(case.scope.judging.least), None),
        ("--jitter-ms", limits.jitter_ms, JITTER_MS),
        ("--prices", case.book.name, None),
        ("--revision", case.snapshot.revision, None),
        ("--seed", case.seed, SEED),
    ]
    words = [
        word
        for name, value, default in options
        if value not in (None, default)
        for word in (name, *link.written(value))
    ]
    flags = ["--every-golden-set"] if case.scope.judging.everywhere else []
    flags += ["--together"] if case.remarks and not _narrowed(case) else []
    return shlex.join(["python", "-m", "core", "decide", *words, *flags])


def _narrowed(case: Case) -> bool:
    """Whether something of the workspace was left out because it does not compare."""
    scope = case.scope
    return bool(scope.apart or scope.shared or scope.judging or case.asked.latency.machine)


def _as_usual(case: Case) -> bool:
    """Whether that was done as it is done where nobody says how."""
    whole = replace(case.scope, apart=Apart(), shared=False, judging=Judging())
    anywhere = replace(case.asked.latency, machine=None)
    quality, wanted = case.asked.quality, case.scope.judging
    usual = matched(case.snapshot, whole, quality, anywhere, case.book, wanted=wanted)
    return (usual.scope, usual.latency) == (case.scope, case.asked.latency)


def _named(case: Case, column: str) -> tuple[str, ...]:
    """The chosen runs of a case by a column of the run table; none where all of the collection are."""
    chosen = set(case.scope.run_ids)
    whole = case.snapshot.runs(case.scope.collection_id)
    if not chosen or chosen == set(whole["run_id"]):
        return ()
    return tuple(runs_in(case.snapshot, case.scope)[column])
