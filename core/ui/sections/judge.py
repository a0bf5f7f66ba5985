"""Section Judge of Golden sets: a queue of passages, one card at a time, graded by a key or a thumb."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from core.bidi import upright
from core.errors import ClqError
from core.golden.judging.book import Book, Item, Queue
from core.golden.judging.landing import RUBRIC
from core.golden.judging.sampling import SAMPLINGS, Sampling
from core.store import Snapshot
from core.ui import cache, door, show
from core.ui.cache import cached
from core.ui.pick import still_offered
from core.ui.view import View, current_frame
from core.views.golden import judging, words
from core.views.golden.judging import Card
from core.views.text import count, plain

NEW, _QUEUE, _NEXT = "a new one", "queue", "_next_queue"
_SINCE, _LANDED = "_card_since", "_queue_landed"
_LEAST, _MOST = 1, 5_000
_SCRIPT = """{
  const card = document.querySelector(".st-key-card");
  if (card && (innerWidth < 641 || card.getBoundingClientRect().top < 0)) card.scrollIntoView();
  if (!window.clqNotes) document.addEventListener("keydown", window.clqNotes = (event) => {
    const field = document.querySelector(".st-key-noting input");
    if (!field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === field && ["Enter", "Escape"].includes(event.key)) setTimeout(() => field.blur(), 30);
    if (/^(INPUT|TEXTAREA)$/.test(event.target.tagName) || event.key.toLowerCase() !== "n") return;
    event.preventDefault();
    field.focus();
  });
}"""
"""Shows a new card from its beginning; N leads to the note and Enter back to the keys, at once."""
_OFFERED: tuple[Sampling, ...] = ("stratified", "at random", "holes of stacks")


@st.cache_resource(show_spinner=False)
def book() -> Book:
    """The book of judgements of the store that this server shows."""
    return Book(judging.book_path(cache.store()))


@cached(entries=64)
def cards(data: Snapshot, queue: Queue) -> list[Card]:
    """The cards of a queue; they never change within a revision."""
    return judging.cards(data, queue.collection_id, book().items(queue.queue_id))


def judge(view: View) -> None:
    """Draw the form that starts a queue, or the queue that the address names."""
    st.session_state.pop(_LANDED, None)
    with st.container():  # always there, so that what follows keeps its place
        door.outcome()
    if reason := door.forbidden():
        show.head(*words.BY_HAND)
        st.caption(reason)
        return
    known = {each.queue_id: each for each in book().queues(view.scope.collection_id)}
    if (asked := st.session_state.pop(_NEXT, None)) is not None:
        st.session_state[_QUEUE] = asked
    still_offered(_QUEUE, [NEW, *known])
    place = (
        current_frame().bar.popover("Queues", icon=":material/list:") if _asked() in known else st.container()
    )
    with place:
        chosen = st.selectbox("Queue", [NEW, *known], key=_QUEUE, bind="query-params")
    if chosen == NEW:
        show.head(*words.BY_HAND)
        start(view)
    else:
        show.head(words.QUESTION)
        one_by_one(view.snapshot, known[chosen])


def _asked() -> str:
    return str(st.session_state.get(_QUEUE, st.query_params.get(_QUEUE, NEW)))


def start(view: View) -> None:
    """The form: who judges, what is drawn, and how."""
    known = view.snapshot.golden_sets(view.scope.collection_id)
    names = known.filter(known["judgements"] > 0)["golden_set_id"].to_list()
    with st.form("start_judging", border=True):
        left, right = st.columns(2)
        name = left.text_input("Your name", key="judge_name", help=words.OWN_NAME, max_chars=60)
        base = right.selectbox(
            "Draw from", [*names, "no golden set"], key="judge_base", help="Its grades are not shown."
        )
        left, right = st.columns([2, 1])
        sampling: Sampling = left.selectbox(
            "Sampling", _OFFERED, key="judge_sampling", format_func=lambda way: f"{way}: {SAMPLINGS[way]}"
        )
        n = right.number_input("Passages", _LEAST, _MOST, 50, key="judge_n")
        if st.form_submit_button("Start judging", type="primary", icon=":material/play_arrow:"):
            chosen = None if base == "no golden set" else base
            if door.act(begin, view, name or "", chosen, sampling, int(n)):
                st.session_state.pop("_act_said", None)
            st.rerun()


def begin(view: View, name: str, base: str | None, sampling: Sampling, n: int) -> str:
    """Draw a queue and open it."""
    k = view.quality.k
    queue = judging.begin(
        book(), view.snapshot, view.scope, judge=name, base=base, sampling=sampling, n=n, k=k
    )
    st.session_state[_NEXT] = queue.queue_id
    return queue.queue_id


@st.fragment
def one_by_one(data: Snapshot, queue: Queue) -> None:
    """The card that is next, and what can be said of it; only this is drawn anew after a key."""
    if st.session_state.pop(_LANDED, False):
        st.rerun()  # the golden set is new: the whole page has to see it
    items = book().items(queue.queue_id)
    item = next((each for each in items if each.at is None), None)
    how_far(queue, items)
    if item is None:
        finished(queue, items)
        return
    since = st.session_state.get(_SINCE)
    if since is None or since[:2] != (queue.queue_id, item.place):
        st.session_state[_SINCE] = (queue.queue_id, item.place, time.monotonic())
    passage(cards(data, queue)[item.place])
    keys(queue, item)
    st.html(f"<script data-card='{item.place}'>{_SCRIPT}</script>", unsafe_allow_javascript=True)


def how_far(queue: Queue, items: Sequence[Item]) -> None:
    """Progress, and what landing would write."""
    progress = judging.progress(items, queue.mode)
    said = words.far(progress) if progress.done < progress.total else words.judged_by_hand(progress)
    st.progress(progress.done / max(progress.total, 1), plain(f"{queue.judge} · {said}"))
    door.outcome()


def passage(card: Card) -> None:
    """The question and the passage, in full, as text."""
    with st.container(key="card"):
        st.markdown(f"#### {plain(card.question)}")
        with st.container(border=True):
            if card.title:
                st.markdown(f"**{plain(card.title)}**")
            st.text(upright(card.text) or judging.NO_TEXTS)


def keys(queue: Queue, item: Item) -> None:
    """The grades with their keys, and what else can be done with a card."""
    tag = f"{queue.queue_id}_{item.place}"  # a press that comes late is of a card that is gone
    with st.container(key="judging", gap="small"):
        with st.container(horizontal=True, key="grades", gap="small"):
            for grade, meaning in sorted(RUBRIC.items()):
                word = words.SHORT[grade]
                rest = meaning.removeprefix(word).lstrip(": ")
                st.button(
                    f"**{grade}** {word}" + f" *{rest}*" * bool(rest),
                    key=f"grade{grade}_{tag}",
                    shortcut=str(grade),
                    width="stretch",
                    wrap=True,
                    on_click=press,
                    args=(queue, partial(_graded, queue.queue_id, item.place, grade)),
                )
        with st.container(horizontal=True, key="further", gap="small"):
            skip = partial(_skipped, queue.queue_id, item.place)
            st.button("skip", key=f"skip_{tag}", shortcut="s", on_click=press, args=(queue, skip))
            undo = partial(_undone, queue.queue_id)
            st.button("undo", key=f"undo_{tag}", shortcut="u", on_click=press, args=(queue, undo))
            with st.container(key="noting"):
                note = f"noted_{tag}"
                noted = partial(_noted, queue.queue_id, item.place, note)
                st.text_input(
                    "Note", item.note, key=note, max_chars=500, placeholder="Note (N), Enter keeps it",
                    label_visibility="collapsed", on_change=press, args=(queue, noted),
                )  # fmt: skip


def write(queue: Queue, label: str) -> None:
    """The button that lands a judge's golden set."""
    st.button(
        label,
        key=f"land_{queue.queue_id}",
        icon=":material/save:",
        type="tertiary",
        on_click=land,
        args=(queue,),
    )


def finished(queue: Queue, items: Sequence[Item]) -> None:
    """The end of a queue."""
    with st.container(horizontal=True):
        skipped = [each.place for each in items if each.skipped]
        if skipped:
            st.button(
                f"Judge the {count(len(skipped), 'skipped one')}", key="judge_skipped", on_click=press,
                args=(queue, partial(_offered_again, queue.queue_id)),
            )  # fmt: skip
        undo = partial(_undone, queue.queue_id)
        st.button("undo", key=f"undo_{queue.queue_id}", shortcut="u", on_click=press, args=(queue, undo))
        write(queue, "Write my golden set again")


def press(queue: Queue, change: Callable[[float | None], None]) -> None:
    """In a callback: keep a keystroke; at the end of the queue the golden set is written too."""
    since = st.session_state.get(_SINCE)
    spent = None if since is None else time.monotonic() - since[2]
    try:
        door.require()
        change(spent)
    except ClqError as error:
        st.session_state["_act_failed"] = str(error)
        return
    items = book().items(queue.queue_id)
    if all(each.at is not None for each in items) and any(each.grade for each in items):
        land(queue)


def land(queue: Queue) -> None:
    """In a callback: write the judge's golden set."""
    st.session_state[_LANDED] = door.act(_land, queue)


def _land(queue: Queue) -> str:
    return words.written(judging.land(cache.store(), book(), queue))


def _graded(queue_id: str, place: int, grade: int, spent: float | None) -> None:
    book().grade(queue_id, place, grade, spent)


def _skipped(queue_id: str, place: int, spent: float | None) -> None:
    book().skip(queue_id, [place], spent)


def _undone(queue_id: str, _: float | None) -> None:
    book().undo(queue_id)


def _offered_again(queue_id: str, _: float | None) -> None:
    book().offer_skipped(queue_id)


def _noted(queue_id: str, place: int, key: str, _: float | None) -> None:
    book().note(queue_id, place, str(st.session_state[key] or "").strip())
