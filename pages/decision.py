from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.decide.axes import COST, LATENCY
from core.decide.near import near_misses
from core.ui import cache, limits, pages, show
from core.ui.live import pareto_chart
from core.ui.pick import pick_stack
from core.ui.view import current_frame, current_view
from core.views.confidence.data import drawn
from core.views.confidence.noise import QUICK, leading, noise_words, redecided
from core.views.decision import limits as ranges
from core.views.decision import words
from core.views.decision.chart import ParetoView, identical, kept, merged, pareto
from core.views.decision.facts import Asked, caveats
from core.views.decision.marks import COLOURS, SIZES
from core.views.decision.near import broken, kind, near_rows, promising_rows, way_in
from core.views.decision.parallel import parallel
from core.views.pages import PAGES
from core.views.text import count, plain
from core.views.workspace.comparable import environment
from core.views.workspace.latencies import jitter_words
from core.views.workspace.view import View

VIEWS = {"latency × quality": LATENCY, "cost × quality": COST, "parallel axes": None}
NEAR_SHOWN = 1
LACKING_SHOWN = 5


def answer(view: View) -> DeltaGenerator | None:
    """Draw the three numbers of the chosen stack, and how firm the choice is.

    Returns:
        Where that stands, for `noise` to say it anew; None where nothing is chosen.
    """
    if view.decision.chosen is None:
        return None
    row = view.table.row(view.decision.chosen, named=True)
    with current_frame().numbers:
        bill = cache.bill(view, row["run_id"])
        for label, number, note, basis in words.cards(row, view.quality, view.latency, bill):
            about = plain(words.meaning(view.quality)) if label == view.quality.name else ""
            with st.container(border=True, gap=None, height="stretch"):
                st.metric(plain(label), plain(number), help=about or None)
                badge = f":gray-badge[{plain(basis)}]" if basis else ""
                st.caption(f"{plain(note)} {badge}".strip() or "–")
        with st.container(border=True, gap=None, height="stretch"):
            place = st.empty()
            place.metric("Confidence", words.firmness(view.table, view.decision))
            firm(view, row)
    return place


def noise(view: View, place: DeltaGenerator | None) -> None:
    """Say how firm the choice is with judge noise: last of all, for its drawing takes a while."""
    if view.noise is None or place is None:
        return
    found = drawn(view, view.noise, tuple(sorted(leading(view.table, view.decision))), QUICK)
    if found is not None:
        made = redecided(view.table, view.decision, (view.constraints, "quality"), found)
        said = noise_words(view.table, view.decision, made, found, view.quality)
        place.metric("Confidence, with judge noise", words.firmness(*made), help=plain(said))


def firm(view: View, row: Mapping[str, Any]) -> None:
    """Draw what weakens the choice as one chip, with every sentence behind it."""
    asked = Asked(view.constraints, "quality", view.quality, view.latency)
    told = caveats(view.table, view.decision, asked)
    first = next(iter(told), "what it rests on")
    label = f"{first} · {count(len(told), 'note')}" if len(told) > 1 else first
    with st.popover(plain(label), type="tertiary", key="firm"):
        for sentence in told.values():
            st.markdown(plain(sentence))
        if view.decision.note:
            st.markdown(plain(view.decision.note))
        for note in filter(None, (row["latency_note"], row["cost_note"])):
            st.caption(plain(note))
        st.caption(plain(environment(view.table)))
        st.page_link(PAGES["confidence"].file, label="Would it hold?", icon=PAGES["confidence"].icon)


def offers(view: View) -> None:
    """Draw what stands just outside the limits and what lacks a number, in one line."""
    misses = near_rows(view.table, near_misses(view.table, view.decision, view.constraints))
    lacking = promising_rows(view.table, view.decision)
    own = cache.reranker_only(view)
    offered = ranges.limits(view.table, view.quality, view.latency)
    with st.container(key="offers", horizontal=True, gap="small", vertical_alignment="center"):
        for place, miss in enumerate(misses[:NEAR_SHOWN]):
            st.markdown(f":orange-badge[{kind(miss)}] {plain(words.gaining(miss))}", width="content")
            st.button(
                plain(f"Set {way_in(miss)}"),
                key=f"near_{place}",
                help=plain(f"{miss['stack']}: {broken(miss)}"),
                on_click=limits.take,
                args=(offered, {miss["limit"]: miss["set_to"]}),
            )
        if not lacking.is_empty():
            untold(lacking, own)
        elif own:
            with st.popover("latency of the path not published", type="tertiary"):
                other_scope(own)


def ways_to_judgements() -> None:
    """Lead to the three ways of getting judgements, where nothing can be decided without."""
    with st.container(horizontal=True, gap="small"):
        pages.way(PAGES["golden"], "Judge by hand", "judge")
        pages.way(PAGES["golden"], "Generate with an LLM", "build")
        pages.way(PAGES["add"], "Import qrels")


def other_scope(own: str) -> None:
    """Offer the latency that the source reports."""
    st.markdown(plain(own))
    decide_on = {"lat": "rerank"}
    st.button("Decide on the reranker", key="near_scope", on_click=st.session_state.update, args=(decide_on,))


def untold(lacking: pl.DataFrame, own: str) -> None:
    """Draw the best stack that lacks a number, and all of them behind a button."""
    best = lacking.row(0, named=True)
    st.markdown(f":orange-badge[{plain(best['missing'])}] {plain(words.gaining(best))}", width="content")
    with st.popover("Measure it"):
        for row in lacking.head(LACKING_SHOWN).iter_rows(named=True):
            st.markdown(f"**{plain(row['stack'])}** {plain(words.to_measure(row))}")
        if lacking.height > LACKING_SHOWN:
            st.caption(f"And {count(lacking.height - LACKING_SHOWN, 'more stack')}.")
        if own:
            other_scope(own)
        st.page_link(PAGES["run"].file, label="Run it here", icon=PAGES["run"].icon)


def options(view: View) -> tuple[str, dict[str, Any]]:
    """Draw the choice of the view, and what a mark tells behind a button.

    Returns:
        One of `VIEWS`, and the options of `pareto`.
    """
    with st.container(key="views", horizontal=True, horizontal_alignment="distribute", gap="small"):
        way = st.segmented_control(
            "View", list(VIEWS), default=next(iter(VIEWS)), required=True, key="view", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        with st.popover("Chart", icon=":material/tune:"):
            colour = st.selectbox("Colour", COLOURS, key="colour", bind="query-params")
            size = st.selectbox("Size", SIZES, key="size", bind="query-params")
            form = st.selectbox(
                "Frontier", words.FORMS, key="form", bind="query-params", help=words.FORMS_HELP
            )  # fmt: skip
            selected = pick_stack(view.table, view.decision, "Selected stack")
            st.caption(plain(words.band(jitter_words(view.table, view.decision, view.constraints))))
    weak = form == words.FORMS[1]
    return way, {"colour": colour, "size": size, "weak": weak, "selected": selected}


def chart(view: View, way: str, drawn: ParetoView, selected: str | None) -> None:
    """Draw the stacks in the chosen view."""
    alt = words.answer(view.table, view.decision, view.constraints, view.quality, view.latency).sentence
    if VIEWS[way] is not None:
        if not drawn.drawn.is_empty():
            clicked = None if selected == chosen_run(view) else selected
            pareto_chart(view, drawn, alt, words.note(drawn.rows, drawn.across, clicked))
        return
    lines = parallel(drawn.rows, view.decision, view.quality, selected)
    if lines is None:
        st.info(f"No stack has a known {plain(view.quality.name)}.", icon=":material/inbox:")
    else:
        show.chart(lines, "parallel", alt=alt)


def chosen_run(view: View) -> str | None:
    """The run_id of the recommended stack; None where there is none."""
    return None if view.decision.chosen is None else str(view.table["run_id"][view.decision.chosen])


def table(view: View, drawn: ParetoView) -> None:
    """Draw the stacks, to be ticked for a comparison."""
    alike = identical(view.table)[drawn.rows["row"]]
    rows = words.listed(merged(drawn.rows, kept(view.decision.chosen), alike))
    place = st.container(key="compare", horizontal=True, vertical_alignment="center")
    event = show.table(
        rows,
        "stacks",
        {
            "stack": show.text_column("stack", width=360),
            "quality": show.score_column(view.quality.name),
            "latency_ms": show.number_column(f"{view.latency.percentile} ms", 2, view.latency.name),
            "cost": show.dollar_column("$ / 1,000", f"Per 1,000 {words.costed(view.table)}."),
            "n": show.number_column("n", 0, "Queries that the mean rests on."),
            "outcome": show.text_column("status", width=260),
        },
        more=show.MORE_OF_A_STACK,
        whole=drawn.rows,
        on_select="rerun",
        selection_mode="multi-row",
    )
    ticked = [rows["name"][row] for row in event.selection.rows if row < rows.height]
    if rows.height > 1:
        place.caption(words.ticking(len(ticked)), width="content")
    if len(ticked) >= 2 and place.button(
        "Compare", type="primary", key="compare_ticked", icon=":material/compare_arrows:"
    ):
        st.switch_page(PAGES["compare"].file, query_params={"cmp": ticked})


view = current_view()
show.head(
    words.title(view.table, view.decision, view.quality),
    words.why(view.table, view.decision, view.quality),
    # The chip beside the answer says it already.
    "" if view.compared.unjudged(view.table) else words.unjudged(view.table, view.decision, view.quality),
)
if words.undecided(view.table):
    ways_to_judgements()
firmness = answer(view)
offers(view)
way, marks = options(view)
marked = pareto(
    view.table,
    view.decision,
    view.constraints,
    quality=view.quality,
    latency=view.latency,
    across=VIEWS[way] or LATENCY,
    **marks,
)
chart(view, way, marked, marks["selected"])
if marks["selected"] not in (None, chosen_run(view)):
    show.card(view.table, marks["selected"], view.quality)
    st.page_link(PAGES["queries"].file, label="Its queries", icon=PAGES["queries"].icon)
table(view, marked)
if not marked.undrawn.is_empty():
    st.caption(f"Of unknown quality, so not on the chart: {count(marked.undrawn.height, 'stack')}.")
noise(view, firmness)
