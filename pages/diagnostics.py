from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl
import streamlit as st

from core.diagnostics.names.bundles import LANGUAGES
from core.diagnostics.names.job import DIAGNOSES, NamesPlan, NamesSpec, plan, read_job
from core.diagnostics.names.margins import Check
from core.pipeline.sweep import load_as
from core.store import Snapshot
from core.ui import cache, door, show, work
from core.ui.pages import pick_section
from core.ui.pick import pick_one, still_offered
from core.ui.view import current_view
from core.views.diagnostics import landing, named_page
from core.views.diagnostics import names as page
from core.views.diagnostics import noise_page as noisy
from core.views.diagnostics.names import spoken
from core.views.diagnostics.noise import Gathered, drops, effect_table, gather, per_query, rewritten
from core.views.pages import PAGES
from core.views.run.paid import embedders
from core.views.text import plain
from core.views.workspace.scope import Quality
from core.views.workspace.view import View


def names(view: View) -> None:
    """Draw what was measured, what is being measured, and the form."""
    found, checks = _figures(view.snapshot)
    if found.is_empty():
        show.head(page.NOTHING)
        st.markdown(page.WAY_OUT)
    else:
        _measured(found, checks)
    _in_questions(view)
    _measuring(view, begun=not found.is_empty())


def _measured(found: pl.DataFrame, checks: list[Check]) -> None:
    rows = page.both(found)
    top = st.container()
    spoken = {plain(page.spoken(name)): name for name in found["language"].unique().sort()}
    still_offered("spoken", list(spoken))  # a link holds what the widget shows
    language = spoken[pick_one("Language", spoken, "spoken")]
    sentence = page.answer(rows, language)
    with top:
        show.head(sentence, caveats={"how it is measured": page.HOW})
        show.cards(*page.cards(rows, language))
    show.chart(page.chart(rows, language), "names", alt=sentence)
    table = page.wide(rows, language)
    spreads = [each for each in table.columns if each.startswith("± ")]
    labels = [each for each in table.columns if each not in (*spreads, "condition", "what")]
    columns = {
        "what": show.text_column("name changed to", width=210),
        **{each: show.signed_column(f"{each}, %", digits=1) for each in labels},
    }
    more = {
        **{each: show.number_column(each, 1, "Standard deviation between runs.") for each in spreads},
        "condition": show.text_column("ablation"),
    }
    show.table(table, "names", columns, more=more, whole=page.deltas(rows, language))
    st.subheader("Which embedder goes most by names", anchor=False)
    show.table(page.ranking(rows, language), "names_ranking", RANKING, more=RANKING_MORE)
    with st.expander(page.checks_line(checks)):
        show.table(page.checked(checks), "names_checks", CHECKS)


def _in_questions(view: View) -> None:
    """Draw what other names in the workspace's questions take of D_name and of quality."""
    st.subheader("Other names in your questions", anchor=False)
    quality = Quality(named_page.MEASURE, view.quality.k)
    table = _beside(view, quality)
    if table.is_empty():
        st.caption(named_page.NO_RUNS)
        return
    sentence = named_page.answer(table, quality)
    st.markdown(plain(sentence))
    show.caveats({"how it is compared": named_page.HOW})
    show.chart(named_page.chart(table, quality), "names_asked", alt=sentence)
    shown = table.with_columns(what=pl.col("names").replace_strict(named_page.MEANS))
    show.table(shown, "names_asked", ASKED, more=ASKED_MORE)


@cache.cached("Comparing questions with other names…")
def _beside(view: View, quality: Quality) -> pl.DataFrame:
    found = named_page.renamed(view.snapshot, view.scope, quality)
    if not found:
        return named_page.side_by_side(found, pl.DataFrame())
    return named_page.side_by_side(found, named_page.known_margins(view.snapshot, view.scope, found))


def _measuring(view: View, *, begun: bool) -> None:
    """Draw what runs, the form with its plan and button, and what ran before."""
    forbidden = door.forbidden()
    kind = work.Kind("diagnosis", DIAGNOSES, landing.ended, landing.table)
    work.underway(kind, may_start=not forbidden)
    with st.expander("Measure embedders", icon=":material/straighten:", expanded=not begun):
        if forbidden:
            st.caption(plain(forbidden))
        else:
            _new(view.snapshot)
        work.earlier(kind, may_start=not forbidden)


def _new(snapshot: Snapshot) -> None:
    first, second = st.columns([3, 2, 2]), st.columns([3, 1, 1, 2])
    filled = landing.Form(
        embedders=first[0].multiselect(
            "Embedders", embedders(), ["wordllama"], accept_new_options=True, key="names_embedders"
        ),
        dims=first[1].multiselect(
            "Dimensions", (), accept_new_options=True, key="names_dims", placeholder="the embedder's own"
        ),
        languages=first[2].pills(
            "Languages", LANGUAGES, selection_mode="multi", default=["en"], key="names_languages",
            format_func=page.spoken,
        ),
        source=second[0].selectbox(
            "Names from", landing.sources(snapshot), key="names_source",
            help="Of a collection its sources are the names and its titles the topics.",
        ),
        runs=second[1].number_input(
            "Runs", 1, 100, 15, key="names_runs", help="Bundles are drawn anew for each."
        ),
        queries=second[2].number_input("Queries a run", 1, 1000, 100, key="names_queries"),
        budget=work.budget(second[3], "names_budget", "embedded"),
    )  # fmt: skip
    if not (filled.embedders and filled.languages):
        st.caption(landing.NO_EMBEDDER)
        return
    said = landing.size_of, landing.button
    work.offer(
        landing.specification(filled), "names", partial(_plan_of, snapshot), said, DIAGNOSES, key="names"
    )


@cache.cached("Counting…", entries=8)
def _plan_of(snapshot: Snapshot, text: str) -> NamesPlan:
    """What would be embedded, made once per specification and revision."""
    return plan(read_job(load_as(NamesSpec, text), cache.books(), snapshot.passages))


@cache.cached("Reading diagnoses…")
def _figures(snapshot: Snapshot) -> tuple[pl.DataFrame, list[Check]]:
    return page.figures(snapshot)


ASKED: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=220),
    "what": show.text_column("names changed to", width=190),
    "clean": show.score_column("as they are"),
    "quality": show.score_column("quality", "Of the questions with other names."),
    "change": show.signed_column("change"),
    "change_low": show.signed_column("low", "Lower end of the 95 % paired interval of the change."),
    "change_high": show.signed_column("high", "Upper end of the 95 % paired interval of the change."),
    "d_change": show.signed_column("D_name, %", "Of the stack's embedder on these questions.", digits=1),
}
ASKED_MORE: Mapping[str, Any] = {
    "d_low": show.signed_column("D_name low, %", "Lower end of its 95 % interval.", digits=1),
    "d_high": show.signed_column("D_name high, %", "Upper end of its 95 % interval.", digits=1),
    "d_name": show.score_column("D_name as they are"),
    "rewrite": show.text_column("rewrite"),
    "n": show.number_column("n", 0, "Questions that name something."),
    "d_n": show.number_column("n of D_name", 0, "Questions of D_name ≥ 0.02."),
}
RANKING: Mapping[str, Any] = {
    "rank": show.number_column("rank", 0, "By D_name, largest first."),
    "label": show.text_column("embedder", width=200),
    "basis": show.text_column("figures are"),
    "d_name": show.score_column("D_name", "Right name and topic minus the better of two other names."),
    "d_topic": show.score_column("D_topic", "Right name and topic minus the right name with another topic."),
    "d_both": show.score_column("D_both", "Right name and topic minus neither."),
    "name_topic_ratio": show.number_column("name / topic", 2, "D_name / D_topic."),
}
RANKING_MORE: Mapping[str, Any] = {
    "sd": show.score_column("± D_name", "Standard deviation between runs."),
    "runs": show.number_column("runs", 0),
    "n": show.number_column("n", 0, "Bundles over all runs."),
    "gibberish_name": show.signed_column("random tokens, %", digits=1),
    "edit_distance_near_miss": show.signed_column("near misses, %", digits=1),
}
CHECKS: Mapping[str, Any] = {
    "result": show.text_column("result"),
    "check": show.text_column("check", width=290),
    "label": show.text_column("embedder"),
    "language": show.text_column("language"),
    "value": show.number_column("furthest value", 3),
    "n": show.number_column("n", 0, "Bundles that it was checked on, over all runs."),
}


def noise(view: View) -> None:
    """Draw the section."""
    gathered, table = _gathered(view)
    if not gathered:
        show.head(noisy.NO_RUNS)
        st.markdown(noisy.WAY_OUT)
        return
    sentence = noisy.answer(table, view.quality)
    show.head(sentence, caveats={"how it is compared": noisy.HOW})
    show.cards(*noisy.cards(table, view.quality))
    drawn = noisy.chart(table, view.quality)
    if drawn is not None:
        show.chart(drawn, "noise", alt=sentence)
    shown = table.with_columns(pl.Series("perturb", noisy.names(table["perturb"].to_list())))
    show.table(shown, "noise", COLUMNS, more=MORE)
    _queries(view, gathered, table)
    _vectors(view, gathered)


@cache.cached("Comparing perturbed queries…")
def _gathered(view: View) -> tuple[Gathered, pl.DataFrame]:
    gathered = gather(view.snapshot, view.scope, view.quality)
    return gathered, noisy.better_first(effect_table(view.snapshot, gathered, view.quality), view.quality)


def _queries(view: View, gathered: Gathered, table: pl.DataFrame) -> None:
    """Which perturbation hurts which query of a stack."""
    compared = table.filter(pl.col("change").is_not_null())
    offered = {rewritten(row["stack"], row["rewrite"]): row for row in compared.iter_rows(named=True)}
    if not offered:
        return
    st.subheader("Query by query", anchor=False)
    still_offered("noisy", list(offered))
    name = st.selectbox("Stack", list(offered), key="noisy", bind="query-params")
    family, rewrite = offered[name]["family"], offered[name]["rewrite"]
    rows = per_query(gathered, family, rewrite, higher_is_better=view.quality.higher_is_better)
    asked = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    levels = [each for each in rows.columns if each not in ("query_id", "clean", "hurt_by", "lost")]
    columns = {
        "text": show.text_column("query", width=330),
        "hurt_by": show.text_column("hurt most by", "Empty = no perturbation makes it worse."),
        "lost": show.signed_column("change"),
        "clean": show.score_column(noisy.ASKED_CLEAN),
        **{level: show.score_column(level) for level in levels},
    }
    show.table(rows.join(asked, on="query_id", how="left", maintain_order="left"), "noise_queries", columns)


def _vectors(view: View, gathered: Gathered) -> None:
    """How far vectors move, of embedders that run here, beside the paper's."""
    rows = _drops(view, gathered.query_ids, gathered)
    if rows.is_empty():
        return
    st.subheader("How far the query's vector moves", anchor=False)
    st.caption("Cosine to the clean query by level of small talk; the paper's is to a restatement of it.")
    named = pl.col("language").str.to_lowercase().map_elements(spoken, return_dtype=pl.String)
    shown = rows.with_columns(pl.col("share") * 100, language=named)
    show.table(shown, "noise_vectors", VECTORS, whole=rows)


@cache.cached("Embedding perturbed queries…")
def _drops(view: View, asked: tuple[str, ...], _gathered: Gathered) -> pl.DataFrame:
    del asked  # part of the key
    return drops(view.snapshot, _gathered)


COLUMNS: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=220),
    "perturb": show.text_column("queries"),
    "rewrite": show.text_column("rewrite"),
    "quality": show.score_column("quality", "Mean over n queries."),
    "change": show.signed_column("change", "Against the queries as they are."),
    "change_low": show.signed_column("low", "Lower end of the 95 % paired interval of the change."),
    "change_high": show.signed_column("high", "Upper end of the 95 % paired interval of the change."),
    "won": show.signed_column("won back", "Against no rewrite of the same queries."),
}
MORE: Mapping[str, Any] = {
    "won_low": show.signed_column("won low", "Lower end of its 95 % paired interval."),
    "won_high": show.signed_column("won high", "Upper end of its 95 % paired interval."),
    "overlap": show.percent_column("Top-K that stays", "Overlap with the ranking of the query as it is."),
    "tau": show.number_column("tau", 2, "Of the passages in both rankings."),
    "rewrite_ms": show.number_column("rewrite ms", 2, "p50 over queries."),
    "n": show.number_column("n", 0, "Queries that every run here was asked."),
}
VECTORS: Mapping[str, Any] = {
    "model": show.text_column("embedder", width=240),
    "language": show.text_column("language"),
    "perturb": show.text_column("queries"),
    "cosine": show.score_column("cosine"),
    "share": show.signed_column("change, %", "Against level 0.", digits=1),
    "n": show.number_column("n", 0),
    "source": show.text_column("source"),
}


entry = PAGES["diagnostics"]
sections = (names, noise)
view = current_view()
dict(zip(entry.sections, sections, strict=True))[pick_section(entry)](view)
