"""Columns of tables, each said once: its label, how its values are written, and what they mean.

Pages, commands, records and the documents' reference read them from here; a table names its columns, and says
only what differs in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from core.decide.axes import BESIDE, HARM
from core.number_format import SHARED_DIGITS, UNIT, CostUnit, digits_apart

Form = Literal["text", "score", "signed", "change", "share", "usd", "number", "exact", "list", "date", "time"]
"""How values are written. score: 0..1, three decimals. signed: with its sign and `digits` decimals. change:
with its sign and three significant digits. share: 0..1 shown as percent. usd: dollars, as many decimals as
the least needs. number: plain, with `digits` decimals. exact: six significant digits, so that nothing
becomes 0."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, wherever it is shown."""

    name: str  # in the frame, in JSON and in CSV
    label: str  # above it
    form: Form = "text"
    help: str = ""  # one sentence: what its values are
    digits: int = 3  # decimals of a number or of a difference
    width: int | None = None  # pixels on screen; None = as wide as it needs

    def but(self, label: str | None = None, about: str | None = None, **changes: Any) -> Column:  # noqa: ANN401
        """Return the same column under another label, with other help, or another form, in one table."""
        return replace(
            self,
            label=self.label if label is None else label,
            help=self.help if about is None else about,
            **changes,
        )


Columns = Sequence["Column | str"]
"""Columns of a table: those of `COLUMNS` by name, or as they are here."""


def _text(name: str, label: str, about: str = "", width: int | None = None) -> Column:
    return Column(name, label, "text", about, width=width)


def _score(name: str, label: str, about: str = "") -> Column:
    return Column(name, label, "score", about)


def _signed(name: str, label: str, about: str = "") -> Column:
    return Column(name, label, "signed", about)


def _number(name: str, label: str, digits: int, about: str = "") -> Column:
    return Column(name, label, "number", about, digits)


def _points(name: str, label: str, about: str = "") -> Column:
    return Column(name, label, "number", about, 1)


def _share(name: str, label: str, about: str = "") -> Column:
    return Column(name, label, "share", about)


_KAPPA = (
    "Cohen's kappa: 1 = always the same grade, 0 = as often as by chance. Quadratic: a grade that is "
    "two off weighs four times as much as one that is one off."
)
_PERCENTILES = ("p50", "p95", "p99")

_EVERY = (
    _text("name", "stack", width=290),
    _text("stack", "stack", width=290),
    _text("pool", "pool"),
    _text("proc_pool", "pool of PROC", "Without a reranker the deepest pool that a run of the stack kept."),
    _text("reading", "reading"),
    _text("reader", "reader", width=130),
    _text("reranker", "reranker"),
    _text("embedder", "embedder"),
    _text("reason", "no line because"),
    _text("stage", "stage"),
    _text("basis", "figures are"),
    _text("quality_basis", "figures are"),
    _score("quality", "quality"),
    _score("quality_low", "low", "95 % interval over queries."),
    _score("quality_high", "high", "95 % interval over queries."),
    _number("n", "n", 0, "Queries."),
    _number("clusters", "groups", 0, "Groups that the queries come from: each counts as one."),
    Column("lacks", "missing", "share", "Of the queries, those without a score; the mean leaves them out."),
    _score("lacks_low", "if lowest", "Mean, were every missing score the lowest of its range."),
    _score("lacks_high", "if highest", "Mean, were every missing score the highest of its range."),
    _score("ordering", "ordering headroom"),
    _score("retrieval", "retrieval headroom"),
    _score("proc", "PROC", "The best ordering of the candidate pool."),
    Column("pct_proc", "%PROC", "share"),
    _number("latency_ms", "latency ms", 2),
    Column("cost", "$ / 1k", "usd", "Per 1,000 queries."),
    *(
        _number(percentile, f"{percentile} ms", 2, "Over queries; empty = unknown or withheld.")
        for percentile in _PERCENTILES
    ),
    *(
        _number(f"{percentile}_{end}", f"{percentile} {end}", 2, "95 % order-statistic interval.")
        for percentile in _PERCENTILES
        for end in ("low", "high")
    ),
    *(
        _text(f"{percentile}_{why}", f"{percentile} {why}")
        for percentile in _PERCENTILES
        for why in ("note", "reason")
    ),
    _number("slope", "ms per candidate", 2),
    _number("intercept", "ms at K = 0", 0),
    _number("stacks", "stacks", 0),
    _number("depths", "depths", 0, "Different K."),
    _number("breaks_at", "leaves the line from K", 0),
    _number("worst_ms", "by up to ms", 0),
    _number("prompt", "prompt tokens", 0),
    _number("first", "first token ms", 0),
    _number("added", "whole answer ms", 0),
    _text("index", "index", width=230),
    _number("effort", "ef or probes", 0, "What a search looks at."),
    _number("k", "K", 0),
    _number(
        "clients",
        "clients",
        0,
        "Each asks one vector at a time and waits; the tools that were imported may count otherwise.",
    ),
    _score("recall", "recall", "Share of the exact K neighbours that the index finds, over n queries."),
    _score("recall_low", "recall low", "95 % interval over queries."),
    _score("recall_high", "recall high", "95 % interval over queries."),
    *(_number(f"{percentile}_ms", f"{percentile} ms", 2) for percentile in _PERCENTILES),
    _number("queries_per_second", "queries / s", 0, "Of all clients together."),
    Column("usd_per_1k", "$ / 1k", "usd", "Per 1,000 queries."),
    _number("searches", "searches", 0, "Behind the latencies."),
    _number("build_s", "build s", 1),
    _number("bytes", "bytes", 0, "Memory or disk."),
    _number("passages", "passages", 0),
    _text("where", "measured on", width=260),
    _text("measure", "measure"),
    _score("value", "value"),
    _score("low", "low", "Lower end of the 95 % interval."),
    _score("high", "high", "Upper end of the 95 % interval."),
    _number("tokens", "tokens sent", 0, "Of the passages of Top(K), mean over the queries."),
    _number("tokens_low", "tokens, low", 0, "Lower end of the 95 % interval."),
    _number("tokens_high", "tokens, high", 0, "Upper end of the 95 % interval."),
    _text("counted", "tokens counted by"),
    _number("candidates", "K", 0, "Candidate depth."),
    _text("params", "parameters", "Of a custom pipeline."),
    _number("calls", "retrievals", 1, "Per query, mean; empty = the pipeline does not report them."),
    _text("way", "keeps", width=150),
    _score("precision", "precision", "Share of what is kept that is relevant (grade 4 or 5)."),
    _score("f1", "F1", "Mean over the queries of the harmonic mean of the two."),
    _score("f1_low", "low", "Lower end of the 95 % interval of F1 over queries."),
    _score("f1_high", "high", "Upper end of the 95 % interval of F1 over queries."),
    _number("kept", "passages", 1, "Kept, mean over the queries."),
    # Comparisons of stacks
    *(_text(key, key, width=200) for key in ("before", "after", "against")),
    _text("second", "stack", width=200),
    _text("axis", "axis"),
    _text("says", "what it says", width=290),
    _signed("difference", "difference", "Mean over the queries that count for both."),
    _text("verdict", "verdict", "Real where the adjusted p is below 0.05.", 120),
    _number("p_adjusted", "p adjusted", 4, "Over this table, by the correction that was chosen."),
    _number("p_holm", "p (Holm)", 4, "Holm-adjusted over this table."),
    _number("p", "p", 4, "By the paired test that was chosen, not adjusted."),
    *(_number(key, key, 0) for key in ("wins", "ties", "losses")),
    _score(
        "superiority",
        "P(better)",
        "Probability of superiority: share of queries won, plus half of those exactly equal.",
    ),
    _number("d_z", "d_z", 2, "Effect size: mean difference / standard deviation of differences."),
    _score(
        "detectable",
        "detectable",
        "Smallest true difference that n queries show with 80 % power (normal approximation).",
    ),
    _score("detectable_high", "detectable, at most", "Where the spread is at its upper 80 % limit."),
    _number(
        "facts_per_100",
        "new facts / 100 tokens",
        2,
        "Nuggets that the passages since the K before add, per 100 tokens of them.",
    ),
    _number("needed", "n needed", 0, "Questions that would show a difference as large as observed (80 %)."),
    _number("needed_low", "at least", 0, "Fewest that may be needed: 80 % limits of this sample."),
    _number("needed_high", "at most", 0, "Plan for so many; empty where the difference may be none."),
    _signed(
        "if_judged",
        "if judged",
        "The difference if every unjudged passage in the Top-K of the stack behind alone were of grade 5, "
        "and of the stack ahead alone of grade 1.",
    ),
    _number("overlap", "overlap", 2, "Share of passages that the two Top-K have in common."),
    _number("tau", "tau-b", 2, "Kendall's tau-b: do both order the shared passages alike?"),
    _number("value_against", "against's", 4),
    _score("value_first", "against"),
    _score("value_second", "stack"),
    # Queries
    _text("query_id", "query"),
    _text("text", "question", width=400),
    _text("outcome", "outcome"),
    _text("kind", "is"),
    _signed("gain_of", "gain", "Of quality over the chosen stack."),
    _share(
        "p_within_delta",
        "as good",
        "Share of repeats in which it is no more than the indifference zone worse.",
    ),
    _text("saves", "saves", width=230),
    _text("paid", "paid in", width=90),
    _text("than", "instead of", width=290),
    _signed("step_gain", "gains", "Of quality over the one before it on the frontier."),
    _text("step_more", "for", width=130),
    _text("per_step", "per 0.01", width=130),
    _text("out_by", "excluded because"),
    _text("let_in_by", "is let in by"),
    _text("why", "noted"),
    _text("sure", "question"),
    _text("latency_note", "latency note"),
    _score("robust", "robust", "The same under the worst of the query as it is and as it was perturbed."),
    _score("harm", "harm", "Harm at the cutoff, or Harm + Hole where over 5 % of a Top-K is unjudged."),
    _score("refusal_rate", "refused rightly", "Of the questions without an answer, what the reader refused."),
    _score("answer_rate", "answered", "Of the questions with an answer, what the reader did not refuse."),
    *(
        column
        for axis in BESIDE
        if axis != HARM
        for column in (
            _score(f"{axis.column}_low", "low", f"Lower end of the 95 % interval of the {axis.word}."),
            _score(f"{axis.column}_high", "high", f"Upper end of the 95 % interval of the {axis.word}."),
            _number(f"{axis.column}_n", "n", 0, f"Queries that carry the {axis.word}."),
        )
    ),
    _number("holes", "unjudged", 0),
    _number("judged", "judged", 0),
    # Passages of a query
    _score("weight", "weight", "What it adds to G_obs."),
    _text("passage", "passage", "Title, or id where there is none.", 200),
    _number("points", "score", 4, "The ranking's own score."),
    _text("perturb", "queries"),
    _text("typed", "typed", width=400),
    _text("run_id", "run"),
    _signed("delta", "difference"),
    _score("score", "score"),
    _score("other", "second"),
    _text("tag", "tag"),
    Column("tags", "tags", "list"),
    # Bills
    _text("item", "item"),
    Column("units_per_query", "units / query", "exact", "Tokens, search units, requests or time."),
    _text("unit", "unit"),
    Column("usd_per_month", "$ / month", "usd"),
    Column("usd_per_query", "$ / query", "usd"),
    _text("unit_price", "unit price", "Amount and currency / number of units it buys.", 145),
    _text("confirmed", "confirmed", "yes: two independent public pages state it."),
    Column("looked_up", "looked up", "date"),
    _text("source", "source", width=400),
    _text("note", "note"),
    # What a store holds
    _text("collection_id", "collection"),
    _text("origin", "figures are"),
    Column("created_at", "made (UTC)", "time"),
    _number("golden_sets", "golden sets", 0),
    _text("golden_set_id", "golden set"),
    _number("judgements", "judgements", 0),
    _number("spans", "anchored grades", 0, "Grades of characters of documents."),
    _text("mapping", "grades", width=200),
    _text("notes", "notes", width=400),
    _number("added_revision", "revision", 0, "The revision that brought it."),
    _number("revision", "revision", 0),
    Column("at", "when (UTC)", "time"),
    _text("action", "what"),
    # Golden sets
    _number("grade", "grade", 0),
    Column(
        "prevalence",
        "prevalence",
        "share",
        "Share of a query's judged passages, median over the queries (CLQ paper: 12.6 % for 4+5).",
    ),
    Column("present", "queries with it", "share", "Share of the queries that have it."),
    _number("median", "median per query", 1),
    _number("mean", "mean per query", 2),
    _number("most", "most", 0),
    Column("unjudged", "unjudged", "share", "Of the Top-K, mean over the stacks."),
    _text("fallback", "fallback", "No passage of grade 5: RA-nWG weighs grade 4 like 1 (metrics: fallback)."),
    _number("apart", "copies apart", 0, "Passages whose copies were graded differently."),
    _number("differ", "judges differ", 0, "Judgements that another golden set gives differently."),
    Column("grades", "grades", "list"),
    _text("other_set", "other golden set"),
    _number("other_grade", "its grade", 0),
    _score("hole_low", "if all grade 1"),
    _score("hole_high", "if all grade 5"),
    Column("hole", "unjudged", "share", "Share of the Top-K without a grade."),
    _number("unique", "judged for it alone", 0),
    _score("without", "without those"),
    _score("bias", "bias"),
    Column("same", "same grade", "share"),
    *(
        _number(key, label, 3, _KAPPA)
        for key, label in (("kappa", "kappa"), ("quadratic", "quadratic kappa"))
    ),
    *(
        _number(f"{key}_{end}", f"{key}, {end}", 3, "95 % interval over queries.")
        for key in ("kappa", "quadratic")
        for end in ("low", "high")
    ),
    # Diagnostics
    _text("what", "names changed to", width=190),
    _text("condition", "ablation"),
    _text("language", "language"),
    _text("result", "result"),
    _text("check", "check", width=290),
    _text("model", "embedder", width=240),
    _text("rewrite", "rewrite"),
    _text("hurt_by", "hurt most by", "Empty = no perturbation makes it worse."),
    _signed("lost", "change"),
    _score("clean", "as they are"),
    _signed("change_low", "change, low", "Lower end of the 95 % paired interval of the change."),
    _signed("change_high", "change, high", "Upper end of the 95 % paired interval of the change."),
    _signed("won", "won back", "Against no rewrite of the same queries."),
    _signed("won_low", "won low", "Lower end of its 95 % paired interval."),
    _signed("won_high", "won high", "Upper end of its 95 % paired interval."),
    _number("rewrite_ms", "rewrite ms", 2, "p50 over queries."),
    _score("cosine", "cosine"),
    _score("d_name", "D_name", "Right name and topic minus the better of two other names."),
    _score("d_topic", "D_topic", "Right name and topic minus the right name with another topic."),
    _score("d_both", "D_both", "Right name and topic minus neither."),
    _number("name_topic_ratio", "name / topic", 2, "D_name / D_topic."),
    _score("sd", "± D_name", "Standard deviation between runs."),
    _number("runs", "runs", 0),
    Column("gibberish_name", "random tokens, %", "signed", digits=1),
    Column("edit_distance_near_miss", "near misses, %", "signed", digits=1),
    Column("d_change", "D_name, %", "signed", "Of the stack's embedder on these questions.", 1),
    _number("d_n", "n of D_name", 0, "Questions of D_name ≥ 0.02."),
    # Readers
    _text("label", "reader", width=170),
    _text("scorer", "scorer"),
    _number("temperature", "temperature", 2),
    _text("sent", "sent", width=130),
    _text("mode", "sent", width=130),
    _text("part", "questions", width=150),
    _text("method", "method", width=110),
    _text("criterion", "criterion", width=170),
    _text("judge", "judge"),
    # Judges of answers beside people
    _points("judged_score", "judge", "Points 0 to 100: mean of the judge's scores."),
    _points("alone", "people alone", "Points 0 to 100: mean of what people graded, without a judge."),
    _points(
        "corrected", "corrected", "Points 0 to 100: the judge's mean, set right by people's grades (PPI++)."
    ),
    Column("moved", "moved by", "signed", "Points: corrected less the judge's.", 1),
    _number("graded", "graded", 0, "By people, drawn at random."),
    _number("effective", "worth grades", 0, "As many grades without a judge would be as sure."),
    Column("judge_bias", "judge − people", "signed", "Points, over the answers that people graded.", 1),
    _share("agree", "agree", "Share of the graded answers that judge and people find good, or not, alike."),
    _share("sensitivity", "sensitivity", "Share of the good answers, by people, that the judge finds good."),
    _share("specificity", "specificity", "Share of the bad answers, by people, that the judge finds bad."),
    _points(
        "by_errors",
        "good, by errors elsewhere",
        "Percent: Rogan–Gladen, by how the judge errs on all others.",
    ),
    _points("width", "width", "Points: of the 95 % interval."),
    _points("width_then", "width then", "After 10 more grades, about."),
    _number("minutes", "minutes", 1, "For 10 grades: reading at 238 words a minute, 5 s to decide."),
    _number("narrower", "narrower a minute", 2, "Points of width that a minute of grading takes away."),
    _share("told", "weight", "Share of what all judges tell about the answers, by their confusion (bits)."),
    _text("shape", "shape", width=150),
    _number("queries", "n", 0, "Questions."),
    _number("k_star", "k*", 0, "The smallest k with the best score."),
    _points("best", "best", "Points 0 to 100, at k*."),
    _points("closed_book", "closed book", "Points without passages."),
    Column("gain", "gain", "signed", "Points over the closed book at k*, where a question has both.", 1),
    _points("gain_low", "gain, low", "95 % interval, paired by question."),
    _points("gain_high", "gain, high", "95 % interval, paired by question."),
    _score(
        "rss",
        "stability (RSS)",
        "Worst score within k* ± the rule's distance, as a share of the best.",
    ),
    _score("rss_fewer", "RSS, fewer", "Stability with fewer passages than k* alone."),
    _score("rss_more", "RSS, more", "Stability with more passages than k* alone."),
    _text("rss_reason", "no RSS because"),
    _number(
        "rsc",
        "scaling (RSC)",
        2,
        "How far more passages help: the last k that gains × (score there − closed book).",
    ),
    _number(
        "rsc_before_stop",
        "scaling, before it stops",
        2,
        "RSC with the last k before the first gain that is none.",
    ),
    _text("wanted", "run k", "Depths that would make RSS known.", 80),
    _number("k_last", "last gain at k", 0, "The last k that gains as much as the rule asks."),
    _number("k_last_before_stop", "before it stops", 0),
    _number("start_k", "gains from k", 0, "0 = the closed book; else the smallest k."),
    _number("send", "send k", 0, "The smallest k within the rule's gain of the best."),
    _number("truncated", "cut", 0, "Answers whose passages were cut to fit."),
    Column("usd_per_1k_correct", "$ / 1k correct", "usd", "Cost of a query with its answer ÷ share correct."),
    Column("usd_low", "$ / 1k correct, low", "usd", "From the upper end of the share's 95 % interval."),
    Column("usd_high", "$ / 1k correct, high", "usd", "From the lower end of the share's 95 % interval."),
    _share("correct", "correct", "Share of the answers whose score reaches the threshold."),
    _share("correct_low", "correct, low", "95 % interval."),
    _share("correct_high", "correct, high", "95 % interval."),
    _text("missing", "cost lacks"),
    _points("total", "total", "Sum of the criteria, each the mean of its judges."),
    Column("difference_low", "difference, low", "signed", "95 % interval.", 1),
    Column("difference_high", "difference, high", "signed", "95 % interval.", 1),
    _number("difference_n", "difference, n", 0, "Cases that it is over."),
    _number("similarity", "similarity", 2, "Of the answer, by a judge, 0 to 5."),
    _number("similarity_low", "similarity, low", 2, "95 % interval over questions."),
    _number("similarity_high", "similarity, high", 2, "95 % interval over questions."),
    _score("precision_low", "precision, low", "95 % interval over questions."),
    _score("precision_high", "precision, high", "95 % interval over questions."),
    _number("passes", "passes", 0),
    _number("speed", "characters / s", 0, "Of the answer, over retrieval, reranking and generation."),
    _text("dataset", "questions", width=90),
    _text("retriever", "retriever", width=90),
    Column("closed_book_gain", "gain", "signed", "Points over the closed book at k*; Table 5.", 1),
    Column("gain_mean", "mean gain", "signed", "Of all k; Table 4.", 1),
    _text("better_than_closed_book", "better at", "Than the closed book; Table 1.", 90),
    Column("over_bm25", "over BM25", "signed", "At the best k of each; Table 8.", 1),
    Column("over_bm25_mean", "over BM25, mean", "signed", "Of all k; Table 8.", 1),
    _number("recall_at_k_star", "recall at k*", 1, "Percent of gold paragraphs; Table 9."),
    # Measures
    *(_text(key, key) for key in ("formula", "parameter", "parameters", "default", "type")),
    *(_text(key, key) for key in ("range", "ceiling", "needs", "elsewhere")),
    _text("not_applicable", "not applicable"),
    _text("defined_in", "defined in"),
    _number("ratio", "K / Np", 1),
    # Other limits, targets and depths
    _text("scenario", "scenario", width=130),
    _text("asked", "asked for", width=230),
    _number("rerank_ms", "reranker ms", 2, "Median of the reranker call, as in the paper."),
    _number("dim", "dim", 0),
    _number("latency_low", "latency low", 2, "95 % interval."),
    _number("latency_high", "latency high", 2, "95 % interval."),
    _number("latency_n", "latency n", 0),
    _text("latency_basis", "latency is"),
    _text("cost_basis", "cost is"),
    _text("cost_note", "cost note"),
    _number("efficiency", "quality / s", 3),
    _score("average", "average quality", "Of N-Recall4+ and RA-nWG, each at 10 and 30."),
    _text("average_basis", "average is"),
    _number("sla_ms", "target ms", 2),
    _number("feasible", "stacks left", 0),
    _number("frontier", "on the frontier", 0, "Of cost and quality, among those left."),
    _text("runner_up", "runner-up", width=270),
    _text("family", "stack without K", width=250),
    _number("from_k", "from K", 0),
    _number("to_k", "to K", 0),
    Column("d_ms", "ms", "change"),
    Column("d_usd", "$ / 1k", "change"),
    _text("pays", "pays"),
    Column("per_100_ms", "quality per 100 ms", "change"),
    Column("per_usd", "quality per $1 / 1k", "change"),
    _share("deeper", "sent deeper", "Share of the queries beyond the shallowest depth."),
    _number("mean_ms", "mean ms", 2),
    _score("over", "over one depth", "Against the best single depth for all queries."),
    _score("over_low", "over one depth, low", "Lower end of the 95 % interval, paired."),
    _score("over_high", "over one depth, high", "Upper end of the 95 % interval, paired."),
    # How sure a choice is
    _text("status", "is"),
    _share(
        "p_best",
        "P(best)",
        "Share of the resamples it wins, with the stacks equal to it that the row stands for.",
    ),
    _share("p_again", "again", "Share of draws in which it is the best on as many new queries."),
    _share("p_feasible", "P(feasible)", "Meets every limit."),
    _share("p_frontier", "P(frontier)", "In cost, latency and quality, limits or not."),
    _share("p_sla", "P(SLA)", "Empty without an SLA, or where the latency is unknown."),
    _text("unknown", "unknown because"),
    _score("noisy", "with judge noise", "Mean on the grades that the other judge would give."),
    _score("noisy_low", "with noise, low", "Lower end of its 95 % interval."),
    _score("noisy_high", "with noise, high", "Upper end of its 95 % interval."),
    _signed("d_quality", "minus the best", "Difference to the best of them, on the same queries."),
    _signed("d_low", "low", "95 % interval of the difference, query by query."),
    _signed("d_high", "high", "95 % interval of the difference, query by query."),
    _signed("gap_ms", "ms more than the best"),
    _text("number", "its"),
    _text("now", "now"),
    _text("then", "would need"),
    _signed("change", "change"),
    _text("constraint", "first limit"),
    _number("by", "over by", 3),
    _number("rank", "rank", 0),
    _score("lowest", "lowest", "Over all settings tried."),
    _score("highest", "highest", "Over all settings tried."),
    _number("best_rank", "best rank", 0),
    _number("worst_rank", "worst rank", 0),
    _text("better", "better, as usual", width=180),
    _text("worse", "worse, as usual", width=180),
    _number("flips", "settings", 0, "Settings in which the order is reversed."),
    _signed("reversal", "reversal", "The largest difference the other way."),
    _number("p_there", "p there", 4, "Of that reversal, Holm-adjusted over the reversed pairs."),
    _number("alpha", "alpha", 1),
    _number("cap4", "cap4", 2),
    _number("cap3", "cap3", 2),
    _text("usual", "usual"),
    _text("chosen", "chosen", "Selected by the limits."),
    _number("more", "further queries", 0),
    _number("usd", "$", 2, "Judging and running, as far as known."),
    _share("flip", "another choice", "Chance that another stack is chosen then than today."),
    _share("left", "doubt left", "Chance that unlimited queries would still change the choice then."),
    _text("today", "today"),
    _share("final", "wins in the end", "Share of the simulations, with unlimited queries."),
    _score("spread", "spread", "Standard deviation of the differences."),
    _share("share", "share"),
    _text("passage_id", "passage", width=260),
    _number("likely", "expected grade", 1, "Of judged passages at like ranks of these stacks."),
    _share("chance", "chance"),
    _number("saved", "queries saved", 2, "Further queries that would tell as much."),
    _text("is", "is"),
    _text("of", "stack", width=270),
    _text("step", "with", width=200),
    _text("said_by", "said by", "Additive effects of the axes, a search's model, or both."),
    _number("place", "search's order", 0, "What a search would begin with first."),
    _score("guess", "guessed quality", "Modelled: additive effects of the axes."),
    _text("beyond", "limits", "Limits that it breaks already by its dearest part."),
)

COLUMNS: Mapping[str, Column] = {column.name: column for column in _EVERY}
"""Every column by its name in frames, JSON and CSV."""


_DOLLARS = ("usd", "change")
"""Forms of columns that may hold dollars per 1,000, which their label says then."""


def _of_many(label: str) -> bool:
    return re.search(r"\b1k\b|1,000", label) is not None


def scale_of(label: str, said: CostUnit) -> float:
    """Return by what the numbers below a label are multiplied where costs are said so."""
    if not said.million or not _of_many(label):
        return 1.0
    return 1 / said.factor if "per $" in label else said.factor


def unit_of(rows: pl.DataFrame, labels: Mapping[str, str]) -> CostUnit:
    """Return how a table says its costs: as its rows say, else as suits those below labels of dollars."""
    if rows.height and set(UNIT) <= set(rows.columns):
        return CostUnit.of(rows.select(UNIT).row(0, named=True))
    named = [name for name, label in labels.items() if scale_of(label, CostUnit(million=True)) > 1]
    return CostUnit.among(value for name in named for value in rows[name].cast(pl.Float64))


def for_people(
    rows: pl.DataFrame, shown: Sequence[Column], said: CostUnit | None
) -> tuple[pl.DataFrame, tuple[Column, ...]]:
    """Return rows and columns of a table as people read it.

    Args:
        said: How the page says costs; None = as the rows say, or as suits those of the table.

    Returns:
        Costs in that unit, and columns of dollars with as many digits as tell them apart, four at most.
    """
    dollars = {column.name: column.label for column in shown if column.form in _DOLLARS}
    said = said or unit_of(rows, dollars)
    scales = {name: scale for name, label in dollars.items() if (scale := scale_of(label, said)) != 1}
    written = rows.with_columns(pl.col(name) * scale for name, scale in scales.items())

    def told(column: Column) -> Column:
        if column.name not in dollars:
            return column
        digits = column.digits
        if column.form == "usd":
            counted = said.digits if _of_many(column.label) else 0
            each = written[column.name].cast(pl.Float64).round_sig_figs(SHARED_DIGITS)
            digits = max(counted, digits_apart(each))
        return column.but(said.label(column.label), said.label(column.help), digits=digits)

    return written, tuple(map(told, shown))


def columns(chosen: Columns) -> tuple[Column, ...]:
    """Look columns up.

    Raises:
        KeyError: If a name is in none of `COLUMNS`.
    """
    return tuple(COLUMNS[column] if isinstance(column, str) else column for column in chosen)
