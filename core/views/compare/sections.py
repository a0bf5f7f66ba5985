"""Page Compare: how a few stacks differ in quality, latency and cost, and which differences are chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from core.analysis import paired as data
from core.analysis.cache import cached
from core.analysis.sides import SIDES, Closer, look_closer, sides, unpaired, usual
from core.analysis.stack_cost import priced_by
from core.analysis.workspace.choices import lacking
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.reported import computed, with_queries
from core.analysis.workspace.filters import per_query
from core.analysis.workspace.resolve import taken
from core.analysis.workspace.view import View
from core.decide.axes import COST, LATENCY, QUALITY, Axis, cost_axis
from core.errors import InputError
from core.number_format import ASSUMED_DIGITS
from core.stats.intervals import IntervalMethod
from core.stats.significance import CORRECTIONS, TESTS, TOLERANCE, Correction, Setup
from core.tables import Row
from core.views import columns as cols
from core.views import theme
from core.views.ask import Ask, named
from core.views.blocks import (
    Answer,
    Blocks,
    Card,
    Chart,
    Click,
    Comparison,
    Fold,
    Lack,
    SideBySide,
    Table,
    Text,
    Way,
    section,
)
from core.views.charts.queries import bars
from core.views.compare import changes, charts, words
from core.views.legend import colours_of
from core.views.text import cost_unit, count
from core.views.words.choice import costed

LETTERS = "ABCDE"
_BY_ITSELF = "{} end of the 95 % interval, of this comparison by itself."
NUMBERS = (
    "difference",
    cols.signed("low", help=_BY_ITSELF.format("Lower")),
    cols.signed("high", help=_BY_ITSELF.format("Upper")),
    "p_adjusted verdict n clusters",
)
MORE = ("wins ties losses superiority d_z detectable detectable_high needed needed_low needed_high p p_holm",)
PAIR = ("second", cols.text("first", "against", width=200))
_LAST = ("p_adjusted", "p_holm", "stack")  # Beyond 1280 pixels
_OWN = {"stack": cols.text("stack", "A", width=200), "value": cols.number("value", "A's", digits=4)}
SIDE = cols.Rows(
    "sides",
    *(_OWN.get(name, name) for name in sorted(SIDES, key=_LAST.__contains__) if name != "cluster_kind"),
)
OVERLAP = ("overlap", "tau")
SOURCES = cols.Rows("sources", "measure says value_second value_first", *NUMBERS[:3], "p n clusters")
FLIPS = cols.Rows(
    "flips",
    "query_id text outcome delta",
    *(cols.score("score"), cols.score("other")),
    more=(*OVERLAP, "tags note"),
)
FORBIDDEN = (
    cols.count("leaked", help="Of the stack's first K, what the asker's filter forbids."),
    cols.count("leaked_other"),
)
FILTERED = cols.Rows("flips", *FLIPS.columns, *FORBIDDEN, "filter", more=FLIPS.more)
HOW = {
    "each": "A with every other one, or every pair. More comparisons, stricter p-values.",
    "ci": "95 % interval over queries. Student: as on the other pages. percentile and BCa: by bootstrap, "
    "too narrow for few queries.",
    "test": "Paired, two-sided; randomisation assumes least. Wilcoxon and t, Benjamini–Hochberg found "
    "most where many systems were compared (Otero et al., arXiv:2501.03930).",
    "adjust": "Holm: any false alarm at most at the level. Benjamini–Hochberg: of what is called real at "
    "most that share is none; it finds more where many differ.",
    "tol": "A query whose two scores differ by no more is a tie. Wins and losses depend on it, the "
    "difference, its interval and its p-value do not.",
}
CLICK = "One mark per pair of stacks. Click a mark or tick a row to compare that pair above."


@cached("Comparing query by query…")
def one_change(view: View) -> pl.DataFrame:
    """Find the pairs of stacks that differ in one thing."""
    return changes.changes(view.table.filter("has_rankings"))


@cached("Comparing query by query…")
def effects(view: View, kind: str, setup: Setup) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare the pairs of a change."""
    pairs = changes.of_kind(one_change(view), kind)
    return changes.effects(view.snapshot, view.scope, view.quality, pairs, setup)


@cached("Comparing query by query…")
def compared(view: View, names: tuple[str, ...], against: data.Against, setup: Setup) -> pl.DataFrame:
    """Compare stacks query by query."""
    return data.compared(
        view.snapshot, view.scope, view.quality, view.table, names, against=against, setup=setup
    )


@cached("Comparing query by query…")
def looked_at(view: View, first: str, second: str, setup: Setup) -> Closer:
    """Return a close comparison of two stacks."""
    ids = dict(view.table.select("name", "run_id").iter_rows())
    two = ids[first], ids[second]
    return look_closer(view.snapshot, view.scope, view.quality, view.table, pair=two, setup=setup)


def ask_stacks(view: View, ask: Ask) -> list[str]:
    """Ask which stacks to compare; the usual stacks fill places left open."""
    best, names = usual(view.table, view.decision), dict(view.table.select("run_id", "name").iter_rows())
    one = names.get(ask.stack(view.table, view.decision, "A") or "", best[0])
    rest = view.table.filter(pl.col("name") != one)
    picked = ask.stack(rest, view.decision, "B", "vs", usual="runner-up")
    other = names.get(picked or "") or next(name for name in best if name != one)
    more, most = rest.filter(pl.col("name") != other), data.MOST - 2
    further = ask.stacks(
        more, view.decision, "also", usual=None, most=most, label="More", unsaid="add a third"
    )
    return [one, other, *further]


def pair(view: View, first: str, second: str) -> dict[str, str]:
    """Return the answers that compare two stacks, each given by name, run id or run label.

    Raises:
        UnknownNameError: If there is none in the workspace.
        InputError: If both are the same.
    """
    one, other = (named(view.table, taken(view.table, name)) for name in (first, second))
    if one == other:
        raise InputError(f"Both are {one}.", do="Name two stacks.")
    return {"stack": one, "vs": other}


def ask_setup(view: View, ask: Ask) -> tuple[Setup, data.Against]:
    """Ask how to compare."""
    choices: tuple[data.Against, ...] = ("the first", "every pair")
    methods: tuple[IntervalMethod, ...] = ("Student", "percentile", "BCa")
    corrections: tuple[Correction, ...] = tuple(CORRECTIONS)
    with ask.aside("How to compare"):
        against = ask.one("Compare", choices, "each", about=HOW["each"])
        method = ask.one("Interval", methods, "ci", about=HOW["ci"])
        test = ask.one("Test", TESTS, "test", about=HOW["test"])
        correction = ask.one("Correction", corrections, "adjust", about=HOW["adjust"])
        tolerance = ask.number("Tie up to", "tol", TOLERANCE, 0.0, 1.0, step=0.01, about=HOW["tol"])
    higher = view.quality.higher_is_better
    return Setup(
        method=method, tolerance=tolerance or 0.0, higher_is_better=higher, test=test, correction=correction
    ), against


@section(question="Is one stack really better than another?")
def stacks(view: View, ask: Ask) -> Blocks:
    """Yield quality, latency and cost of some stacks side by side, and which differences are significant."""
    if view.table.height < 2:
        yield Answer(words.NO_PAIR, words.BRING)
        yield Way("add", "Add results")
        return
    names = ask_stacks(view, ask)
    chosen = pl.concat([view.table.filter(name=name) for name in names])
    reporting = with_queries(view.snapshot, chosen, view.scope, view.quality)
    paired = chosen.filter(pl.col("run_id").is_in(reporting))
    reports = [] if computed(paired, view.scope, view.quality) else reporting
    obstacle, rows, closer = unpaired(chosen, view.scope, view.quality, reports), None, None
    setup = Setup()
    if not obstacle:
        setup, against = ask_setup(view, ask)
        rows = compared(view, tuple(paired["name"]), against, setup)
        if len(names) == 2:
            closer = looked_at(view, rows["first"][0], rows["second"][0], setup)
    yield from first_look(view, names, rows, same=closer is not None and closer.same)
    if rows is not None:
        letters = dict(zip(names, LETTERS, strict=False))
        yield from closely(view, ask, rows, setup, letters, ranked=not reports)
    elif view.table["has_rankings"].any() or view.paired:
        yield Text(f"{obstacle} {words.BRING}", "info")
    if not view.table["has_rankings"].any() and not reporting:
        yield Lack("rankings", lacking(view.scope.collection_id, "rankings"))


def first_look(view: View, names: Sequence[str], rows: pl.DataFrame | None, *, same: bool) -> Blocks:
    """Yield the answer, and quality, latency and cost of the stacks side by side."""
    band = dict(zip(view.decision.run_ids, view.decision.band, strict=True))
    jitter = float(max(band[run_id] for run_id in view.table.filter(pl.col("name").is_in(names))["run_id"]))
    alike = groups(view.snapshot, view.scope)
    gaps = sides(view.snapshot, view.table, names, rows, latency=view.latency, jitter=jitter, alike=alike)
    letters = dict(zip(names, LETTERS, strict=False))
    lettered = gaps.with_columns(pl.col("stack", "against").replace(letters))
    yield Answer(
        words.answer(lettered, view.quality, cost_of(view, gaps), same=same),
        " · ".join(
            f"{letter}: {theme.as_today(name, runs=name == view.running_name)}"
            for name, letter in letters.items()
        ),
        "" if rows is None else words.doubt(rows, view.quality),
    )
    yield Comparison(numbers(view, letters, gaps))
    cells = [words.in_units(row, cost_of(view, gaps)) for row in gaps.to_dicts()]
    other = "B" if len(names) == 2 else "other"
    headed = SIDE.headed({"against": other, "value_against": f"{other}'s"})
    yield Fold("As a table", [Table(gaps, headed, cells=cells)])


def cost_of(view: View, gaps: pl.DataFrame) -> Axis:
    """Return the cost axis in the page's unit, with digits that distinguish the compared values, if known."""
    told, said = gaps.filter(axis=COST.key), cost_unit(view.table)
    if said.digits > ASSUMED_DIGITS:
        said = said.beside(*told["value"].cast(pl.Float64), *told["value_against"].cast(pl.Float64))
    return cost_axis(said, per_correct=view.constraints.per_correct)


def numbers(
    view: View, letters: Mapping[str, str], gaps: pl.DataFrame
) -> list[tuple[str, list[Card], list[Card]]]:
    """Return quality, latency and cost of the stacks, and the first one's differences from the others."""
    cost = f"Cost of {costed(view.table)}"
    titles = {QUALITY: view.quality.name, LATENCY: view.latency.name, cost_of(view, gaps): cost}
    rows = {row["name"]: row for row in view.table.filter(pl.col("name").is_in(letters)).to_dicts()}
    boxes = []
    for axis, title in titles.items():
        own = [(letter, *words.shown(axis, rows[name], priced_by(view))) for name, letter in letters.items()]
        apart = [(f"A − {letters[row['against']]}", *words.apart(row, axis))
                 for row in gaps.filter(axis=axis.key).to_dicts()]  # fmt: skip
        boxes.append((title, own, apart))
    return boxes


def closely(
    view: View, ask: Ask, rows: pl.DataFrame, setup: Setup, letters: Mapping[str, str], *, ranked: bool
) -> Blocks:
    """Yield one pair by tag and by query, the tests of all pairs, and the effect of a single change."""
    labels = words.labels(rows)
    picked = ask.listed("Look closer at", labels, "pair") if len(labels) > 1 else labels[0]
    two = rows.row(labels.index(picked), named=True)
    closer = looked_at(view, two["first"], two["second"], setup)
    if two["n"]:
        mark = {str(view.running_name): f" {theme.TODAY}"}
        first, second = (f"{letters[two[side]]}{mark.get(two[side], '')}" for side in ("first", "second"))
        called = first, second
        yield from by_tag(view, closer, two, called)
        yield from flips(view, closer, two, setup, called)
    yield Fold("Tests, effect sizes, all pairs", statistics(view, rows, labels, setup), late=True)
    if ranked:
        yield Fold("Same passages, same order?", [Text(words.rankings(closer, view.quality.k))])
        yield Fold(
            "Does retrieval or ordering differ?",
            sources(closer, letters[two["first"]], letters[two["second"]]),
            late=True,
        )
        yield Fold("One change, every pair of stacks", change(view, ask, setup))


def by_tag(view: View, closer: Closer, two: Row, called: tuple[str, str]) -> Blocks:
    """Yield the comparison on the queries of each tag; `called` gives the letters of the pair."""
    yield Text("By tag", "heading")
    if closer.tags.is_empty():
        yield Text(words.NO_TAG, "caption")
        return
    labels = [f"{tag} (n = {n})" for tag, n in closer.tags.select("tag", "n").iter_rows()]
    looks = charts.looks_of(colours_of(view, (two["first"], two["second"])))
    title = f"Δ {view.quality.name} (right: {called[1]} higher)"
    forest = charts.forest(closer.tags, labels, title, looks=looks, short=True)
    yield Chart(forest, "tags", f"Difference in {view.quality.name} on the queries of each tag")
    title = f"By tag, as a table (p adjusted over {count(closer.tags.height, 'tag')})"
    yield Fold(title, [Table(closer.tags, cols.Rows("by_tag", "tag", *NUMBERS, more=MORE))])


def flips(view: View, closer: Closer, two: Row, setup: Setup, called: tuple[str, str]) -> Blocks:
    """Yield wins and losses by query, which open their query; `called` gives the letters of the pair."""
    rows, names = closer.queries, (two["first"], two["second"])
    colours = colours_of(view, names)
    yield Text("Query by query", "heading")
    yield Text(words.summary(rows, {**two, "second": called[1]}, setup.tolerance))
    scatter = charts.scatter(rows, colours, view.quality, setup.tolerance, called)
    left = Chart(scatter, "scatter", "Each query at its two scores", click=opens(rows, two))
    latter = {name: colours[name] for name in names[::-1]}
    ordered = rows.sort("delta", "query_id")
    drawn = bars(ordered, view.quality, latter, called[::-1], tolerance=setup.tolerance)
    right = drawn and Chart(
        drawn.figure, "deltas", "Difference of each query, sorted", click=opens(drawn.drawn, two)
    )
    yield SideBySide([left], [right] if right else [])
    yield Text(words.flips(rows.height, view.quality, called[1]), "caption")
    filtered = with_filters(view, rows, two)
    other, own = called
    heads = {"score": own, "other": other}
    heads |= {"leaked": f"{own}'s forbidden", "leaked_other": f"{other}'s forbidden"}
    of = FLIPS if filtered is None else FILTERED
    table = Table(rows if filtered is None else filtered, of.headed(heads))
    yield replace(table, click=opens(rows, two), height=213)


def with_filters(view: View, rows: pl.DataFrame, two: Row) -> pl.DataFrame | None:
    """Return queries with the filter of their asker and what each stack shows of the forbidden.

    Returns:
        With filter (null: the asker may see everything), leaked and leaked_other (null: no filter, not asked,
        or unknown); None if no question has a filter.
    """
    access = view.snapshot.access(view.scope.collection_id)
    if access is None:
        return None
    ids = dict(view.table.select("name", "run_id").iter_rows())
    own = {name: ids[two[side]] for name, side in (("leaked", "second"), ("leaked_other", "first"))}
    shown = per_query(view.snapshot, list(own.values()), view.quality.k)
    asked = {query: each.text for query, each in access.filters.items()}
    found = rows.with_columns(
        filter=pl.col("query_id").replace_strict(asked, default=None, return_dtype=pl.String)
    )
    for name, run_id in own.items():
        of_run = shown.filter(run_id=run_id).select("query_id", pl.col("leaked").cast(pl.Int64).alias(name))
        found = found.join(of_run, on="query_id", how="left", maintain_order="left")
    return found


def opens(rows: pl.DataFrame, two: Row) -> Click:
    """Make a click open its query on page Queries."""
    return Click(rows, {"q": "query_id"}, {"stack": two["second"], "vs": two["first"]}, page="queries")


def statistics(view: View, rows: pl.DataFrame, labels: Sequence[str], setup: Setup) -> Blocks:
    """Yield tests and effect sizes of all comparisons."""
    yield Text(words.how(rows, setup))
    title = f"difference in {view.quality.name}"
    click = Click(rows.with_columns(label=pl.Series(labels)), {"pair": "label"})
    marked = words.labels(rows, today=view.running_name)
    yield Chart(charts.forest(rows, marked, title), "differences", f"Every {title}", click=click)
    yield Text(words.legend(view.quality), "caption")
    yield Table(rows, cols.Rows("differences", *PAIR, *NUMBERS, more=(*MORE, "if_judged", *OVERLAP)))


def sources(closer: Closer, first: str, second: str) -> Blocks:
    """Yield whether the difference of the pair called by these letters comes from retrieval or ordering."""
    if closer.sources.is_empty():
        yield Text(words.NO_CEILING, "caption")
        return
    if warned := words.pools(closer):
        yield Text(warned, "caption")
    yield Table(closer.sources, SOURCES.headed({"value_second": second, "value_first": first}))


def change(view: View, ask: Ask, setup: Setup) -> Blocks:
    """Yield the effect of one change on every pair of stacks that differ in nothing else."""
    kinds = changes.kinds(one_change(view))
    if not kinds:
        yield Text(words.NO_CHANGE, "caption")
        return
    kind = ask.listed("Change", kinds, "change", about=words.CHANGE)
    rows, whole = effects(view, kind, setup)
    yield Text(words.change(kind, rows, whole, view.quality, setup.correction))
    title = f"difference in {view.quality.name}"
    labels = words.labels(rows, "before", "after", today=view.running_name)
    forest = charts.forest(rows, labels, title)
    click = Click(rows, {"stack": "after", "vs": "before"}, {"also": []})
    yield Chart(forest, "change", f"{kind}: {title} of every pair", CLICK, click=click)
    yield Table(rows, cols.Rows("change", "before after", *NUMBERS, more=MORE), click=click)


SECTIONS = (stacks,)
