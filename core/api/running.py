"""Evaluations from Python: a specification, or a custom pipeline, run into a store."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.analysis.workspace.choices import choices
from core.analysis.workspace.comparable import timed_elsewhere
from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import stack_table
from core.api.results import Measured
from core.errors import BudgetError, InputError
from core.jobs import asked_to_stop
from core.pipeline.evaluate import Status
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.folder import ARTIFACTS
from core.pipeline.evaluate.session import Site
from core.pipeline.own.here import offer
from core.pipeline.own.worker.clq_worker import METHODS
from core.pipeline.sweep import load, parse
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.plan import plan
from core.prices import load_books, own_folder
from core.store import Store
from core.work.bar import progressing
from core.work.readers.plan import with_readers
from core.work.sweep import into
from core.work.sweep.kind import EVALUATION
from core.work.sweep.own import OwnForm, specification

_PLAIN = re.compile(r"[A-Za-z_]\w*")


def measured(
    store: Store,
    collection: str,
    target: object,
    params: Mapping[str, object],
    form: Mapping[str, Any],
    *,
    quiet: bool,
) -> Measured:
    """Measure a custom pipeline on a stored collection; see `Workspace.measure`."""
    levels = {name: value if isinstance(value, list | tuple) else (value,) for name, value in params.items()}
    golden = golden_set_of(store.read(), collection, form["golden_set"] or None) or ""
    where = {"target": target} if isinstance(target, str) else called(target, str(form["name"]))
    filled = {**form, **{name: value for name, value in where.items() if not form.get(name)}}
    asked = OwnForm(**{**filled, "collection": collection, "golden_set": golden, "params": levels})
    done = ran(store, parse(specification(asked), "toml", name="measure"), quiet=quiet)
    snapshot, scope = store.read(), Scope(collection, golden or None)
    book = load_books(own=own_folder(store.path))["list"]
    table = stack_table(snapshot, scope, choices(snapshot, scope).quality, Latency(), book)
    said = timed_elsewhere(table, done.runs["run_id"].to_list())
    return replace(done, notes=(*done.notes, said)) if said else done


def called(target: object, name: str = "") -> dict[str, str]:
    """Return an evaluation's fields for a Python object: target, name, and either path or version.

    Args:
        name: Name of the stack, if it has one.

    Raises:
        InputError: If it has nothing to call.
    """
    own = str(getattr(target, "__qualname__", "") or type(target).__name__)
    if not callable(target) and not any(hasattr(target, method) for method in METHODS):
        raise InputError(
            f"{own} cannot be asked.",
            do=f"Give a callable, or an object with {', '.join(METHODS[:-1])}.",
        )
    if place := importable(target):
        return {"target": f"{target.__module__}:{own}", "path": str(place), "name": name or own}
    plain = "_".join(_PLAIN.findall(name or own)) or "pipeline"
    plain = plain if _PLAIN.fullmatch(plain) else "pipeline"
    version = hashlib.sha256(_source(target).encode()).hexdigest()[:8] if _source(target) else ""
    return {"target": offer(plain, target), "name": name or own, "version": version}


def importable(target: object) -> Path | None:
    """Return the folder from which another process can import a function or class, or None if it cannot."""
    module, own = sys.modules.get(getattr(target, "__module__", "")), getattr(target, "__qualname__", "")
    file = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__" or file is None or "<" in own or not own:
        return None
    found: Any = module
    for part in own.split("."):
        found = getattr(found, part, None)
    parents = module.__name__.count(".") + (Path(file).name == "__init__.py")
    return Path(file).resolve().parents[parents] if found is target else None


def _source(target: object) -> str:
    try:
        own = inspect.isroutine(target) or inspect.isclass(target)
        return inspect.getsource(target if own else type(target))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""


def spec_of(spec: str | Path | Mapping[str, Any]) -> SweepSpec:
    """Read a specification: a path, its text, or its tables."""
    if isinstance(spec, Mapping):
        return parse(json.dumps(spec), "json", name="run")
    return load(spec)


def ran(
    store: Store, spec: SweepSpec, budget: float | None = None, *, bounded: bool = False, quiet: bool = False
) -> Measured:
    """Run a specification into a store.

    Args:
        budget: Maximum dollars, overriding the specification's budget.
        bounded: Whether to refuse it if it costs something and has no budget.
        quiet: Whether to hide the progress bar.

    Raises:
        BudgetError: If it is refused for lack of a budget, or stopped by it.
    """
    books = load_books(own=own_folder(store.path))
    job, problems = into.read(store, books, spec, to_run=True)
    job = into.with_budget(job, budget)
    artifacts = Artifacts(into.work_of(store) / ARTIFACTS)
    planned = plan(job, built=lambda step: artifacts.find(step) is not None, problems=problems)
    planned = with_readers(planned, job)
    if bounded and planned.usd != 0 and job.budget_usd is None and planned.lines:
        cost = "an unknown sum" if planned.usd is None else f"about ${planned.usd:,.4f}"
        raise BudgetError(f"This costs {cost}.", do="Say with budget= how many dollars it may cost.")
    with _telling(quiet=quiet) as tell, asked_to_stop() as stop:
        work = into.work_of(store)
        outcome = EVALUATION.run(
            store,
            job,
            Site(work=work, shared=work, progress=tell, cancelled=stop.is_set, store=store.path.name),
        )
    notes = (*into.sentences(outcome, job), *map(str, planned.problems))
    return Measured(str(outcome.status.state), into.rows(outcome), outcome.status.usd or 0.0, notes)


@contextmanager
def _telling(*, quiet: bool) -> Iterator[Callable[[Status], None]]:
    if quiet:
        yield lambda _: None
    else:
        with progressing() as tell:
            yield tell
