import polars as pl
import streamlit as st

from core.stats.significance import TOLERANCE, Method, Setup
from core.ui import show
from core.ui.cache import cached
from core.ui.pick import KEPT, carry_over, listed, pick_one, pick_stack
from core.ui.sections.compare import GO, LETTERS, by_tag, cards, change, flips, pick_pair, sources, statistics
from core.ui.view import Lacking, View, current_view, end
from core.views.compare import page as compare
from core.views.compare import words
from core.views.compare.sides import Closer, look_closer, sides, unpaired, usual
from core.views.text import plain


@cached("Comparing query by query…")
def compared(view: View, names: tuple[str, ...], against: compare.Against, setup: Setup) -> pl.DataFrame:
    """Compare stacks query by query."""
    return compare.compared(
        view.snapshot, view.scope, view.quality, view.table, names, against=against, setup=setup
    )


@cached("Comparing query by query…")
def looked_at(view: View, first: str, second: str, setup: Setup) -> Closer:
    """Compare two stacks closely."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    two = ids[first], ids[second]
    return look_closer(view.snapshot, view.scope, view.quality, view.table, pair=two, setup=setup)


def pick(view: View) -> list[str]:
    """Draw two lists of stacks, and one for more; what is not chosen is the usual."""
    if old := st.query_params.get_all("cmp"):  # links of earlier releases
        del st.query_params["cmp"]
        st.session_state.update(dict(zip(("stack", "vs"), old, strict=False)), also=old[2:])
    best, names = usual(view.table, view.decision), dict(view.table.select("run_id", "name").iter_rows())
    left, middle, right = st.columns(3)
    with left:
        one = names.get(pick_stack(view.table, view.decision, "A") or "", best[0])
    rest = view.table.filter(pl.col("name") != one)
    with middle:
        picked = pick_stack(rest, view.decision, "B", key="vs", default="the next best")
        other = names.get(picked or "") or next(name for name in best if name != one)
    carry_over("also")
    offered = [name for name in listed(rest, "also", view.decision.quality) if name != other]
    if "also" in st.session_state:  # a choice that was kept may be of another workspace
        st.session_state["also"] = [name for name in st.session_state["also"] if name in offered]
    more = right.multiselect(
        "More", offered, key="also", bind="query-params", max_selections=compare.MOST - 2,
        placeholder="add a third",
    )  # fmt: skip
    st.session_state[KEPT + "also"] = list(more)
    if gone := [name for name in old if name not in view.table["name"]]:
        st.warning(f"No longer here: {plain('; '.join(gone))}.", icon=":material/link_off:")
    return [one, other, *more]


def settings(view: View) -> tuple[Setup, compare.Against]:
    """Draw how to compare."""
    left, middle, right = st.columns([2, 2, 1.4])
    against: compare.Against = pick_one(
        "Compare", ["the first", "every pair"], "each", place=left,
        help="A with every other one, or every pair. More comparisons, stricter p-values.",
    )  # fmt: skip
    method: Method = pick_one(
        "Interval", ["percentile", "BCa"], "ci", place=middle,
        help="95 % bootstrap interval over queries. percentile: as on the other pages. BCa: corrected for "
        "bias and skew (Efron 1987), better for few queries.",
    )  # fmt: skip
    tolerance = right.number_input(
        "Tie up to", min_value=0.0, max_value=1.0, value=TOLERANCE, step=0.01, format="%g", key="tol",
        bind="query-params",
        help="A query whose two scores differ by no more is a tie. Wins and losses depend on it, the "
        "difference, its interval and its p-value do not.",
    )  # fmt: skip
    return Setup(method=method, tolerance=tolerance, higher_is_better=view.quality.higher_is_better), against


view = current_view()
if wanted := st.session_state.pop(GO, None):
    # The stacks are kept: Streamlit refuses parameters that widgets of this page are bound to.
    st.switch_page("pages/queries.py", query_params={"q": wanted})
if view.table.height < 2:
    show.head(words.NO_PAIR, words.BRING)
    st.page_link("pages/add.py", label="Add results", icon=":material/upload:")
    end()
names = pick(view)
numbers, closely, folded = st.container(), st.container(), st.container()
chosen = pl.concat([view.table.filter(name=name) for name in names])
band = dict(zip(view.decision.run_ids, view.decision.band, strict=True))
jitter = float(max(band[run_id] for run_id in chosen["run_id"]))
obstacle, rows, same = unpaired(chosen, view.scope, view.quality), None, False
if obstacle and view.table["has_rankings"].any():
    closely.info(plain(f"{obstacle} {words.BRING}"), icon=":material/functions:")
if not obstacle:
    tests = folded.expander("Tests, effect sizes, all pairs", icon=":material/science:")
    with tests:
        setup, against = settings(view)
    rows = compared(view, tuple(chosen.filter("has_rankings")["name"]), against, setup)
    with tests:
        statistics(view, rows, setup)
    with closely:
        two = pick_pair(rows)
        closer = looked_at(view, two["first"], two["second"], setup)
        same = closer.same
        if two["n"]:
            st.subheader("By tag", anchor=False)
            by_tag(view, closer, two)
            st.subheader("Query by query", anchor=False)
            flips(view, closer, two, setup)
    with folded.expander("Same passages, same order?", icon=":material/reorder:"):
        st.markdown(plain(words.rankings(closer, view.quality.k)))
    with folded.expander("Does retrieval or ordering differ?", icon=":material/call_split:"):
        sources(closer)
    with folded.expander("One change, every pair of stacks", icon=":material/change_history:"):
        change(view, setup)
gaps = sides(view.snapshot, view.table, names, rows, latency=view.latency, jitter=jitter)
with numbers:
    cards(view, names, gaps)
letters = dict(zip(names, LETTERS, strict=False))
said = words.answer(
    gaps.with_columns(pl.col("stack", "against").replace(letters)),
    view.quality,
    same=same and len(names) == 2,
)
named = " · ".join(f"{letter}: {name}" for name, letter in letters.items())
show.head(said, named, "" if rows is None else words.doubt(rows, view.quality))
if not view.table["has_rankings"].any():
    raise Lacking(view, "rankings")
