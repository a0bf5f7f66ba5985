from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.files import read_json
from core.metrics.robust import PERTURBATIONS
from core.pipeline.evaluate.cluster.nodes import CONFIGURED, configured
from core.pipeline.own.version import refuse_code
from core.pipeline.sweep import load
from core.pipeline.sweep.plan import Plan
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.read import NO_QUESTIONS
from core.store import Snapshot
from core.ui import access, cache, show, work
from core.ui.address.links import go
from core.ui.pages import pick_section, way
from core.ui.sections import own_ask
from core.ui.sections.readers_ask import ask, reader_fields
from core.ui.view import chosen_here, find_place, here
from core.views import columns as cols
from core.views.pages import PAGES
from core.views.text import count, plain
from core.views.what_if.moving import CANDIDATE
from core.work.paid import line_rows
from core.work.sweep import form as asked
from core.work.sweep import words as plan_words
from core.work.sweep.form import AXES, LEVELS, Ran, SweepForm
from core.work.sweep.kind import EVALUATION
from core.work.sweep.words import (
    dollars,
    scale_rows,
    search_rows,
    search_words,
    services,
    stack_rows,
    time_and_memory,
)
from core.work.work import StartedWork

SCALE = cols.Rows(
    "at_scale",
    *(cols.text("index", width=150), cols.text("params", "options"), cols.count("dim", "dimensions")),
    cols.number("memory_gb", "memory GB", "Of databases: what they cache to be fast."),
    *(cols.number("disk_gb", "disk GB"), cols.count("build_s", help="Seconds of one core.")),
    cols.usd("build_usd", "build $"),
    cols.usd("usd_per_month", "$ / month", "Memory and disk of one copy, at list prices."),
)
PLANNED = cols.Rows(
    "planned_stacks",
    *(cols.text("label", "stack", width=320), "pool"),
    cols.usd("usd_per_1k", "$ / 1k", "Vendors only, in production; empty = unknown."),
    cols.text("unknown", "unknown because"),
)
SEARCHED = cols.Rows(
    "search",
    *(cols.text("label", "stack", width=260), cols.text("state")),
    cols.count("queries", "questions", "That it was asked."),
    cols.count("round", help="The last that it took part in."),
    cols.text("beaten_by", help="As fast and cheap, and better on the same questions.", width=200),
    cols.signed("bound", "at most better by", "Upper bound of what it has over that one."),
    cols.score("quality", help="Of those asked few, as they compare with those asked all."),
    cols.points("latency_ms", "ms", "Median of its questions."),
    *("usd_per_1k", cols.score("harm", help="Of the first passages, where it has a limit.")),
)
AT_SCALE = "≈ by bytes per vector and seconds per vector; a graph takes longer the larger it is."
OF_DOCUMENTS = "those of the documents"
Places = dict[str, DeltaGenerator]


def fill_in(start: str, begun: SweepForm) -> tuple[SweepForm, str, Places]:
    """Draw the form.

    Returns:
        The values of its fields, the specification that they make, and the container of each field.
    """
    collections, golden_sets = asked.stored(cache.snapshot(None))
    top, middle, bottom = st.columns([3, 3, 3, 2]), st.columns(2), st.columns([3, 3, 2, 2])
    fields = [axis for axis in AXES if axis != "rewrite"]
    axes = [middle[place % 2] for place in range(len(fields))]
    typed = st.expander("Questions as people type them, and rewrites: what they cost and recover")
    ways = [typed.container(), *typed.columns([4, 4, 2, 2]), typed.container()]
    cells = [*top, *axes, *bottom, *ways]
    keys = ("collection", "golden_set", "queries", "limit", *fields, "name", "latency", "budget", "trials")
    keys += ("rewrite", *LEVELS)
    places: Places = {key: cell.container() for key, cell in zip(keys, cells, strict=True)}

    documents = work.chosen(places["collection"], "Documents", begun.documents, collections, key=start)
    same = documents == begun.documents
    if same and begun.note:
        places["collection"].caption(plain(begun.note))
    own = [name for name, of in golden_sets.items() if of == documents]
    place, key = places["golden_set"], f"{start} {documents}"
    judgements = work.chosen(place, "Judgements", begun.judgements, own, key=key, empty=OF_DOCUMENTS)
    split = chosen_split(place, judgements or documents, {*collections, *golden_sets})
    questions = work.chosen(
        places["queries"], "Questions", begun.questions, (), key=start, empty=OF_DOCUMENTS
    )
    number = partial(_number, places, start)
    about = "Drawn at random from those that are judged."
    limit = number("limit", "How many", begun.limit, about=about, placeholder="all")
    offered = asked.offered(begun)
    values = {
        axis: tuple(
            places[axis].multiselect(
                title, offered[axis], begun.axes[axis], accept_new_options=True, key=f"{axis}_{start}"
            )
        )
        for axis, title in AXES.items()
    }
    values |= {
        way.name: tuple(
            places[way.name].pills(
                way.name.capitalize(),
                LEVELS[way.name],
                selection_mode="multi",
                default=begun.axes.get(way.name),
                key=f"{way.name}_{start}",
                help=f"{way.text}. Chosen levels run beside the questions as they are, never in their place.",
            )
        )
        for way in PERTURBATIONS
    }
    moved = bool(begun.documents) and not same
    usual = Path(documents).name if moved else begun.name
    name = places["name"].text_input("Name", usual, key=f"name_{key if moved else start}")
    about = "Latencies are medians of these; 0 measures none."
    repeats = number("latency", "Times each question is asked", begun.repeats, about=about, min_value=0)
    about = "It stops before it would spend more."
    budget = number("budget", "Budget, $", None, about=about, min_value=0.0, placeholder="no limit")
    about = "With a number the space is searched: clearly beaten stacks are stopped early and not stored."
    trials = number("trials", "Number of stacks", None, about=about, placeholder="all")
    folded = st.expander("Readers: what the passages are worth to the answer")
    places["reader"] = folded.container()
    filled = replace(
        reader_fields(places["reader"], begun, key=start),
        name=name or "sweep",
        documents=documents,
        judgements=judgements,
        split=split,
        questions=questions,
        limit=limit,
        axes=values,
        trials=trials,
        repeats=repeats,
        budget=budget,
        chunkers=begun.chunkers if same else (),
        stacks=begun.stacks,
    )
    return filled, asked.specification(filled, collections, golden_sets), places


def _number(
    places: Places, start: str, key: str, label: str, value: float | None, *, about: str, **more: Any
) -> Any:
    """Draw the field of a number."""
    more = {"min_value": 1, "value": value, "key": f"{key}_{start}", "help": about, **more}
    return places[key].number_input(label, **more)


def chosen_split(place: DeltaGenerator, path: str, stored: Container[str]) -> str:
    """Ask which judgements of a folder with several to use; return "" if there is no choice."""
    where = Path(path).expanduser()
    if not path or path in stored or not where.exists():
        return ""
    names = splits_of(str(where.absolute()), where.stat().st_mtime_ns)
    return place.selectbox("Split of the judgements", names, key=f"split_{path}") if names else ""


@cache.cached("Looking at the files…", entries=4)
def splits_of(path: str, changed: int) -> tuple[str, ...]:
    """Return the splits of a path, read once until it changes."""
    del changed  # part of the cache key
    return asked.splits(Path(path))


@cache.cached(entries=8)
def ran(snapshot: Snapshot, collection_id: str) -> Ran | None:
    """Return what the latest evaluation searched, read once per revision."""
    return asked.ran(snapshot, collection_id)


@cache.cached("Reading the corpus and counting…", entries=8)
def plan_of(snapshot: Snapshot, text: str) -> Plan:
    """Plan an evaluation, once per specification and revision; a text never runs code."""
    spec = load(text)
    refuse_code(spec.own, "A specification on this page")
    job, problems = EVALUATION.read(snapshot, spec, cache.books(), to_run=False)
    return EVALUATION.plan(job, problems)


def point_out(problems: Sequence[Problem], form: SweepForm | None, places: Places) -> None:
    """Draw all errors at once, each beside its field if it has one."""
    fields, others = asked.by_field(problems, form) if form else ({}, problems)
    for key, some in fields.items():
        for problem in some:
            work.say(places.get(key, st.container()), problem)
    for problem in others:
        work.say(st.container(), problem)


def whole(plan: Plan) -> None:
    """Draw the models called, time, memory, what is paid for, and the stacks."""
    for sentence in (*services(plan), *time_and_memory(plan)):
        st.markdown(plain(sentence))
    tables(plan)
    many = st.number_input(
        "Indexes at how many passages", 1, None, None, 1_000_000, placeholder="for example 10,000,000",
        key="many", help=AT_SCALE,
    )  # fmt: skip
    if many is not None:
        book = next(iter(cache.books().values()))
        show.table(scale_rows(plan, int(many), book), SCALE)


def tables(planned: Plan) -> None:
    """Draw the paid calls, and the stacks."""
    lines, stacks = line_rows(planned), stack_rows(planned)
    if not lines.is_empty():
        show.table(lines, work.LINES)
    show.table(stacks, PLANNED)


def finish(one: StartedWork, bar: DeltaGenerator) -> None:
    """Draw the link to the workspace that an evaluation fills."""
    here = one.status.collection_id in cache.workspaces(cache.snapshot(None))
    if (
        here
        and one.status.runs_done
        and bar.button("See the decision", key=f"show_{one.name}", type="primary")
    ):
        go("decision", ws=one.status.collection_id)


def searched(one: StartedWork) -> None:
    """Draw the stacks that a search started, and when and by which stack each dropped one was beaten."""
    search = None if one.folder is None else read_json(one.folder.search)
    if search:
        with st.expander(
            f"The search: {count(search['dropped'], 'stack')} dropped, {search['through']:,} through"
        ):
            st.caption(plain(search_words(search)))
            show.table(search_rows(search), SEARCHED.named(f"search_{one.name}"))


def where() -> tuple[str, ...]:
    """Ask where to run it, if the operator has a cluster; return the options of the command."""
    if not configured():
        return ()
    places = {"this machine": (), "the cluster": ("--on", CONFIGURED)}
    chosen = st.segmented_control("Run on", list(places), default="this machine", required=True, key="run_on")
    return places[chosen]


def new_evaluation() -> None:
    """Draw the form, the same as text, its errors, and its plan with the button."""
    view = find_place()
    snapshot = cache.snapshot(None)
    scope = None if view is None else view.scope
    before = None if scope is None else ran(snapshot, scope.collection_id)
    offered = asked.starts(scope, *asked.stored(snapshot), before)
    if made := chosen_here(asked.MADE):
        offered = asked.with_questions(offered, Path(made))
    if candidate := chosen_here(CANDIDATE):
        offered = asked.with_candidate(offered, candidate)
    begin = st.segmented_control(
        "Start from", list(offered), default=next(iter(offered)), required=True, width="content"
    )
    as_form, as_text = st.tabs(["Form", "Text"])
    with as_form:
        filled, written, places = fill_in(begin, offered[begin])
        same = scope is not None and filled.documents == scope.collection_id
        if same and (missing := asked.absent(snapshot, filled.documents)):
            places["embedder"].caption(plain(missing))
    with as_text:
        text = work.draft(written, "run", "TOML or YAML. `python -m core plan --schema` prints every key.")
    if text != written:
        st.caption("The text was edited, and counts; a change in the form writes it anew.")
    elif not filled.documents:
        places["collection"].caption("Choose what is searched, or type a path.")
        return
    planned = work.planned(text, "run", partial(plan_of, cache.snapshot(None)))
    if planned is not None:
        problems = planned.problems
        lacking = [one for one in problems if NO_QUESTIONS in str(one)]
        if lacking and text == written:  # a field that is still empty isn't an error
            places["queries"].caption("Type the path of the questions, or make some below.")
            problems = tuple(one for one in problems if one not in lacking)
        point_out(problems, *((filled, places) if text == written else (None, {})))
        if lacking:
            way(PAGES["golden"], asked.MAKE, "questions", **{asked.ASKED_OF: here(filled.documents)})
    if isinstance(planned, Plan):
        options = where()
        evaluate = partial(EVALUATION.begin, text, cache.store().path, options)
        said = f"{EVALUATION.size_of(planned)}. {dollars(planned, here=not options)}"
        button = EVALUATION.button(planned)
        work.start(said, button, planned, evaluate, key="run", details=partial(whole, planned))


def stacks() -> None:
    """Draw running evaluations, the form, and earlier ones."""
    forbidden = access.forbidden()
    show.head(plan_words.headline([one.status for one in work.known(EVALUATION)]), forbidden)
    work.underway(EVALUATION, may_start=not forbidden, finish=finish, inside=searched)
    if not forbidden:
        new_evaluation()
    work.earlier(EVALUATION, may_start=not forbidden, finish=finish, inside=searched)


def own() -> None:
    """Draw the form for a custom pipeline."""
    own_ask.ask(finish, searched)


page = PAGES["run"]
dict(zip(page.sections, (stacks, own, ask), strict=True))[pick_section(page)]()
