"""Scores of an answer against the gold answers that are computed, without a model as judge.

F1, exact match and substring are RAGGED's (its reader/evaluate_top_k.py and evaluation/eval_downstream.py,
after KILT and SQuAD): number words become digits, then lower case, no punctuation, no a/an/the; the best over
the gold answers counts. It differs in two points, in which the tool rewards silence or stops: an empty answer
is a substring of nothing, and number words that do not form a number stay unchanged.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence, Set
from functools import lru_cache

import polars as pl
from rapidfuzz.distance import LCSseq

from core.answers import GOLD, KEY
from core.errors import InputError
from core.readers.refusals import refuses
from core.tables import frame

_NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
billion trillion
"""
_NUMBERS = frozenset(_NUMBER_WORDS.split())
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORDS = re.compile(r"[^\W_]+")
CITED = re.compile(r"\[(\d{1,4}(?:\s*[-–,;]\s*\d{1,4})*)\]")
OF_IDEAL = {"ideal_f1": "f1", "ideal_rougeL": "rougeL"}
"""Scorers against the same reader's answer from all gold passages, by how they compare."""
CITING = ("citation_precision", "citation_recall")  # Scorers of the passages cited in an answer
ABSTAINING: Mapping[str, tuple[bool, ...]] = {
    "right_refusal": (False,),
    "no_wrong_refusal": (True,),
    "abstention": (False, True),
}
"""Scorers of whether an answer refuses, by the questions that they apply to: without an answer, with one."""


@lru_cache(maxsize=65536)
def normalised(text: str) -> str:
    """Return the words of a text, normalised for comparison as in RAGGED."""
    lowered = _with_digits(text).lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", lowered).split())


def _with_digits(text: str) -> str:
    words: list[str] = []
    phrase: list[str] = []
    for word in [*text.split(), ""]:
        if word.lower() in _NUMBERS:
            phrase.append(word)
            continue
        if phrase:
            words.append(_number(" ".join(phrase)))
            phrase = []
        words.append(word)
    return " ".join(words)


@lru_cache(maxsize=4096)
def _number(phrase: str) -> str:
    """Convert a sequence of number words to digits; keep the words if they do not form a number."""
    from word2number import w2n  # noqa: PLC0415 - only where a text has such words

    try:
        return str(w2n.word_to_num(phrase))
    except (ValueError, IndexError, TypeError, KeyError):
        return phrase


def _f1(answer: str, gold: str) -> float:
    one, other = normalised(answer).split(), normalised(gold).split()
    common = (Counter(one) & Counter(other)).total()
    return 2 * common / (len(one) + len(other)) if common else 0.0


def _exact_match(answer: str, gold: str) -> float:
    return float(normalised(answer) == normalised(gold))


def _substring(answer: str, gold: str) -> float:
    one, other = normalised(answer), normalised(gold)
    return float(bool(one and other) and (one in other or other in one))


def _rouge_l(answer: str, gold: str) -> float:
    """Return ROUGE-L as in rouge-score, for words in any script; importing that library takes seconds."""
    one, other = (_WORDS.findall(text.lower()) for text in (answer, gold))
    return 2 * LCSseq.similarity(one, other) / (len(one) + len(other)) if one and other else 0.0


SCORERS: Mapping[str, Callable[[str, str], float]] = {
    "f1": _f1,
    "exact_match": _exact_match,
    "substring": _substring,
    "rougeL": _rouge_l,
}
"""Scorers of an answer and one gold answer, 0..1."""


def score(scorer: str, answer: str, golds: Sequence[str]) -> float:
    """Score an answer, best over the gold answers."""
    _require(scorer, SCORERS)
    if not golds:
        raise InputError(f"{scorer} needs a gold answer.", do="Give the query one, or let a model judge.")
    return max(SCORERS[scorer](answer, gold) for gold in golds)


def _require(scorer: str, among: Container[str]) -> None:
    if scorer not in among:
        raise InputError(
            f"No scorer {scorer!r}.", do=f"Known: {', '.join((*SCORERS, *CITING, *OF_IDEAL, *ABSTAINING))}."
        )


def cited(answer: str) -> frozenset[int]:
    """Return the numbers of the passages that an answer cites: [1], [2, 3], [4-6]."""
    numbers: set[int] = set()
    for group in CITED.findall(answer):
        for part in re.split(r"[,;]", group):
            ends = [int(number) for number in re.split(r"[-–]", part)]
            numbers.update(range(ends[0], ends[-1] + 1) if len(ends) == 2 else ends)
    return frozenset(numbers)


def citations(answer: str, relevant: Sequence[bool]) -> tuple[float | None, float | None]:
    """Score an answer's citations against judgements of the passages that it was sent.

    Precision is the share of cited numbers whose passage is relevant (a number that was not sent is wrong);
    recall the share of relevant passages sent that are cited. The names are ALCE's (Gao et al. 2023, §3),
    which asks a model whether passages entail a sentence; here the judgements of the passages decide.
    """
    return against(cited(answer), relevant)


def against(numbers: Set[int], relevant: Sequence[bool]) -> tuple[float | None, float | None]:
    """Compare passage numbers with the relevant ones: precision and recall, as in `citations`."""
    right = sum(1 for number in numbers if 1 <= number <= len(relevant) and relevant[number - 1])
    total = sum(relevant)
    return (right / len(numbers) if numbers else None, right / total if total else None)


def scored(
    answers: pl.DataFrame,
    golds: pl.DataFrame,
    scorers: Sequence[str],
    *,
    sent: pl.DataFrame | None = None,
    answerable: Mapping[str, bool] | None = None,
) -> pl.DataFrame:
    """Score a table of answers by every scorer that their texts allow; rows of "answer_scores".

    Args:
        answers: Rows of "answers"; one without a text, or whose query has no gold answer, gets no score.
        golds: Rows of "gold_answers" of their collection.
        sent: For `CITING`: the columns that identify the answer, such as run_id, query_id, mode and k, and
            "relevant", a list of whether each passage sent is relevant, in the order sent.
        answerable: For `ABSTAINING`: by question, whether the texts answer it.
    """
    for scorer in scorers:
        _require(scorer, (*SCORERS, *CITING, *OF_IDEAL, *ABSTAINING))
    answered = answers.filter(pl.col("text").is_not_null())
    right = golds.group_by("query_id").agg(pl.col("answer").drop_nulls().unique().alias("golds"))
    pairs = answered.select("query_id", "text").unique().join(right, on="query_id")
    texts = list(zip(pairs["text"].to_list(), pairs["golds"].to_list(), strict=True))
    parts = []
    for scorer in dict.fromkeys(scorers):
        if scorer in SCORERS:
            values = [score(scorer, text, right) if right else None for text, right in texts]
            of_text = pairs.select("query_id", "text", pl.Series("value", values, pl.Float64))
            rows = answered.join(of_text, on=["query_id", "text"])
        elif scorer in OF_IDEAL:
            rows = _beside_ideal(answered, SCORERS[OF_IDEAL[scorer]])
        elif scorer in ABSTAINING:
            rows = _abstaining(answered, answerable or {}, ABSTAINING[scorer])
        elif sent is not None:
            rows = _citing(answered, sent, CITING.index(scorer))
        else:
            continue
        parts.append(rows.select(*KEY, pl.lit(scorer).alias("scorer"), "value").drop_nulls("value"))
    empty = answered.clear().select(*KEY, scorer=pl.lit("", pl.String), value=pl.lit(0.0))
    rows = pl.concat([empty, *parts]).with_columns(scale=pl.lit("0-1"))
    return frame("answer_scores", rows.to_dict())


def _beside_ideal(told: pl.DataFrame, compare: Callable[[str, str], float]) -> pl.DataFrame:
    """Score answers against the same reader's from all gold passages, best over its passes."""
    who = ["run_id", "query_id", "reader", "prompt", "temperature"]
    ideal = told.filter(pl.col("mode") == GOLD).group_by(who).agg(pl.col("text").alias("ideal"))
    rows = told.filter(pl.col("mode") != GOLD).join(ideal, on=who, nulls_equal=True)
    both = zip(rows["text"].to_list(), rows["ideal"].to_list(), strict=True)
    values = [max(compare(text, each) for each in ideals) for text, ideals in both]
    return rows.with_columns(pl.Series("value", values, pl.Float64))


def _abstaining(
    told: pl.DataFrame, answerable: Mapping[str, bool], looked_at: Sequence[bool]
) -> pl.DataFrame:
    """Score 1 if a question with an answer gets one, or one without an answer is refused."""
    known = pl.DataFrame(
        {"query_id": list(answerable), "answerable": list(answerable.values())},
        schema={"query_id": pl.String, "answerable": pl.Boolean},
    )
    rows = told.join(known, on="query_id").filter(pl.col("answerable").is_in(list(looked_at)))
    refused = pl.Series([refuses(text) for text in rows["text"]], dtype=pl.Boolean)
    return rows.with_columns(value=(pl.col("answerable") != refused).cast(pl.Float64))


def _citing(told: pl.DataFrame, sent: pl.DataFrame, which: int) -> pl.DataFrame:
    keys = [name for name in sent.columns if name in KEY]
    rows = told.join(sent.select(*keys, "relevant"), on=keys, nulls_equal=True)
    both = zip(rows["text"].to_list(), rows["relevant"].to_list(), strict=True)
    return rows.with_columns(
        pl.Series("value", [citations(text, relevant)[which] for text, relevant in both], pl.Float64)
    )
