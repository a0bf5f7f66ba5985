"""Page Readers: the value of the passages to the answer, by reader and by passages sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.readers import EVERY, WITH, WITHOUT, AnyAll
from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.telling import answers_by_depth, real_answers, scored_by
from core.analysis.workspace.view import View
from core.importers.formats.published.readers import RAGGED
from core.readers.curves import CURVE
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.legend import colours_of
from core.views.readers import charts, dose, gains, generators, judges, refusing, scores, sources
from core.views.readers.charts import points
from core.views.readers.dose import dose_of_distractors
from core.views.readers.scores import (
    CURVE_COLUMNS,
    MADE_UP,
    NO_CURVE,
    POINTS,
    SENT,
    found_in,
    made_up,
    no_curve,
    read,
)
from core.views.text import MINUS, NOT_APPLICABLE, cost_unit
from core.views.words.made_up import folded, nothing

AGAINST = {"passages": "k", "tokens": "tokens", "dollars": "usd_per_1k"}
"""The axis for the score, as offered to users, and its column."""
NO_JOINT = "No correct answers from a known number of passages yet."
NO_REBEL = "No judge has scored both similarity and precision yet."
TO_REBEL = (
    'Have readers answer with `judge = { model = "…", scorers = ["similarity", "precision"] }` under '
    "`[reader]`, on runs with and without a reranker; the judge should be another model than the reader."
)
REBEL = (
    "Quality is similarity × precision; bars are 95 % intervals over questions, boxes the passes. Lines are "
    "least squares through the methods that know relevance alone, and through none, one and two turns."
)
GENERATORS = (
    "A row is a model with its prompt and temperature; a criterion is the mean of its judges, in points, "
    "and the total their sum. Differences have an interval where single answers are known."
)
PARTS = (
    "Questions with a gold passage in Top(k) (grade 4 or 5), and without, at every k; the closed book is "
    "over the same questions (RAGGED §6). A tool that takes gold passages from deeper has some without too."
)
NO_PARTS = "Which passages are gold is not known here: that takes rankings and judgements."
PUBLISHED = "The paper's tables 1, 4, 5, 7, 8 and 9, and what follows from its scores"
_MOST = 6  # Maximum curves in a panel if none were picked: as many as there are colours
_BY = {"stack": ("name", "label"), "reader": ("label", "name")}
"""The dimension with a panel per value: its column, and the column of the curves in a panel."""
_FIGURES = {"best score": "best", "k*": "k_star", "stability (RSS)": "rss", "scaling (RSC)": "rsc"}
_NEEDS: Mapping[str, AnyAll] = {"at least one": "any", "all": "all"}

joint_table = cached("Pricing the answers…", entries=16)(dose.joint_table)
CRITERION = "Mean of its judges, over the cases that all of them scored."
PROMPT = cols.text("prompt")  # its name, not its tokens
PART = cols.Rows("parts", "part", *CURVE_COLUMNS)
DEPTHS = cols.Rows(
    "depths",
    "label name best k_star gain rss rsc shape wanted",
    more=(
        *(cols.points(end, f"best, {end}", "95 % interval over questions.") for end in cols.ENDS),
        "queries closed_book gain_low gain_high k_last rsc_before_stop k_last_before_stop start_k send",
        *("rss_fewer rss_more rss_reason truncated", PROMPT, "temperature"),
    ),
)
PRINTED = cols.Rows(
    "published",
    "dataset retriever reader scorer",
    cols.count("k_star", "k*", "Table 7."),
    "closed_book_gain gain_mean better_than_closed_book over_bm25 recall_at_k_star rss rsc",
    more="over_bm25_mean rsc_before_stop shape source",
)
JOINT = cols.Rows(
    "joint",
    "name",
    SENT,
    "usd_per_1k_correct correct",
    cols.score("score", "mean score"),
    cols.usd("usd_per_1k", "$ / 1k answered", "Retrieval and the reader, per 1,000 queries."),
    cols.score("retrieval", help="The measure of the limits, at k."),
    cols.count("n", help="Answers."),
    more="usd_low usd_high correct_low correct_high reader scorer missing",
)
CHEAPEST = cols.Rows(
    "cheapest_k", *JOINT.columns, cols.count("k_target", "k for the target"), more=JOINT.more
)
LABEL = cols.text("label", "generator", width=260)
WHO = ("reader", PROMPT, "temperature", SENT, "mode", "name")
TOTAL = ("total", cols.signed("difference", help="To the baseline.", digits=1))
MORE_TOTAL = (LABEL, "difference_low", "difference_high", "difference_n")
CELLS = cols.Rows(
    "generator_cells",
    LABEL,
    "criterion judge",
    cols.points("value", "score", "Points 0 to 100."),
    "low high",
    cols.count("queries", "n", "Cases."),
)
RERANKED = cols.Rows(
    "rerankers",
    "method name",
    cols.number("quality", help="Similarity × precision, 0 to 5."),
    "similarity",
    cols.score("precision", help="Share of the passages sent that help, by a judge."),
    "speed queries",
    more=("similarity_low similarity_high precision_low precision_high passes reader", PROMPT, "temperature"),
)


@cached("Scoring both parts…", entries=16)
def parts_of(view: View, scorer: str, voice: str, run_id: str, need: AnyAll) -> pl.DataFrame:
    """Score a stack's answers separately by whether gold passages are in Top(k)."""
    answered = data.of_voice(found_in(view), scorer, voice)
    return data.slice_table(view.snapshot, view.scope, answered, scorer=scorer, run_id=run_id, need=need)


@cached(entries=16)
def criteria(view: View) -> dict[str, tuple[str, ...]]:
    """Return the criteria that score the answers, with the judges of each."""
    return generators.criteria(view.snapshot, view.scope)


@cached("Scoring the generators…", entries=16)
def cells(view: View, chosen: tuple[str, ...]) -> pl.DataFrame:
    """Return every generator by criterion and judge."""
    return generators.cells(view.snapshot, view.scope, chosen)


@cached("Comparing the generators…", entries=32)
def compared(view: View, chosen: tuple[str, ...], baseline: str) -> pl.DataFrame:
    """Return a row per generator, beside a baseline."""
    rows = cells(view, chosen)
    gaps = generators.differences(view.snapshot, view.scope, rows, baseline)
    return generators.generator_table(rows, gaps)


@cached("Reading what judges scored…", entries=16)
def reranked(view: View) -> pl.DataFrame:
    """Return every stack, reader and k with similarity and precision judged."""
    return generators.rebel_table(view.snapshot, view.scope)


def _several(ask: Ask, label: str, key: str, ranked: pl.Series) -> list[str]:
    names = ranked.unique(maintain_order=True).to_list()
    words = f"the best {_MOST}" if len(names) > _MOST else "all"
    return ask.several(label, names, key, usual=names[:_MOST], words=words)


@section("by depth", "How many passages should the reader get?")
def by_depth(view: View, ask: Ask) -> Blocks:
    """Yield the score against passages sent, by reader and stack."""
    reading = yield from read(view, ask)
    if reading is None:
        return
    usual = "stack" if reading.depths["label"].n_unique() > 1 else "reader"
    names = _several(ask, "Stacks", "answered", reading.depths["name"])
    labels = _several(ask, "Readers", "readers", reading.depths["label"])
    chosen = pl.col("name").is_in(names) & pl.col("label").is_in(labels)
    rows, depths = reading.rows.filter(chosen), reading.depths.filter(chosen)
    if depths.is_empty():
        yield Answer(NO_CURVE)
        return
    top = rows.filter(pl.col("mode") == "top_k")
    known = [title for title, name in AGAINST.items() if top[name].count() > 1]
    x = AGAINST[ask.one("Against", known or ["passages"], "rdx")]
    panel, line = _BY[ask.one("A panel per", _BY, "rdby", usual=usual)]
    sentence, answered = answer(depths, reading.scorer), found_in(view)
    scored = data.of_voice(answered, reading.scorer, reading.voice).scores.filter(scorer=reading.scorer)
    more = {
        "several judges": judged(scored),
        "graded by people too": by_hand(data.voices(answered, reading.scorer), reading.voice),
        "questions differ by k": selection(rows),
    }
    yield Answer(sentence, caveats=caveats(depths, *reading.rules) | more)
    yield Cards(cards(depths.row(0, named=True), reading.rules.delta, reading.rules.epsilon))
    lines = depths[line].unique().sort().to_list()
    colours = colours_of(view, lines) if line == "name" else theme.colours_for(lines)
    unit = cost_unit(view.table)
    drawn = charts.by_depth(rows, depths, colours, panel=panel, line=line, x=x, said=unit)
    yield Chart(drawn, "readers", sentence)
    yield Table(depths, DEPTHS)
    yield Fold("Every point", [Table(rows, POINTS)])
    if not answered.runs["has_rankings"].any():
        return
    if depths["wanted"].count():
        yield Way("run", "Run the k that RSS needs", "readers")
    if view.scope.golden_set_id is not None:
        yield Way("queries", "Acc|Hit, query by query", settings={"m": "Acc|Hit"})
        yield Way("measures", "Which measure foretells the answers", "predicting answers")


@section(
    "with and without gold",
    "How much does the right passage help, and what do wrong ones harm?",
    answers_by_depth,
)
def with_and_without_gold(view: View, ask: Ask) -> Blocks:
    """Yield the value of gold passages to a reader on a stack, and its scores without any."""
    reading = yield from read(view, ask, ruled=False)
    if reading is None:
        return
    name = ask.listed("Stack", reading.depths["name"].unique(maintain_order=True).to_list(), "read")
    own = reading.depths.filter(pl.col("name") == name)
    label = ask.listed("Reader", own["label"].to_list(), "reader")
    need = _NEEDS[ask.one("Gold passages in Top(k)", _NEEDS, "gold")]
    rows = parts_of(view, reading.scorer, reading.voice, str(own["run_id"][0]), need).filter(
        pl.col("label") == label
    )
    parts, (sentence, at) = rows["part"].unique(maintain_order=True).to_list(), of_parts(rows)
    one_only = NO_PARTS if len(parts) < 2 else ""
    yield Answer(sentence, at, caveats={"how to read": PARTS, "one part only": one_only})
    yield Chart(charts.by_part(rows, parts), "parts", sentence)
    yield Table(rows, PART)


@section("matrix", "Which reader on which stack answers best?", answers_by_depth)
def matrix(view: View, ask: Ask) -> Blocks:
    """Yield a figure of every reader on every stack."""
    reading = yield from read(view, ask)
    if reading is None:
        return
    figure = _FIGURES[ask.one("Figure", _FIGURES, "fig")]
    sentence, spread = of_matrix(reading.depths, reading.scorer)
    yield Answer(sentence, spread, caveats=caveats(reading.depths, *reading.rules))
    yield Chart(charts.matrix(reading.depths, figure), "matrix", sentence)
    yield Table(reading.depths, DEPTHS.named("matrix"))
    if view.scope.collection_id == RAGGED:
        yield Fold(PUBLISHED, [Table(scores.published(), PRINTED)])


@section("joint k", "At which number of passages is a correct answer cheapest?", answers_by_depth)
def joint_k(view: View, ask: Ask) -> Blocks:
    """Yield at which k a correct answer costs least."""
    table = joint_table(view.snapshot, view.scope, view.quality, view.book)
    least = view.scope.answering.least
    if table.is_empty():
        yield from no_curve(NO_JOINT) if found_in(view).scorers else nothing(view)
        return
    target = ask.number("k for a mean score of", "aim", 0.5, 0.0, 1.0, step=0.05, width=220) or 0.0
    rows = dose.best_rows(table, target)
    said = cost_unit(view.table)
    sentence, by = dose.dollars_answer(rows, said)
    yield Answer(sentence, by, caveats={"what counts": dose.counted(rows, least)})
    yield Cards(dose.dollars_cards(rows.row(0, named=True), target, said))
    # The first few stacks with distinct answers
    unlike = rows.unique(("k", "correct", "score", "retrieval"), keep="first", maintain_order=True)
    there = view.table.filter(pl.col("name").is_in(rows["name"].to_list()))
    usual = unlike["name"].head(3).to_list()
    names = ask.stacks(there, view.decision, "answered", usual=usual, most=6)
    drawn = table.filter(pl.col("name").is_in(names))
    yield Chart(dose.joint_chart(drawn, colours_of(view, names), view.quality, said), "joint", sentence)
    yield Table(rows, CHEAPEST)
    yield Fold("Every k", [Table(table, JOINT)])


@section("generators", "Which model, prompt and temperature answers best?", real_answers)
def side_by_side(view: View, ask: Ask) -> Blocks:
    """Yield models with their prompts and temperatures by criterion and judge."""
    known = criteria(view)
    if not known:
        yield from nothing(view)
        return
    usual = generators.usual(known)
    chosen = tuple(ask.several("Criteria", known, "crit", usual=usual, words=f"all {len(usual)}"))
    rows = cells(view, chosen)
    baseline = ask.listed("Baseline", generators.baselines(view.snapshot, view.scope, rows), "genbase")
    table = compared(view, chosen, baseline)
    itself = pl.when(pl.col("label") != baseline).then(pl.col("difference"))  # not "+0.0" for itself
    shown = table.with_columns(pl.col("mode").replace(data.SENT), difference=itself)
    means = [cols.points(generators.mean_of(name), name.replace("_", " "), CRITERION) for name in chosen]
    judges = [
        cols.text(f"{name}, {judge}", f"{name.replace('_', ' ')}, {judge}", "95 % interval.", width=150)
        for name in chosen
        for judge in known[name]
    ]
    few = cols.count("n", help="Cases of the criterion that has fewest.")
    who = [column for column in cols.columns(WHO) if table[column.name].count()]
    of = cols.Rows("generators", *who, *TOTAL, *means, few, more=(*MORE_TOTAL, *judges))
    beside = Table(shown, of, whole=table)
    if set(table["reader"]) == {TRIAL}:
        yield from folded(view, MADE_UP, beside)
        return
    chips = {"how to read": GENERATORS, **made_up(table["reader"])}
    yield Answer(*generators.generators_answer(table, chosen, baseline), caveats=chips)
    yield beside
    yield Fold("Every judge", [Table(rows, CELLS)])


@section(
    "rerankers",
    "Do answers get better with a reranker, and how much slower?",
    scored_by(generators.SIMILARITY, generators.PRECISION),
)
def what_rerankers_do(view: View, ask: Ask) -> Blocks:
    """Yield the effect of rerankers on answers, and their speed."""
    table = reranked(view)
    if table.is_empty():
        yield Answer(NO_REBEL)
        yield Text(TO_REBEL, "guide")
        yield Way("run", "Run")
        return
    ks = [str(k) for k in table["k"].unique().sort()]
    rows = table.filter(pl.col("k") == int(ask.one("Passages sent", ks, "rbk", usual=ks[-1])))
    sentence, which = generators.rerankers_answer(rows)
    yield Answer(sentence, which, caveats={"how to read": REBEL})
    yield Chart(generators.rebel_chart(rows), "rerankers", sentence)
    passes = pl.col("passes").list.len()
    shown, whole = (frame.with_columns(passes=passes) for frame in (rows, table))
    yield Table(shown, RERANKED, whole=whole)


SECTIONS = (
    by_depth,
    gains.what_retrieval_adds,
    with_and_without_gold,
    dose_of_distractors,
    matrix,
    joint_k,
    side_by_side,
    judges.judges,
    sources.sources,
    refusing.refusing,
    what_rerankers_do,
)


def gain(row: Mapping[str, Any]) -> str:
    """Format the gain of passages over the closed book."""
    return NOT_APPLICABLE if row["gain"] is None else text.signed(row["gain"], points)


def interval(row: Mapping[str, Any], low: str = "low", high: str = "high") -> str:
    """Format the interval of a figure, if it has one."""
    return "" if row[low] is None or row[high] is None else points(row[low], row[high]).strip()


def answer(depths: pl.DataFrame, scorer: str) -> str:
    """Say which reader answers best, and from how many passages of which stack."""
    best = depths.row(0, named=True)
    passages, score = text.count(best["k_star"], "passage"), f"{scorer} {points(best['best'])}"
    near = f"; {best['send']:,} nearly match" if best["send"] != best["k_star"] else ""
    return f"{best['label']} answers best from {passages} of {best['name']}, {score}{near}."


def cards(row: Mapping[str, Any], delta: float, epsilon: float) -> list[tuple[str, str, str]]:
    """Return the numbers of the best curve."""
    lacking = f"run k = {row['wanted']} for it" if row["wanted"] else f"unknown: {row['rss_reason']}"
    worst = f"{sides(row)} worst of k* ± {delta:g}, as share of the best".strip()
    stable = lacking if row["rss"] is None else worst
    paired = "no closed-book answers" if row["gain"] is None else "at k*"
    best = (interval(row), text.sample(row["queries"]))
    gained = (interval(row, "gain_low", "gain_high"), paired)
    return [
        ("Score at k*", points(row["best"]), " ".join(filter(None, best))),
        ("Gain over closed book", gain(row), " ".join(filter(None, gained))),
        ("Stability (RSS)", NOT_APPLICABLE if row["rss"] is None else f"{row['rss']:.3f}", stable),
        ("Passages to send", f"k = {row['send']}", f"within {epsilon:g} points of k* = {row['k_star']}"),
    ]


def sides(row: Mapping[str, Any]) -> str:
    """Format RSS on either side of k*: with fewer passages, and with more; "" if only one side is known."""
    shares = {words: row[f"rss_{words}"] for words in ("fewer", "more")}
    said = ", ".join(f"{words} {share:.3f}" for words, share in shares.items() if share is not None)
    return f"{said};" if None not in shares.values() else ""


def caveats(depths: pl.DataFrame, delta: float, epsilon: float, plateau: float) -> dict[str, str]:
    """Return the rules behind the figures, what was cut, and what to run."""
    wanted = [
        f"{row['label']} on {row['name']}: k = {row['wanted']}"
        for row in depths.iter_rows(named=True)
        if row["wanted"]
    ]
    cut, asked = (int(depths[name].sum()) for name in ("truncated", "answers"))
    return {
        "how to read": (
            "Ring: k*, the smallest k with the best score. Dotted: closed book, no passages. Bands: 95 % "
            f"intervals over questions, Wilson's for shares. "
            f"RSS: worst score within k* ± {delta:g}, as share of the best. "
            f"RSC: last k that gains {epsilon:g} points × (score there {MINUS} closed book), “last anywhere” "
            f"and “before it stops”. Plateau: the deepest k keeps {100 * plateau:g} % of the best (RAGGED)."
        ),
        **made_up(depths["reader"]),
        "answers with cut passages": bool(cut)
        * f"At k*, {text.count(cut, 'answer')} of {asked:,} saw passages that were cut to fit.",
        "no closed book": bool(depths["closed_book"].null_count())
        * "Without a closed book at k = 0 the sum of RSC starts at the smallest k.",
        "depths to run": bool(wanted)
        * f"RSS needs these in the reader's k (form of Run): {'; '.join(wanted[:8])}.",
    }


def selection(rows: pl.DataFrame) -> str:
    """Say that every k has other questions: their number differs, or every k has a separate closed book."""
    apart = rows.filter(pl.col("mode") == "none", pl.col("k") > 0).height > 0
    top = rows.filter(pl.col("mode") == "top_k", pl.col("k") > 0)
    counts = top.group_by("run_id", "label").agg(pl.col("queries").n_unique())["queries"]
    if not (apart or (counts > 1).any()):
        return ""
    return "Every k has other questions here, as those with gold found: k* is also an effect of selection."


def judged(scores: pl.DataFrame) -> str:
    """Say whose judgements a score averages, and whether all of them judged every curve."""
    judges = scores["judge"].drop_nulls().unique().sort().to_list()
    if len(judges) < 2:
        return ""
    fewest = scores.group_by(CURVE).agg(pl.col("judge").drop_nulls().n_unique())["judge"].min()
    some = " Not all of them scored every curve: choose one under Scored by to compare." * (
        fewest != len(judges)
    )
    return f"Scores are means of {len(judges)} judges: {', '.join(judges)}.{some}"


def by_hand(voices: Sequence[str], voice: str) -> str:
    """Say where people's grades are, which a judge's scores don't include."""
    beside = data.PEOPLE in voices and voice != data.PEOPLE
    return beside * "Grades of people are no part of these scores: choose them under Scored by."


def of_matrix(depths: pl.DataFrame, scorer: str) -> tuple[str, str]:
    """Say how much the choice of the reader and of the stack matters."""
    best = depths.row(0, named=True)
    spread = {
        axis: depths.filter(pl.col(other) == best[other])["best"].to_list()
        for axis, other in (("reader", "name"), ("stack", "label"))
    }
    worth = [
        f"another {axis} takes up to {points(max(values) - min(values))}"
        for axis, values in spread.items()
        if len(values) > 1
    ]
    said = ", ".join(worth)
    at = f"{points(best['best'])} at k = {best['k_star']}"
    return (
        f"{best['label']} on {best['name']} has the best {scorer}: {at}.",
        f"{said[:1].upper()}{said[1:]} points." if said else "",
    )


def of_parts(rows: pl.DataFrame) -> tuple[str, str]:
    """State the value of gold passages to a reader, and its score without any.

    Args:
        rows: One reader's rows of `core.analysis.readers.slice_table`. Questions with gold in Top(k) grow
            with k, so a best k is named only if all k cover as many; otherwise both parts are at the
            largest k that both have.
    """
    halves = ((WITH, "with gold"), (WITHOUT, "without")) if WITH in set(rows["part"]) else ((EVERY, ""),)
    top = rows.filter(mode="top_k")
    kept = {part: top.filter(part=part) for part, _ in halves}
    same = all(own["queries"].n_unique() < 2 for own in kept.values())
    shared = set.intersection(*(set(own["k"]) for own in kept.values()))
    said, rests = [], []
    for part, words in halves:
        own = kept[part] if same or not shared else kept[part].filter(k=max(shared))
        for best in own.sort("value", "k", descending=[True, False]).head(1).iter_rows(named=True):
            base = rows.filter(pl.col("k").eq_missing(best["k"]), part=part, mode="none")["value"]
            beside = [*(f"{points(value)} closed book" for value in base), text.sample(best["queries"])]
            said.append(" ".join(filter(None, (points(best["value"]), words, f"at k = {best['k']}"))))
            rests.append(f"{words}{': ' if words else ''}{', '.join(beside)}")
    sentence = f"{rows['label'][0]} scores {'at best ' if same else ''}{' and '.join(said)}."
    details = "; ".join(rests)
    return sentence, f"{details[:1].upper()}{details[1:]}."
