"""Meanings of column names: their roles, and figures with measure, cutoff, stage and unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import inf

from core.errors import UnknownNameError
from core.importers.read.text import no_column
from core.importers.words import MEASURES, NAMES, WORDS, unaccented
from core.metrics.measure import REGISTRY, declared
from core.records import GROUPS

USD_PER_1K = "usd_per_1k"
QUALITY = "quality"
_MS_PER = {"ms": 1.0, "s": 1000.0, "us": 0.001}
_QUANTILES = {"p50": "p50", "median": "p50", "p95": "p95", "p99": "p99", "mean": "mean"}
_TIMES = {"latency", "latencies", "time", "duration", "elapsed", "runtime"}
_TOTAL = {"", "total", "end_to_end", "e2e", "query", "wall", "response", "search"}
_OTHER_FIGURE = re.compile(
    r"std|sd|stdev|stddev|var|variance|sem|ci|ci_?\d+|low|lower|high|upper|min|max|minimum|maximum|count"
    r"|p\d+|error|err|delta|diff|throughput|qps"
)
"""Words that turn a figure into another one than the rest of its name says: a spread, another quantile."""
_ONCE = {"build", "train", "training", "indexing", "ingestion", "load"}
_PER: Mapping[str, float] = {"query": 1000.0, "1k": 1.0, "1m": 0.001}
_MONEY = r"(?:usd|price|cost)"
_PRICE = re.compile(
    rf"(?:(?P<stage>(?!{_MONEY}_)[a-z][a-z0-9_]*?)_)?{_MONEY}(?:_{_MONEY})?"
    rf"(?:_(?:per_)?(?P<per>query|1k|1m)(?:_query)?)?(?:_{_MONEY})?"
)
_FOREIGN = {"eur", "gbp", "chf", "jpy", "cny", "inr", "cents", "cent", "ct"}
_WORDS: Mapping[str, str] = {
    "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms", "sec": "s",
    "secs": "s", "seconds": "s", "usec": "us", "microseconds": "us", "µs": "us", "μs": "us",
    "mrt": "mean_latency_ms",  # PyTerrier's mean response time
    "avg": "mean", "average": "mean", "med": "median", "95th": "p95", "99th": "p99", "50th": "p50",
    "$": "usd", "us$": "usd", "dollar": "usd", "dollars": "usd", "costs": "cost", "prices": "price",
    "€": "eur", "euro": "eur", "euros": "eur", "£": "gbp", "¥": "jpy", "¢": "cents", "₹": "inr",
    "queries": "query", "question": "query", "questions": "query", "request": "query", "requests": "query",
    "call": "query", "calls": "query",
    "1000": "1k", "thousand": "1k", "1000000": "1m", "million": "1m",
}  # fmt: skip
"""Words for times and prices, as written → as compared."""
_FILLERS = {"in", "of", "the", "percentile"}
_QUANTILE = re.compile(
    r"(?i)(?:\b(\d\d)(?:th|st|e|er|o|a|º|ª|°|%)?\.?[\s_-]*)?\b(?:[pq]er[cz]entiel|per[cz]entile?|centile|quantile?)\b"
    r"(?:[\s_-]*(\d\d)\b)?"
)
"""A quantile in words, with its number before or after."""
_USAGE = re.compile(
    r"(?:(?P<stage>[a-z][a-z0-9_]*?)_)??(?P<unit>input_tokens|output_tokens|search_units|requests|cpu_ms"
    r"|prompt_tokens|completion_tokens|tokens_in|tokens_out)"
)
_UNITS = {
    "prompt_tokens": "input_tokens", "tokens_in": "input_tokens", "completion_tokens": "output_tokens",
    "tokens_out": "output_tokens",
}  # fmt: skip
_MEASURE = re.compile(r"(?P<name>[^@()]+?)\s*@\s*(?:k\s*=\s*)?(?P<k>[1-9]\d{0,5})(?P<params>\([^()]*\))?")
_SPELLED = re.compile(
    r"(?P<name>[a-z][a-z0-9_+\[\]]*?)(?:_(?:at_(?:k_?=?_?)?|cut_|k_?=?_?)?|(?<=[a-z]))(?P<k>[1-9]\d{0,3})"
)
_PERCENT = re.compile(
    r"[\s,]*(?:\bin\s+)?(?:%|[(\[](?:in |en |em )?%[)\]]|(?:\b|_)(?:pct|percent|prozent|procent)"
    r"|[(\[](?:pct|percent|prozent|procent)[)\]])|_*\(%\)",
    re.IGNORECASE,
)
_MEANS = "|".join(["mean", "avg", "average", *(word for word, of in WORDS.items() if of == "mean")])
_MEAN = re.compile(rf"^(?:{_MEANS})[\s_.]+|[\s_.,:|/-]+[(\[]?(?:{_MEANS})[)\]]?$", re.IGNORECASE)
FLATTENED = re.compile(r"""\(\s*(['"])(?P<first>.*?)\1\s*,\s*(['"])(?P<second>.*?)\3\s*\)""")
"""Two levels of a header that pandas joins into one name."""
_FULL = {
    "mean_reciprocal_rank": "mrr", "reciprocal_rank": "rr", "recip_rank": "rr",
    "mean_average_precision": "map",
    "average_precision": "ap", "hit_rate": "hit", "hitrate": "hit", "hits": "hit", "f1_score": "f1",
    "success_rate": "success", "normalized_discounted_cumulative_gain": "ndcg", "prec": "precision",
    "rec": "recall", "f_1": "f1", **MEASURES,
}  # fmt: skip
"""Measure names that are written out → the short ones."""
# Measures of the field that are not (yet) computed here; compared without case and punctuation.
_CLASSICAL = ("nDCG", "P", "R", "F1", "Success", "RR", "AP", "RBP", "Recall", "Precision", "MRR", "MAP")
_QUALITIES = (QUALITY, "accuracy", "correctness")
OF_ANSWERS = (
    "faithfulness", "groundedness", "response_groundedness", "answer_relevancy", "answer_relevance",
    "response_relevancy", "context_precision", "context_recall", "context_relevancy", "context_relevance",
    "context_entity_recall", "context_utilization", "contextual_precision", "contextual_recall",
    "contextual_relevancy", "answer_correctness", "factual_correctness", "answer_similarity",
    "semantic_similarity", "answer_accuracy", "nv_accuracy", "nv_context_relevance",
    "nv_response_groundedness", "llm_context_precision_with_reference",
    "llm_context_precision_without_reference", "id_based_context_precision", "id_based_context_recall",
)  # fmt: skip
"""Scores of answers and of their sources, as RAGAS, DeepEval and TruLens name them: shares for
which more is better."""
_ROLE_OF = {alias: role for role, names in NAMES.items() for alias in names}
_SPELT = {alias.replace("_", ""): alias for alias in reversed(_ROLE_OF)}
WHOLE_AXES = frozenset({"dim", "candidates"})
AXES = frozenset({"mode", "sparse", "embedder", "index", "reranker"}) | WHOLE_AXES
PARAMETERS = frozenset({
    "chunk_size", "chunk_overlap", "overlap", "top_k", "topk", "k", "alpha", "beta", "threshold", "n_results",
    "ef", "ef_search", "ef_construction", "m", "nprobe", "nlist", "temperature", "weight", "bm25_weight",
    "dense_weight", "window", "window_size", "k1", "b", "fetch_k", "depth", "dim", "candidates",
})  # fmt: skip
"""Names of numeric settings of a stack."""


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A column of numbers: what it measures, for which stage, at which cutoff, the factor to its unit."""

    column: str  # its name
    measure: str  # name of the measure; "ms" for a time of one query; the unit of usage
    stage: str | None = None  # stage of the path; "total" = the whole path
    k: int | None = None  # cutoff; None if the name states none
    factor: float = 1.0  # converts the numbers to milliseconds, dollars per 1,000 queries or a share
    assumed: str = ""  # what the name does not say and was assumed, in words

    @property
    def name(self) -> str:
        """The name with the same meaning, which `named` reads as this value."""
        stage = "" if self.stage in (None, "total") else f"{self.stage}_"
        unit = next((unit for unit, factor in _MS_PER.items() if factor == self.factor), "ms")
        if self.measure == "ms":
            return f"{stage or 'latency_'}{unit}"
        if self.measure.startswith("latency_"):
            return f"{stage or 'latency_'}{self.measure.removeprefix('latency_')}_{unit}"
        if self.measure == USD_PER_1K:
            return f"{stage}usd_per_{next(per for per, factor in _PER.items() if factor == self.factor)}"
        base, bracket, params = self.measure.partition("(")
        cutoff = f"@{self.k}" if self.k else ""
        return f"{stage}{base}{cutoff}{bracket}{params}{' %' if self.factor != 1 else ''}"


@lru_cache(maxsize=1 << 14)
def normal(name: str) -> str:
    """Strip a column name of case, accents, blanks, dashes, dots, number signs, and brackets at its end.

    The name of a role is the same however its words are separated: ``userInput`` is ``user_input``.
    """
    key = re.sub(r"[\s.\-/()#]+|[\[\]](?=\W*$)", "_", unaccented(name.strip().lower())).strip("_")
    return _SPELT.get(key.replace("_", ""), key)


@lru_cache(maxsize=1 << 14)
def _phrase(name: str) -> str:
    """Return the words of a name of a time or a price in one spelling, joined by ``_``."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z\d])(?=[A-Z][a-z])", "_", unaccented(name.strip()))
    plain = _QUANTILE.sub(lambda found: f" p{found[1] or found[2]} " if found[1] or found[2] else " ", plain)
    plain = re.sub(r"(?i)\bus[\s_-]?(?=\$|dol)", "", plain).replace("/", " per ")
    plain = re.sub(r"(?<=\d)[,._ '’](?=000\b)", "", plain.replace("$", " $ ")).lower()
    words = [_WORDS.get(word, WORDS.get(word, word)) for word in re.split(r"[^\w$€£¥¢₹%]+|_", plain) if word]
    words = ["p" + word[:-1] if re.fullmatch(r"\d\d%", word) else word for word in words]
    return "_".join(word for word in words if word and word not in _FILLERS)


def named(name: str, column: str) -> NamedValue | None:
    """Return what a column's name says about its numbers, or None if it isn't recognised.

    Args:
        name: The column's own name, or the one that the user gave it.

    Returns:
        Measures (with their cutoff, if there is one), quantiles of latency ("latency_p50"), times of one
        query ("ms"), prices ("usd_per_1k") and usage.
    """
    if pair := FLATTENED.fullmatch(name.strip()):  # pandas joins two rows of headers into one
        name = f"{pair['first']} {pair['second']}".strip()
    key = _phrase(name)
    return _measure(name, column) or _latency(key, column) or _price(key, column)


def priced_otherwise(name: str) -> bool:
    """Return whether a name is a price in a currency other than dollars."""
    words = set(_phrase(name).split("_"))
    return bool(words & _FOREIGN) and bool(words & {"cost", "price", "usd", "query"})


def role_of(name: str) -> str | None:
    """Return the role that a name stands for."""
    return _ROLE_OF.get(normal(name))


def usage_of(name: str, column: str) -> NamedValue | None:
    """Return the usage that a name states, such as ``rerank_input_tokens``."""
    matched = None if _PRICE.fullmatch(_phrase(name)) else _USAGE.fullmatch(normal(name))
    unit = matched and _UNITS.get(matched["unit"], matched["unit"])
    return NamedValue(column, unit, matched["stage"] or "total") if matched and unit else None


def is_share(value: NamedValue) -> bool:
    """Return whether a measure is at most 1 by definition, or a quality that may be in percent."""
    ends, info = declared(value.measure), REGISTRY.get(value.measure)
    return (
        ends[1] == 1 or bool(info and info.unit == "share")
        if ends
        else value.measure in (*_QUALITIES, *OF_ANSWERS)
    )


def range_of(value: NamedValue) -> tuple[float, float] | None:
    """Return the lowest and highest possible value of a figure, or None if none is declared."""
    if value.measure.startswith("latency_") or value.measure in ("ms", USD_PER_1K):
        return 0.0, inf
    return declared(value.measure)


def is_quality(value: NamedValue) -> bool:
    """Return whether a measure is a known quality measure."""
    base = value.measure.partition("(")[0]
    return base in _QUALITIES or base in _measures().values()


def once(name: str) -> bool:
    """Return whether a name is a one-time duration, such as ``build_time_s``."""
    tokens = set(_phrase(name).split("_"))
    return bool(tokens & _ONCE) and bool(tokens & (_TIMES | set(_MS_PER)))


def _measure(name: str, column: str) -> NamedValue | None:
    plain = name.strip()
    percent = re.search(rf"(?:{_PERCENT.pattern})[\s_]*$", plain, re.IGNORECASE)
    plain = plain[: percent.start()] if percent else plain
    factor = 0.01 if percent else 1.0
    if normal(plain) not in _FULL:
        plain = _MEAN.sub("", plain)
    if matched := _MEASURE.fullmatch(plain):
        measure = measure_name(matched["name"]) + (matched["params"] or "")
        return NamedValue(column, measure, k=int(matched["k"]), factor=factor)
    key = normal(plain)
    if key in _QUANTILES:  # p50 is unlikely to be a precision
        return None
    if known := _known(key):
        return NamedValue(column, known, factor=factor, assumed="names no cutoff")
    spelled = _SPELLED.fullmatch(key)
    if spelled and (known := _known(spelled["name"])):
        return NamedValue(column, known, k=int(spelled["k"]), factor=factor)
    return None


def _known(key: str) -> str | None:
    """Find the measure of a name without a cutoff; single letters are too little to identify one."""
    bare = _bare(_FULL.get(key, key.removesuffix("_score")))
    measure = _measures().get(bare) if len(bare) > 1 or bare in ("p", "r") else None
    return measure or (full if (full := _FULL.get(key, key)) in _QUALITIES else None)


def _latency(key: str, column: str) -> NamedValue | None:
    tokens = key.replace("_per_query", "").split("_")
    unit = next((token for token in reversed(tokens[-2:]) if token in _MS_PER), None)
    quantile = next((token for token in tokens if token in _QUANTILES), None)
    if once(key) or not (unit or quantile or _TIMES & set(tokens)) or key in _MS_PER:
        return None
    if "per" in tokens and not _TIMES & set(tokens):  # a rate, such as requests/s
        return None
    tokens = [word for word in tokens if word != "per"]
    if quantile in ("mean", "median") and not (unit or _TIMES & set(tokens)):
        return None
    if unit:
        del tokens[-1 - tokens[::-1].index(unit)]
    rest = [token for token in tokens if token not in _TIMES and token != quantile]
    stage = "_".join(rest)
    if any(_OTHER_FIGURE.fullmatch(token) for token in rest) or set(rest) & {"usd", "cost", "price"}:
        return None
    measure = f"latency_{_QUANTILES[quantile]}" if quantile else "ms"
    assumed = "" if unit else "has no unit: taken as milliseconds"
    return NamedValue(column, measure, "total" if stage in _TOTAL else stage,
                 factor=_MS_PER[unit or "ms"], assumed=assumed)  # fmt: skip


def _price(key: str, column: str) -> NamedValue | None:
    rest = [part for part in key.split("_") if part != "mean"]
    matched = _PRICE.fullmatch("_".join(rest))
    if matched is None or any(_OTHER_FIGURE.fullmatch(part) for part in rest):
        return None
    stage = "total" if (matched["stage"] or "") in _TOTAL else matched["stage"]
    per = matched["per"]
    if per is None and stage != "total":
        return None
    if per is None and len(rest) < len(key.split("_")):
        return NamedValue(
            column, USD_PER_1K, stage, factor=_PER["query"], assumed="is a mean: taken as dollars per query"
        )
    assumed = "" if per else "does not say of how many queries: taken as dollars per 1,000"
    return NamedValue(column, USD_PER_1K, stage, factor=_PER[per or "1k"], assumed=assumed)


def measure_name(text: str) -> str:
    """Return a measure in the product's spelling: ``ra_nwg`` → ``RA-nWG``, ``proc[hit]`` → ``PROC[Hit]``."""
    return _measures().get(_bare(_FULL.get(normal(text), text)), text.strip())


@cache
def _measures() -> Mapping[str, str]:
    """Return every measure by its bare name; a table may have thousands of columns."""
    return {_bare(name): name for name in (*OF_ANSWERS, *_CLASSICAL, *REGISTRY)}


def _bare(name: str) -> str:
    return re.sub(r"[^\w+%\[\]]|_", "", unaccented(name.lower()))


class Role:
    """One meaning that a column can have: its title for people, and its other names."""

    def __init__(self, title: str, *aliases: str) -> None:
        self.title, self.aliases = title, aliases


ROLES: Mapping[str, Role] = {
    "query_id": Role("Query id", "qid", "q_id", "query", "queryid", "topic", "topic_id", "question_id",
                     "sample_id", "example_id", "case_id", "test_case", "test_case_id", "question",
                     "user_input", "user_query", "input", "query_text", "question_text", "query_string",
                     "search_query", "utterance"),
    "passage_id": Role("Passage id", "did", "d_id", "doc_id", "docid", "doc", "docno", "document_id",
                       "passage", "pid", "corpus_id", "chunk_id"),
    "rank": Role("Rank", "position"),
    "score": Role("Score", "sim", "similarity"),
    "grade": Role("Grade of a passage (makes it a table of judgements) or of an answer", "rel", "relevance",
                   "judgement", "judgment", "gain", "rating", "relevance_rating", "relevance_grade",
                   "relevance_label"),
    "run": Role("Name of the stack or run", "run_id", "tag", "system", "stack", "stack_name", "label",
                 "name", "config", "configuration", "pipeline", "method", "approach", "variant", "setup",
                 "strategy"),
    "stage": Role("Stage (pool or final)", "list"),
    "repeat": Role("Repeat of a query", "repetition", "trial", "iteration", "attempt"),
    "measured_at": Role("When, or as which, a query was measured", "asked_at", "started_at", "start_time",
                        "timestamp", "sequence", "seq"),
    "judge": Role("Judge", "judged_by", "judge_name", "judge_id", "annotator", "annotator_id", "assessor",
                   "rater", "grader", "graded_by"),
    "answer": Role("Answer (makes it a table of answers)", "response", "answer_text", "generated_answer",
                   "generated_text", "generation"),
    "k": Role("Passages that an answer was written from", "depth", "top_k", "cutoff"),
    "reader": Role("Model that wrote an answer", "generator", "reader_name"),
    "prompt": Role("Prompt of an answer", "prompt_name"),
    "temperature": Role("Temperature of an answer", "temp"),
    "answer_mode": Role("What an answer was written from: top_k, gold_only, no_gold, gold, none",
                        "reader_mode", "context_mode"),
    "pass": Role("Pass of an answer that was written several times", "answer_pass"),
    "scale": Role("Scale of an answer's grade, such as 0-1", "grade_scale"),
    "measure": Role("Measure that a row of a long table holds", "metric", "metric_name", "measure_name",
                     "variable"),
    "value": Role("Value of that measure", "metric_value", "val"),
    "cluster": Role("Group that a question comes from: a document, session, template or user",
                    *GROUPS["cluster"][1:]),
    "n": Role("Number of queries", "n_queries", "num_q", "num_queries", "number_of_queries",
              "queries", "questions"),
}  # fmt: skip
_ROLE_OF |= {alias: name for name, role in ROLES.items() for alias in (name, *role.aliases)}


def roles_by(
    columns: Sequence[str], given: Mapping[str, str], roles: Mapping[str, Sequence[str]], name: str
) -> dict[str, str]:
    """Return role → column: as the user mapped them, the others by the names of the roles.

    Args:
        columns: Names as in the file.
        roles: The available roles, each with its names, the likeliest first.
        name: File, for messages.

    Returns:
        The roles that have a column.

    Raises:
        InputError: A mapped column does not exist.
        UnknownNameError: A mapped role does not exist.
    """
    for role, column in given.items():
        if role not in roles:
            raise UnknownNameError("role of a column", role, roles, where=name)
        if column not in columns:
            raise no_column(column, columns, name)
    chosen = dict(given)
    for role, aliases in roles.items():
        known = {normal(column): column for column in reversed(columns) if column not in chosen.values()}
        match = next((known[alias] for alias in map(normal, aliases) if alias in known), None)
        if role not in chosen and match:
            chosen[role] = match
    return chosen
