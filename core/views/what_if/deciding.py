"""Section of What if: two stacks without judgements, and how few grades decide between them."""

from __future__ import annotations

from functools import partial

import polars as pl

from core.analysis.between import Between, between
from core.analysis.deciding import DELTA, Contest
from core.analysis.moves.switching import stay_or_move
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.errors import InputError
from core.views import columns as cols
from core.views.ask import Ask, run_of
from core.views.blocks import Answer, Blocks, Cards, Control, Fold, Table, Text, section
from core.views.text import percent, score
from core.views.words.deciding import changed, errs, mean, stands

TOO_FEW = "Two stacks with rankings are needed."
MOST = 200  # Questions in the table
TABLE = cols.Rows(
    "differences",
    "query_id text",
    cols.share("overlap", "shared", "Share of the passages that stand in both Top-K."),
    cols.score("rbo", "RBO", "Rank-biased overlap: how alike two rankings are; first ranks weigh most."),
    cols.text("other_first", "first passage", "Whether another passage comes first."),
    cols.count("only_now", "only today's", "Passages that only today's stack shows."),
    cols.count("only_to", "only candidate's", "Passages that only the candidate shows."),
)
KINDS = cols.Rows(
    "kinds_changed",
    cols.text("kind"),
    cols.count("n", "queries"),
    *(column for column in TABLE.columns if column.name in ("overlap", "rbo")),
    cols.share("other_first", "another first passage"),
)
BY_HAND = "by hand, in cards"
HOW = (
    "Only passages that one Top-K has and the other has not decide on Precision4+. "
    "Queries are drawn with a chance in proportion to their number. "
    "The interval holds at every look with 95 %, so that you may stop at any time. "
    "A skipped passage counts as not useful. A smaller K takes fewer grades for each query."
)


@section("few grades", "How few grades decide between two stacks?", seldom)
def few_grades(view: View, ask: Ask) -> Blocks:
    """Yield what two stacks show differently, and the way to judge only what decides between them."""
    ranked = view.table.filter("has_rankings")["name"].to_list()
    if len(ranked) < 2:
        yield Answer("No two stacks have rankings.", TOO_FEW)
        return
    decision, running = view.decision, view.running_name in ranked
    leading = (view.table["name"][row] for row in (decision.chosen, decision.runner_up) if row is not None)
    first_two = [name for name in leading if name in ranked]
    usual = view.running_name if running else next(iter(first_two), None)
    now = ask.listed("Runs today" if running else "One stack", ranked, "from", usual=usual)
    others = [name for name in ranked if name != now]
    move = stay_or_move(view) if running and now == view.running_name else None
    rivals = [str(move.to["name"])] if move is not None and move.to is not None else first_two
    usual = next((name for name in rivals if name in others), None)
    to = ask.listed("Candidate" if running else "Another", others, "to", usual=usual)
    with ask.aside("What decides"):
        first = ask.number("Passages compared (K)", "fewk", float(view.quality.k), 1.0, 100.0, step=1.0)
        margin = ask.number("Better by at least", "marg", 0.0, 0.0, step=0.01)
        delta = ask.number("Alike below", "alike", DELTA, 0.0, 1.0, step=0.01)
        sets = view.snapshot.golden_sets(view.scope.collection_id)["golden_set_id"].to_list()
        graded = ask.listed("Grades", [BY_HAND, *sets], "gby") if sets else BY_HAND
    contest = Contest(
        now=run_of(view.table, now),
        to=run_of(view.table, to),
        k=int(first or view.quality.k),
        margin=margin or 0.0,
        delta=DELTA if delta is None else delta,
    )
    try:
        found = between(view, contest, None if graded == BY_HAND else graded)
    except InputError as error:
        yield Answer(str(error), "")
        return
    rows = found.questions
    yield Answer(*changed(found))
    yield Cards(_cards(rows))
    if found.by is None or found.standing is None:
        yield Control("judge between", {"scope": view.scope, "contest": contest}, partial(_standing, found))
    else:
        yield from _standing(found)
    questions = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    said = pl.when("other_first").then(pl.lit("another")).otherwise(pl.lit("the same"))
    shown = rows.head(MOST).join(questions, on="query_id", how="left").with_columns(other_first=said)
    yield Table(TABLE.frame(shown.to_dicts()), TABLE)
    if found.kinds.height:
        yield Fold("By kind of query", (Table(found.kinds, KINDS),))
    yield Fold("How it decides", (Text(HOW, "caption"),))


def _standing(found: Between) -> Blocks:
    """Yield what the grades decide so far."""
    if found.standing is not None:
        yield Text(" ".join((stands(found.standing), errs(found))).rstrip())


def _cards(rows: pl.DataFrame) -> list[tuple[str, str, str]]:
    of, of_all = f"n = {rows.height}", mean(rows)
    apart = rows.filter(pl.col("only_now") + pl.col("only_to") > 0)
    passages = int(apart.select(pl.col("only_now", "only_to").sum()).sum_horizontal().item())
    return [
        ("Another first passage", percent(of_all["other_first"]), of),
        ("Shared passages", percent(of_all["overlap"]), of),
        ("Rank-biased overlap", score(of_all["rbo"]), of),
        ("Passages that differ", f"{passages:,}", f"on {apart.height} of {rows.height} queries"),
    ]
