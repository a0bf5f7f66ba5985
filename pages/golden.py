import polars as pl
import streamlit as st

from core.stats.judges import Agreement, Policy
from core.store import Snapshot
from core.ui import cache, door, show
from core.ui.cache import cached
from core.ui.pages import pick_section
from core.ui.pick import pick_one, still_offered, still_offered_all
from core.ui.sections.judge import QUEUE, judge
from core.ui.view import current_view, end
from core.views.decision.near import overturned
from core.views.golden import judges, page, soundness, words
from core.views.golden.judges import POLICIES
from core.views.pages import PAGES, SECTION
from core.views.text import plain
from core.views.workspace.view import View

STACK = {"name": show.text_column("stack", width=290)}
MIX_COLUMNS = {
    "grade": show.text_column("grade"),
    "total": show.number_column("judged", 0),
    "share": show.percent_column("share"),
    "prevalence": show.percent_column("prevalence", words.PREVALENCE),
    "present": show.percent_column("queries with it", "Share of the queries that have it."),
}
MORE_OF_MIX = {
    "median": show.number_column("median per query", 1),
    "mean": show.number_column("mean per query", 2),
    "most": show.number_column("most", 0),
}
QUERY_COLUMNS = {
    "query_id": show.text_column("query"),
    "judged": show.number_column("judged", 0),
    **{f"grade {grade}": show.number_column(f"grade {grade}", 0) for grade in soundness.GRADES},
    "prevalence": show.percent_column("4 or 5", "Share of its judged passages of grade 4 or 5."),
    "unjudged": show.percent_column("unjudged", "Of the Top-K, mean over the stacks."),
    "fallback": show.text_column("fallback", words.FALLBACK),
}
MORE_OF_QUERIES = {
    "apart": show.number_column("copies apart", 0, "Passages whose copies were graded differently."),
    "differ": show.number_column("judges differ", 0, "Judgements that another golden set gives differently."),
}
APART_COLUMNS = {
    "query_id": show.text_column("query"),
    "passages": st.column_config.ListColumn("copies"),
    "grades": st.column_config.ListColumn("grades"),
    "spread": show.number_column("spread", 0),
}
OTHER_COLUMNS = {
    "query_id": show.text_column("query"),
    "passage_id": show.text_column("passage"),
    "grade": show.number_column("grade", 0),
    "other_set": show.text_column("other golden set"),
    "other_grade": show.number_column("its grade", 0),
}
MET_COLUMNS = {
    "grade": show.number_column("its grade", 0),
    "n": show.number_column("n", 0, "Passages that both judged."),
    **{f"to_{grade}": show.text_column(f"the other says {grade}") for grade in range(1, 6)},
}
PAIR_COLUMNS = {
    "first": show.text_column("judge"),
    "second": show.text_column("and judge"),
    "n": show.number_column("passages", 0, "Judged by both."),
    "same": show.percent_column("same grade"),
    "kappa": show.number_column("kappa", 3, words.KAPPA),
    "quadratic": show.number_column("quadratic kappa", 3, words.KAPPA),
}
MORE_OF_PAIRS = {
    "queries": show.number_column("queries", 0),
    "kappa_low": show.number_column("kappa, low", 3),
    "kappa_high": show.number_column("kappa, high", 3),
    "quadratic_low": show.number_column("quadratic, low", 3),
    "quadratic_high": show.number_column("quadratic, high", 3),
}


parts = cached()(page.parts)
judged = cached("Reading the judgements…")(page.judged)
pool_bias = cached("Leaving out one system at a time…")(page.pool_bias)
every_query = cached()(page.every_query)


@cached("Comparing the judges…")
def compared(data: Snapshot, names: tuple[str, ...]) -> tuple[judges.Judged, pl.DataFrame, Agreement]:
    """Some golden sets side by side, how every two agree, and how all do."""
    found = judges.judged(data, names)
    return found, judges.agreement(found), judges.alpha(found)


def pick_part(view: View) -> page.Part | None:
    """Draw a list of what the golden set can be looked at as; None where it is one thing only."""
    offered = {part.name: part for part in parts(view.snapshot, view.scope)}
    if not offered:
        return None
    still_offered("part", list(offered))
    return offered[st.selectbox("Grades of", list(offered), key="part", bind="query-params", help=words.PART)]


def is_sound(view: View) -> None:
    """What the judgements can carry."""
    place = st.container()
    part = pick_part(view)
    found = judged(view.snapshot, view.scope, part)
    if found is None:
        show.head(*words.NOTHING)
        st.page_link("pages/add.py", label="Import judgements", icon=":material/upload:")
        end()
    doubt = overturned(view.table, view.decision, view.quality)
    show.head(words.answer(found, doubt, view.table), caveats=words.caveats(found))
    with place:
        show.cards(*words.cards(found, view.table, view.quality))
    draw = (label_mix, holes, bias, conflicts)
    *tabs, of_queries = st.tabs(["Label mix", "Unjudged", "Pool bias", "Conflicts", "Queries"])
    for tab, draw_part in zip(tabs, draw, strict=True):
        with tab:
            draw_part(view, found)
    with of_queries:
        queries(view, part)


def label_mix(_: View, found: page.Judged) -> None:
    """A box per grade, and the mix over all queries."""
    show.chart(page.mix_figure(found), "grades", alt="Judged passages per query, by grade")
    show.table(found.mix, "grade_mix", MIX_COLUMNS, more=MORE_OF_MIX)


def queries(view: View, part: page.Part | None) -> None:
    """Every query with what weakens it, or those of one weakness."""
    rows = every_query(view.snapshot, view.scope, view.quality, part)
    chosen = pick_one("Queries with", page.FILTERS, "weak", label_visibility="collapsed")
    kept = rows.filter(page.FILTERS[chosen])
    st.caption(f"{kept.height:,} of {rows.height:,} queries")
    fallback = pl.when("fallback").then(pl.lit("fallback"))
    columns = kept.with_columns(fallback=fallback)
    show.table(columns, "grades_per_query", QUERY_COLUMNS, more=MORE_OF_QUERIES)


def holes(view: View, _: page.Judged) -> None:
    """What unjudged passages could make of every stack's score."""
    bounds = page.with_bounds(view.table, higher_is_better=view.quality.higher_is_better)
    if bounds.is_empty():
        st.info(f"No stack here has rankings that {plain(view.quality.name)} could be computed from.")
        return
    chosen = None if view.decision.chosen is None else view.table["name"][view.decision.chosen]
    st.caption(words.HOLES)
    figure = page.bounds_figure(bounds, view.quality, chosen)
    show.chart(figure, "holes", alt="Scores and their bounds if all were judged")
    columns = {
        **STACK,
        "quality": show.score_column(view.quality.name),
        "hole_low": show.score_column("if all grade 1"),
        "hole_high": show.score_column("if all grade 5"),
        "hole": show.percent_column("unjudged", "Share of the Top-K without a grade."),
        "n": show.number_column("n", 0, "Queries."),
    }
    show.table(bounds, "holes", columns)


def bias(view: View, _: page.Judged) -> None:
    """What every run loses without the judgements that only it brought."""
    left_out = pool_bias(view.snapshot, view.scope, view.quality)
    if left_out.is_empty():
        st.info(f"Leaving a run out needs 2 to {soundness.MAX_RUNS} runs with rankings; choose some runs.")
        return
    st.caption(words.BIAS)
    columns = {
        **STACK,
        "unique": show.number_column("judged for it alone", 0),
        "score": show.score_column(view.quality.name),
        "without": show.score_column("without those"),
        "bias": show.score_column("bias"),
    }
    show.table(left_out, "pool_bias", columns)


def conflicts(_: View, found: page.Judged) -> None:
    """Copies that were graded apart, and golden sets that disagree."""
    st.markdown(words.copies(found))
    if found.apart.height:
        show.table(found.apart, "copies_graded_apart", APART_COLUMNS)
    st.markdown(words.others(found))
    if found.disagreements.height:
        show.table(found.disagreements, "other_golden_sets", OTHER_COLUMNS)


def do_judges_agree(view: View) -> None:
    """Agreement of the chosen golden sets, and the form that merges them."""
    with st.container():  # always there, so that what follows keeps its place
        door.outcome()
    known = view.snapshot.golden_sets(view.scope.collection_id).filter(pl.col("judgements") > 0)
    names = known["golden_set_id"].to_list()
    if len(names) < 2:
        show.head(*words.TWO_JUDGES)
        return
    still_offered_all("sets", names)
    picked = st.multiselect(
        "Judges (golden sets)", names, key="sets", bind="query-params", max_selections=judges.MOST,
        placeholder=f"all {min(len(names), judges.MOST)}", help=words.JUDGES,
    )  # fmt: skip
    asked = tuple(picked) if len(picked) > 1 else tuple(names[: judges.MOST])
    found, pairs, overall = compared(view.snapshot, asked)
    show.head(words.agreement(found, pairs, overall), caveats={"how to read": words.KAPPA})
    two_by_two(found, pairs)
    merge(found)


def two_by_two(found: judges.Judged, pairs: pl.DataFrame) -> None:
    """How often the grades of two judges met one another, and how well every two agree."""
    labels = [f"{first} and {second}" for first, second in pairs.select("first", "second").iter_rows()]
    label = labels[0]
    if len(labels) > 1:
        still_offered("judges", labels)
        label = st.selectbox("Grade by grade", labels, key="judges", bind="query-params")
    row = pairs.row(labels.index(label), named=True)
    places = judges.rows_first(found, *(found.names.index(row[side]) for side in ("first", "second")))
    show.chart(judges.pair_figure(found, *places), "judges", alt=f"Grades of {label}, met with one another")
    met = judges.met(found, *places)
    st.caption(plain(words.met(*(found.names[place] for place in places))))
    show.table(judges.met_shown(met), "confusion", MET_COLUMNS, whole=met)
    show.table(pairs, "judges_agree", PAIR_COLUMNS, more=MORE_OF_PAIRS)


def merge(found: judges.Judged) -> None:
    """The form that writes one golden set of several."""
    st.subheader("One golden set of these", anchor=False)
    if reason := door.forbidden():
        st.caption(reason)
        return
    with st.form("merge_judges", border=True):
        left, right = st.columns([1, 2])
        policy: Policy = left.selectbox("Where they differ, take the", list(POLICIES), index=1, key="policy")
        into = right.text_input("Name of the new golden set", value="-".join(["merged", *found.names])[:60])
        st.caption(plain(words.merging(found)))
        if st.form_submit_button("Write it", icon=":material/merge:"):

            def write() -> str:
                golden = judges.write_merged(cache.store(), found.names, policy, into)
                return words.merged(golden.golden_set_id)

            door.act(write)
            st.rerun()


def build_one(view: View) -> None:
    """The form, its plan, and what is being built."""
    from core.ui.sections.build import build  # noqa: PLC0415 - with the engines, a second

    build(view)


PAGE = PAGES["golden"]
SECTIONS = dict(zip(PAGE.sections, (is_sound, do_judges_agree, build_one, judge), strict=True))
view = current_view(runs=False)
if QUEUE in st.query_params and st.session_state.get(SECTION) not in PAGE.sections:
    st.session_state[SECTION] = "judge"  # a link to a queue
SECTIONS[pick_section(PAGE)](view)
