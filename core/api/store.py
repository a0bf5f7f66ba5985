"""A store in Python: add results, list workspaces, query one; `clq.open` returns it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from core.api.decision import Decision, Gate
from core.api.options import Importing, Measuring, Understood
from core.api.pages import GivenChoices, Page, reads_results
from core.api.results import Added, Measured
from core.api.shown import Shown
from core.api.typed import typed
from core.api.workspace import Workspace, loading
from core.errors import InputError, UnknownNameError
from core.importers.read.text import shown
from core.prices import load_books, own_folder
from core.store import Store
from core.views import columns as cols
from core.views.blocks import Answer, Block, Table
from core.views.text import count

if TYPE_CHECKING:
    import polars as pl

    from core.importers import RowMeaning
    from core.pipeline.own.config import MatchBy
    from core.prices import PriceBook
    from core.work.imports.background import IfStored
    from core.work.imports.matching import Unmatched

PathLike = str | os.PathLike[str]
_SPACES = cols.Rows(
    "workspaces",
    cols.text("collection_id", "workspace", width=290),
    cols.count("runs"),
    cols.count("golden_sets"),
    cols.count("queries"),
    cols.count("passages"),
)


@dataclass(frozen=True, repr=False)
class Results(Shown):
    """A store of results. Its methods for a workspace use its only one."""

    store: Store

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self.store.path

    @property
    def revision(self) -> int:
        """The current revision, or 0 if nothing was written yet."""
        return self.store.revision()

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Its collections, those with the user's own runs first."""
        from core.analysis.workspace.choices import workspaces  # noqa: PLC0415

        return tuple(workspaces(self.store.read()))

    @property
    def prices(self) -> dict[str, PriceBook]:
        """The shipped price books and those beside the store, by name."""
        return load_books(own=own_folder(self.path))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The number of workspaces, and the size of each."""
        from core.views.library.data import collections  # noqa: PLC0415

        rows = collections(self.store.read())
        return Answer(f"{count(rows.height, 'workspace')}."), Table(rows, _SPACES)

    @typed
    def workspace(self, name: str | None = None, *, golden_set: str | None = None) -> Workspace:
        """Return one of its workspaces.

        Args:
            name: Its collection; None = the only one with runs, otherwise the only one.
            golden_set: Its judgements; None = its only golden set.

        Raises:
            UnknownNameError: If there is no such workspace.
            InputError: If several fit and none was named.
        """
        known = self.workspaces
        if name is None:
            with_runs = self.store.read().runs()["collection_id"].unique().to_list()
            left = [one for one in known if one in with_runs] or list(known)
            if len(left) != 1:
                raise InputError(
                    f"{count(len(left), 'workspace')}: {', '.join(left)}." if left else "The store is empty.",
                    do="Name one: .workspace(name)." if left else "First .add(path or DataFrame).",
                )
            (name,) = left
        if name not in known:
            raise UnknownNameError("workspace", name, known)
        return Workspace(self.store, name, golden_set)

    @typed
    def add(
        self,
        *things: object,
        name: str = "table",
        label: str | None = None,
        collection: str | None = None,
        golden_set: str | None = None,
        grades: str | None = None,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        row: RowMeaning | None = None,
        if_changed: IfStored | None = None,
        unmatched: Unmatched = "refuse",
        match: MatchBy = "ids",
        **more: Unpack[Importing],
    ) -> Added:
        """Add results, in one transaction: all of them or nothing.

        Args:
            things: Files, folders, archives, DataFrames of pandas, Polars or another library, and runs and
                judgements as dicts, {query: {passage: score or grade}}: ranx's and pytrec_eval's. Whole
                numbers only are grades; refused if they tell all passages of every query apart.
            name: Name of a DataFrame or dict, like a file's.
            label: Name for the run; with several runs it prefixes their own names.
            collection: Workspace for the results; None = the one whose ids they use, or a new one.
            golden_set: Name of the golden set made from judgements.
            grades: Mapping of grades to 1 to 5: a name of a mapping, or pairs such as "0=1,1=3,2=5".
            columns: Meaning → column of a table, if names are not recognised; for "run" several columns
                may name the stack together.
            row: What a row of a table is, if its columns do not say.
            if_changed: What to do with existing things whose content differs; None = refuse.
            unmatched: What to do with runs and judgements that name nothing in their collection.
            match: How ranked passages are identified: "ids"; "places" = also source and characters, or the
                words of their texts; "headings" = also source and heading.
            more: The less common options, see `core.importers.Options`: format, split, tie_order …

        Raises:
            InputError: If something cannot be read; nothing was written then.
            ClqError: If the store refuses it; nothing was written then.
        """
        from core.api.frames import formats, offered  # noqa: PLC0415
        from core.importers.meaning import mapped  # noqa: PLC0415
        from core.work.imports.imports import collection_of, knowing, read_into, report, store_import  # noqa: PLC0415

        snapshot, said = self.store.read(), dict(more.get("formats", {}))
        names = [name, *(f"{name}_{place}" for place in range(2, len(things) + 1))]
        given = [offered(thing, called) for thing, called in zip(things, names, strict=False)]
        options = knowing(
            snapshot,
            label=label,
            collection_id=collection,
            golden_set_id=golden_set,
            grades=grades,
            columns=mapped(
                (meant, column)
                for meant, given in (columns or {}).items()
                for column in ([given] if isinstance(given, str) else given)
            ),
            row=row,
            **{**more, "formats": formats(things, given, said) | said},
        )
        imported = read_into(given, options, snapshot, unmatched=unmatched, by=match)
        note = shown(", ".join(map(_called, given)), 200)
        done = store_import(self.store, imported, note, choice=if_changed, unmatched=unmatched)
        rows = report(imported, "taken" if done.fresh else "known already")
        runs = tuple(run.run_id for run in done.made.runs)
        return Added(done.fresh, done.said, collection_of(done.made), runs, rows)

    @typed
    def score(
        self, measures: str | Iterable[str], *, runs: Sequence[str] | None = None, per_query: bool = False
    ) -> pl.DataFrame:
        """Score the runs of the only workspace; see `Workspace.score`."""
        return self.workspace().score(measures, runs=runs, per_query=per_query)

    def decide(
        self,
        *,
        sla_ms: float | None = None,
        budget: float | None = None,
        measure: str | None = None,
        min_quality: float | None = None,
        max_harm: float | None = None,
        **choices: Unpack[Understood],
    ) -> Decision:
        """Decide in the only workspace; see `Workspace.decide`."""
        return self.workspace().decide(
            sla_ms=sla_ms,
            budget=budget,
            min_quality=min_quality,
            max_harm=max_harm,
            measure=measure,
            **choices,
        )

    def compare(
        self, first: str, second: str, *, measure: str | None = None, **choices: Unpack[Understood]
    ) -> Page:
        """Compare two stacks of the only workspace; see `Workspace.compare`."""
        return self.workspace().compare(first, second, measure=measure, **choices)

    @typed
    def page(self, name: str, section: str | None = None, choices: GivenChoices | None = None) -> Page:
        """Return a page's content for the only workspace, or for the store; see `Workspace.page`."""
        space = self.workspace() if reads_results(name) else Workspace(self.store, "")
        return space.page(name, section, choices)

    @typed
    def gate(
        self,
        record: str | Path,
        *,
        share: float = 0.8,
        least_pgs: float = 0.0,
        waive: Sequence[str] = (),
        results: Sequence[str | Path] = (),
        into: str | None = None,
    ) -> Gate:
        """Check a recorded decision with its own question, and new results; see `Workspace.gate`."""
        return Workspace(self.store, "").gate(
            record, share=share, least_pgs=least_pgs, waive=waive, results=results, into=into
        )

    @typed
    def measure(
        self, target: object, collection: str | None = None, **options: Unpack[Measuring]
    ) -> Measured:
        """Measure an existing pipeline on a collection; see `Workspace.measure`."""
        return self.workspace(collection).measure(target, **options)

    @typed
    def run(
        self,
        spec: PathLike | Mapping[str, Any],
        *,
        budget: float | None = None,
        quiet: bool = False,
    ) -> Measured:
        """Run the stacks of a specification, and store the measurements.

        An interrupted run resumes where it stopped, and nothing is paid for twice.

        Args:
            spec: A path, the text of a specification, or its tables.
            budget: Maximum total dollars; required if it costs something.
            quiet: Whether to hide the progress bar.

        Raises:
            SpecError: With all its errors.
            BudgetError: If it costs something, or may, and there is no budget.
        """
        with loading():
            from core.api.running import ran, spec_of  # noqa: PLC0415

        text = spec if isinstance(spec, str | Mapping) else Path(spec).expanduser()
        return ran(self.store, spec_of(text), budget, bounded=True, quiet=quiet)

    @property
    def _made(self) -> str:
        return f"{self.path}, revision {self.revision}."


@typed
def open(path: PathLike | None = None) -> Results:  # noqa: A001 - called as clq.open
    """Open a store; one that doesn't exist yet is empty, and is created when something is added.

    Args:
        path: Its folder, also from ~; None = `CLQ_STORE`, otherwise the default place.

    Raises:
        StoreError: If the path is a file, or a folder with other contents.
    """
    return Results(Store.open(None if path is None else Path(path).expanduser()))


@typed
def measure(
    target: object,
    collection: str | None = None,
    *,
    store: PathLike | None = None,
    **options: Unpack[Measuring],
) -> Measured:
    """Measure an existing pipeline on a stored collection; see `Workspace.measure`.

    Args:
        collection: None = the only one.
        store: Folder of the store; None = the default place.
    """
    return open(store).measure(target, collection, **options)


@typed
def run(
    spec: PathLike | Mapping[str, Any],
    *,
    budget: float | None = None,
    store: PathLike | None = None,
    quiet: bool = False,
) -> Measured:
    """Run the stacks of a specification into a store; see `Results.run`."""
    return open(store).run(spec, budget=budget, quiet=quiet)


def _called(thing: Any) -> str:  # noqa: ANN401
    return str(getattr(thing, "name", "") or Path(thing).name)
