"""One process's session of paid work: a folder, a budget, journals and a status.

Evaluations, builds of golden sets and readers work in such sessions: nothing is paid for twice, and killed
work resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import BudgetError, ProviderError
from core.files import write_json
from core.jobs import State, Stopped, Tracker, Watch
from core.pipeline.evaluate.budget import Budget, Receipts, Spent
from core.pipeline.evaluate.build import Models
from core.pipeline.evaluate.folder import ARTIFACTS, Folder, Log, Progress, Status, folder_of
from core.prices import PriceBook
from core.providers.calls import Journal, Keys, redact
from core.providers.config import ModelConfig
from core.records import JsonMap

REPLIES = "replies.sqlite"  # Vectors of passages, and unmeasured answers, for all evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One process's models, budget, journals and folder for its session of paid work."""

    models: Models
    budget: Budget
    receipts: Receipts
    journals: Sequence[Journal]
    tracker: Tracker[Status]
    watch: Watch
    folder: Folder
    log: Log


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """An order for work: identity, specification, models, prices and budget."""

    work_id: str  # Its identity; work with the same identity resumes in the same folder
    name: str  # Display name
    collection_id: str  # Its collection
    spec: JsonMap  # The user's specification
    manifest: JsonMap  # All that is needed to repeat it
    models: Mapping[str, ModelConfig]  # Configurations of models missing from the catalogues
    book: PriceBook
    budget_usd: float | None  # Maximum dollars; None = no limit
    billed: Sequence[tuple[str, str]]  # Item and unit of everything that is paid for
    own: bool = True  # Whether answers are kept for this work alone
    status: Mapping[str, Any] = field(default_factory=lambda: {"runs_total": 1})  # Further facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a piece of work: its status, result and spending."""

    folder: Folder  # The work folder
    status: Status  # How far it came, and why it ended
    stored: str = ""  # Its result in the store; empty if it was stopped before
    spent: tuple[Spent, ...] = ()  # Its payments, resumed sessions included


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place where work runs, with its progress reports and the way to stop it."""

    work: Path  # The folder of all work of its kind
    # The folder of all evaluations, whose replies, indexes and vectors are reused; None = `work`
    shared: Path | None = None
    progress: Progress | None = None  # Told about every unit of work
    cancelled: Callable[[], bool] = lambda: False  # Whether to stop; asked several times a second
    keys: Keys | None = None  # Where keys of providers are looked up
    on: str = ""  # The cluster that does it: "ray" for one started here, or its address; empty = none
    on_wait: Callable[[float], None] | None = None  # Told while another process writes to the store
    store: str = ""  # Name of the store's folder, a sibling of the work folder; empty = not recorded

    @property
    def replies(self) -> Path:
        """Return the journal of replies that all work shares."""
        return (self.shared or self.work) / REPLIES

    @property
    def artifacts(self) -> Path:
        """Return the folder of indexes and vectors that all work shares."""
        return (self.shared or self.work) / ARTIFACTS


def work_through(order: WorkOrder, do: Callable[[Session], str], site: Site) -> Result:
    """Do the work, or the rest of it.

    Args:
        do: Does it and returns its result in the store.

    Returns:
        Its outcome; its state is `FINISHED` or `CANCELLED`.

    Raises:
        BudgetError: If continuing could cost more than allowed; answers are kept.
        InputError: If another process does it, or something in it cannot be used.
        ClqError: If a provider fails; answers are kept, and a rerun resumes.
    """
    with begun(order, site) as session:
        stored = ""
        with stoppable(session.watch):
            stored = do(session)
        state = State.FINISHED if stored else State.CANCELLED
        session.log.write("end", state=state, usd=session.budget.usd, stored=stored)
        status = session.tracker.close(state, runs_done=int(bool(stored)))
        return Result(
            folder=session.folder, status=status, stored=stored, spent=tuple(session.receipts.spent())
        )


@contextmanager
def begun(order: WorkOrder, site: Site) -> Iterator[Session]:
    """Hold the folder of work with all its needs open, and report how it ended if it ended badly."""
    folder = folder_of(site.work, order.name, order.work_id)
    with folder.held(), ExitStack() as files:
        receipts = files.enter_context(closing(Receipts(folder.receipts)))
        paths = [site.replies, *([folder.journal] if order.own else [])]
        journals = [files.enter_context(closing(Journal(path, receipts.sent_again))) for path in paths]
        budget = Budget(order.book, order.budget_usd, receipts)
        budget.require_prices(order.billed)
        models = Models(order.models, shared=journals[0], own=journals[-1], meter=budget, keys=site.keys)
        before = folder.status()
        stores = {*(before.stores if before else ()), *filter(None, [site.store])}
        status = Status(
            stores=sorted(stores),
            evaluation_id=order.work_id,
            name=order.name,
            collection_id=order.collection_id,
            usd_limit=order.budget_usd,
            **order.status,
        )
        tracker = Tracker(status, path=folder.status_file, told=site.progress, facts=receipts.sums)
        write_json(folder.spec, order.spec)
        write_json(folder.manifest, order.manifest)
        log = Log(folder.log)
        log.write("begin", name=order.name, **order.status)
        with (
            _ending(tracker, log, models),
            Watch(site.cancelled, folder.stop, models.interrupt) as watch,
        ):
            yield Session(
                models=models,
                budget=budget,
                receipts=receipts,
                journals=journals,
                tracker=tracker,
                watch=watch,
                folder=folder,
                log=log,
            )


@contextmanager
def _ending(tracker: Tracker[Status], log: Log, models: Models) -> Iterator[None]:
    """Report how work ended if it ended badly, and close connections."""
    try:
        yield
    except BaseException as error:
        state = State.FAILED
        if isinstance(error, BudgetError):
            state = State.BUDGET
        elif isinstance(error, KeyboardInterrupt):
            state = State.INTERRUPTED
        words = redact(str(error) or type(error).__name__)
        log.write("end", state=state, error=words)
        tracker.close(state, words)
        raise
    finally:
        models.close()


@contextmanager
def stoppable(watch: Watch) -> Iterator[None]:
    """Let the block end early if somebody asks it to stop, even within a call."""
    try:
        yield
    except Stopped:
        pass
    except ProviderError as error:
        if not (watch.stopping and error.kind == "stopped"):
            raise
