"""The question that each section of a page answers; it stands above the answer."""

from __future__ import annotations

from collections.abc import Mapping

QUESTIONS: Mapping[str, str] = {
    "confidence/would it hold": "Would other queries of the same kind lead to the same choice?",
    "confidence/what flips it": "What would have to change for another stack to be chosen?",
    "confidence/other weights": "Would other weights of the grades lead to another choice?",
    "confidence/worth measuring more": "Is it worth judging more queries before you decide?",
    "what_if/scenarios": "Which stack would other priorities choose?",
    "what_if/latency targets": "Which stack does each latency target allow?",
    "what_if/larger K": "Is it worth reranking more candidates (a larger K)?",
    "what_if/routing": "Is it worth sending only the hard queries to the slower stack?",
    "curves/by cutoff": "How does quality change with the number of passages you send?",
    "curves/by candidate depth": "How does quality change with the candidates that the reranker sees (K)?",
    "curves/cut-off methods": "Is a cutoff chosen query by query better than one for all?",
    "readers/by depth": "How many passages should the reader get?",
    "readers/with and without gold": "How much does the right passage help, and what do wrong ones harm?",
    "readers/matrix": "Which reader on which stack answers best?",
    "readers/joint k": "At which number of passages is a correct answer cheapest?",
    "readers/generators": "Which model, prompt and temperature answers best?",
    "readers/rerankers": "Do answers get better with a reranker, and how much slower?",
    "latency/where the time goes": "Which stage takes the time of a query?",
    "latency/every stack": "How long do queries take on every stack?",
    "latency/reranker by K": "How much slower does each further candidate make the reranker?",
    "latency/generator": "How long does the answer take after retrieval?",
    "latency/indexes": "Which index is fast enough, and what does its speed cost in recall?",
    "golden/soundness": "Are there enough judgements to trust the scores?",
    "golden/judges": "How well do the judges agree, and whose grades should count?",
    "golden/build": "How do I get judgements from a model?",
    "golden/judge": "How do I judge passages by hand?",
    "measures/all measures": "What does each measure mean?",
    "measures/predicting answers": "Which measure of retrieval predicts good answers?",
    "diagnostics/names": "How much does an embedder go by names instead of content?",
    "diagnostics/noise": "How much quality do typing errors and chat style cost?",
}
"""By page and section, as `core.views.pages.Page.places` has them, the first section by its own name."""
