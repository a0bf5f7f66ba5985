"""Section Judge of Golden sets: the form that starts a queue, and the actions on a queue as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.judging import what_next
from core.analysis.workspace.view import View
from core.errors import InputError
from core.golden.book import Queue, QueueMode
from core.golden.by_hand import BETWEEN, SAMPLINGS, Sampling
from core.ui import access, show
from core.ui.pages import way
from core.ui.pick import still_offered, still_offered_all
from core.ui.sections.judge_cards import LEAVING, NEXT, book, cards, one_by_one, store_judged
from core.ui.sections.questions import sets_made
from core.ui.view import current_frame
from core.views.golden import judging
from core.views.golden.reviewing import sheet, to_excel
from core.views.pages import PAGES
from core.views.text import label, plain, to_csv
from core.views.words.judging import most_passages

NEW, QUEUE, _ME = "a new one", "queue", "_judge"
_NO_BASE = "no golden set"
_LEAST, _MOST = 1, 5_000
_RECENT = 3  # Queues that are offered to go on with
_OFFERED: tuple[Sampling, ...] = ("stratified", "at random", "whole questions", "holes of stacks", "by value")
_MODES = {
    "grade passages": "grade",
    "put five in order": "order",
    "settle two judges": "settle",
    "grade answers": "answers",
}


def judge(view: View) -> None:
    """Draw the form that starts a queue, or the queue named in the URL."""
    st.session_state.pop(LEAVING, None)
    with st.container():  # always present, so that the elements below keep their place
        access.outcome()
    if reason := access.forbidden():
        show.head(*judging.BY_HAND)
        st.caption(reason)
        return
    queues = judging.queues_of(book(), view.snapshot, view.scope.collection_id)
    known = {queue.queue_id: queue for queue in queues}
    if (asked := st.session_state.pop(NEXT, None)) is not None:
        st.session_state[QUEUE] = asked
    still_offered(QUEUE, [NEW, *known])
    begun = known.get(str(st.session_state.get(QUEUE, st.query_params.get(QUEUE, NEW))))
    place = st.container() if begun is None else current_frame().bar.popover("Queue", icon=":material/list:")
    with place:
        chosen = st.selectbox("Queue", [NEW, *known], key=QUEUE, bind="query-params")
        if begun is not None:
            take_away(view, begun)
    if chosen == NEW:
        show.head(*judging.BY_HAND)
        go_on(queues)
        start(view)
        if sets_made():
            way(PAGES["golden"], "Review the questions that were made", "questions")
    elif not known[chosen].judge:
        between = known[chosen].sampling == BETWEEN
        show.head(judging.UNTAKEN_BETWEEN if between else judging.UNTAKEN)
        take(view, known[chosen])
    else:
        show.head(judging.HEADS[known[chosen].mode])
        if is_theirs(known[chosen]):
            one_by_one(view.snapshot, known[chosen])


def is_theirs(queue: Queue) -> bool:
    """Return whether this visitor is known as the judge of a queue; otherwise they have to say so."""
    name = st.session_state.setdefault(_ME, queue.judge)
    if name == queue.judge:
        return True
    st.warning(plain(judging.another(queue, name)))
    st.button(f"Go on as {label(queue.judge)}", on_click=st.session_state.update, args=({_ME: queue.judge},))
    return False


def take_away(view: View, queue: Queue) -> None:
    """Draw the actions on a queue other than judging: write it, or download it as a sheet."""
    if queue.mode == "answers":
        st.button(
            "Write my grades", key="store", icon=":material/save:", on_click=store_judged, args=(queue,)
        )
        st.caption(judging.WRITE_ANSWERS)
    if queue.mode == "grade":
        if queue.judge:
            st.button(
                "Write my golden set",
                key="store",
                icon=":material/save:",
                on_click=store_judged,
                args=(queue,),
            )

        def written(form: Callable[[pl.DataFrame], bytes]) -> bytes:
            return form(sheet(queue, book().items(queue.queue_id), cards(view.snapshot, queue)))

        for title, ending, form in (("Excel", "xlsx", to_excel), ("CSV", "csv", to_csv)):
            st.download_button(
                f"As a sheet, {title}",
                partial(written, form),
                file_name=f"{queue.queue_id}.{ending}",
                key=f"sheet_{ending}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.caption(judging.SHEET)


def go_on(queues: Sequence[Queue]) -> None:
    """Offer the latest queues that somebody began and left."""
    taken = [queue for queue in queues if queue.judge][:_RECENT]
    for queue in taken:
        progress = judging.progress(book().items(queue.queue_id), queue.mode)
        if 0 < progress.done < progress.total:
            said = f"Go on as {label(queue.judge)}: {judging.far(progress)}"
            here = {NEXT: queue.queue_id, _ME: queue.judge}
            st.button(said, key=f"go_on_{queue.queue_id}", on_click=st.session_state.update, args=(here,))


def start(view: View) -> None:
    """Draw the form: the task, the judge, and which passages."""
    answering = judging.answering(view.snapshot, view.scope)
    offered = [name for name, mode in _MODES.items() if answering or mode != "answers"]
    still_offered("judge_mode", offered)
    mode: QueueMode = _MODES[
        st.segmented_control(
            "What", offered, default=next(iter(_MODES)), required=True, key="judge_mode",
            label_visibility="collapsed",
        )
    ]  # type: ignore[assignment]  # fmt: skip
    known = view.snapshot.golden_sets(view.scope.collection_id)
    names = known.filter(pl.col("judgements") > 0)["golden_set_id"].to_list()
    if mode == "settle" and len(names) < 2:
        st.info(" ".join(judging.TWO_JUDGES))
        return
    # The number comes after the name: only the button starts.
    with st.form("start_judging", border=True, enter_to_submit=False):
        left, right = st.columns(2)
        name = left.text_input("Your name", key="judge_name", help=judging.OWN_NAME, max_chars=60) or ""
        asked = (
            ask_answers(view, name, answering, right)
            if mode == "answers"
            else ask_passages(view, mode, name, names, right)
        )
        if st.form_submit_button("Start judging", type="primary", icon=":material/play_arrow:"):
            access.act(asked)
            st.rerun()


def ask_answers(view: View, name: str, answering: dict[str, str], right: DeltaGenerator) -> Callable[[], str]:
    """Draw the fields of a queue of answers, and return the function that starts it."""
    still_offered_all("judge_runs", answering)
    picked = right.multiselect("Answers of", list(answering), key="judge_runs", placeholder="all stacks")
    n = int(st.number_input("Answers", _LEAST, _MOST, 50, key="judge_n_answers"))
    st.caption(judging.ANSWERS)
    runs = [answering[stack] for stack in picked or answering]
    collection = view.scope.collection_id
    return lambda: opened(judging.begin_answers(book(), view.snapshot, collection, runs, judge=name, n=n))


def ask_passages(
    view: View, mode: QueueMode, name: str, names: list[str], right: DeltaGenerator
) -> Callable[[], str]:
    """Draw the fields of a queue of passages, and return the function that starts it."""
    offered = names if mode == "settle" else [*names, _NO_BASE]
    used = view.scope.golden_set_id
    base = right.selectbox(
        "Golden set" if mode == "settle" else "Draw from", offered, key="judge_base",
        index=offered.index(used) if used in offered else 0,
    )  # fmt: skip
    left, right = st.columns([2, 1])
    if mode == "settle":
        other = left.selectbox("And golden set", names, index=1, key="judge_other")
        return lambda: opened(judging.begin_settling(book(), view.snapshot, base, other, judge=name))
    sampling: Sampling = "at random"
    check = mode == "grade" and bool(names) and bool(judging.leading(view))
    if mode == "grade":
        samplings: tuple[Sampling, ...] = ("two leading", *_OFFERED) if check else _OFFERED
        sampling = left.selectbox(
            "Sampling", samplings, key="judge_sampling",
            index=0 if names else samplings.index("holes of stacks"),
            format_func=SAMPLINGS.__getitem__,
        )  # fmt: skip
    unit, usual = ("Passages", 50) if mode == "grade" else ("Batches of five", 20)
    if check:
        unit, usual = "Passages at most", most_passages(view.quality.k)
    n = right.number_input(unit, _LEAST, _MOST, usual, key=f"judge_n_{mode}")
    drawn = None if base == _NO_BASE else base
    return partial(begin, view, judge=name, base=drawn, sampling=sampling, n=int(n), mode=mode)


def take(view: View, queue: Queue) -> None:
    """Draw the form that assigns a queue to its judge."""
    with st.form("take_queue", border=True):
        st.text_input("Your name", key="judge_name", help=judging.OWN_NAME, max_chars=60)
        # In a callback: if somebody else was quicker, this form isn't drawn again.
        st.form_submit_button(
            "Judge these", type="primary", icon=":material/play_arrow:", on_click=take_now, args=(view, queue)
        )


def take_now(view: View, queue: Queue) -> None:
    """Assign a queue to a judge, or show where to start another (a callback)."""
    name = str(st.session_state["judge_name"] or "")
    if (
        not access.act(lambda: opened(judging.take(book(), view.snapshot, queue, name)))
        and book().queue(queue.queue_id).judge
    ):
        st.session_state[QUEUE] = NEW


def begin(view: View, **asked: Any) -> str:
    """Draw a queue and open it."""
    worth = None
    if asked["sampling"] == "by value":
        worthwhile = what_next(view)
        if worthwhile is None or worthwhile.worth.rows.is_empty():
            raise InputError(judging.NO_VALUE, do="Choose another sampling.")
        worth = worthwhile.worth.rows
    scope = view.scope
    if asked["sampling"] == "two leading":
        scope = replace(scope, run_ids=judging.leading(view))
    queue = judging.begin(book(), view.snapshot, scope, k=view.quality.k, worth=worth, **asked)
    return opened(queue)


def opened(queue: Queue) -> str:
    """Show a queue from the next script run on."""
    st.session_state[NEXT], st.session_state[_ME] = queue.queue_id, queue.judge
    return ""
