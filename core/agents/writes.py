"""What an agent may change, if its user allows it: import files of a folder, run stacks within a budget."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from core.agents.answers import Answers
from core.agents.small import Small, untrusted
from core.api.workspace import loading
from core.errors import BudgetError, InputError

_REPORTED = 20  # Maximum lines of a report


@dataclass
class Writes:
    """Writing tools of one session; their runs share one budget."""

    answers: Answers
    budget: float  # dollars in total
    spent: float = 0.0
    _one: threading.Lock = field(default_factory=threading.Lock)

    def add(self, paths: list[str], collection: str | None, label: str | None) -> Small:
        """Import files of the working folder, all of them or nothing."""
        if not paths:
            raise InputError("No file was named.", do="Name files of the working folder.")
        inside = [self.answers.inside(path) for path in paths]
        with self._one:
            done = self.answers.results.add(*inside, collection=collection, label=label)
        report = done.report.head(_REPORTED).to_dicts()
        return {
            "answer": untrusted(done.said),
            "workspace": done.collection,
            "runs": list(done.runs[:_REPORTED]),
            "report": [{name: untrusted(value) for name, value in row.items()} for row in report],
            "report_in_all": done.report.height,
        }

    def run(self, spec: str, budget: float) -> Small:
        """Run a specification within the remaining budget.

        Raises:
            BudgetError: If it may cost more; nothing was started then.
        """
        with loading():
            from core.api.running import ran  # noqa: PLC0415

        if not self._one.acquire(blocking=False):
            raise InputError("Another tool is writing.", do="Wait until it has ended.")
        try:
            left = self.budget - self.spent
            if not 0 <= budget <= left:
                raise BudgetError(
                    f"A budget of ${budget:,.4f}, of which ${max(left, 0):,.4f} is left in this session.",
                    do="Ask your user for more: clq mcp --allow-write --budget DOLLARS.",
                )
            read, planned = self.answers.planned(spec)
            if planned.lines and (planned.usd is None or planned.usd > budget):
                cost = "an unknown sum" if planned.usd is None else f"about ${planned.usd:,.4f}"
                raise BudgetError(f"This costs {cost}, over ${budget:,.4f}.", do="Plan a smaller one.")
            done = ran(self.answers.results.store, read, budget, bounded=True, quiet=True)
            self.spent += done.usd
        finally:
            self._one.release()
        return {
            "state": done.state,
            "notes": [untrusted(words) for words in done.notes],
            "runs": done.runs.head(_REPORTED).to_dicts(),
            "usd": done.usd,
            "usd_left": self.budget - self.spent,
        }
