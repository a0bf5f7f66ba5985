"""Page Queries: where a stack is weak, query by query, and its ranking for one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl

from core.analysis import per_query as data
from core.analysis.cache import cached
from core.analysis.per_query import queries
from core.analysis.sides import by_tag
from core.analysis.workspace.choices import lacking
from core.analysis.workspace.clusters import Groups, groups
from core.analysis.workspace.figures.reported import query_scores
from core.analysis.workspace.view import View
from core.metrics.access import FORBIDDEN
from core.stats.means import mean_interval
from core.stats.significance import Setup
from core.tables import Row
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import (
    Answer,
    Blocks,
    Cards,
    Chart,
    Click,
    Fold,
    Lack,
    Passage,
    Passages,
    SideBySide,
    Table,
    Tabs,
    Text,
    Way,
    section,
)
from core.views.charts import queries as charts
from core.views.legend import colours_of
from core.views.queries import one_query, words
from core.views.queries.one_query import OUTSIDE, ROWS, OneQuery, Side

LISTED = 100  # Queries of the table that a page shows
OFFERED = 1000  # Queries offered in a list; a click or a URL chooses any

TAGS = "Tags of one name add up (package=numpy or package=polars); those of two names must both fit."

FIND = "words, an id or a tag"

TYPED = cols.Rows(
    "typed",
    "perturb score",
    cols.signed("change", help="Against the query as it is."),
    cols.share("overlap", "Top-K that stays"),
    "typed",
    more="run_id",
)

SHOWN = cols.Rows(
    "passages",
    cols.count("rank", "#", "Rank."),
    cols.count("place", "#", "Place in the best order."),
    cols.count("grade", help="1 to 5; – = unjudged."),
    "weight",
    cols.count("now", "rank now", "Rank in the ranking; – = left out of it."),
    cols.text("change", "vs", "▲ ▼: places won or lost against the other stack; new: not in its ranking."),
    "passage",
    cols.text("text", width=400),
    "points",
    cols.text("reason", "why", "Why the reranker rated it so, in its words."),
)

DEPTHS = ("first 3", "Top-K", "all")


@cached("Scoring every query…", entries=8)
def reporting(view: View) -> list[str]:
    """Return the stacks that report single queries and have no rankings."""
    bare = view.table.filter(~pl.col("has_rankings"))["run_id"].to_list()
    scores = query_scores(view.snapshot, bare, view.quality.by_query) if bare else None
    return list(scores.run_ids) if scores else []


@cached("Reading the rankings…", entries=128)
def rankings(view: View, runs: tuple[tuple[str, str], ...], query_id: str) -> OneQuery:
    """Read one query."""
    return one_query.one_query(view.snapshot, view.scope, view.quality.by_query, query_id, dict(runs))


@cached("Reading what was typed…", entries=128)
def typed_of(view: View, run_id: str, query_id: str) -> pl.DataFrame:
    """Read the perturbed siblings of a run for a query."""
    return one_query.typed(view.snapshot, view.scope, view.quality.by_query, run_id, query_id)


@cached()
def answer(
    view: View, names: tuple[str, ...], shown: int, total: int, _rows: pl.DataFrame
) -> words.QueryHead:
    """Summarise some queries; `shown` stands in for the rows in the cache key."""
    del shown
    pools = dict(view.table.select("name", "proc_pool").iter_rows())
    return words.answer(
        _rows,
        total,
        view.quality.by_query,
        *names,
        pool=pools[names[0]],
        alike=groups(view.snapshot, view.scope),
    )


@cached()
def slices(view: View, run_id: str, shown: int, _rows: pl.DataFrame) -> pl.DataFrame:
    """Average a stack on the queries of each tag, as a difference to 0, since nothing is compared."""
    del run_id, shown  # stand in for the rows
    alike = groups(view.snapshot, view.scope)
    rows = by_tag(_rows.with_columns(other=pl.lit(0.0), delta="score"), Setup(), alike)
    ends = [ends_of(_rows, tag, alike) for tag in rows["tag"]]
    low, high = (pl.Series([end[at] for end in ends], dtype=pl.Float64).fill_nan(None) for at in (0, 1))
    return rows.with_columns(low=low, high=high).sort("value_second", "tag")


def ends_of(rows: pl.DataFrame, tag: str, alike: Groups) -> tuple[float, float]:
    """Return the interval of a stack's mean on the queries with a tag, computed as on page Confidence."""
    part = rows.filter(pl.col("score").is_not_null(), pl.col("tags").list.contains(tag)).sort("query_id")
    labels = alike.labels(part["query_id"].to_list())
    low, high = mean_interval(part["score"].to_numpy(), "shares", clusters=labels)
    return float(low[0]), float(high[0])


@section(question="On which queries is a stack weak?")
def where_it_is_weak(view: View, ask: Ask) -> Blocks:
    """Yield the queries of a stack, alone or against a second one, and the rankings of one query."""
    there = reporting(view)  # their passages are unknown
    ranked = view.table.filter(pl.col("has_rankings") | pl.col("run_id").is_in(there))
    if ranked.is_empty():
        yield Lack("rankings", lacking(view.scope.collection_id, "rankings"))
        return
    run_id = ask.stack(view.table, view.decision, "Stack")
    names = dict(view.table.select("run_id", "name").iter_rows())
    if run_id is None and view.table["quality"].is_null().all():
        run_id = next(iter(ranked["run_id"]), None)  # no stack can be chosen, but any can be browsed
    if run_id is None or run_id not in ranked["run_id"]:
        within = ranked.filter(
            pl.col("run_id").is_in(view.decision.run_ids.filter(pl.Series(view.decision.feasible)).implode())
        )
        example = (ranked if within.is_empty() else within)["name"][0]
        yield Answer(*words.nothing(names.get(run_id or ""), example))
        return
    others = ranked.filter(pl.col("run_id") != run_id, pl.col("run_id").is_in(there) == (run_id in there))
    other = ask.stack(others, view.decision, "Against", "vs", usual="no second stack")
    runs = tuple((run, names[run]) for run in (run_id, other) if run is not None)
    table = queries(view, run_id, other)
    rows = ask_which(view, ask, table, against=other is not None)
    shown = int(rows["query_id"].hash().sum())
    said = answer(view, tuple(name for _, name in runs), shown, table.height, rows)
    yield Answer(said.sentence, said.details)
    if rows.is_empty():
        return
    yield Cards(said.cards)
    query_id = ask.listed(
        "Query", rows["query_id"], "q", first=OFFERED, about="Or click a bar, or tick a row of the table."
    )
    yield from every_query(view, runs, rows, query_id, said.sentence)
    row = rows.row(by_predicate=pl.col("query_id") == query_id, named=True)
    if run_id in there:
        yield from question(row)
        yield Text(words.NO_PASSAGES, "caption")
        return
    yield from one(view, ask, rankings(view, runs, query_id), row)
    perturbed = typed_of(view, run_id, query_id)
    if perturbed.height:
        yield from as_typed(view, ask, perturbed, run_id, query_id)


def ask_which(view: View, ask: Ask, table: pl.DataFrame, *, against: bool) -> pl.DataFrame:
    """Ask for tag, search and order, and apply them."""
    tags = ask.several("Tags", data.tags_of(table), "tag", usual=(), words="all", about=TAGS)
    said = ask.text("Find", "find", unsaid=FIND)
    sort = ask.listed("Order", data.SORTS_AGAINST if against else data.SORTS, "sort")
    matching = data.narrowed(table, tags, said)
    return data.ordered(matching, sort, higher_is_better=view.quality.higher_is_better)


def every_query(
    view: View, runs: tuple[tuple[str, str], ...], rows: pl.DataFrame, query_id: str, sentence: str
) -> Blocks:
    """Yield the queries as a chart and as a table, and the means of each tag."""
    names, against = tuple(name for _, name in runs), len(runs) > 1
    drawn = charts.bars(rows, view.quality.by_query, colours_of(view, names), selected=query_id)
    if drawn:
        less = words.bars(charts.BARS) if drawn.drawn.height < rows.height else ""
        yield Chart(drawn.figure, "queries", sentence, less, Click(drawn.drawn, {"q": "query_id"}))
    of, k = view.quality.by_query.name, view.quality.k
    known = not rows["judged"].is_null().all()  # unknown for a stack that was scored elsewhere
    row = rows["query_id"].head(LISTED).index_of(query_id)
    table = Table(
        rows,
        _listed(of, k, known=known, against=against),
        click=Click(rows, {"q": "query_id"}),
        ticked=[] if row is None else [row],
        height=318,
    )
    if against:
        yield table
        yield Way("compare", words.MEANS, settings=dict(zip(("stack", "vs"), names, strict=True)))
        return
    by_tags = slices(view, runs[0][0], int(rows["query_id"].hash().sum()), rows)
    shown = cols.Rows(
        "slices", "tag n", cols.score("value_second", "mean", f"Mean {of} of the stack on them."), "low high"
    )
    tags = Table(by_tags, shown, height=318)
    yield Tabs([Fold("Queries", [table]), Fold("By tag", [tags])])


def _listed(of: str, k: int, *, known: bool, against: bool) -> cols.Rows:
    """Return the table of queries, with a second stack, and with passages if they are known."""
    delta = cols.signed("delta", "difference", "Minus that of the second stack.")
    best = cols.score("best", "PROC", "The best ordering of the pool that the card names.")
    return cols.Rows(
        "queries",
        *("query_id text", cols.score("score", of, "– = no score, see note.")),
        *((delta, cols.score("other", "second", f"{of} of the second stack.")) if against else ()),
        *(
            (best, cols.count("holes", "unjudged", f"Unjudged passages among the first {k}."))
            if known
            else ()
        ),
        more=(
            *((cols.count("judged", help="Passages judged for this query."),) if known else ()),
            "tags note",
        ),
    )


def question(row: Row, judged: tuple[int, ...] = ()) -> Blocks:
    """Yield the question, and the facts about it."""
    yield Text(row["text"] or words.NO_QUESTION, "heading")
    yield Text(words.about(row, judged), "caption")


def one(view: View, ask: Ask, query: OneQuery, row: Row) -> Blocks:
    """Yield one query: the question, and two rankings side by side as readable passages."""
    judged = tuple(part.passages.height for part in query.judged)
    yield from question(row, judged)
    if query.filter:
        yield Text(f"The asker may see: {query.filter}", "caption")
    shown = ask.one("Passages", DEPTHS, "depth")
    depth = {"first 3": 3, "Top-K": view.quality.k}.get(shown, ROWS)
    alone, known = len(query.sides) == 1, any(judged)
    sides = [
        listed(side.name, words.ranked(side, view.quality.by_query),
               passages(side.ranking.head(depth), against=not alone, judged=known))
        for side in query.sides
    ]  # fmt: skip
    if alone and known:
        (side,) = query.sides
        best = words.best(side, view.quality.by_query)
        sides.append(listed("Best order of its pool", best, passages(side.oracle.head(depth), against=False)))
    yield from side_by_side(sides)
    yield Fold("The same as tables", tables(query), late=True)
    if not known:
        return
    yield Fold("Judged passages and their weights", weights(view, query), late=True)
    if not alone:
        yield Fold("What the best order of each pool would be", of_each(query, "oracle", depth), late=True)
    missed = " and ".join(str(side.missed.height) for side in query.sides)
    yield Fold(f"Relevant passages that the pool misses: {missed}", missing(query, depth), late=True)


def side_by_side(sides: list[Blocks]) -> Blocks:
    """Yield one side alone, or two side by side."""
    first, *others = sides
    if others:
        yield SideBySide(first, others[0])
    else:
        yield from first


def listed(name: str, said: str, shown: Passages) -> Blocks:
    """Yield passages below a title and a caption."""
    yield Text("", label=name)
    if said:
        yield Text(said, "caption")
    yield shown


def of_each(query: OneQuery, table: str, depth: int) -> Blocks:
    """Yield the passages of a table for every side."""
    return side_by_side(
        [listed(side.name, "", passages(getattr(side, table).head(depth), against=False))
         for side in query.sides]
    )  # fmt: skip


def missing(query: OneQuery, depth: int) -> Blocks:
    """Yield the relevant passages missing from the pools."""
    yield Text(words.MISSED, "caption")
    yield from of_each(query, "missed", depth)


def passages(
    rows: pl.DataFrame, *, against: bool, judged: bool = True, mark: Callable[[Row], str] | None = None
) -> Passages:
    """Return passages in full, or folded with the change of each."""
    read = [
        Passage(
            row["passage"],
            row["text"] or words.NO_TEXT,
            row.get("rank") or row.get("place"),
            row["grade"],
            mark(row) if mark else _outside(row),
            words.card(row, against=against),
        )
        for row in rows.iter_rows(named=True)
    ]
    return Passages(read, judged, folded=mark is not None)


def _outside(row: Row) -> str:
    """Return a passage's mark: whether the asker's filter forbids it."""
    return "forbidden" if row.get("outside") == OUTSIDE[FORBIDDEN] else ""


def tables(query: OneQuery) -> Blocks:
    """Yield every list of every side as a table."""
    for number, side in enumerate(query.sides, start=1):
        for name in ("ranking", "oracle", "missed"):
            rows = getattr(side, name)
            if rows.height:
                yield Text(f"{side.name}: {words.LISTS[name]}", "caption")
                known = [column for column in SHOWN.columns if column.name in rows.columns]
                yield Table(rows, cols.Rows(f"{name}_{number}", *known))


def weights(view: View, query: OneQuery) -> Blocks:
    """Yield the weights of the judged passages, and the share that the rankings collect."""
    shown = cols.Rows(
        "grades",
        "grade",
        cols.count("passages", help="Judged passages of this grade in the golden set."),
        cols.score("weight", help=query.weigher.info.formula),
    )
    for number, judged in enumerate(query.judged, start=1):  # several if stacks cut documents differently
        yield Table(judged.grades, shown.named(f"grades_{number}"))
    for side in query.sides:
        yield Text(words.gains(side, view.quality.k))
    yield Text(f"{query.weigher} = G_obs / G_ideal. {words.RARE}", "caption")


def as_typed(view: View, ask: Ask, rows: pl.DataFrame, run_id: str, query_id: str) -> Blocks:
    """Yield the effect of perturbing the query, and its ranking beside the original query's when opened."""
    yield Text("As people type it", "heading")
    yield Text(one_query.answer(rows, view.quality.by_query), "caption")
    name = ask.one("Perturbed by", rows["perturb"], "typed")
    yield Table(rows, TYPED)
    row = rows.row(by_predicate=pl.col("perturb") == name, named=True)
    if row["typed"]:
        yield Text(row["typed"], "caption")
    named = (run_id, "As it is"), (row["run_id"], name.capitalize())
    yield Fold("Both rankings", _side_by_side(view, named, query_id), late=True)


def _side_by_side(view: View, named: tuple[tuple[str, str], ...], query_id: str) -> Blocks:
    """Yield the query's ranking as it is and perturbed."""
    pair = rankings(view, named, query_id)
    judged = any(part.passages.height for part in pair.judged)
    clean, perturbed = pair.sides
    yield SideBySide(_typed(view, clean, judged, clean=True), _typed(view, perturbed, judged, clean=False))


def _typed(view: View, side: Side, judged: bool, *, clean: bool) -> Blocks:
    mark = partial(one_query.mark, k=view.quality.k, clean=clean)
    shown = passages(side.ranking.head(view.quality.k), against=False, judged=judged, mark=mark)
    return listed(side.name, words.ranked(side, view.quality.by_query), shown)


SECTIONS = (where_it_is_weak,)
