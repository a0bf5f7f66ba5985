"""A workspace in Python: score its runs, decide, read pages, measure a pipeline on it."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from core.api.asked import asked
from core.api.decision import Decision, Gate
from core.api.options import MoreMeasuring, Moving, Understood
from core.api.pages import GivenChoices, Page
from core.api.shown import Shown
from core.api.typed import typed
from core.decide.axes import FORMER
from core.errors import UnknownNameError
from core.views import columns as cols
from core.views.blocks import Answer, Block, Table
from core.views.text import count

if TYPE_CHECKING:
    from core.analysis.workspace.view import View
    from core.api.results import Measured
    from core.prices import PriceBook
    from core.store import Snapshot, Store


_RUNS = cols.Rows(
    "runs",
    cols.text("label", "run", width=290),
    cols.text("origin"),
    cols.count("n", "queries"),
    cols.Column("created_at", "made", form="time"),
)


@dataclass(frozen=True, repr=False)
class Workspace(Shown):
    """A collection of a store with its judgements and runs; every answer reads the store's current state."""

    store: Store
    name: str  # the collection
    golden_set: str | None = None  # its judgements; None = its only golden set

    @property
    def runs(self) -> pl.DataFrame:
        """Its runs, newest first: run_id, stack, label, origin, pool, n (queries), passages, created_at."""
        from core.views.library.data import runs  # noqa: PLC0415

        own = runs(self._snapshot()).filter(collection_id=self.name)
        return own.select("run_id", pl.col("label").alias("stack"), pl.exclude("run_id"))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The number of runs, and their list."""
        rows = self.runs
        return Answer(f"{self.name}: {count(rows.height, 'run')}."), Table(rows, _RUNS)

    @typed
    def score(
        self,
        measures: str | Iterable[str],
        *,
        runs: Sequence[str] | None = None,
        per_query: bool = False,
    ) -> pl.DataFrame:
        """Score its runs.

        Args:
            measures: With cutoffs: "RA-nWG@10, nDCG@10", or a list of them; "set_recall" needs none.
            runs: Ids or labels; None = all.
            per_query: A row per query instead of the mean.

        Returns:
            A row per run and measure: run_id and stack as in `runs`, measure, k, value, reason (if no value),
            n (queries), ci_low and ci_high (95 % interval of the mean); run is the former name of run_id.

        Raises:
            UnknownNameError: If a measure or a run does not exist.
        """
        from core.analysis.scoring.stored import score_stored  # noqa: PLC0415
        from core.analysis.workspace.scope import resolve_runs  # noqa: PLC0415

        snapshot = self._snapshot()
        known = snapshot.runs(self.name)
        if runs is not None:
            known = known.filter(pl.col("run_id").is_in(resolve_runs(known, list(runs))))
        text = measures if isinstance(measures, str) else ",".join(map(str, measures))
        rows = score_stored(
            snapshot, known, text, golden_set=self.golden_set, per_query=per_query, tell=_remark
        )
        return rows.select(pl.col("run").alias("run_id"), pl.all()) if rows.width else rows

    def decide(
        self,
        *,
        sla_ms: float | None = None,
        budget: float | None = None,
        min_quality: float | None = None,
        max_harm: float | None = None,
        measure: str | None = None,
        **choices: Unpack[Understood],
    ) -> Decision:
        """Decide which stack to ship.

        Args:
            sla_ms: Highest latency, in ms.
            budget: Highest cost, in $ per 1,000 queries.
            min_quality: Minimum quality.
            max_harm: Highest Harm at the measure's cutoff.
            measure: Quality with its cutoff; None = RA-nWG@10, or what is available instead.
            choices: The less common ones; floor and harm mean min_quality and max_harm until the next
                release.

        Raises:
            UnknownNameError: If a choice or a name in one does not exist.
            InputError: If a value is out of range, or a choice is missing that only the user can make.
        """
        from core.report.data import verdict  # noqa: PLC0415 - the charts' library takes long to load

        limits = {"sla_ms": sla_ms, "budget": budget, "min_quality": min_quality, "max_harm": max_harm}
        view = self._view({**limits, "measure": measure, **_renamed(choices)})
        return Decision(view, verdict(view))

    def compare(
        self, first: str, second: str, *, measure: str | None = None, **choices: Unpack[Understood]
    ) -> Page:
        """Compare two stacks query by query: differences with intervals and p-values, as page Compare does.

        Args:
            first: A stack by its name, or by the id or label of its run.
            second: The stack that it is compared with.
            measure: Quality with its cutoff; None = as `decide`.
            choices: The less common ones, as of `decide`.

        Raises:
            UnknownNameError: If there is no such stack or choice.
            InputError: If both are the same stack.
        """
        from core.api.pages import page_of  # noqa: PLC0415
        from core.views.compare.sections import pair  # noqa: PLC0415

        view = self._view({"measure": measure, **_renamed(choices)})
        return page_of(view, "compare", None, pair(view, first, second))

    @typed
    def page(self, name: str, section: str | None = None, choices: GivenChoices | None = None) -> Page:
        """Return a page's content for this workspace, without limits; `Decision.page` applies them.

        Args:
            name: Its name in the URL: "headroom", "confidence" …
            section: Its name; None = the first.
            choices: Answers to the section's choices, by key.
        """
        from core.analysis.workspace.question import Question  # noqa: PLC0415
        from core.analysis.workspace.resolve import place_of  # noqa: PLC0415
        from core.api.pages import page_of, reads_results  # noqa: PLC0415

        if reads_results(name):
            return page_of(self._view({}), name, section, choices)
        place = place_of(Question(collection=self.name or None), self._snapshot())
        return page_of(place, name, section, choices)

    @typed
    def switch(
        self,
        incumbent: str | None = None,
        *,
        sla_ms: float | None = None,
        budget: float | None = None,
        **terms: Unpack[Moving],
    ) -> dict[str, Any]:
        """Return whether to stay with the stack that runs today or to switch to the best of the others.

        Args:
            incumbent: Name or run of the stack that runs today; None = the one that is marked.
            sla_ms: Highest latency in milliseconds.
            budget: Highest cost in $ per 1,000 queries.
            terms: Criteria of `core.decide.switching.Terms`: queries_per_month, months, margin …

        Returns:
            The output of `switch --format json`: answer, to, difference, one_time_usd, payback_months …

        Raises:
            UnknownNameError: If there is no stack of that name, or no such term.
            InputError: If no stack is known to run today, or if it is the only one.
        """
        from core.views.words.moving import answered  # noqa: PLC0415

        move = [f"{name}={value:.10g}" for name, value in terms.items() if value is not None]
        asked: dict[str, Any] = {"sla_ms": sla_ms, "budget": budget, "incumbent": incumbent, "move": move}
        return answered(self._view(asked))

    @typed
    def between(
        self,
        now: str,
        to: str,
        *,
        margin: float = 0.0,
        alike: float = 0.02,
        by: str | None = None,
        measure: str | None = None,
    ) -> dict[str, Any]:
        """Return what two stacks show differently without judgements, and what grades decide so far.

        Args:
            now: The stack that runs today.
            to: The candidate.
            margin: What the candidate has to be better by.
            alike: Difference that does not matter.
            by: A golden set, such as a model's, whose grades decide; None = those of the contest's queue.
            measure: Its cutoff is the K that is compared; None = as `decide`.

        Returns:
            The output of `golden between --format json`: now, to, queue, standing, kinds, questions …

        Raises:
            UnknownNameError: If there is no stack or golden set of that name.
            InputError: If the two have no question in common.
        """
        from core.analysis.between import between  # noqa: PLC0415
        from core.analysis.deciding import Contest  # noqa: PLC0415
        from core.analysis.workspace.resolve import taken  # noqa: PLC0415

        view = self._view({"measure": measure})
        ends = {"now": taken(view.table, now), "to": taken(view.table, to)}
        contest = Contest(**ends, k=view.quality.k, margin=margin, delta=alike)
        return between(view, contest, by).to_dict()

    def mark_incumbent(self, stack: str | None) -> None:
        """Mark the stack that runs today in the store, by its run or label; None = none is known."""
        from core.work.incumbent import mark, unmark  # noqa: PLC0415

        if stack is None:
            unmark(self.store, self.name)
        else:
            mark(self.store, self.name, stack)

    @typed
    def gate(
        self,
        record: str | Path,
        *,
        share: float = 0.8,
        least_pgs: float = 0.0,
        waive: Collection[str] = (),
        results: Collection[str | Path] = (),
        into: str | None = None,
    ) -> Gate:
        """Check a recorded decision with its own question.

        Args:
            record: The JSON that `Decision.record` wrote.
            results: Files and folders to import first; they replace stored results of the same names.
            into: The workspace that the results belong to; required with them.
            share: For records of the rule until 0.2: probability above which another stack must be chosen.
            least_pgs: Minimum probability of good selection of the recorded stack.
            waive: Limits to drop if that stack has no number for them: "min_robust".

        Raises:
            InputError: If it isn't a record, or chose nothing, or the results cannot be read.
            NothingKnownError: If no stack has a number for a limit.
        """
        from core.analysis.workspace.question import Question  # noqa: PLC0415
        from core.analysis.workspace.resolve import resolve  # noqa: PLC0415
        from core.report.data import verdict  # noqa: PLC0415
        from core.report.gate import Held, asked_again, waived  # noqa: PLC0415
        from core.report.gate_results import given  # noqa: PLC0415
        from core.report.recorded import record_of  # noqa: PLC0415

        was = record_of(Path(record).expanduser())
        if self.name:
            was.in_workspace(self.name)
        files = [Path(path).expanduser() for path in results]
        came = given(self.store, files, into, was.question.collection)
        was, snapshot = was.beside_results(came), self._snapshot()
        question = asked_again(was, Question(), snapshot, ())
        view, dropped = waived(was, resolve(question, snapshot, self._book(question.prices)), waive)
        return Gate(Held(was, view, verdict(view), share, least_pgs, dropped, came))

    @typed
    def measure(
        self,
        target: object,
        *,
        name: str = "",
        k: int = 50,
        params: Mapping[str, object] | None = None,
        version: str = "",
        usd_per_query: float | None = None,
        limit: int | None = None,
        repeats: int = 3,
        quiet: bool = False,
        **more: Unpack[MoreMeasuring],
    ) -> Measured:
        """Measure an existing pipeline: its rankings, its times and its cost, as a separate stack.

        An importable function runs in a separate process; an object that exists only in this one (a
        notebook's function, a closure, an object that holds a model) runs here, and cannot be stopped
        if it hangs.

        Args:
            target: A callable or an object with retrieve, invoke, run or search; or as text MODULE:CALLABLE
                or the URL of an endpoint.
            name: Name of the stack.
            k: Number of passages requested.
            params: Keyword arguments; a list of values makes several stacks.
            version: Distinguishes this state from others; by default, for a notebook's function, its source.
            usd_per_query: Cost of a query.
            limit: Number of questions; None = all.
            repeats: Number of times each is asked.
            quiet: Whether to hide the progress bar.
            more: The less common options, see `core.work.sweep.own.OwnForm`: python, path, timeout_s …

        Raises:
            InputError: If it, or the collection, cannot be used.
            ProviderError: If it cannot be started, or fails on query after query.
        """
        with loading():
            from core.api.running import measured  # noqa: PLC0415

        form: dict[str, Any] = {"name": name, "candidates": k, "version": version}
        form |= {"usd_per_query": usd_per_query}
        form |= {"limit": limit, "repeats": repeats, "golden_set": self.golden_set or "", **more}
        return measured(self.store, self.name, target, params or {}, form, quiet=quiet)

    def _snapshot(self) -> Snapshot:
        return self.store.read()

    def _book(self, name: str) -> PriceBook:
        from core.prices import load_books, own_folder  # noqa: PLC0415

        books = load_books(own=own_folder(self.store.path))
        if name not in books:
            raise UnknownNameError("price book", name, books)
        return books[name]

    def _view(self, given: Mapping[str, object]) -> View:
        from core.analysis.workspace.question import Question  # noqa: PLC0415
        from core.analysis.workspace.resolve import resolve  # noqa: PLC0415

        question = asked(Question, {"collection": self.name, "golden_set": self.golden_set, **given})
        return resolve(question, self.store.read(question.revision), self._book(question.prices))

    @property
    def _made(self) -> str:
        return f"{self.store.path.name}, revision {self.store.revision()}."


@contextmanager
def loading() -> Iterator[None]:
    """Load the evaluation modules, which takes a second, without libraries' messages in plain notebooks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        yield


def _renamed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices under their current names, with a warning for one of release 0.2."""
    for name in FORMER.keys() & choices.keys():
        warnings.warn(f"{name} is called {FORMER[name]} now.", DeprecationWarning, stacklevel=3)
    return {FORMER.get(name, name): value for name, value in choices.items()}


def _remark(words: str) -> None:
    """Report how queries that not every run was asked were treated."""
    warnings.warn(words, stacklevel=3)
