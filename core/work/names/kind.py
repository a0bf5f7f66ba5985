"""Diagnoses of names as a kind of paid work. Loading it loads the engines, which takes a second."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from core.pipeline.evaluate.session import Result, Site
from core.pipeline.sweep.problems import Problem
from core.prices import PriceBook
from core.store import Snapshot, Store
from core.work.names import words
from core.work.names.job import NamesJob, NamesPlan, NamesSpec, plan, read_job, run_job
from core.work.names.stored import store_results
from core.work.work import Work


def _read(
    snapshot: Snapshot, spec: NamesSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[NamesJob, list[Problem]]:
    del to_run  # nothing is missing that only running needs
    return read_job(spec, books, snapshot.passages), []


def _diagnose(store: Store, job: NamesJob, site: Site) -> Result:
    return run_job(job, store_results=partial(store_results, store), site=site)


NAMES: Work[NamesJob, NamesPlan, Result] = Work(
    noun="diagnosis",
    kept="what was embedded is kept, and the same command goes on",
    folder="diagnostics",
    begins=("diagnose", "names", "--yes", "--spec"),
    resumes=("diagnose", "resume"),
    model=NamesSpec,
    read=_read,
    plan=lambda job, _: plan(job),
    run=_diagnose,
    size_of=words.size_of,
    costs=lambda _: "",
    button=words.button,
    ended=words.ended,
    table=words.table,
)
