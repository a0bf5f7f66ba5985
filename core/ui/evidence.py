"""The evidence page: what it reads, kept while data and question are the same, and its four parts."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.ui import cache, show
from core.ui.pick import still_offered
from core.ui.view import View
from core.views.golden import bias, labels, page
from core.views.golden.page import Judged, Part
from core.views.text import count, plain
from core.views.workspace.scope import Quality, Scope


def pick_part(view: View) -> Part | None:
    """Draw a list of what the golden set can be looked at as, where its grades are anchored to documents."""
    offered = {
        each.name: each for each in _parts(str(cache.store().path), view.snapshot.revision, view.scope)
    }
    if not offered:
        return None
    still_offered("part", list(offered))
    picked = st.selectbox(
        "Grades of",
        list(offered),
        key="part",
        bind="query-params",
        help="The grades are anchored to characters of the documents. Every chunking has the grades that "
        "follow for its passages; they score its stacks.",
    )
    return offered[picked]


@st.cache_resource(show_spinner=False, max_entries=32)
def _parts(path: str, revision: int, scope: Scope) -> tuple[Part, ...]:
    del path  # part of the key
    return page.parts(cache.snapshot(revision), scope)


def judged(view: View, part: Part | None) -> Judged | None:
    """What the golden set of the workspace holds; see `core.views.golden.page.judged`."""
    return _judged(str(cache.store().path), view.snapshot.revision, view.scope, part)


@st.cache_resource(show_spinner="Reading the judgements…", max_entries=32)
def _judged(path: str, revision: int, scope: Scope, part: Part | None) -> Judged | None:
    del path  # part of the key
    return page.judged(cache.snapshot(revision), scope, part)


def pool_bias(view: View) -> pl.DataFrame:
    """Leave-one-run-out; see `core.views.golden.page.pool_bias`."""
    return _pool_bias(str(cache.store().path), view.snapshot.revision, view.scope, view.quality)


@st.cache_resource(show_spinner="Leaving out one run at a time…", max_entries=32)
def _pool_bias(path: str, revision: int, scope: Scope, quality: Quality) -> pl.DataFrame:
    del path  # part of the key
    return page.pool_bias(cache.snapshot(revision), scope, quality)


def grades(found: Judged, alt: str) -> None:
    """The mix of grades: a box per grade, the mix over all queries, and every query."""
    show.chart(page.mix_figure(found), "grades", alt=alt)
    show.table(
        found.mix,
        "grade_mix",
        {
            "grade": show.text_column("grade"),
            "total": show.number_column("judgements" if found.unit != "span" else "spans", 0),
            "share": show.percent_column("share"),
            "median": show.number_column("median per query", 1),
            "mean": show.number_column("mean per query", 2),
            "most": show.number_column("most", 0),
            "prevalence": show.percent_column(
                "prevalence",
                "Share of a query's judged passages, median over the queries (CLQ paper: 12.6 % for 4+5).",
            ),
            "present": show.percent_column("queries with it", "Share of the queries that have it."),
        },
    )
    show.table(
        found.queries,
        "grades_per_query",
        {
            "query_id": show.text_column("query"),
            "judged": show.number_column("judged", 0),
            **{f"grade {grade}": show.number_column(f"grade {grade}", 0) for grade in labels.GRADES},
            "fallback": st.column_config.CheckboxColumn(
                "fallback", help="No passage of grade 5: RA-nWG weighs grade 4 like 1 (metrics: fallback)."
            ),
        },
    )


def holes(view: View) -> None:
    """What unjudged passages could make of every stack's score."""
    bounds = page.with_bounds(view.table, higher_is_better=view.quality.higher_is_better)
    if bounds.is_empty():
        st.info(f"No stack here has rankings that {plain(view.quality.name)} could be computed from.")
    else:
        st.caption(
            "A passage that nobody judged counts as 0. The line reaches from all of them being of grade 1 to "
            "all being of grade 5. Where lines overlap, judging more could change the order."
        )
        show.chart(page.bounds_figure(bounds, view.quality), "holes", alt="Scores and their bounds by holes")
        show.table(
            bounds,
            "holes",
            {
                "name": show.text_column("stack", width=290),
                "quality": show.score_column(view.quality.name),
                "hole_low": show.score_column("if all grade 1"),
                "hole_high": show.score_column("if all grade 5"),
                "hole": show.percent_column("unjudged", "Share of the Top-K without a grade."),
                "n": show.number_column("n", 0, "Queries."),
            },
        )


def bias_of_pool(view: View) -> None:
    """What every run loses without the judgements that only it brought."""
    left_out = pool_bias(view)
    if left_out.is_empty():
        st.info(f"Needs 2 to {bias.MAX_RUNS} runs with rankings; choose some under Runs in the sidebar.")
    else:
        st.caption(
            "Leave one run out: its score without the judgements of passages that no other run ranks. A "
            "large bias says that a new stack, which nobody judged for, would look worse than it is."
        )
        show.table(
            left_out,
            "pool_bias",
            {
                "name": show.text_column("stack", width=290),
                "unique": show.number_column("judged for it alone", 0),
                "score": show.score_column(view.quality.name),
                "without": show.score_column("without those"),
                "bias": show.score_column("bias"),
            },
        )


def doubts(found: Judged) -> None:
    """Copies that were graded apart, and golden sets that disagree."""
    copies = f"{count(found.copies.height, 'passage')} of the collection have the text of another one"
    if found.apart.is_empty():
        st.markdown(f"{copies}; no copies were graded differently for one query.")
    else:
        st.markdown(f"{copies}. Graded differently for one query:")
        show.table(
            found.apart,
            "copies_graded_apart",
            {
                "query_id": show.text_column("query"),
                "passages": st.column_config.ListColumn("copies"),
                "grades": st.column_config.ListColumn("grades"),
                "spread": show.number_column("spread", 0),
            },
        )
    if found.disagreements.is_empty():
        st.markdown("No other golden set of this collection grades a passage differently.")
    else:
        st.markdown("Grades that another golden set of this collection gives differently:")
        show.table(
            found.disagreements,
            "other_golden_sets",
            {
                "query_id": show.text_column("query"),
                "passage_id": show.text_column("passage"),
                "grade": show.number_column("grade", 0),
                "other_set": show.text_column("other golden set"),
                "other_grade": show.number_column("its grade", 0),
            },
        )
