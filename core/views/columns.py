"""Columns of tables, each declared once: its label, the format of its values, and what they mean.

Pages, commands, records and the reference docs read them from here; a table names its columns, and states
only its own differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import polars as pl

from core.decide.axes import BESIDE, HARM
from core.tables import schema

Form = Literal["text", "score", "signed", "change", "share", "usd", "number", "exact", "list", "date", "time"]
"""How values are written. score: 0..1, three decimals. signed: with its sign and `digits` decimals. change:
with its sign and three significant digits. share: 0..1 shown as percent. usd: dollars, with as many decimals
as the smallest needs. number: plain, with `digits` decimals. exact: six significant digits, so that nothing
becomes 0."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, wherever it is shown."""

    name: str  # in the frame, in JSON and in CSV
    label: str = ""  # heading; by default its name
    help: str = ""  # one sentence: what its values mean
    form: Form = "text"
    digits: int = 3  # decimals of a number or of a difference
    width: int | None = None  # pixels on screen; None = as wide as it needs

    def __post_init__(self) -> None:
        """Default the label to the name."""
        object.__setattr__(self, "label", self.label or self.name.replace("_", " "))

    @property
    def dtype(self) -> pl.DataType:
        """The type of the column in a frame made by its table."""
        if self.form == "number" and not self.digits:
            return pl.Int64()
        return _DTYPES.get(self.form, pl.Float64())

    def holds(self, dtype: pl.DataType) -> bool:
        """Return whether values of a type fit the column's form."""
        if dtype == pl.Null:
            return True
        if self.form == "text":
            return dtype in _TEXTS
        return dtype.is_numeric() if self.form not in _DTYPES else dtype.base_type() is type(self.dtype)

    def replace(self, **changes: Any) -> Column:  # noqa: ANN401
        """Return the column with another name, label, help text or form."""
        return replace(self, **changes)


_DTYPES: Mapping[Form, pl.DataType] = {
    "text": pl.String(), "list": pl.List(pl.String), "date": pl.Date(), "time": pl.Datetime(),
}  # fmt: skip
_TEXTS = (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
Columns = Sequence[Column | str]
"""Columns of a table: names of `COLUMNS`, several in one text, or columns as they are here."""


class Rows:
    """A table, declared once: its frame's columns are those shown, described and written to files.

    Args:
        name: Name of its files, without extension.
        shown: Its columns from left to right.
        more: Columns shown on demand.
        ends: What the ends of its intervals are, if not the usual 95 % interval.

    Raises:
        LookupError: If a name is in none of `COLUMNS`.
    """

    def __init__(self, name: str, *shown: Column | str, more: Columns | str = (), ends: str = "") -> None:
        self.name = name
        try:
            self.columns = columns(shown, ends=ends)
            self.more = columns((more,) if isinstance(more, str) else more, self.columns, ends)
        except KeyError as error:
            raise LookupError(
                f"Table {name}: {error} is in none of COLUMNS; declare it there or here."
            ) from None

    @property
    def every(self) -> tuple[Column, ...]:
        """All columns, shown at once or on demand."""
        return (*self.columns, *self.more)

    def measured(self, measure: str) -> Rows:
        """Return the same table with its column "quality" headed by the measure that it holds."""
        return self.headed({column.name: measure for column in self.every if column.label == "quality"})

    def headed(self, labels: Mapping[str, str]) -> Rows:
        """Return the same table with other headers of columns, by their names."""
        shown, more = (
            [column.replace(label=labels.get(column.name, column.label)) for column in part]
            for part in (self.columns, self.more)
        )
        return Rows(self.name, *shown, more=more)

    def named(self, name: str) -> Rows:
        """Return the same table under another name."""
        return Rows(name, *self.columns, more=self.more)

    def frame(
        self, rows: Sequence[Mapping[str, Any] | tuple[Any, ...]] = (), others: str = ""
    ) -> pl.DataFrame:
        """Return rows as the table's frame; `others` declares columns not shown, or declared differently."""
        shown = {column.name: column.dtype for column in self.every}
        return pl.DataFrame(rows, schema={**shown, **schema(others)}, orient="row")

    def check(self, rows: pl.DataFrame) -> None:
        """Check a frame against the declaration.

        Raises:
            TypeError: If a column is missing, or has a type that its form cannot write.
        """
        found = rows.schema
        for column in self.every:
            if column.name not in found or not column.holds(found[column.name]):
                what = found.get(column.name, "missing")
                raise TypeError(f"Table {self.name}: {column.name} is {what}, not {column.form}.")


text = partial(Column, form="text")
score = partial(Column, form="score")
signed = partial(Column, form="signed")
change = partial(Column, form="change")
share = partial(Column, form="share")
usd = partial(Column, form="usd")
exact = partial(Column, form="exact")
number = partial(Column, form="number", digits=2)
points = partial(Column, form="number", digits=1)
count = partial(Column, form="number", digits=0)


_KAPPA = (
    "Cohen's kappa: 1 = always the same grade, 0 = as often as by chance. Quadratic: a grade that is "
    "two off weighs four times as much as one that is one off."
)
_PERCENTILES = ("p50", "p95", "p99")

_EVERY = (
    text("name", "stack", width=290),
    text("stack", width=290),
    text("pool"),
    text("proc_pool", "pool of PROC", "Without a reranker the deepest pool that a run of the stack kept."),
    text("reading", "loses most to"),
    text("reader", width=130),
    text("reranker"),
    text("embedder"),
    text("reason", "unknown because"),
    text("stage"),
    text("basis", "figures are"),
    text("quality_basis", "figures are"),
    score("quality", help="Mean over n queries."),
    count("n", help="Queries."),
    count("clusters", "groups", "Groups that the queries come from: each counts as one."),
    share("lacks", "missing", "Of the queries, those without a score; the mean leaves them out."),
    score("lacks_low", "if lowest", "Mean, were every missing score the lowest of its range."),
    score("lacks_high", "if highest", "Mean, were every missing score the highest of its range."),
    score("ordering", "ordering headroom"),
    score("retrieval", "retrieval headroom"),
    score("proc", "PROC", "Pool-restricted oracle ceiling: the score of the best order of its candidates."),
    share("pct_proc", "%PROC", "Share of PROC that the order reaches."),
    number("latency_ms"),
    usd("cost", "$ / 1k", "Per 1,000 queries."),
    *(
        number(percentile, f"{percentile} ms", "Over queries; empty = unknown or withheld.")
        for percentile in _PERCENTILES
    ),
    *(
        number(f"{percentile}_{end}", f"{percentile} {end}", "95 % order-statistic interval.")
        for percentile in _PERCENTILES
        for end in ("low", "high")
    ),
    *(
        text(f"{percentile}_{why}", f"{percentile} {why}")
        for percentile in _PERCENTILES
        for why in ("note", "reason")
    ),
    number("slope", "ms per candidate"),
    count("intercept", "ms at K = 0"),
    count("stacks"),
    count("depths", help="Different K."),
    count("breaks_at", "leaves the line from K"),
    count("worst_ms", "by up to ms"),
    count("prompt", "prompt tokens"),
    count("first", "first token ms"),
    count("added", "whole answer ms"),
    text("index", width=230),
    count("effort", "ef or probes", "What a search looks at."),
    count("k", "K"),
    count(
        "clients",
        help="Each asks one vector at a time and waits; the tools that were imported may count otherwise.",
    ),
    score("recall", help="Share of the exact K neighbours that the index finds, over n queries."),
    *(number(f"{percentile}_ms", f"{percentile} ms") for percentile in _PERCENTILES),
    count("queries_per_second", "queries / s", "Of all clients together."),
    usd("usd_per_1k", "$ / 1k", "Per 1,000 queries."),
    count("searches", help="Behind the latencies."),
    points("build_s"),
    count("bytes", help="Memory or disk."),
    count("passages"),
    text("where", "measured on", width=260),
    text("measure"),
    score("value"),
    score("low", help="Lower end of the 95 % interval."),
    score("high", help="Upper end of the 95 % interval."),
    count("tokens", "tokens sent", "Of the passages of Top(K), mean over the queries."),
    text("counted", "tokens counted by"),
    count("candidates", "K", "Candidate depth."),
    text("params", "parameters", "Of a custom pipeline."),
    points("calls", "retrievals", "Per query, mean; empty = the pipeline does not report them."),
    text("way", "keeps", width=150),
    score("precision", help="Share of what is kept that is relevant (grade 4 or 5)."),
    score("f1", "F1", "Mean over the queries of the harmonic mean of the two."),
    points("kept", "passages", "Kept, mean over the queries."),
    # Comparisons of stacks
    *(text(key, width=200) for key in ("before", "after", "against")),
    text("second", "stack", width=200),
    text("axis"),
    text("says", "what it says", width=290),
    signed("difference", help="Mean over the queries that count for both."),
    text("verdict", help="Real where the adjusted p is below 0.05.", width=120),
    number("p_adjusted", help="Over this table, by the correction that was chosen.", digits=4),
    number("p_holm", "p (Holm)", "Holm-adjusted over this table.", digits=4),
    number("p", help="By the paired test that was chosen, not adjusted.", digits=4),
    *(count(key) for key in ("wins", "ties", "losses")),
    score(
        "superiority",
        "P(better)",
        "Probability of superiority: share of queries won, plus half of those exactly equal.",
    ),
    number("d_z", "d_z", "Effect size: mean difference / standard deviation of differences."),
    score(
        "detectable",
        help="Smallest true difference that n queries show with 80 % power (normal approximation).",
    ),
    score("detectable_high", "detectable, at most", "Where the spread is at its upper 80 % limit."),
    number(
        "facts_per_100",
        "new facts / 100 tokens",
        "Nuggets that the passages since the K before add, per 100 tokens of them.",
    ),
    count("needed", "n needed", "Queries that would show a difference as large as observed (80 %)."),
    count("needed_low", "at least", "Fewest that may be needed: 80 % limits of this sample."),
    count("needed_high", "at most", "Plan for so many; empty where the difference may be none."),
    signed(
        "if_judged",
        help="The difference if every unjudged passage in the Top-K of the stack behind alone were of "
        "grade 5, and of the stack ahead alone of grade 1.",
    ),
    number("overlap", help="Share of passages that the two Top-K have in common."),
    number("tau", "tau-b", "Kendall's tau-b: do both order the shared passages alike?"),
    number("value_against", "against's", digits=4),
    score("value_first", "against"),
    score("value_second", "stack"),
    # Queries
    text("query_id", "query"),
    text("text", "question", width=400),
    text("outcome"),
    text("kind", "is"),
    signed("gain_of", "gain", "Of quality over the chosen stack."),
    share(
        "p_within_delta",
        "as good as chosen",
        "Share of resamples in which it is no more than the indifference zone worse.",
    ),
    text("saves", width=180),
    text("paid", "paid in", width=90),
    text("than", "instead of", width=290),
    signed("step_gain", "gains", "Of quality over the one before it on the frontier."),
    text("step_more", "for", width=105),
    text("per_step", "per 0.01", width=105),
    text("out_by", "excluded because"),
    text("let_in_by", "is let in by"),
    text("why", "noted"),
    text("sure", "question"),
    text("latency_note"),
    *(score(axis.column, axis.heading, axis.about) for axis in BESIDE),
    usd(
        "switching_usd",
        "$ to switch",
        "What a move from the stack that runs today costs once; empty = not known.",
    ),
    text("switching", "needs", "The largest step of a move from the stack that runs today."),
    count("questions", help="Questions with a filter."),
    share("selectivity", "filters leave", "Share of the passages that a filter leaves, median."),
    text("bin", "share of the passages"),
    text("tenant"),
    text("filter", "the asker's filter", width=290),
    score("short", "short", "Share with fewer allowed passages than exact filtered search returns."),
    count("short_n", "n of short", "Questions of which that is known."),
    *(
        count(f"{axis.column}_n", "n", f"Queries that carry the {axis.word}.")
        for axis in BESIDE
        if axis != HARM
    ),
    count("holes", "unjudged"),
    count("judged"),
    # Passages of a query
    score("weight", help="What it adds to G_obs."),
    text("passage", help="Title, or id where there is none.", width=200),
    number("points", "score", "The ranking's own score.", digits=4),
    text("perturb", "queries"),
    text("typed", width=400),
    text("run_id", "run"),
    signed("delta", "difference"),
    score("score"),
    score("other", "second"),
    text("tag", width=220),
    Column("tags", form="list"),
    # Bills
    text("item"),
    exact("units_per_query", "units / query", "Tokens, search units, requests or time."),
    text("unit"),
    usd("usd_per_month", "$ / month"),
    usd("usd_per_query", "$ / query"),
    text("unit_price", help="Amount and currency / number of units it buys.", width=145),
    text("confirmed", help="yes: two independent public pages state it."),
    Column("looked_up", form="date"),
    text("source", width=400),
    text("note"),
    # Contents of a store
    text("collection_id", "collection"),
    text("origin", "figures are"),
    Column("created_at", "made (UTC)", form="time"),
    count("golden_sets"),
    text("golden_set_id", "golden set"),
    count("judgements"),
    count("spans", "anchored grades", "Grades of characters of documents."),
    text("mapping", "grades", width=200),
    text("notes", width=400),
    count("added_revision", "revision", "The revision that brought it."),
    count("revision"),
    Column("at", "when (UTC)", form="time"),
    text("action", "what"),
    # Golden sets
    count("grade"),
    share(
        "prevalence",
        "median share",
        help="Share of a query's judged passages, median over the queries (CLQ paper: 12.6 % for 4+5).",
    ),
    share("present", "queries with it", "Share of the queries that have it."),
    points("median", "median per query"),
    number("mean", "mean per query"),
    count("most"),
    share("unjudged", help="Of the Top-K, mean over the stacks."),
    text("fallback", help="No passage of grade 5: RA-nWG weighs grade 4 like 1 (metrics: fallback)."),
    count("apart", "copies apart", "Passages whose copies were graded differently."),
    count("differ", "judges differ", "Judgements that another golden set gives differently."),
    Column("grades", form="list"),
    text("other_set", "other golden set"),
    count("other_grade", "its grade"),
    score("hole_low", "if all grade 1"),
    score("hole_high", "if all grade 5"),
    share("hole", "unjudged", "Share of the Top-K without a grade."),
    count("unique", "judged for it alone"),
    score("without", "without those"),
    score("bias"),
    share("same", "same grade"),
    number("kappa", help=_KAPPA, digits=3),
    number("quadratic", "quadratic kappa", _KAPPA, digits=3),
    # Diagnostics
    text("what", "names changed to", width=190),
    text("condition", "ablation"),
    text("language"),
    text("result"),
    text("check", width=290),
    text("model", "embedder", width=240),
    text(
        "rewrite",
        help="Of the query: cleaned of odd spaces and signs (hygiene), cut (rules), or restated by a model.",
    ),
    text("hurt_by", "hurt most by", "Empty = no perturbation makes it worse."),
    signed("lost", "change"),
    score("clean", "as they are"),
    signed("won", "recovered", "Against no rewrite of the same queries."),
    number("rewrite_ms", help="p50 over queries."),
    score("cosine"),
    score("d_name", "name signal", "D_name: right name and topic minus the better of two other names."),
    score(
        "d_topic",
        "topic signal",
        "D_topic: right name and topic minus the right name with another topic.",
    ),
    score("d_both", "signal of both", "D_both: right name and topic minus neither."),
    number("name_topic_ratio", "name ÷ topic", "Name signal over topic signal."),
    score("sd", "± name signal", "Standard deviation between runs."),
    count("runs"),
    signed("gibberish_name", "with random names, %", digits=1),
    signed("edit_distance_near_miss", "with near-identical names, %", digits=1),
    signed("d_change", "name signal, %", "Of D_name, of the stack's embedder on these questions.", digits=1),
    count("d_n", "n of the signal", "Questions of D_name ≥ 0.02."),
    # Readers
    text("label", "reader", width=170),
    text("scorer"),
    number("temperature"),
    text("sent", width=130),
    text("mode", "sent", width=130),
    text("part", "questions", width=150),
    text("method", width=110),
    text("criterion", width=170),
    text("judge"),
    # Judges of answers compared with people
    points("judged_score", "judge", "Points 0 to 100: mean of the judge's scores."),
    points("alone", "people alone", "Points 0 to 100: mean of what people graded, without a judge."),
    points("corrected", help="Points 0 to 100: the judge's mean, set right by people's grades (PPI++)."),
    signed("moved", "moved by", "Points: corrected less the judge's.", digits=1),
    count("graded", help="By people, drawn at random."),
    count("effective", "worth grades", "As many grades without a judge would be as sure."),
    signed("judge_bias", "judge − people", "Points, over the answers that people graded.", digits=1),
    share("agree", help="Share of the graded answers that judge and people find good, or not, alike."),
    share("sensitivity", help="Share of the good answers, by people, that the judge finds good."),
    share("specificity", help="Share of the bad answers, by people, that the judge finds bad."),
    points(
        "by_errors",
        "good, by errors elsewhere",
        "Percent: Rogan–Gladen, by how the judge errs on all others.",
    ),
    points("width", help="Points: of the 95 % interval."),
    points("width_then", help="After 10 more grades, about."),
    points("minutes", help="For 10 grades: reading at 238 words a minute, 5 s to decide."),
    number("narrower", "narrower a minute", "Points of width that a minute of grading takes away."),
    share("told", "weight", "Share of what all judges tell about the answers, by their confusion (bits)."),
    text("shape", width=150),
    count("queries", "n", "Questions."),
    count("k_star", "k*", "The smallest k with the best score."),
    points("best", help="Points 0 to 100, at k*."),
    points("closed_book", help="Points without passages."),
    signed("gain", help="Points over the closed book at k*, where a question has both.", digits=1),
    score("rss", "stability (RSS)", "Worst score within k* ± the rule's distance, as a share of the best."),
    score("rss_fewer", "RSS, fewer", "Stability with fewer passages than k* alone."),
    score("rss_more", "RSS, more", "Stability with more passages than k* alone."),
    text("rss_reason", "no RSS because"),
    number(
        "rsc",
        "scaling (RSC)",
        "How far more passages help: the last k that gains × (score there − closed book).",
    ),
    number(
        "rsc_before_stop",
        "scaling, before it stops",
        "RSC with the last k before the first gain that is none.",
    ),
    text("wanted", "run k", "Depths that would make RSS known.", width=80),
    count("k_last", "last gain at k", "The last k that gains as much as the rule asks."),
    count("k_last_before_stop", "before it stops"),
    count("start_k", "gains from k", "0 = the closed book; else the smallest k."),
    count("send", "send k", "The smallest k within the rule's gain of the best."),
    count("truncated", "cut", "Answers whose passages were cut to fit."),
    usd("usd_per_1k_correct", "$ / 1k correct", "Cost of a query with its answer ÷ share correct."),
    usd("usd_low", "$ / 1k correct, low", "From the upper end of the share's 95 % interval."),
    usd("usd_high", "$ / 1k correct, high", "From the lower end of the share's 95 % interval."),
    share("correct", help="Share of the answers whose score reaches the threshold."),
    text("missing", "cost lacks"),
    points("total", help="Sum of the criteria, each the mean of its judges."),
    signed("difference_low", "difference, low", "95 % interval.", digits=1),
    signed("difference_high", "difference, high", "95 % interval.", digits=1),
    count("difference_n", "difference, n", "Cases that it is over."),
    number("similarity", help="Of the answer, by a judge, 0 to 5."),
    count("passes"),
    count("speed", "characters / s", "Of the answer, over retrieval, reranking and generation."),
    text("dataset", "questions", width=90),
    text("retriever", width=90),
    signed("closed_book_gain", "gain", "Points over the closed book at k*; Table 5.", digits=1),
    signed("gain_mean", "mean gain", "Of all k; Table 4.", digits=1),
    text("better_than_closed_book", "better at", "Than the closed book; Table 1.", width=90),
    signed("over_bm25", "over BM25", "At the best k of each; Table 8.", digits=1),
    signed("over_bm25_mean", "over BM25, mean", "Of all k; Table 8.", digits=1),
    points("recall_at_k_star", "recall at k*", "Percent of gold paragraphs; Table 9."),
    # Measures
    *(text(key) for key in ("formula", "parameter", "parameters", "default", "type")),
    *(text(key) for key in ("range", "ceiling", "needs", "elsewhere")),
    text("not_applicable"),
    text("defined_in"),
    points("ratio", "K / Np"),
    # Other limits, targets and depths
    text("scenario", width=130),
    text("asked", "asked for", width=230),
    number("rerank_ms", "reranker ms", "Median of the reranker call, as in the paper."),
    count("dim"),
    number("latency_low", help="95 % interval."),
    number("latency_high", help="95 % interval."),
    count("latency_n"),
    text("latency_basis", "latency is"),
    text("cost_basis", "cost is"),
    text("cost_note"),
    number("efficiency", "quality / s", digits=3),
    score("average", "average quality", "Of N-Recall4+ and RA-nWG, each at 10 and 30."),
    text("average_basis", "average is"),
    number("sla_ms", "target ms"),
    count("feasible", "stacks left"),
    count("frontier", "on the frontier", "Of cost and quality, among those left."),
    text("runner_up", "runner-up", width=270),
    text("family", "stack without K", width=250),
    count("from_k", "from K"),
    count("to_k", "to K"),
    change("d_ms", "ms"),
    change("d_usd", "$ / 1k"),
    text("pays"),
    change("per_100_ms", "quality per 100 ms"),
    change("per_usd", "quality per $1 / 1k"),
    share("deeper", "sent deeper", "Share of the queries beyond the shallowest depth."),
    number("mean_ms"),
    score("over", "over one depth", "Against the best single depth for all queries."),
    # Confidence in a choice
    text("status", "is"),
    share(
        "p_best",
        "P(best)",
        "Share of the resamples it wins, with the stacks equal to it that the row stands for.",
    ),
    share("p_again", "best again", "Share of draws in which it is the best on as many new queries."),
    share("p_feasible", "P(within limits)", "Meets every limit."),
    share(
        "p_frontier",
        "P(frontier)",
        "None is better in cost, latency and quality at once; excluded stacks count too.",
    ),
    share("p_sla", "P(SLA)", "Empty without an SLA, or where the latency is unknown."),
    text("unknown", "unknown because"),
    score("noisy", "with judge noise", "Mean on the grades that the other judge would give."),
    signed("d_quality", "minus the best", "Difference to the best of them, on the same queries."),
    signed("d_low", "low", "95 % interval of this pair alone, query by query."),
    signed("d_high", "high", "95 % interval of this pair alone, query by query."),
    signed("gap_ms", "ms more than the best"),
    text("number", "its"),
    text("now"),
    text("then", "would need"),
    signed("change"),
    text("constraint", "first limit"),
    number("by", "over by", digits=3),
    count("rank"),
    score("lowest", help="Over all settings tried."),
    score("highest", help="Over all settings tried."),
    count("best_rank"),
    count("worst_rank"),
    text("better", "better, as usual", width=180),
    text("worse", "worse, as usual", width=180),
    count("flips", "settings", "Settings in which the order is reversed."),
    signed("reversal", help="The largest difference the other way."),
    number("p_there", help="Of that reversal, Holm-adjusted over the reversed pairs.", digits=4),
    points("alpha"),
    number("cap4"),
    number("cap3"),
    text("usual"),
    text("chosen", help="Selected by the limits."),
    count("more", "further queries"),
    number("usd", "$", "Judging and running, as far as known."),
    share("flip", "another choice", "Chance that another stack is chosen then than today."),
    share("left", "could still change", "Chance that endless queries would still change the choice then."),
    text("today"),
    share("final", "wins in the end", "Share of the simulations, with endless queries."),
    score("spread", help="Standard deviation of the differences."),
    share("share"),
    text("passage_id", "passage", width=260),
    points("likely", "expected grade", "Of judged passages at like ranks of these stacks."),
    share("chance"),
    number("saved", "queries saved", "Further queries that would tell as much."),
    text("is"),
    text("of", "stack", width=330),
    text("step", "with", width=360),
    text("said_by", help="Additive effects of the axes, a search's model, or both."),
    count("place", "search's order", "What a search would begin with first."),
    score("guess", "guessed quality", "Modelled: additive effects of the axes."),
    text("beyond", "your limits", "How it breaks them; empty = within."),
)

COLUMNS: Mapping[str, Column] = {column.name: column for column in _EVERY}
"""Every column by its name in frames, JSON and CSV."""


def columns(chosen: Columns, before: Sequence[Column] = (), ends: str = "") -> tuple[Column, ...]:
    """Look columns up; the ends of an interval (low, high, gain_low) take their meaning from their column.

    Args:
        before: Columns that precede them in the same table.
        ends: What the ends are, if not those of a 95 % interval.

    Raises:
        KeyError: If a name is in none of `COLUMNS`.
    """
    found = [*before]
    for each in chosen:
        for one in [each] if isinstance(each, Column) else each.split():
            found.append(one if isinstance(one, Column) else _known(one, found, ends))
    return tuple(found[len(before) :])


def _known(name: str, before: Sequence[Column], ends: str) -> Column:
    of, _, end = name.rpartition("_")
    if end not in ENDS:
        return COLUMNS[name]
    beside = before[-1 - (end == "high")] if len(before) > (end == "high") else None
    own = beside if not of else next((column for column in before if column.name == of), COLUMNS.get(of))
    if own is None or own.form == "text" or (name in COLUMNS and own == COLUMNS.get(of)):
        return COLUMNS[name]
    label = end if own is beside else f"{own.label}, {end}"
    what = ends or f"{_WHICH[end]} end of the 95 % interval."
    return own.replace(name=name, label=label, help=what, width=None)


ENDS = ("low", "high")
_WHICH = {"low": "Lower", "high": "Upper"}
