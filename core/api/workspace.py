"""A workspace in Python: score its runs, decide, read pages, measure a pipeline on it."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import polars as pl

from core.api.asked import asked
from core.api.decision import Decision, Gate
from core.api.pages import Choices, Page
from core.api.shown import Shown
from core.decide.axes import FORMER
from core.errors import UnknownNameError
from core.views import columns as cols
from core.views.blocks import Answer, Block, Table
from core.views.text import count

if TYPE_CHECKING:
    from core.analysis.workspace.query_sets import LeastJudged
    from core.analysis.workspace.scope import LatencyScope, Per, Percentile
    from core.analysis.workspace.view import View
    from core.api.results import Measured
    from core.decide.rules import Rule
    from core.prices import PriceBook
    from core.records import Origin
    from core.stats.latency import Generation
    from core.store import Snapshot, Store


class Asked(TypedDict, total=False):
    """The rarer choices of a decision; the options of commands of these names say what they are."""

    on: Percentile
    latency: LatencyScope
    rule: Rule
    indifference: float | None
    take: str | None
    jitter_ms: float | None
    min_robust: float | None
    min_refusal_rate: float | None
    min_answer_rate: float | None
    prices: str
    price: list[str] | None
    origin: list[Origin] | None
    runs: list[str] | None
    revision: int | None
    together: bool
    judged: LeastJudged
    every_golden_set: bool
    cluster_by: str
    judge_noise: str | None
    reader: str
    scorer: str
    cost_per: Per
    correct_from: float
    seed: int
    generation: Generation | None


class Understood(Asked, total=False):
    """`Asked`, and limits as release 0.2 called them."""

    floor: float | None
    harm: float | None


_RUNS = cols.Rows(
    "runs",
    cols.text("label", "run", width=290),
    cols.text("origin"),
    cols.count("n", "queries"),
    cols.Column("created_at", "made", form="time"),
)


@dataclass(frozen=True, repr=False)
class Workspace(Shown):
    """A collection of a store with its judgements and runs; every answer reads the store as it is then."""

    store: Store
    name: str  # the collection
    golden_set: str | None = None  # its judgements; None = its only golden set

    @property
    def runs(self) -> pl.DataFrame:
        """Its runs, newest first: run_id, label, origin, pool, n (queries), passages, created_at."""
        from core.views.library.data import runs  # noqa: PLC0415

        return runs(self._snapshot()).filter(collection_id=self.name)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """How many runs there are, and which."""
        rows = self.runs
        return Answer(f"{self.name}: {count(rows.height, 'run')}."), Table(rows, _RUNS)

    def score(
        self,
        measures: str | Iterable[str],
        *,
        runs: Sequence[str] | None = None,
        per_query: bool = False,
    ) -> pl.DataFrame:
        """Score its runs.

        Args:
            measures: With cutoffs: "RA-nWG@10, nDCG@10", or a list of them.
            runs: Ids or labels; None = all.
            per_query: A row per query instead of the mean.

        Returns:
            A row per run and measure: run, stack, measure, k, value, reason (why there is none), n (queries),
            ci_low and ci_high (95 % interval of the mean).

        Raises:
            UnknownNameError: If a measure or a run does not exist.
        """
        from core.analysis.scoring_stored import score_stored  # noqa: PLC0415
        from core.analysis.workspace.scope import resolve_runs  # noqa: PLC0415

        snapshot = self._snapshot()
        known = snapshot.runs(self.name)
        if runs is not None:
            known = known.filter(pl.col("run_id").is_in(resolve_runs(known, list(runs))))
        text = measures if isinstance(measures, str) else ",".join(measures)
        return score_stored(
            snapshot, known, text, golden_set=self.golden_set, per_query=per_query, tell=_remark
        )

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
            min_quality: Worst quality.
            max_harm: Highest Harm at the measure's cutoff.
            measure: Quality with its cutoff; None = RA-nWG@10, or what is there instead.
            choices: The rarer ones; floor and harm are understood as min_quality and max_harm until the next
                release.

        Raises:
            UnknownNameError: If a choice or a name in one does not exist.
            InputError: If a value is out of its range, or a choice is missing that only you can make.
        """
        from core.report.data import verdict  # noqa: PLC0415 - the charts' library takes long to load

        limits = {"sla_ms": sla_ms, "budget": budget, "min_quality": min_quality, "max_harm": max_harm}
        view = self._view({**limits, "measure": measure, **_renamed(choices)})
        return Decision(view, verdict(view))

    def page(self, name: str, section: str | None = None, choices: Choices | None = None) -> Page:
        """Have a page of the dashboard say what it says here, without limits; `Decision.page` has them.

        Args:
            name: As its address has it: "headroom", "confidence" …
            section: Its name; None = the first.
            choices: Answers to what the section asks, by key.
        """
        from core.analysis.workspace.question import Question  # noqa: PLC0415
        from core.analysis.workspace.resolve import place_of  # noqa: PLC0415
        from core.api.pages import page_of, reads_results  # noqa: PLC0415

        if reads_results(name):
            return page_of(self._view({}), name, section, choices)
        place = place_of(Question(collection=self.name or None), self._snapshot())
        return page_of(place, name, section, choices)

    def switch(
        self,
        incumbent: str,
        *,
        sla_ms: float | None = None,
        budget: float | None = None,
        passages: int | None = None,
        tokens_per_passage: float | None = None,
        **terms: Any,  # noqa: ANN401 - fields of Terms
    ) -> dict[str, Any]:
        """Ask whether to stay with the stack that runs or to switch to the best of the others.

        Args:
            incumbent: Name or run of the stack that runs today.
            sla_ms: Highest latency in milliseconds.
            budget: Highest cost in $ per 1,000 queries.
            passages: How many would be embedded and indexed; None = those of the collection.
            tokens_per_passage: What embedding is paid by; None = not known.
            terms: Fields of `core.decide.switching.Terms`: queries_per_month, months, margin …

        Returns:
            What `switch --format json` prints: answer, to, difference, one_time_usd, payback_months …

        Raises:
            UnknownNameError: If no stack is called so, or a term is none.
            InputError: If it is the only stack.
        """
        from core.analysis.switching import Corpus, switch  # noqa: PLC0415
        from core.decide.switching import Terms  # noqa: PLC0415

        known = list(Terms.__dataclass_fields__)
        for name in terms:
            if name not in known:
                raise UnknownNameError("term", name, known)
        view = self._view({"sla_ms": sla_ms, "budget": budget})
        corpus = Corpus(passages=passages, tokens_per_passage=tokens_per_passage)
        return switch(view, incumbent, Terms(**terms), corpus).to_dict()

    def gate(
        self, record: str | Path, *, share: float = 0.8, least_pgs: float = 0.0, waive: Collection[str] = ()
    ) -> Gate:
        """Ask a recorded decision's own question again.

        Args:
            record: The JSON that `Decision.record` wrote.
            share: Of records of the rule until 0.2: probability above which another stack must be chosen.
            least_pgs: Least probability of good selection that the recorded stack must have.
            waive: Limits to go on without where nothing is known of them for that stack: "min_robust".

        Raises:
            InputError: If it is no record, or one that chose nothing.
            NothingKnownError: If no stack is known on what a limit asks for.
        """
        from core.analysis.workspace.question import Question  # noqa: PLC0415
        from core.analysis.workspace.resolve import resolve  # noqa: PLC0415
        from core.report.data import verdict  # noqa: PLC0415
        from core.report.gate import Held, asked_again, record_of, waived  # noqa: PLC0415

        was, snapshot = record_of(Path(record)), self._snapshot()
        question = asked_again(was, Question(), snapshot, ())
        view, dropped = waived(was, resolve(question, snapshot, self._book(question.prices)), waive)
        return Gate(Held(was, view, verdict(view), share, least_pgs, dropped))

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
        **more: Any,  # noqa: ANN401 - further fields of the form
    ) -> Measured:
        """Measure a pipeline that you have: its rankings, its times and what it costs, as a stack of its own.

        A function that can be imported is asked in a process of its own; what only this process has (a
        notebook's function, a closure, an object that holds a model) is asked here, and cannot be stopped
        when it hangs.

        Args:
            target: A callable or an object with retrieve, invoke, run or search; or as text MODULE:CALLABLE
                or the address of an endpoint.
            name: What it is called.
            k: How many passages are asked for.
            params: Keyword arguments; a list of values makes several stacks.
            version: What tells this state of it from others; of a notebook's function its source says it.
            usd_per_query: What a query costs.
            limit: How many questions are asked; None = all.
            repeats: How often each is asked.
            quiet: Whether no bar shows how far it is.
            more: Further fields of `core.work.sweep.own.OwnForm`, such as python, path, preset, timeout_s.

        Raises:
            InputError: If it, or the collection, cannot be used.
            ProviderError: If it cannot be begun, or fails query after query.
        """
        with loading():
            from core.api.running import measured  # noqa: PLC0415

        form = {"name": name, "candidates": k, "version": version, "usd_per_query": usd_per_query}
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
    """Load what runs evaluations, which takes a second, without what a library says in plain notebooks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        yield


def _renamed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices under their names of today; one of release 0.2 is warned of."""
    for name in FORMER.keys() & choices.keys():
        warnings.warn(f"{name} is called {FORMER[name]} now.", DeprecationWarning, stacklevel=3)
    return {FORMER.get(name, name): value for name, value in choices.items()}


def _remark(words: str) -> None:
    """Tell what was done about queries that not every run was asked."""
    warnings.warn(words, stacklevel=3)
