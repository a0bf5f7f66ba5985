import streamlit as st

from core.ui import evidence, show
from core.ui.view import current_view
from core.views import decide
from core.views.evidence import bias, page
from core.views.text import count, plain

view = current_view()
found = evidence.judged(view)
decided = decide.answer(view.table, view.decision, view.constraints, view.quality, view.latency)
sentence, details = page.answer(found, view.table, view.quality)
show.head(
    "What this tells you: how many judgements carry the scores, and whether judging more could change them.",
    sentence,
    details,
    decided.warning,
)
if found is None:
    st.page_link("pages/import.py", label="Import judgements", icon=":material/upload:")
    st.stop()

mix, holes, pool, doubts = st.tabs(["Grades", "Holes", "Pool bias", "Copies and conflicts"])
with mix:
    show.chart(page.mix_figure(found), "grades", alt=sentence)
    show.table(
        found.mix,
        "grade_mix",
        {
            "grade": show.text_column("grade"),
            "total": show.number_column("judgements", 0),
            "share": show.percent_column("share"),
            "median": show.number_column("median per query", 1),
            "mean": show.number_column("mean per query", 2),
            "most": show.number_column("most", 0),
            "prevalence": show.percent_column("prevalence", "Share of the queries that have it."),
        },
    )
    show.table(
        found.queries,
        "grades_per_query",
        {
            "query_id": show.text_column("query"),
            "judged": show.number_column("judged", 0),
            **{f"grade {grade}": show.number_column(f"grade {grade}", 0) for grade in (5, 4, 3, 2, 1)},
            "fallback": st.column_config.CheckboxColumn(
                "fallback", help="No passage of grade 5: RA-nWG weighs grade 4 like 1 (metrics: fallback)."
            ),
        },
    )
with holes:
    bounds = page.with_bounds(view.table)
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
with pool:
    left_out = evidence.pool_bias(view)
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
with doubts:
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
