"""Page Golden sets: whether the judgements support the scores, and whether judges agree."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.analysis.between import begun, judged_within
from core.analysis.cache import cached
from core.analysis.deciding import Contest, draw
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.telling import several_judges
from core.analysis.workspace.view import View
from core.golden.book import Book, Queue
from core.golden.by_hand import BETWEEN
from core.stats.judges import Agreement
from core.store import Snapshot
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Tabs, Text, Way, section
from core.views.golden import charts, data, judges, soundness
from core.views.golden.data import AnchoredView, GoldenContent
from core.views.golden.judging import TWO_JUDGES, propose
from core.views.golden.people import do_people_agree
from core.views.words.choice import undecided
from core.views.words.near import overturned

NOTHING = ("No judgements yet.", "Generate them with an LLM, judge by hand, or import qrels.")
PART = (
    "The grades are anchored to characters of the documents. Every chunking has the grades that follow "
    "for its passages; they score its stacks."
)
HOLES = (
    "A passage that nobody judged counts as 0. The line reaches from all of them being of grade 1 to "
    "all being of grade 5. Where lines overlap, judging more passages could change the order."
)
BIAS = (
    "Leave one system out: a stack's score without the judgements of passages that no stack of other "
    "retrievers ranks. A large bias says that a new system, which nobody judged for, would look worse than "
    "it is."
)
JUDGES = "Each judge is a golden set of its own; grades are compared after their mapping to 1-5."
parts = cached()(data.parts)
judged = cached("Reading the judgements…")(data.judged)
pool_bias = cached("Leaving out one system at a time…")(data.pool_bias)
every_query = cached()(data.every_query)
MIX = cols.Rows(
    "grade_mix",
    cols.text("grade"),
    cols.count("total", "judged"),
    cols.share("share"),
    "present",
    more="prevalence median mean most",
)
QUERIES = cols.Rows(
    "grades_per_query",
    "query_id judged",
    *(cols.count(f"grade {grade}") for grade in soundness.GRADES),
    cols.share("prevalence", "4 or 5", "Share of its judged passages of grade 4 or 5."),
    "unjudged fallback",
    more="apart differ",
)
APART = cols.Rows(
    "copies_graded_apart",
    "query_id",
    cols.Column("passages", "copies", form="list"),
    "grades",
    cols.count("spread"),
)
OTHERS = cols.Rows("other_golden_sets", "query_id passage_id grade other_set other_grade")
MET = cols.Rows(
    "confusion",
    cols.count("grade", "its grade"),
    cols.count("n", help="Passages that both judged."),
    *(cols.text(f"to_{grade}", f"the other says {grade}") for grade in range(1, 6)),
)
PAIRS = cols.Rows(
    "judges_agree",
    cols.text("first", "judge"),
    cols.text("second", "and judge"),
    cols.count("n", "passages", "Judged by both."),
    cols.text("grades", "on grades", "That either gave them: kappa on two grades is no kappa on five."),
    "same kappa quadratic",
    more=(cols.count("queries"), "kappa_low kappa_high quadratic_low quadratic_high"),
)


def begin(book: Book, snapshot: Snapshot, scope: Scope, contest: Contest) -> Queue:
    """Return the queue of this contest; record it if there is none, for a judge to take.

    Raises:
        InputError: If the two stacks show the same passages.
    """
    if (known := begun(book, snapshot, scope, contest)) is not None:
        return known
    rows = draw(snapshot, contest)
    within = judged_within(snapshot, scope, contest)
    return propose(book, within, rows, sampling=BETWEEN, seed=contest.seed)


@cached("Comparing the judges…")
def compared(
    snapshot: Snapshot, names: tuple[str, ...]
) -> tuple[judges.ComparedJudges, pl.DataFrame, Agreement, str]:
    """Return some golden sets side by side, the pairwise agreement, and the overall one."""
    judged = judges.judged(snapshot, names)
    return judged, judges.agreement(judged), judges.alpha(judged), judges.all_agree(judged)


@section("soundness", "Are enough passages judged for the choice?")
def is_sound(view: View, ask: Ask) -> Blocks:
    """Yield what the judgements support."""
    offered = {part.name: part for part in parts(view.snapshot, view.scope)}
    part = offered[ask.listed("Grades of", offered, "part", about=PART)] if offered else None
    content = judged(view.snapshot, view.scope, part)
    if content is None:
        yield Answer(*NOTHING)
        yield Way("add", "Import judgements")
        return
    doubt = overturned(view.table, view.decision, view.quality)
    yield Answer(answer(content, doubt, view.table, view.quality), caveats=caveats(content))
    yield Cards(cards(content))
    yield Tabs((
        Fold("Label mix", label_mix(content)),
        Fold("Unjudged", unjudged(view)),
        Fold("Pool bias", bias(view)),
        Fold("Conflicts", conflicts(content)),
        Fold("Queries", queries(view, ask, part)),
    ))  # fmt: skip


def label_mix(judged: GoldenContent) -> Blocks:
    """Yield a box of passages per query for each grade, and the mix over all queries."""
    yield Chart(charts.mix_figure(judged), "grades", "Judged passages per query, by grade")
    yield Table(judged.mix, MIX)


def unjudged(view: View) -> Blocks:
    """Yield the bounds that unjudged passages put on every stack's score."""
    bounds = data.with_bounds(view.table, higher_is_better=view.quality.higher_is_better)
    if bounds.is_empty():
        yield Text(f"No stack here has rankings that {view.quality.name} could be computed from.", "info")
        return
    chosen = None if view.decision.chosen is None else view.table["name"][view.decision.chosen]
    yield Text(HOLES, "caption")
    figure = charts.bounds_figure(bounds, view.quality, chosen)
    yield Chart(figure, "holes", "Scores and their bounds if all were judged")
    shown = cols.Rows("holes", "name", cols.score("quality", view.quality.name), "hole_low hole_high hole n")
    yield Table(bounds, shown)


def bias(view: View) -> Blocks:
    """Yield how much every run loses without the judgements that only it contributed."""
    left_out = pool_bias(view.snapshot, view.scope, view.quality)
    if left_out.is_empty():
        most = soundness.MAX_RUNS
        yield Text(f"Leaving a run out needs 2 to {most} runs with rankings; choose some runs.", "info")
        return
    yield Text(BIAS, "caption")
    shown = cols.Rows("pool_bias", "name unique", cols.score("score", view.quality.name), "without bias")
    yield Table(left_out, shown)


def conflicts(judged: GoldenContent) -> Blocks:
    """Yield duplicate passages with different grades, and golden sets that disagree."""
    yield Text(copies(judged))
    if judged.apart.height:
        yield Table(judged.apart, APART)
    yield Text(others(judged))
    if judged.disagreements.height:
        yield Table(judged.disagreements, OTHERS)


def queries(view: View, ask: Ask, part: AnchoredView | None) -> Blocks:
    """Yield every query with its weaknesses, or the queries with one weakness."""
    rows = every_query(view.snapshot, view.scope, view.quality, part)
    kept = rows.filter(data.FILTERS[ask.one("Queries with", data.FILTERS, "weak")])
    yield Text(f"{kept.height:,} of {rows.height:,} queries", "caption")
    fallback = pl.when("fallback").then(pl.lit("fallback"))
    yield Table(kept.with_columns(fallback=fallback), QUERIES)


def judges_of(view: View, picked: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the golden sets to compare: the picked ones or else the first; fewer than two if fewer exist."""
    known = view.snapshot.golden_sets(view.scope.collection_id).filter(pl.col("judgements") > 0)
    names = known["golden_set_id"].to_list()
    there = [name for name in picked if name in names]
    return tuple(there if len(there) > 1 else names)


@section("judges", "How well do the judges agree, and whose grades should count?", several_judges)
def do_judges_agree(view: View, ask: Ask) -> Blocks:
    """Yield the agreement of the chosen golden sets, overall and pairwise."""
    names = judges_of(view)
    if len(names) < 2:
        yield Answer(*TWO_JUDGES)
        return
    most = judges.MOST
    words = f"all {min(len(names), most)}"
    picked = ask.several(
        "Judges (golden sets)", names, "sets", usual=names[:most], words=words, most=most, about=JUDGES
    )
    judged, pairs, overall, fleiss = compared(view.snapshot, judges_of(view, picked)[:most])
    caveats = {"Fleiss' kappa": fleiss, "how to read": judges.KAPPA}
    labels = [f"{first} and {second}" for first, second in pairs.select("first", "second").iter_rows()]
    label = ask.listed("Grade by grade", labels, "judges") if len(labels) > 1 else labels[0]
    row = pairs.row(labels.index(label), named=True)
    places = judges.rows_first(judged, *(judged.names.index(row[side]) for side in ("first", "second")))
    met = judges.met(judged, *places)
    leaning = judges.leaning(met, judged.names[places[1]])
    said = judges.heading(pairs, overall, met)
    yield Answer(said, f"{judges.alike(pairs, overall)} {leaning}".strip(), caveats=caveats)
    yield Chart(charts.pair_figure(judged, *places), "judges", f"Grades of {label}, met with one another")
    yield Text(judges.met_words(*(judged.names[place] for place in places)), "caption")
    yield Table(judges.met_shown(met), MET, whole=met)
    pairwise = Table(pairs, PAIRS)
    yield Fold("Agreement of the pair", [pairwise]) if pairs.height == 1 else pairwise


SECTIONS = (is_sound, do_judges_agree, do_people_agree)


def answer(judged: GoldenContent, overturned: str | None, table: pl.DataFrame, quality: Quality) -> str:
    """Say whether judging more passages could change the decision; takes the result of `near.overturned`."""
    if reason := undecided(table):
        return f"{_judgements(judged)}: {reason[:1].lower()}{reason[1:]}"
    if overturned or table["hole_high"].count():
        hole = table.select(pl.median("hole")).item()
        gaps = f"{text.percent(hole)} of Top-{quality.k} is unjudged"
        sample = f"({quality.name}, {text.sample(table['n'].drop_nulls().max())})"
        if overturned:
            return f"{gaps} and could change the choice {sample}."
        if not table["hole"].max():
            stacks = text.count(table["hole"].count(), "stack")
            return f"Every passage in the Top-{quality.k} of {stacks} is judged {sample}."
        return f"{gaps}, yet the choice would stand {sample}."
    return f"{_judgements(judged)} carry the scores here."


def _judgements(judged: GoldenContent) -> str:
    return f"{_judged(judged)} of {text.count(judged.queries.height, 'query')}"


def _judged(judged: GoldenContent) -> str:
    words = "judgement" if judged.unit == "judged passage" else "graded span"
    return text.count(judged.mix["total"][-1], words)


def cards(judged: GoldenContent) -> tuple[tuple[str, str, str], ...]:
    """Return how much was judged, and how much of it is good: label, number, meaning."""
    mix = {row["grade"]: row for row in judged.mix.iter_rows(named=True)}
    return (
        ("Judged per query", f"{mix['all']['mean']:.1f}", _judgements(judged)),
        ("Relevant (grade 4 or 5)", text.percent(mix["4+5"]["share"]), f"of {_judged(judged)}"),
    )


def caveats(judged: GoldenContent) -> dict[str, str]:
    """Return weaknesses of the evidence, keyed by the words of a chip."""
    counts = (
        ("queries without grade 5", int(judged.queries["fallback"].sum()),
         "query has no passage of grade 5: RA-nWG weighs its grades 3 and 4 as set, not by rarity.",
         "queries have no passage of grade 5: RA-nWG weighs their grades 3 and 4 as set, not by rarity."),
        ("copies with unequal grades", judged.apart.height,
         "time, copies of one passage were graded differently.",
         "times, copies of one passage were graded differently."),
        ("other golden sets", judged.disagreements.height, "judgement differs from another golden set.",
         "judgements differ from another golden set."),
    )  # fmt: skip
    return {label: text.count(number, one, many) for label, number, one, many in counts if number}


def summary(judged: GoldenContent | None, table: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """State in two sentences the number of judgements and their weaknesses; for files without cards."""
    if judged is None:
        return NOTHING
    holes = table.select(pl.median("hole")).item()
    unjudged = (
        f"; for {quality.name}, {text.percent(holes)} of the Top-{quality.k} is unjudged in the median stack"
        if holes is not None
        else ""
    )
    sentence = f"{_judgements(judged)}, {judged.mix['mean'][-1]:.1f} per query{unjudged}."
    return sentence, " ".join(filter(None, caveats(judged).values()))


def copies(judged: GoldenContent) -> str:
    """State how many passages duplicate another one's text, and whether these have equal grades."""
    apart = (
        "graded differently for one query:"
        if judged.apart.height
        else "no query has them graded differently."
    )
    return f"{text.count(judged.copies.height, 'copy', 'copies')} of passages in the corpus; {apart}"


def others(judged: GoldenContent) -> str:
    """Say whether another golden set of the collection grades a passage differently."""
    if judged.disagreements.is_empty():
        return "No other golden set of this workspace grades a passage differently."
    return "Grades that another golden set of this workspace gives differently:"
