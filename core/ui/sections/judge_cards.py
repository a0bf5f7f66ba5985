"""One card after another: graded by key or tap, ordered in fives, or settled between two judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.analysis.between import stand
from core.bidi import strip_bidi_controls
from core.errors import ClqError
from core.golden.book import Book, Item, Queue
from core.golden.by_hand import CORRECTNESS, OF_FIVE, RUBRIC, set_of
from core.golden.facts import lines_of
from core.store import Snapshot
from core.ui import access, cache, show
from core.ui.cache import cached
from core.ui.pages import way
from core.views import columns as cols
from core.views.golden import adding, judging, soundness
from core.views.golden.adding import whole_of
from core.views.golden.judging import Card, Opinion
from core.views.pages import PAGES, SECTION
from core.views.queries.one_query import shown_text
from core.views.text import plain
from core.views.words.deciding import stands

Change = Callable[[float | None], object]  # The effect of a keystroke, given the seconds spent on the card
LEAVING, NEXT = "_queue_left", "_next_queue"
_SINCE, _PICKED = "_card_since", "_picked"
_ADDS = "_adds_"  # Prefix of the session slot for whether the grades of a queue are added
_WRITTEN = "_golden_written"  # Session slot: the queue written last, and its golden set
_SCRIPT = """{
  const card = document.querySelector(".st-key-card");
  if (card && (innerWidth < 641 || card.getBoundingClientRect().top < 0)) card.scrollIntoView();
  if (!window.clqNotes) document.addEventListener("keydown", window.clqNotes = (event) => {
    const field = document.querySelector(".st-key-noting input");
    const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    const drawing = document.querySelector("[data-test-script-state=running]");
    if (!typing && document.querySelector(".st-key-judging") && (event.repeat || drawing))
      event.stopImmediatePropagation();
    if (event.key === "Escape" && event.target.closest(".st-key-facts"))
      setTimeout(() => event.target.blur(), 30);
    if (!field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === field && ["Enter", "Escape"].includes(event.key)) setTimeout(() => field.blur(), 30);
    if (typing || event.key.toLowerCase() !== "n") return;
    event.preventDefault();
    field.focus();
  }, true);
}"""
"""Shows a new card from its beginning; N moves to the note and Enter back to the keys, at once. A held key is
one press; while a card is drawn the browser has the buttons of two, and a key presses both."""


_LIVE = Path(__file__).parents[1] / "live"
_dragged = st.components.v2.component(
    "clq_order",
    html='<ol class="clq-order"></ol>',
    css=(_LIVE / "order.css").read_text(encoding="utf-8"),
    js=(_LIVE / "order.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


_ORDERS = cols.Rows(
    "orders_by_hand",
    cols.text("query_id", "query"),
    cols.Column("passages", "your order, best first", form="list"),
    cols.signed("tau", "tau-b", "1 = the same order, −1 = the reverse."),
)


@st.cache_resource(show_spinner=False)
def _book(path: str) -> Book:
    return Book(Path(path))


def book() -> Book:
    """Return this server's book of judgements."""
    return _book(str(judging.book_path(cache.store())))


@cached(entries=64)
def cards(data: Snapshot, queue: Queue) -> list[Card]:
    """Return the cards of a queue; they never change within a revision."""
    make = judging.answer_cards if queue.mode == "answers" else judging.cards
    return make(data, queue.collection_id, book().items(queue.queue_id))


opinions = cached(entries=64)(judging.opinions)
known_facts = cached(entries=64)(judging.known_facts)
compared = cached(entries=64)(soundness.compare)


@st.fragment
def one_by_one(data: Snapshot, queue: Queue) -> None:
    """Draw the next card and its actions; only this part is redrawn after a key."""
    if st.session_state.pop(LEAVING, False):
        st.session_state[NEXT] = queue.queue_id  # the browser may still have the earlier choice
        st.rerun()  # the golden set is new, or another section is requested: the whole page must see it
    try:
        _next(data, queue)
    except ClqError as error:  # outside the page's frame, which would show it
        st.error(plain(str(error)), icon=":material/error:")


def _next(data: Snapshot, queue: Queue) -> None:
    items = book().items(queue.queue_id)
    item = next((candidate for candidate in items if candidate.at is None), None)
    progress = judging.progress(items, queue.mode)
    said = judging.far(progress) if progress.done < progress.total else judging.judged_by_hand(progress)
    st.progress(progress.done / max(progress.total, 1), plain(f"{queue.judge} · {said}"))
    if (standing := stand(book(), data, queue)) is not None:
        st.markdown(plain(stands(standing)))
    access.outcome()
    with st.container(horizontal=True, vertical_alignment="center"):
        if base := adding.base_of(data, queue):
            count_them(data, queue, base)
        of, written = st.session_state.get(_WRITTEN, ("", ""))
        if of != queue.queue_id:
            asked = queue.mode in ("grade", "order")
            written = judging.written_by(data, queue, onto(data, queue)) if asked else ""
        if written:
            way(PAGES["decision"], "See the decision", gs=written)
    place = None if item is None else item.place
    since = st.session_state.get(_SINCE)
    if since is None or since[:2] != (queue.queue_id, place):
        st.session_state[_SINCE] = (queue.queue_id, place, time.monotonic())
    if item is None:
        finished(data, queue, items)
        return
    texts = cards(data, queue)
    if queue.mode == "order":
        five(queue, items[item.place : item.place + OF_FIVE], texts)
    else:
        settled = opinions(data, queue)[item.query_id, item.passage_id] if queue.mode == "settle" else ()
        passage(texts[item.place], settled, answer=queue.mode == "answers")
        grades(queue, item, known_facts(data, queue))
    st.html(f"<script data-card='{item.place}'>{_SCRIPT}</script>", unsafe_allow_javascript=True)


def count_them(data: Snapshot, queue: Queue, base: str) -> None:
    """Draw the choice whether the grades are added to a golden set; a change is written at once."""
    st.segmented_control(
        "Your grades", [True, False], key=_ADDS + queue.queue_id, required=True,
        default=adding.usual(data, queue), label_visibility="collapsed", on_change=counted, args=(queue,),
        format_func=lambda added: plain(judging.added_to(base)) if added else judging.ALONE,
    )  # fmt: skip


def counted(queue: Queue) -> None:
    """Rewrite the golden set, if already written, after the judge's choice has changed (a callback)."""
    if judging.written_by(cache.snapshot(None), queue):
        store_judged(queue)


def onto(data: Snapshot, queue: Queue) -> str:
    """Return the golden set that this queue's grades are added to, or "" if they are kept separately."""
    base = adding.base_of(data, queue)
    said = st.session_state.get(_ADDS + queue.queue_id)
    return base if (adding.usual(data, queue) if said is None else said) else ""


def passage(card: Card, said: Sequence[Opinion], *, answer: bool) -> None:
    """Draw the question, two judges' opinions when settling, and the passage or the answer, as text."""
    with st.container(key="card"):
        st.markdown(f"#### {plain(card.question)}")
        _asker(card)
        if said:
            for place, (name, grade, note) in zip(st.columns(len(said)), said, strict=True):
                place.markdown(f"**{plain(name)}**: grade {grade}, {RUBRIC[grade]}  \n{plain(note)}")
        with st.container(border=True):
            if card.title:
                st.markdown(f"**{plain(card.title)}**")
            st.text(strip_bidi_controls(card.text) or judging.NO_TEXTS)
        if answer:
            st.caption("Right answers" if card.right else "No right answer is stored.")
            for right in card.right:
                st.text(strip_bidi_controls(right))


def grades(queue: Queue, item: Item, stored: Mapping[str, Sequence[str]] | None) -> None:
    """Draw the grades with their keys, and the other actions on a card.

    Args:
        stored: Facts by question; None if they are not asked for.
    """
    tag = f"{queue.queue_id}_{item.place}"  # a late press belongs to an earlier card
    with st.container(key="judging", gap="small"):
        with st.container(horizontal=True, key="grades", gap="small"):
            for grade, word, rest in judging.rubric(queue.mode):
                _key(
                    f"**{grade}** {word}" + f" *{rest}*" * bool(rest),
                    (queue, item.place, partial(book().grade, queue.queue_id, item.place, grade)),
                    f"grade{grade}", str(grade),
                    width="stretch", wrap=True,
                )  # fmt: skip
        with st.container(horizontal=True, key="further", gap="small"):
            further(queue, [item.place])
            if queue.mode == "grade" and item.place:
                st.button("Use these grades", key=f"use_{tag}", on_click=store_judged, args=(queue,))
            with st.container(key="noting"):
                field = f"noted_{tag}"
                st.text_input(
                    "Note", item.note, key=field, max_chars=500, placeholder="Note (N), Enter keeps it",
                    label_visibility="collapsed", on_change=note, args=(queue, item.place, field),
                )  # fmt: skip
        if stored is not None:
            facts(queue, item, stored.get(item.query_id, ()))
    with st.expander("What the grades mean, and the keys", icon=":material/help:"):
        meanings = CORRECTNESS if queue.mode == "answers" else RUBRIC
        st.markdown("\n".join(f"- **{grade}** {meaning}" for grade, meaning in meanings.items()))
        st.caption(judging.KEYS)
        if stored is not None:
            st.caption(judging.ABOUT_FACTS)


def facts(queue: Queue, item: Item, stored: Sequence[str]) -> None:
    """Draw the field of the passage's facts; every change is saved at once."""
    known, held = judging.facts_of(book(), queue, item, stored)
    with st.container(key="facts"):
        field = f"facts_{queue.queue_id}_{item.place}"
        st.multiselect(
            "Facts in this passage", known, held, key=field, accept_new_options=True,
            placeholder=judging.FACTS, label_visibility="collapsed",
            on_change=write_facts, args=(queue, item.place, field, known),
        )  # fmt: skip


def write_facts(queue: Queue, place: int, field: str, known: Sequence[str]) -> None:
    """Save the facts of a passage, whichever card is shown (a callback)."""
    access.act(_kept, lambda _: book().write_facts(
        queue.queue_id, place, lines_of(st.session_state[field], known)), None)  # fmt: skip


def further(queue: Queue, places: list[int]) -> None:
    """Draw the buttons that skip and undo."""
    skip = partial(book().skip, queue.queue_id, places)
    _key("skip", (queue, min(places), skip), "skip", "s")
    _undo(queue, min(places))


def _undo(queue: Queue, place: int | None) -> None:
    _key("undo", (queue, place, lambda _: book().undo(queue.queue_id)), "undo", "u")


def _asker(card: Card) -> None:
    """Draw what the asker may see, if not everything."""
    if card.asker:
        st.caption(plain(f"The asker may see: {card.asker}"))


def five(queue: Queue, batch: Sequence[Item], texts: Sequence[Card]) -> None:
    """Draw five passages in their current order, each with buttons to move it."""
    first = batch[0].place
    tag = f"{queue.queue_id}_{first}"
    order = [item.place for item in sorted(batch, key=lambda item: (item.position or 0, item.place))]
    picked = st.session_state.get(_PICKED)
    at = order.index(picked) if picked in order else 0
    with st.container(key="card"):
        st.markdown(f"#### {plain(texts[first].question)}")
        _asker(texts[first])
        drag(queue, order, [texts[place].title or texts[place].text[:80] for place in order])
    for rank, place in enumerate(order):
        card = texts[place]
        with st.container(border=True, gap="small"):
            with st.container(key=f"rank{rank}", horizontal=True, vertical_alignment="center", gap="small"):
                st.button(
                    f"**{rank + 1}**", key=f"pick{rank}_{tag}", shortcut=str(rank + 1),
                    on_click=st.session_state.update, args=({_PICKED: place},),
                    type="primary" if rank == at else "secondary",
                )  # fmt: skip
                st.markdown(f"**{plain(card.title or card.text[:60])}**", width="stretch")
                for step, icon in ((-1, "upward"), (1, "downward")):
                    st.button(
                        "", key=f"move{rank}{step}_{tag}", icon=f":material/arrow_{icon}:",
                        disabled=not 0 <= rank + step < OF_FIVE, on_click=press,
                        args=(queue, first, partial(_move, queue, order, place, step)),
                    )  # fmt: skip
            shown, rest = shown_text(strip_bidi_controls(card.text))
            st.text(shown)
            if rest:
                with st.expander(f"Read on ({len(rest):,} more characters)", type="compact"):
                    st.text(rest)
    with st.container(key="judging"), st.container(horizontal=True, gap="small"):
        for step, label, key in ((-1, "up", "Up"), (1, "down", "Down")):
            _key(label, (queue, first, partial(_move, queue, order, order[at], step)), key, key)
        done = partial(book().order, queue.queue_id, order)
        _key("This is the order", (queue, first, done), "order", "Enter", type="primary")
        further(queue, order)
    st.caption(judging.KEYS_OF_ORDER)


def drag(queue: Queue, order: Sequence[int], titles: Sequence[str]) -> None:
    """Draw only the titles, to be dragged into order."""
    key = f"drag_{queue.queue_id}_{min(order)}"

    def moved() -> None:
        sent = (st.session_state.get(key) or {}).get("moved")
        places = sent.get("places") if isinstance(sent, dict) else None  # clients can send anything
        if (
            isinstance(places, list)
            and {*map(str, places)} == {*map(str, order)}
            and len(places) == len(order)
        ):
            moves = [int(place) for place in places]
            press(queue, min(order), lambda _: book().arrange(queue.queue_id, moves))

    rows = [
        {"place": place, "title": strip_bidi_controls(title)}
        for place, title in zip(order, titles, strict=True)
    ]
    _dragged(key=key, data={"rows": rows}, on_moved_change=moved)


def finished(data: Snapshot, queue: Queue, items: Sequence[Item]) -> None:
    """Draw the end of a queue, and its result."""
    skipped = sum(item.skipped for item in items) // (OF_FIVE if queue.mode == "order" else 1)
    with st.container(horizontal=True):
        if skipped:
            said = f"Judge what was skipped ({skipped:,})"
            again: Change = lambda _: book().offer_skipped(queue.queue_id)  # noqa: E731
            _key(said, (queue, None, again), "judge_skipped", None)
        _undo(queue, None)
        based = queue.mode == "grade" and queue.base
        if based and st.button("How you agree with others", key="agree", on_click=_agree, args=(queue,)):
            st.rerun()  # otherwise only the card is redrawn, and the section stays
    if queue.mode == "settle":
        into = st.text_input("Name of the new golden set", f"{queue.base}-settled", key="settled_name")
        st.button(
            "Write it", key="store_settled", type="primary", on_click=store_judged, args=(queue, into or "")
        )
    if queue.mode == "answers":
        st.button(
            "Write my grades", key="store_answers", type="primary", on_click=store_judged, args=(queue,)
        )
        st.caption(judging.WRITE_ANSWERS)
    if queue.mode == "order":
        agreement = compared(data, queue, items)
        st.markdown(plain(soundness.sentence(agreement)))
        show.table(agreement.rows, _ORDERS)


def press(queue: Queue, place: int | None, change: Change) -> None:
    """Save a keystroke on the card shown; at the end the golden set is written too (a callback).

    A late press belongs to an earlier card and is ignored.
    """
    *shown, since = st.session_state.get(_SINCE, (None, None, 0.0))
    if shown != [queue.queue_id, place]:
        return
    if not access.act(_kept, change, time.monotonic() - since):
        return
    items = book().items(queue.queue_id) if queue.mode == "grade" else ()
    if items and all(item.at is not None for item in items) and any(item.grade for item in items):
        store_judged(queue)


def note(queue: Queue, place: int, field: str) -> None:
    """Save a note, whichever card is shown (a callback)."""
    text = str(st.session_state[field] or "").strip()
    access.act(_kept, lambda _: book().note(queue.queue_id, place, text), None)


def _kept(change: Change, spent: float | None) -> str:
    change(spent)
    return ""  # the next card says it


def store_judged(queue: Queue, into: str = "") -> None:
    """Write the golden set of a judge, their scores of answers, or a settled set of two (a callback)."""

    def write() -> str:
        if queue.mode == "answers":
            return judging.scored(queue.judge, judging.store_answers(cache.store(), book(), queue))
        golden = judging.store_judged(cache.store(), book(), queue, into, onto(cache.snapshot(None), queue))
        st.session_state[_WRITTEN] = (queue.queue_id, golden.golden_set_id)
        return judging.written(golden)

    st.session_state[LEAVING] = access.act(write)


def _key(
    label: str, does: tuple[Queue, int | None, Change], name: str, shortcut: str | None, **options: Any
) -> None:
    """Draw a button that saves a keystroke; it belongs to one card, so that a late press affects no other."""
    key = f"{name}_{does[0].queue_id}_{does[1]}"
    st.button(label, key=key, shortcut=shortcut, on_click=press, args=does, **options)


def _agree(queue: Queue) -> None:
    """Open section Judges on a judge's golden set and the one it was drawn from (a callback)."""
    st.session_state[SECTION] = "judges"
    collection = whole_of(cache.snapshot(None), queue.collection_id)
    st.session_state["sets"] = [queue.base, set_of(collection, queue.judge)]
    st.session_state[LEAVING] = True


def _move(queue: Queue, order: Sequence[int], place: int, step: int, _: float | None) -> None:
    """Move one of five passages up or down, and keep it in focus."""
    moved = list(order)
    at = moved.index(place)
    to = min(max(at + step, 0), len(moved) - 1)
    moved.insert(to, moved.pop(at))
    book().arrange(queue.queue_id, moved)
    st.session_state[_PICKED] = place
