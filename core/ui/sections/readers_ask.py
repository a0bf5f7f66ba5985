"""Section Readers of Run: models answer from stored runs; an evaluation's form has the same fields."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.readers import SENT
from core.pipeline.sweep.fields import JUDGED_USUALLY, JudgeScorer
from core.ui import access, cache, show, work
from core.ui.address.links import go
from core.ui.view import Empty, find_place
from core.views.text import plain
from core.work.paid import models
from core.work.readers import words
from core.work.readers.kind import READERS
from core.work.readers.prompts import PROMPTS
from core.work.sweep import form as asked
from core.work.sweep.form import SweepForm
from core.work.work import StartedWork


def reader_fields(place: DeltaGenerator, begun: SweepForm, *, key: str) -> SweepForm:
    """Draw who answers, how they are asked, and which passages they get."""
    left, right = place.columns(2)
    readers = left.multiselect(
        "Models that answer", models(), begun.readers, accept_new_options=True, key=f"readers_{key}",
        help="“fake” repeats a sentence: for trying out, never for results.",
    )  # fmt: skip
    sent = right.multiselect(
        "Passages sent (k)", asked.SENT, begun.sent, accept_new_options=True, key=f"sent_{key}"
    )
    prompts = left.multiselect(
        "Prompts", PROMPTS, begun.prompts, accept_new_options=True, key=f"prompts_{key}",
        help="Or a path to instructions of your own; “grounded” cites passages.",
    )  # fmt: skip
    modes = right.multiselect(
        "What is sent", list(SENT), begun.modes, format_func=lambda mode: SENT[mode], key=f"modes_{key}"
    )
    judges = left.multiselect(
        "Judges", models(), begun.judges, placeholder="none", accept_new_options=True, key=f"judges_{key}",
        help="Each scores every answer on its own; other models than the readers.",
    )  # fmt: skip
    judged_by = right.multiselect(
        "Judged by", get_args(JudgeScorer), begun.judged_by or JUDGED_USUALLY, key=f"judged_by_{key}",
        format_func=lambda name: name.replace("_", " "), disabled=not judges,
        help="Correctness and similarity need gold answers, answer relevancy the question alone.",
    )  # fmt: skip
    return replace(
        begun, readers=tuple(readers), prompts=tuple(prompts), sent=tuple(sent), modes=tuple(modes),
        judges=tuple(judges), judged_by=tuple(judged_by),
    )  # fmt: skip


def ask() -> None:
    """Draw running readers, the form, and earlier ones."""
    forbidden = access.forbidden()
    show.head(words.headline([one.status for one in work.known(READERS)]), forbidden or words.WHAT)
    work.underway(READERS, may_start=not forbidden, finish=_finish)
    if not forbidden:
        _new()
    work.earlier(READERS, may_start=not forbidden, finish=_finish)
    if find_place() is None:
        raise Empty


def _finish(one: StartedWork, bar: DeltaGenerator) -> None:
    """Draw the link to the answers."""
    here = one.status.collection_id in cache.workspaces(cache.snapshot(None))
    if here and one.status.runs_done and bar.button("See the answers", key=f"answers_{one.name}"):
        go("readers", ws=one.status.collection_id)


def _new() -> None:
    """Draw the form, the same as text, its errors, and its plan with the button."""
    place = find_place()
    runs = None if place is None else cache.snapshot(None).runs(place.scope.collection_id)
    if place is None or runs is None:
        return
    if not runs["has_rankings"].any():
        st.info(words.NO_RANKINGS)
        return
    as_form, as_text = st.tabs(["Form", "Text"])
    with as_form:
        filled = _fill_in(place.scope.collection_id, place.scope.golden_set_id or "", runs)
    with as_text:
        written = asked.reader_specification(filled)
        text = work.draft(written, "readers", "TOML or YAML; docs/readers.md has every key.")
    if text != written:
        st.caption("The text was edited, and counts; a change in the form writes it anew.")
    elif not filled.readers:
        st.caption(words.NO_READER)
        return
    work.offer(READERS, text, key="ask")


def _fill_in(collection: str, golden_set: str, runs: pl.DataFrame) -> SweepForm:
    labels = dict(runs.filter("has_rankings").select("run_id", "label").iter_rows())
    first = st.columns([2, 4, 1])
    name = first[0].text_input("Name", f"{collection}-readers", key=f"asked_name_{collection}")
    chosen = first[1].multiselect(
        "Runs", list(labels), placeholder="all of this workspace", key=f"asked_runs_{collection}",
        format_func=lambda run: plain(labels[run]),
    )  # fmt: skip
    budget = work.budget(first[2], "asked_budget", "answered")
    begun = SweepForm(
        name=name or "readers", documents=collection, judgements=golden_set, axes={}, budget=budget,
        runs=tuple(chosen) or ("workspace",),
    )  # fmt: skip
    return reader_fields(st.container(), begun, key=f"asked_{collection}")
