"""The tab of the evidence page about judges: do they agree, and one golden set made of theirs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.errors import ClqError
from core.ui import access, cache, show
from core.ui.pick import still_offered
from core.ui.shell import show_error
from core.ui.view import View
from core.views.golden import judges
from core.views.golden.judges import POLICIES, Judged, Policy
from core.views.text import count, plain

_DONE = "_merged_judges"


@st.cache_resource(show_spinner="Comparing the judges…", max_entries=16)
def _judged(path: str, revision: int, names: tuple[str, ...]) -> tuple[Judged, Any, Any]:
    del path  # part of the key
    found = judges.judged(cache.snapshot(revision), names)
    return found, judges.agreement(found), judges.alpha(found)


def panel(view: View) -> None:
    """Agreement of the chosen golden sets, and the form that merges them."""
    with st.container():  # always there, so that what follows keeps its place
        if _DONE in st.session_state:
            st.success(plain(st.session_state.pop(_DONE)), icon=":material/check:")
    known = view.snapshot.golden_sets(view.scope.collection_id)
    names = known.filter(known["judgements"] > 0)["golden_set_id"].to_list()
    if len(names) < 2:
        st.info(
            "It takes two golden sets of this collection, one per judge. Import another one's judgements "
            "under another name, or a table with a column “judge”.",
            icon=":material/group:",
        )
        return
    if "sets" in st.session_state:  # a choice that was kept may be of another workspace
        st.session_state["sets"] = [name for name in st.session_state["sets"] if name in names]
    chosen = st.multiselect(
        "Judges (golden sets)",
        names,
        key="sets",
        bind="query-params",
        max_selections=judges.MOST,
        placeholder=f"all {min(len(names), judges.MOST)}",
        help="Each judge is a golden set of its own; grades are compared after their mapping to 1-5.",
    )
    asked = tuple(chosen) if len(chosen) > 1 else tuple(names[: judges.MOST])
    found, pairs, overall = _judged(str(cache.store().path), view.snapshot.revision, asked)
    st.markdown(plain(judges.answer(found, pairs, overall)))
    _pairs(found, pairs)
    _merge(found)


def _pairs(found: Judged, pairs: Any) -> None:
    labels = [f"{first} and {second}" for first, second in pairs.select("first", "second").iter_rows()]
    label = labels[0]
    if len(labels) > 1:
        still_offered("judges", labels)
        label = st.selectbox("Grade by grade", labels, key="judges", bind="query-params")
    row = pairs.row(labels.index(label), named=True)
    places = [found.names.index(row[side]) for side in ("first", "second")]
    show.chart(judges.pair_figure(found, *places), "judges", alt=f"Grades of {label}, met with one another")
    st.caption(
        "Cohen's kappa: 1 = always the same grade, 0 = as often as by chance. Quadratic: a grade that is two "
        "off weighs four times as much as one that is one off. Intervals: 95 %, 2,000 resamples of the "
        "queries, fixed seed."
    )
    show.table(
        pairs,
        "judges_agree",
        {
            "first": show.text_column("judge"),
            "second": show.text_column("and judge"),
            "n": show.number_column("passages", 0, "Judged by both."),
            "queries": show.number_column("queries", 0),
            "same": show.percent_column("same grade"),
            "kappa": show.number_column("kappa", 3),
            "kappa_low": show.number_column("low", 3),
            "kappa_high": show.number_column("high", 3),
            "quadratic": show.number_column("quadratic kappa", 3),
            "quadratic_low": show.number_column("low ", 3),
            "quadratic_high": show.number_column("high ", 3),
        },
    )


def _merge(found: Judged) -> None:
    st.subheader("One golden set of these", anchor=False)
    if reason := access.forbidden():
        st.caption(reason)
        return
    with st.form("merge_judges", border=True):
        left, right = st.columns([1, 2])
        policy: Policy = left.selectbox("Where they differ, take the", list(POLICIES), index=1, key="policy")
        into = right.text_input("Name of the new golden set", value="-".join(["merged", *found.names])[:60])
        st.caption(
            f"{count(int((found.judges > 1).sum()), 'passage')} judged by two or more, "
            f"{judges.differing(found):,} of them differently; {int((found.judges == 1).sum()):,} by one. "
            + ". ".join(f"{name}: {words}" for name, words in POLICIES.items())
            + "."
        )
        if st.form_submit_button("Write it", icon=":material/merge:"):
            try:
                access.require()
                golden = judges.write_merged(cache.store(), found.names, policy, into)
            except ClqError as error:
                show_error(error)
                return
            st.session_state[_DONE] = (
                f"Written in one transaction: golden set {golden.golden_set_id}. Choose it in the sidebar."
            )
            st.rerun()
