import streamlit as st

from core.decide.planner import WORLDS
from core.stats.intervals import SEED
from core.stats.significance.bootstrap import RESAMPLES
from core.ui import next_evaluation as ahead
from core.ui import sensitivity as weighing
from core.ui import show
from core.ui import sure as widgets
from core.ui.pages import PAGES, pick_section
from core.ui.pick import pick_stack
from core.ui.view import View, current_view, end
from core.views import text
from core.views.confidence import (
    next_evaluation,
    next_queries,
    next_stacks,
    sensitivity,
    sensitivity_charts,
    sure,
    sure_charts,
    sure_details,
)
from core.views.confidence.sensitivity_flips import answer
from core.views.decision import answer as decide
from core.views.decision.facts import Asked


def would_it_hold(view: View) -> None:
    """How often the choice holds when other queries and other days are drawn, and what ties with it."""
    head = st.container()
    rule, decision = widgets.ask_rule(view)
    asked = Asked(view.constraints, rule, view.quality, view.latency)
    chances = widgets.chances(view, rule)
    rows = sure.share_rows(view.table, decision, chances)
    near = sure.alike(view.table, decision, widgets.sample(view), seed=SEED)
    said = sure.said(view.table, decision, asked, chances, near)
    with head:
        show.head(said.sentence, said.details, said.warning)

    drawn = sure_charts.chances(rows)
    if drawn is not None:
        show.chart(drawn, "chances", alt=said.sentence)
        queries = text.count(widgets.queries(view), "query", "queries")
        st.caption(
            f"{RESAMPLES:,} resamples of {queries}, seed {SEED}: one draw serves quality and latency of "
            "every stack. Equal bests share one. What other queries and other days would bring is not in it."
        )
    show.table(rows, "chances", widgets.CHANCE_COLUMNS)

    st.subheader("What cannot be told apart", anchor=False)
    found = sure_charts.band(view.table, near, decision, asked)
    if found is None:
        st.markdown("Unknown: the chosen stack has no quality interval, or no latency.")
        return
    st.markdown(text.plain(sure.alike_words(near, decision.jitter_ms)))
    show.chart(found, "band", alt="Latency and quality, with the band around the chosen stack.")
    st.caption(
        "The band is the jitter band of the chosen stack by its quality interval. Stacks whose own interval "
        "reaches into it are not put in an order; compared query by query, some of them still differ."
    )
    show.table(near, "alike", widgets.ALIKE_COLUMNS)


def what_flips_it(view: View) -> None:
    """What would have to be true for another stack to be chosen, and what the limits exclude."""
    head = st.container()
    rule, decision = widgets.ask_rule(view)
    turned = sure_details.turn_rows(view.table, widgets.turned(view, rule, decision))
    with head:
        shipped = decide.answer(view.table, decision, view.constraints, view.quality, view.latency)
        show.head(shipped.sentence, sure_details.turning_words(turned))
    if not turned.is_empty():
        show.table(turned, "turning", widgets.TURN_COLUMNS)

    front = sure_details.front(view.table, decision)
    if front is not None:
        st.subheader("The frontier in numbers", anchor=False)
        widgets.three(sure_details.front_cards(front))

    excluded = sure_details.excluded_rows(view.table, decision)
    st.subheader("What the limits exclude, and by how much", anchor=False)
    st.markdown(text.plain(sure_details.excluded_words(excluded)))
    if not excluded.is_empty():
        show.table(excluded, "excluded", widgets.EXCLUDED_COLUMNS)


def other_weights(view: View) -> None:
    """Whether the choice and the order of the stacks hold under other weights of RA-nWG."""
    obstacle = sensitivity.nothing(view.table, view.scope)
    if obstacle is not None:
        show.head(*obstacle)
        st.page_link("pages/add.py", label="Import rankings", icon=":material/upload:")
        end()
    measure, own = sensitivity.weighed(view.quality)
    grid, flips = weighing.grid(view, measure)
    chosen = sensitivity.choices(grid, view.table, view.constraints)
    found = answer(grid, chosen, flips)
    show.head(found.sentence, found.details)
    if not own:
        st.caption(
            text.plain(
                f"{view.quality.name} has no such weights: the grid, and the floor in it, are of {measure}."
            )
        )

    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        st.markdown("**Order and choice, cell by cell**")
        show.chart(sensitivity_charts.agreement(grid, chosen), "agreement", alt=found.sentence)
    with right:
        ranked = view.table.filter("has_rankings")
        run_id = pick_stack(ranked, view.decision, "One stack, cell by cell", default=sensitivity.BEST_STACK)
        show.chart(sensitivity_charts.one_stack(grid, run_id or grid.leader), "one_stack")
    st.caption(text.plain(sensitivity_charts.legend(grid, chosen)))

    st.subheader("How far the stacks move", anchor=False)
    names = dict(view.table.select("run_id", "name").iter_rows())
    ranges = sensitivity.stack_ranges(grid, names)
    show.chart(sensitivity_charts.ranges(ranges, str(measure)), "ranges")
    show.table(ranges, "ranges", weighing.RANGES)
    st.subheader("Which orders turn round", anchor=False)
    show.table(flips, "flips", weighing.FLIPS)
    with st.expander("Every stack in every cell"):
        show.table(sensitivity.long_table(grid, names, chosen), "grid", weighing.CELLS)


def worth_measuring_more(view: View) -> None:
    """Whether more evaluation would change the decision, what it would cost, and which stacks to add."""
    sample, leading = widgets.sample(view), ahead.contenders(view)
    if sample is None or not leading:
        show.head(next_evaluation.unknown_answer(view.table, view.decision, view.quality))
    else:
        _more_evaluation(view, leading, sample)
    st.subheader("Stacks to add near the frontier", anchor=False)
    near = ahead.near(view)
    st.markdown(text.plain(next_stacks.neighbour_words(near)))
    if not near.is_empty():
        st.caption("≈ modelled, not measured: additive effects of the axes, fitted to the evaluated stacks.")
        show.table(near, "neighbours", ahead.NEIGHBOUR_COLUMNS)


def _more_evaluation(view: View, leading, sample) -> None:  # noqa: ANN001
    head = st.container()
    money = ahead.ask_money(view, leading)
    found = ahead.look_ahead(view, leading, sample, money)
    rows = next_evaluation.plan_rows(found, money.price)
    said = next_evaluation.plan_answer(rows, money.affordable, view.quality)
    with head:
        show.head(*said)
    show.chart(next_evaluation.plan_chart(rows, money.affordable), "plan", alt=said[0])
    st.caption(
        f"{WORLDS:,} worlds, seed {found.judged.seed}: in each the queries seen so far have other shares "
        "(Bayesian bootstrap), further queries are drawn by them, and the limits and the rule are "
        "applied again, with intervals that shrink. It takes further queries to be like those of today. "
        f"{text.plain(next_evaluation.price_words(money.price, len(leading)))}"
    )
    show.table(rows, "plan", ahead.PLAN_COLUMNS)

    st.subheader("Which stacks it is about", anchor=False)
    rivals = next_evaluation.rival_rows(view.table, found, view.decision)
    st.markdown(text.plain(next_evaluation.rival_words(rivals, len(leading))))
    show.table(rivals, "rivals", ahead.RIVAL_COLUMNS)

    pair = ahead.two_in_play(view, rivals)
    if pair is not None:
        st.subheader("Which queries tell most", anchor=False)
        tags = next_queries.tag_rows(pair[2])
        st.markdown(text.plain(next_queries.tag_words(tags, pair[2], *pair[:2])))
        if not tags.is_empty():
            st.caption("Queries taken by these shares must be weighted back to the shares of today.")
            show.table(tags, "tags", ahead.TAG_COLUMNS)

    st.subheader("Timing again", anchor=False)
    st.markdown(text.plain(next_evaluation.timing_words(found, money.price)))


PAGE = PAGES["confidence"]
SECTIONS = dict(
    zip(PAGE.sections, (would_it_hold, what_flips_it, other_weights, worth_measuring_more), strict=True)
)
opened = current_view()
SECTIONS[pick_section(PAGE)](opened)
