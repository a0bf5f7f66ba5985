import polars as pl
import streamlit as st

from core.ui import show
from core.ui.cache import cached
from core.ui.pages import pick_section
from core.ui.pick import pick_listed, pick_one, pick_stack, pick_stacks
from core.ui.view import current_view
from core.views import theme
from core.views.cost.stack import models
from core.views.curves import cuts, page
from core.views.pages import PAGES
from core.views.text import plain
from core.views.workspace.comparable import about_pools
from core.views.workspace.query_sets import among
from core.views.workspace.stacks import runs_in
from core.views.workspace.view import View

NO_GENERATOR = "no generator"
COLUMNS = {
    "name": show.text_column("stack", width=290),
    "measure": show.text_column("measure"),
    "k": show.number_column("K", 0),
    "value": show.score_column("value"),
    "low": show.score_column("low"),
    "high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "tokens": show.number_column("tokens sent", 0, "Of the passages of Top(K), mean over the queries."),
    "usd_per_1k": show.dollar_column("$ / 1k", "What the generator charges for reading them."),
}
MORE = {
    "basis": show.text_column("figures are"),
    "tokens_low": show.number_column("tokens, low", 0, "Lower end of the 95 % bootstrap interval."),
    "tokens_high": show.number_column("tokens, high", 0, "Upper end of the 95 % bootstrap interval."),
    "counted": show.text_column("tokens counted by"),
}
CUT_COLUMNS = {
    "way": show.text_column("keeps"),
    "precision": show.score_column("precision", "Share of what is kept that is relevant (grade 4 or 5)."),
    "recall": show.score_column("recall", "Share of what is relevant that is kept."),
    "f1": show.score_column("F1", "Mean over the queries of the harmonic mean of the two."),
    "f1_low": show.score_column("low", "Lower end of the 95 % bootstrap interval of F1 over queries."),
    "f1_high": show.score_column("high", "Upper end of the 95 % bootstrap interval of F1 over queries."),
    "kept": show.number_column("passages", 1, "Kept, mean over the queries."),
    "tokens": show.number_column("tokens sent", 0, "Of what is kept, mean over the queries."),
    "n": show.number_column("n", 0, "Queries."),
}
DEPTH_COLUMNS = {
    "name": show.text_column("stack", width=290),
    "candidates": show.number_column("K", 0, "Candidate depth."),
    "quality": show.score_column("quality"),
    "proc": show.score_column("PROC", "The best ordering of the candidate pool."),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
}


@cached("Scoring every cutoff…")
def points(view: View, names: tuple[str, ...], generator: str | None) -> pl.DataFrame:
    """Every measure of some stacks at every cutoff, with what Top(K) weighs."""
    runs = runs_in(view.snapshot, view.scope).filter(pl.col("name").is_in(names))
    measure = view.quality.measure
    bare = None if measure is None else measure.at(None)
    only = among(view.snapshot, view.scope)
    rows = page.curve_table(view.snapshot, runs, view.scope.golden_set_id, bare, only)
    weights = cuts.tokens_sent(view.snapshot, runs, generator, view.book, depth=page.MAX_DEPTH, only=only)
    return page.against(rows, weights)


@cached("Cutting every ranking…")
def cut(view: View, run_id: str, counts: str) -> cuts.Cuts:
    """The rankings of a stack, cut by every method."""
    return cuts.cuts(view.snapshot, view.scope, run_id, counts=counts, fixed=view.quality.k)


def pick_generator(view: View) -> str | None:
    """Draw the choice of the generator that reads what is sent."""
    offered = [NO_GENERATOR, *models([view.book])["generator"]]
    picked = pick_listed("Generator", offered, "kgen", help=cuts.GENERATOR)
    return None if picked == NO_GENERATOR else picked


def by_cutoff(view: View) -> None:
    """Every measure of some stacks against the cutoff, or against what is sent."""
    which, against, reader = st.columns([3, 3, 2], vertical_alignment="bottom")
    with which:
        names = pick_stacks(view.table, view.decision, "curves")
    with reader:
        generator = pick_generator(view)
    with against:
        axes = {title: name for name, title in page.X_AXES.items() if generator or name != "usd_per_1k"}
        x = axes[pick_one("Against", axes, "kx", usual=page.X_AXES["k"])]
    rows = points(view, tuple(names), generator)
    found = page.curves(rows, view.quality, theme.colours_for(names), x)
    ceilings = view.table.filter(pl.col("name").is_in(names), pl.col("proc").is_not_null())
    chips = {"how to read": page.HOW, "several pools": about_pools(ceilings["pool"])}
    show.head(found.answer, caveats=chips)
    if found.main.data:
        show.chart(found.main, "curves", alt=found.answer)
    else:
        st.info(plain(page.nothing(rows, view.quality, x)), icon=":material/info:")
    if found.beside.data:
        st.subheader("Every other measure", anchor=False)
        show.chart(found.beside, "measures", alt="Every other measure of the same stacks")
    else:
        st.caption(page.NO_OTHERS)
    own_first = rows.sort(pl.col("measure") != view.quality.bare, maintain_order=True)
    show.table(own_first, "curves", COLUMNS, more=MORE)


def by_candidate_depth(view: View) -> None:
    """What a deeper candidate pool buys and costs."""
    depths = page.depth_table(view.table)
    if depths.is_empty():
        show.head(page.NO_DEPTHS)
        return
    names = pick_stacks(view.table, view.decision, "curves")
    families = depths["family"].unique(maintain_order=True).to_list()
    shown = page.families_of(view.table.filter(pl.col("name").is_in(names)), families)
    sentence = page.depth_answer(depths, shown[0], view.quality)
    show.head(sentence)
    show.chart(page.depth_figure(depths, shown, view.quality), "depths", alt=sentence)
    show.table(depths, "depths", DEPTH_COLUMNS)


def cut_off_methods(view: View) -> None:
    """How good what every cut-off keeps of a stack's rankings is, beside fixed depths."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        run_id = pick_stack(view.table, view.decision, "Stack", key="cutof")
    with right:
        generator = pick_generator(view)
    if run_id is None:
        show.head("No stack is chosen.")
        return
    found = cut(view, run_id, cuts.vocabulary(generator, view.book))
    sentence = cuts.answer(found, view.quality.k)
    left_out = found.left_out if found.rows.height else ""
    show.head(sentence, caveats={"how to read": cuts.HOW, "not all queries": left_out})
    if found.rows.height:
        show.chart(cuts.figure(found.rows), "cut_offs", alt=sentence)
        show.table(found.rows, "cut_offs", CUT_COLUMNS)


PAGE = PAGES["curves"]
SECTIONS = dict(zip(PAGE.sections, (by_cutoff, by_candidate_depth, cut_off_methods), strict=True))
view = current_view()
SECTIONS[pick_section(PAGE)](view)
