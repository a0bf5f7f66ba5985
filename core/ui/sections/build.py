"""Section Build of Golden sets: a form with its plan, running builds, and finished ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.view import View
from core.golden.pool import Pool
from core.golden.refine.methods import restore
from core.pipeline.sweep import load_as
from core.store import Snapshot
from core.ui import access, cache, figures, show, work
from core.ui.address.links import link
from core.views import columns as cols
from core.views.golden import reviewing
from core.views.pages import SECTION
from core.views.text import plain
from core.work import paid
from core.work.golden import form, stored, words
from core.work.golden.form import GoldenForm
from core.work.golden.job import GoldenJob
from core.work.golden.kind import GOLDEN
from core.work.golden.plan import GoldenPlan, candidates, plan
from core.work.golden.prompts import KINDS, prompt
from core.work.golden.run import refinements
from core.work.golden.spec import GoldenSpec
from core.work.work import StartedWork

_CURVES = cols.Rows(
    "convergence",
    cols.count("turn"),
    cols.count("changed", "places of the Top-20 changed"),
    cols.number("settled", "pairs locked, or how sure"),
)
_PAIRS = cols.Rows(
    "locks",
    *(cols.text("better"), cols.text("worse")),
    cols.count("rank_better", "its rank"),
    cols.count("rank_worse", "the other's"),
    cols.count("times"),
)
_WAYS = cols.Rows(
    "ways",
    cols.text("method"),
    cols.number("tau", "tau to the true order", "Kendall's tau, simulated at the measured noise."),
    *(cols.number("low", "from"), cols.number("high", "to")),
    cols.count("turns", "calls a question"),
    cols.usd("usd", "$", "Of all questions; empty = unknown."),
)


def build(view: View) -> None:
    """Draw running builds, the form, and earlier builds."""
    forbidden = access.forbidden()
    finish = partial(_finish, view.scope.collection_id)
    begun = work.known(GOLDEN)
    show.head(words.headline([one.status for one in begun]), forbidden or words.WHAT)
    work.underway(GOLDEN, may_start=not forbidden, finish=finish)
    if not forbidden:
        _new(view)
    work.earlier(GOLDEN, may_start=not forbidden, finish=finish)
    _refined(view, begun)


def _finish(collection_id: str, one: StartedWork, bar: DeltaGenerator) -> None:
    """Draw the link to the label mix of a built set."""
    built = str(one.status.facts.get("golden_set_id") or "")
    if not built or one.status.collection_id != collection_id:
        return
    there = {"gs": built, SECTION: "soundness"}
    if bar.button(
        "See its label mix", key=f"mix_{one.name}", on_click=st.session_state.update, args=(there,)
    ):
        st.rerun()  # only a part of the page is redrawn for running work, and the section stays


def _refined(view: View, begun: Sequence[StartedWork]) -> None:
    """Draw whether refining is worth it, and how the latest refining build ordered each question's best."""
    here = [one for one in begun if one.status.collection_id == view.scope.collection_id]
    names = (str(one.status.facts.get("golden_set_id") or "") for one in here)
    ways = next((rows for name in names if (rows := stored.ways(view.snapshot, name)).height), None)
    if ways is not None:
        with st.expander("Whether it pays to put the best in order"):
            st.caption(plain(words.pays(ways)))
            show.table(ways, _WAYS)
    folders = (one.folder.path for one in here if one.folder is not None)
    states = next((by_question for folder in folders if (by_question := refinements(folder))), {})
    if not states:
        return
    with st.expander("How the best were put in order"):
        query = st.selectbox("Question", sorted(states), key="golden_refined")
        state = {query: restore(states[query])}
        st.caption(plain(words.came_to_rest(state[query])))
        figures.draw(reviewing.convergence(state), "convergence", "How the Top-20 came to rest")
        show.table(reviewing.curves(state), _CURVES)
        if state[query].locks:
            figures.draw(reviewing.lock_graph(state[query]), "locks", "Locked pairs, and contradictions")
        for title, contradicted in (("Contradictions", True), ("Locks", False)):
            rows = reviewing.pairs(state, contradicted=contradicted)
            if rows.height:
                st.markdown(f"**{title}**")
                show.table(rows, _PAIRS.named(title.lower()))


def _new(view: View) -> None:
    """Draw the form, the same as text, its errors, and its plan with the button."""
    collection = view.scope.collection_id
    if lacking := form.lacks(view.snapshot, collection):
        st.info(plain(f"The store has no {lacking} of {collection}, so there is nothing to judge."))
        link("add", f"Import {lacking}")
        return
    as_form, as_text, as_told = st.tabs(["Form", "Text", "What judges are told"])
    with as_form:
        filled = _fill_in(view, collection)
    with as_text:
        written = form.specification(filled)
        text = work.draft(written, "golden", "TOML or YAML; docs/golden-sets.md has every key.")
    with as_told:
        _prompts(form.LANGUAGES[filled.language])
    if text != written:
        st.caption("The text was edited, and counts; a change in the form writes it anew.")
    elif not (filled.judges or filled.grades):
        st.caption(words.NO_JUDGE)
        return
    work.offer(GOLDEN, text, key="build", plan_of=partial(_plan_of, view.snapshot))


def _fill_in(view: View, collection: str) -> GoldenForm:
    begun = GoldenForm(name=f"{collection}-judged", collection=collection)
    first, second, third = st.columns([2, 3, 1]), st.columns([3, 2, 1]), st.columns([2, 1, 1, 1])
    refine = third[0].selectbox(
        "Put the best in order", list(form.REFINE), key="golden_refine",
        help="A judge orders five passages at a time, 100 to 270 calls a question; a noisy one loses by it.",
    )  # fmt: skip
    return GoldenForm(
        name=first[0].text_input("Name", begun.name, key=f"golden_name_{collection}") or begun.name,
        collection=collection,
        sources=tuple(first[1].multiselect(
            "Candidates from", form.sources(), begun.sources, key="golden_sources",
            help="Pool what you will compare, so that few of its passages stay unjudged.",
        )),
        depth=first[2].number_input("How many of each", 1, 1000, begun.depth, key="golden_depth"),
        judges=tuple(second[0].multiselect(
            "Judges (chat models)", paid.models(), key="golden_judges", accept_new_options=True,
            placeholder="choose a model", help=words.JUDGES,
        )),
        grades=second[1].selectbox(
            "Take over the grades of", form.judged(view.snapshot, collection), index=None,
            placeholder="none", key=f"golden_grades_{collection}",
            help="Only what it lacks is judged; it is named as the parent.",
        ) or "",
        language=second[2].selectbox("Instructions", list(form.LANGUAGES), key="golden_language"),
        refine=refine,
        keep=third[1].number_input(
            "Passages to order", 5, 500, begun.keep, key="golden_keep", disabled=refine == "no"
        ),
        limit=third[2].number_input(
            "Questions", min_value=1, value=None, placeholder="all", key=f"golden_limit_{collection}"
        ),
        budget=work.budget(third[3], "golden_budget", "judged"),
    )  # fmt: skip


def _prompts(language: str) -> None:
    st.caption(words.RISK)
    for kind in KINDS:
        st.markdown(f"**{words.PROMPTS[kind]}**")
        st.code(prompt(kind, "fr" if language == "fr" else "en"), language=None, wrap_lines=True)


@cache.cached("Counting…", entries=8)
def _plan_of(snapshot: Snapshot, text: str) -> GoldenPlan:
    """Plan the judgements to make, once per specification and revision."""
    job, problems = GOLDEN.read(snapshot, load_as(GoldenSpec, text), cache.books(), to_run=False)
    sources = [source.model_dump_json() for source in (job.spec.queries, *job.spec.golden.pool)]
    held = job.spec.golden.judge.grades or ""
    pool = _candidates(snapshot, job.collection_id, job.spec.golden.rewrite, *sources, held, _job=job)
    return plan(job, pool, problems=problems)


@cache.cached("Finding the candidates…", entries=4)
def _candidates(snapshot: Snapshot, *sources: str, _job: GoldenJob) -> Pool | None:
    """Return the pool, computed once for its sources, whoever judges."""
    del snapshot, sources  # part of the cache key
    return candidates(_job)
