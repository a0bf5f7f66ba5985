"""The bar at the end of page Add results: what will be added, the button, and what was added."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.importers import Import
from core.ui import access, cache, show
from core.ui.view import end
from core.ui.workspace import go_to_workspace
from core.views.add import imports, words
from core.views.add.changed import Choice, offers, told
from core.views.add.matching import Unmatched
from core.views.add.versions import settle
from core.views.tables import upright
from core.views.text import plain

_DONE, _LEFT = "_imported", "_imported_left"


def bar(made: Import, names: Sequence[str], unmatched: Unmatched, waiting: Sequence[str]) -> None:
    """What the button adds, what is open before it can, and the button that writes in one transaction."""
    with st.container(border=True):
        changes = () if waiting else settle(cache.snapshot(None), made).changes
        choice = decision([str(change) for change in changes]) if changes else None
        said, button = st.columns([3, 2], vertical_alignment="center")
        waits = f" {', '.join(waiting)} waits for you." if waiting else ""
        said.markdown(plain(words.adds(made) + waits))
        open_ = bool(waiting) or (bool(changes) and choice is None)
        label = f"Add {words.things(made)}"
        pressed = button.button(label, key="add_now", type="primary", disabled=open_, width="stretch")
        lacks = words.missing_parts(cache.snapshot(None), made, imports.collection_of(made) or "")
        if lacks:
            st.caption(plain(f"Still missing: {'; '.join(lacks)}."))
        with st.expander("What is taken, left out and decided"):
            _details(made)
    if pressed:
        write(made, names, unmatched, choice)


def write(made: Import, names: Sequence[str], unmatched: Unmatched, choice: Choice | None) -> None:
    """Write, and show what happened in the next run of the script."""
    access.require()
    with st.spinner("Writing…", show_time=True):
        fresh, sentence = imports.bring(
            cache.store(), made, ", ".join(names)[:200], choice=choice, unmatched=unmatched
        )
    finished(
        fresh=fresh,
        said=sentence,
        more=words.summary(made),
        collection=imports.collection_of(made),
        came=imports.came(made),
    )


def decision(changed: Sequence[str]) -> Choice | None:
    """Ask what to do about what the store has with other content, or had; None until that is said."""
    st.markdown(f":material/difference: {plain(told(changed))}")
    ways = offers(changed)
    chosen: Choice | None = st.radio(
        "What should become of it?", list(ways), index=None, format_func=ways.__getitem__
    )
    return chosen


def _details(made: Import) -> None:
    left, right = st.columns([2, 3])
    number = st.column_config.NumberColumn
    left.dataframe(words.taken(made), hide_index=True, height="content",
                   column_config={"rows": number(format="localized")})  # fmt: skip
    if not (listed := words.makes(made)).is_empty():
        right.dataframe(upright(listed), hide_index=True, height=min(36 + 35 * listed.height, 420))
    if not (lost := words.left_out(made)).is_empty():
        columns = {
            "how_many": number("how many", format="localized", width="small"),
            "reason": show.text_column("left out, and why", width="large"),
            "first": show.text_column("first at"),
        }
        show.table(lost, "left_out", columns)
    st.markdown("\n".join(f"- {plain(words.on_page(note))}" for note in made.notes))


def finished(*, fresh: bool, said: str, more: Sequence[str], collection: str | None, came: int) -> None:
    """Keep what happened for the next script run, which shows the workspace of the import."""
    st.session_state[_DONE] = (fresh, said, tuple(more), collection, came)
    st.session_state.pop(_LEFT, None)
    if collection:
        go_to_workspace(collection)
    st.rerun()


def done() -> None:
    """After an import: what happened, where to look at it, or on to the next; the page ends here then.

    Whoever comes back from another page finds that in a quiet line, and the page as ever.
    """
    if _DONE not in st.session_state:
        return
    fresh, said, more, collection, came = st.session_state[_DONE]
    shown = st.session_state.get(_LEFT)  # the button below is forgotten where another page was shown
    if shown and (shown == "left" or "add_more" not in st.session_state):
        st.session_state[_LEFT] = "left"
        st.caption(plain(said))
        return
    st.session_state[_LEFT] = "here"
    (st.success if fresh else st.info)(plain(said), icon=":material/check:")
    (first, *others), hint = words.next_steps(cache.snapshot(None), collection, came)
    if collection:
        st.markdown(f"The workspace is now **{plain(collection)}**. {plain(hint)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        again = partial(st.button, on_click=st.session_state.pop, args=(_DONE, None), key="add_more")
        if first == "add":
            again(words.PAGES[first], type="primary")
        elif st.button(words.PAGES[first], type="primary", key="see_it"):
            st.switch_page(f"pages/{first}.py", query_params={})  # None would refuse what widgets hold
        for page in others:
            st.page_link(f"pages/{page}.py", label=words.PAGES[page])
        if first != "add":
            again("Add more")
    if more:
        with st.expander("What was read, left out and decided"):
            st.markdown("\n".join(f"- {plain(line)}" for line in more))
    end()
