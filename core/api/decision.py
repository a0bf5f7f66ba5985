"""A decision in Python: the stack to ship, the candidates, the confidence, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from core.api.pages import GivenChoices, Page, page_of
from core.api.shown import Shown
from core.api.typed import typed
from core.tables import schema

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from core.analysis.workspace.view import View
    from core.report.data import Verdict
    from core.report.gate import Held
    from core.views.blocks import Block

DASHBOARD = "http://localhost:8501/"
_NEAR = schema(
    "stack run_id limit value:float over:float unit gain:float set_to:float edge:bool then near:bool "
    "quality:float latency_ms:float cost:float cost_least:float cost_missing cost_per"
)
"""Columns of the near misses; see `core.views.words.near.near_rows`."""


@dataclass(frozen=True)
class Stack:
    """A stack with its numbers; an unknown one is None."""

    name: str
    run_id: str
    quality: float | None  # by the requested measure
    quality_low: float | None  # lower end of the 95 % interval over queries
    quality_high: float | None  # upper end of it
    n: int | None  # queries behind the quality
    clusters: int | None  # number of groups they come from; None if each is independent
    latency_ms: float | None  # milliseconds, for the requested percentile and scope
    cost: float | None  # $ per 1,000 queries
    spec: Mapping[str, Any]  # its components


@dataclass(frozen=True)
class Confidence:
    """Confidence in the choice, as shares of draws of the queries; None without draws."""

    words: str  # a summary, in a sentence
    pgs: float | None  # probability that it is feasible and no feasible stack is better by more than `delta`
    delta: float  # the largest difference in quality that doesn't matter
    expected_quality: float | None  # its expected quality on new queries
    expected_low: float | None  # its 95 % interval, corrected for selection
    expected_high: float | None
    p_best: float | None  # probability that it is the very best feasible one; each of equal bests counts
    p_again: float | None  # the same on as many new queries
    p_feasible: float | None  # probability that it is within the limits
    p_sla: float | None  # probability that it is within the latency target
    p_frontier: float | None  # probability that no other stack dominates it
    draws: int | None
    seed: int


@dataclass(frozen=True, repr=False)
class Decision(Shown):
    """The stack to ship within the limits; displays itself like page Decision."""

    view: View
    verdict: Verdict

    @cached_property
    def _page(self) -> Page:
        return page_of(self.view, "decision", None, None)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content of page Decision."""
        return self._page.blocks

    @property
    def chosen(self) -> Stack | None:
        """The stack to ship, or None if no stack is within the limits."""
        return self._stack(self.verdict.decision.chosen)

    @property
    def runner_up(self) -> Stack | None:
        """The next best within the limits."""
        return self._stack(self.verdict.decision.runner_up)

    @property
    def near_misses(self) -> pl.DataFrame:
        """Near misses: stack, limit, over, set_to (admits it), then (what ships then), numbers."""
        from core.views.words.near import near_rows  # noqa: PLC0415

        view, verdict = self.view, self.verdict
        rows = near_rows(verdict.table, verdict.decision, view.constraints, view.rule, paired=verdict.paired)
        return pl.DataFrame(rows, schema=_NEAR)

    @property
    def confidence(self) -> Confidence | None:
        """The confidence in the choice, or None if nothing was chosen."""
        from core.analysis.workspace.sure import draws  # noqa: PLC0415
        from core.views.decision.words import sure_words  # noqa: PLC0415

        verdict, row = self.verdict, self.verdict.decision.chosen
        if row is None:
            return None
        shares = verdict.chances.row(row, named=True)
        named = {name: shares[name] for name in ("p_best", "p_again", "p_sla", "p_frontier")}
        sure = verdict.sure
        return Confidence(
            sure_words(self.view), sure.pgs, verdict.decision.delta, sure.expected,
            sure.expected_low, sure.expected_high, p_feasible=sure.p_feasible, **named,
            draws=draws(self.view), seed=self.view.seed,
        )  # fmt: skip

    @property
    def alternatives(self) -> pl.DataFrame:
        """Cheaper or faster stacks: stack, difference in quality with interval, p_within_delta, savings."""
        from core.views.decision.sections import alternative_rows  # noqa: PLC0415

        return alternative_rows(self.view)

    @property
    def table(self) -> pl.DataFrame:
        """All stacks with status, numbers, probabilities and exclusion reason; `.to_pandas()` for pandas."""
        from core.analysis.status import status_rows  # noqa: PLC0415

        return status_rows(self.verdict.sure_table, self.verdict.decision)

    @property
    def figure(self) -> go.Figure:
        """The chart of page Decision: latency and quality, the limits, the frontier."""
        from core.views.decision.charts import pareto_of  # noqa: PLC0415

        return pareto_of(self.view).figure

    @property
    def data(self) -> dict[str, Any]:
        """All of it as plain data: the output of `decide --format json`."""
        from core.report.data import decision_data  # noqa: PLC0415

        return decision_data(self.view, self.verdict)

    @typed
    def page(self, name: str, section: str | None = None, choices: GivenChoices | None = None) -> Page:
        """Return another page's content for the same question.

        Args:
            name: Its name in the URL: "headroom", "confidence" …
            section: Its name; None = the first.
            choices: Answers to the section's choices, by key.
        """
        return page_of(self.view, name, section, choices)

    @typed
    def link(self, dashboard: str = DASHBOARD) -> str:
        """Return the URL that opens this question on this data in a dashboard."""
        from core.report.files import pinned_link  # noqa: PLC0415

        return pinned_link(self.view, dashboard)

    @typed
    def record(self, *paths: str | Path, replace: bool = False, dashboard: str = DASHBOARD) -> list[Path]:
        """Write the decision with its evidence as self-contained files.

        Args:
            paths: New files ending in .html, .md or .json; a gate reads the JSON.
            replace: Whether to replace existing files.
            dashboard: The URL of the dashboard for the link in them; no link is written if others
                cannot open it.

        Raises:
            InputError: If a file cannot be written there; none was written then.
        """
        from core.report.files import write_record  # noqa: PLC0415

        files = [Path(path).expanduser() for path in paths]
        write_record(files, self.view, self.verdict, dashboard=dashboard, overwrite=replace)
        return files

    @typed
    def gate(self, record: str | Path, *, share: float = 0.8, least_pgs: float = 0.0) -> Gate:
        """Compare with a recorded decision: whether it still holds for this question.

        Args:
            record: The JSON that `record` wrote.
            share: For records of the rule until 0.2: probability above which another stack must be chosen.
            least_pgs: Minimum probability of good selection of the recorded stack.

        Raises:
            InputError: If it isn't a record of this workspace, or chose nothing.
        """
        from core.report.gate import Held  # noqa: PLC0415
        from core.report.recorded import record_of  # noqa: PLC0415

        was = record_of(Path(record).expanduser())
        was.in_workspace(self.view.scope.collection_id)
        return Gate(Held(was, self.view, self.verdict, share, least_pgs))

    @property
    def _made(self) -> str:
        from core.report.page import made_of  # noqa: PLC0415

        return made_of(self.view)

    def _stack(self, row: int | None) -> Stack | None:
        import json  # noqa: PLC0415

        if row is None:
            return None
        named = self.verdict.table.row(row, named=True)
        numbers = ("run_id", "quality", "quality_low", "quality_high", "n", "clusters", "latency_ms", "cost")
        spec = json.loads(str(named["spec"]))
        return Stack(name=named["name"], spec=spec, **{name: named[name] for name in numbers})


@dataclass(frozen=True, repr=False)
class Gate(Shown):
    """A recorded decision compared with today's; true while it holds."""

    held: Held

    def __bool__(self) -> bool:
        return self.holds

    @property
    def holds(self) -> bool:
        """Whether the recorded decision still holds."""
        return self.held.holds

    @property
    def findings(self) -> pl.DataFrame:
        """The reasons it doesn't: check ("elsewhere", "gone", "limit", …), was, now, reason."""
        return self.held.findings

    @property
    def changes(self) -> pl.DataFrame:
        """The changes since, whether or not it holds: kind, what, was, now."""
        return self.held.changes

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Whether it holds, the decision before and after, why, and the changes since."""
        from core.report.gate_blocks import gate_blocks  # noqa: PLC0415

        return tuple(gate_blocks(self.held))

    @property
    def _made(self) -> str:
        from core.report.page import made_of  # noqa: PLC0415

        return made_of(self.held.view)
