"""Section of Run for custom pipelines: a function or an endpoint, tried once, then measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import ClqError
from core.number_format import ms
from core.pipeline.own.endpoint import presets
from core.pipeline.own.trial import QueryTrial, try_query
from core.pipeline.sweep import load
from core.pipeline.sweep.plan import Plan
from core.pipeline.sweep.problems import Problem, SpecError
from core.store import Snapshot
from core.ui import access, cache, show, work
from core.ui.view import Empty, find_place
from core.views import columns as cols
from core.views.text import plain
from core.work.sweep.asked import asked_corpus
from core.work.sweep.form import stored
from core.work.sweep.kind import EVALUATION
from core.work.sweep.own import MATCHES, OwnForm, about_words, read_params, specification

FUNCTION, ENDPOINT = "a Python function", "an HTTP endpoint"
INTRO = (
    "Your pipeline becomes a stack like any other: it is asked the workspace's questions, timed, and shown "
    "on every page. A function runs on this machine, in its own process and interpreter."
)
TRIED = cols.Rows(
    "own_tried",
    *(cols.count("rank"), cols.text("returned"), cols.text("passage_id", "passage"), cols.score("score")),
    cols.text("known_by", help="How the passage was found in the collection."),
    cols.text("text", width=420),
)


def ask(finish: work.Finish, inside: work.Inside) -> None:
    """Draw the form, a trial query, and the plan with the button; arguments as in `work.underway`."""
    forbidden = access.forbidden()
    show.head("Measure what you have: a Python function or an HTTP endpoint.", forbidden or INTRO)
    work.underway(EVALUATION, may_start=not forbidden, finish=finish, inside=inside)
    if forbidden:
        return
    collections, golden_sets = stored(cache.snapshot(None))
    if not collections:
        raise Empty
    try:
        form = _form(collections, golden_sets)
    except ValueError as error:
        st.error(
            f"Not readable: {plain(str(error))}. Parameters are written as alpha = 0.3, 0.5; a body is JSON."
        )
        return
    if not form.target:
        st.caption("Name the function or the address.")
        return
    text = specification(form)
    _try(text, form)
    with st.expander("The same as a specification, for `core run`"):
        st.code(text, language="toml")
    planning = work.planned(text, "own", partial(plan_of, cache.snapshot(None)))
    for problem in () if planning is None else planning.problems:
        work.say(st.container(), problem)
    if isinstance(planning, Plan):
        begin = partial(EVALUATION.begin, text, cache.store().path, own=True)
        line = work.line_of(EVALUATION, planning)
        work.start(line, EVALUATION.button(planning), planning, begin, key="own")


def plan_of(snapshot: Snapshot, text: str) -> Plan:
    """Plan a custom pipeline's evaluation; runs none of its code and sends nothing."""
    job, problems = EVALUATION.read(snapshot, load(text), cache.books(), to_run=False)
    return EVALUATION.plan(job, problems)


def _form(collections: list[str], golden_sets: dict[str, str]) -> OwnForm:
    place = find_place()
    here = place.scope.collection_id if place is not None else collections[0]
    what = st.segmented_control(
        "What it is", [FUNCTION, ENDPOINT], default=FUNCTION, required=True, key="own_what"
    )
    left, middle, right = st.columns(3)
    at = collections.index(here) if here in collections else 0
    collection = left.selectbox("Documents", collections, index=at, key="own_collection")
    own = [name for name, of in golden_sets.items() if of == collection]
    golden = middle.selectbox("Judgements", own, key=f"own_golden_{collection}") if own else ""
    form = OwnForm(
        target="",
        collection=collection,
        golden_set=golden or "",
        name=right.text_input("Name", key="own_name", placeholder="as it is called"),
    )
    form = _function(form) if what == FUNCTION else _endpoint(form)
    one, two, three, four, five = st.columns(5)
    return replace(
        _more(form, what == FUNCTION),
        match=five.selectbox(
            "Passages known by",
            list(MATCHES),
            index=1,
            key="own_match",
            format_func=MATCHES.__getitem__,
            help="places: source and characters, or the words of the text. headings: source and heading,"
            " where only one has it.",
        ),
        candidates=int(one.number_input("Passages asked for (K)", 1, 10_000, 50, key="own_k")),
        version=two.text_input("Version", key="own_version", placeholder="such as 2026-11-23"),
        repeats=int(three.number_input("Times each question is asked", 1, 100, 3, key="own_repeats")),
        limit=four.number_input("Questions", 1, None, None, key="own_limit", placeholder="all"),
    )


def _function(form: OwnForm) -> OwnForm:
    left, middle, right = st.columns(3)
    return replace(
        form,
        target=left.text_input(
            "Function", key="own_call", placeholder="shop.search:retrieve",
            help="MODULE:NAME: a function, a class's method, or an object with retrieve, invoke, run or"
            " search. “()” at its end calls it once with the parameters, and asks what it returns.",
        ).strip(),
        path=middle.text_input(
            "Folder of the module", key="own_path", placeholder="/srv/shop",
            help="On the machine that runs the dashboard.",
        ).strip(),
        python=right.text_input(
            "Its Python", key="own_python", placeholder="/srv/shop/.venv/bin/python",
            help="The interpreter that has its packages; empty = this one.",
        ).strip(),
    )  # fmt: skip


def _endpoint(form: OwnForm) -> OwnForm:
    left, middle, right = st.columns([4, 2, 2])
    target = left.text_input("Address", key="own_url", placeholder="http://localhost:9200/products").strip()
    preset = middle.selectbox("Engine", list(presets()), key="own_preset")
    key_env = right.text_input(
        "Variable with its key", key="own_key", placeholder="none",
        help="Its name, not the key. CLQ_ALLOW_KEYS of whoever runs the dashboard has to allow it.",
    ).strip()  # fmt: skip
    usual = json.dumps(presets()[preset]["request"].get("json"), indent=1, ensure_ascii=False)
    body = st.text_area(
        "Body of the request", usual, key=f"own_body_{preset}", height=140,
        help="{{ query }}, {{ k }} and names of parameters are filled in.",
    )  # fmt: skip
    changed: Any = None if body.strip() == usual else json.loads(body)
    if target and not target.startswith(("http://", "https://")):
        target = f"http://{target}"
    return replace(form, target=target, preset=preset, key_env=key_env, body=changed)


def _more(form: OwnForm, is_function: bool) -> OwnForm:
    with st.expander("Parameters, costs, and the rest"):
        params = st.text_area(
            "Parameters", key="own_params", height=80, placeholder="alpha = 0.3, 0.5",
            help="One a line; several values are several stacks.",
        )  # fmt: skip
        one, two, three = st.columns(3)
        form = replace(
            form,
            params=read_params([line for line in params.splitlines() if line.strip()]),
            usd_per_query=one.number_input(
                "$ per query", 0.0, None, None, key="own_usd", placeholder="unknown"
            ),
            usd_per_hour=two.number_input(
                "$ per hour of its machine", 0.0, None, None, key="own_hour", placeholder="unknown"
            ),
            timeout_s=three.number_input(
                "Seconds until a query is given up", 0.1, 3600.0, 60.0, key="own_wait"
            ),
            budget=work.budget(one, "own_budget", "measured"),
        )
        if not is_function:
            return form
        return replace(
            form,
            version_cmd=two.text_input("Command that prints the version", key="own_cmd"),
            entry=three.text_input("Haystack: input of the query", key="own_in", placeholder="bm25.query"),
            output=one.text_input("Haystack: component whose documents count", key="own_out"),
        )


def _try(text: str, form: OwnForm) -> None:
    """Ask one query, on demand, and show the response."""
    snapshot = cache.snapshot(None)
    questions = snapshot.queries(form.collection)["text"]
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    first = questions[0] if len(questions) else ""
    query = left.text_input("One query", first, key=f"own_query_{form.collection}")
    if right.button("Try one query", key="own_try", disabled=not query, width="stretch"):
        access.require()
        try:
            own = load(text + "\n").own[0]
            with st.spinner("Loading it, and asking one query…"):
                tried = try_query(own, query, asked_corpus(snapshot, form.collection))
            st.session_state["_own_tried"] = (text, query, tried)
        except SpecError:
            return  # its errors are shown below
        except ClqError as error:
            work.say(st.container(), Problem("", str(error)))
            return
    known = st.session_state.get("_own_tried")
    if known is not None and known[:2] == (text, query):
        _show(known[2], st.container(border=True))


def _show(tried: QueryTrial, place: DeltaGenerator) -> None:
    with place:
        if tried.fault:
            st.error(plain(tried.fault), icon=":material/warning:")
        if tried.printed:
            st.caption(plain(f"It printed: {tried.printed}"))
        if tried.fault:
            return
        about = about_words({**(tried.hello or {}), "understood_as": [tried.shape]})
        st.markdown(plain(f"{tried.rows.height} passages in {ms(tried.ms)}; {about}"))
        show.table(tried.rows, TRIED)
        if tried.answer:
            st.markdown(f"**Its answer:** {plain(tried.answer)}")
        for lack in tried.lacks:
            st.caption(plain(lack))
        if tried.headed:
            st.button(
                f"Match {tried.headed} by source and heading", key="own_headings", on_click=_match_headings
            )


def _match_headings() -> None:
    st.session_state["own_match"] = "headings"
