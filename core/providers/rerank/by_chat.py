"""Rerankers that ask a chat model: REBEL, and relevance alone, each passage by itself or all in one prompt.

Source: LeVine and Varjavand, "Relevance isn't all you need": §2.1 (one turn, five fixed criteria), §2.2 (two
turns, criteria and their weights inferred from the query), appendices C.3 and C.4 (REBEL without its
criteria, to separate the effects of criteria and of turns: the same scale, and the same passages are
discarded), E. The scoring rule is the paper's, the prompts are ours. Two things differ: the model writes down
its ratings and the sum is made here, where the paper lets the model add up; and the first turn infers
criteria, which go into a second prompt of ours, where the paper lets the model write that prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from core.providers.base import Amount, Reply, carrying, total
from core.providers.chat.ask import NOTICE, ByChat, Chat, ChatTask, ask, in_sequence, mark_for, marked
from core.providers.chat.reading import AnswerReading, LogprobRow, part_reasons, read_ratings, rows_schema
from core.providers.rerank.base import Reranker, Scores, order_of
from core.providers.rerank.criteria import (
    AUTHORITY,
    FIVE,
    HIGHEST_CRITERION,
    HIGHEST_RELEVANCE,
    POINTS,
    QUALITIES,
    THRESHOLD,
    USUAL_ANSWER_TOKENS,
    Criteria,
    Criterion,
    FirstTurn,
    Inferred,
    composite,
    listed,
    told,
)

MOST_PASSAGES = 100
_ANSWER_SHARE = 0.75  # Share of the context that the prompt may fill
_MARK_TOKENS = 32  # Tokens of the marks around one text
_ROW_TOKENS = 4  # Tokens of one number of an answer, with its comma
_SPARE_TOKENS = 64

_REBEL = f"""You rate passages as sources for answering a question.

{NOTICE}

Between the marks of the qualities stand the qualities to rate, one per line, with what 5 and 0 mean.
Go through the passages one by one. For each:
1. Read it fully and make out what it says about the question.
2. Rate its relevance from 0 (about something else) to {HIGHEST_RELEVANCE} (answers it directly and fully).
3. If its relevance is below {THRESHOLD}, it is discarded: go to the next passage.
4. Rate it from 0 to {HIGHEST_CRITERION} on each quality, independently of the others and of its relevance.
Adding up and ordering is done elsewhere.

Answer with one line per passage and nothing else: its number, a colon, its relevance, then its rating on each
quality in their order, separated by commas. Write a discarded passage's relevance alone. Every passage has
exactly one line. Example for two passages and three qualities, the second passage discarded:
1: 8, 4, 2, 5
2: 1
If you are asked for JSON: {{"ratings": [[1, 8, 4, 2, 5], [2, 1]]}}"""

_WHY = """

After the ratings of every passage, discarded ones too, write // and why you rated it so, in one
short sentence. Example:
1: 8, 4, 2, 5 // names the period and quotes the law, but no figures
In JSON, reasons have a list of their own: {"reasons": [[1, "names the period"], [2, "is about dogs"]]}"""
_REASON_TOKENS = 40  # Tokens of one such sentence

_SCALE = """\
10: it answers the question directly and fully.
7: it answers the main part of the question.
4: it is about the question's subject and helps only indirectly.
0: it has nothing to do with the question.
Judge what the passage says, not how long or well written it is. Fractions such as 6.5 are allowed."""

_ONE = f"""You rate how well a passage serves as a source for answering a question.

{NOTICE}

Rate the passage's relevance from 0 to {HIGHEST_RELEVANCE}:
{_SCALE}

Answer with one line and nothing else: the passage's number, a colon, the rating. Example:
1: 7
If you are asked for JSON: {{"ratings": [[1, 7]]}}"""

_ALL = f"""You rate how well passages serve as sources for answering a question.

{NOTICE}

Go through the passages one by one. Read each fully, make out what it says about the question, and rate its
relevance from 0 to {HIGHEST_RELEVANCE}, independently of the other passages:
{_SCALE}
Where points stand between marks of their own, they are what a relevant passage speaks about, the most
important first: the more of them it meets, the higher its relevance.
Passages below {THRESHOLD} are discarded; leaving them out and ordering the rest is done elsewhere.

Answer with one line per passage and nothing else: its number, a colon, its relevance. Every passage has
exactly one line. Example for two passages:
1: 8
2: 1
If you are asked for JSON: {{"ratings": [[1, 8], [2, 1]]}}"""


class ChatReranker(ByChat, Reranker):
    """A reranker that asks a chat model for ratings.

    A passage without a readable rating, even after the model was told what was wrong, has no score: it
    stays behind the others in the order of retrieval, and is counted in the details.
    """

    selective = True
    method: str

    def __init__(self, chat: Chat, own: Criteria = (), rounds: int = 1) -> None:
        super().__init__(chat)
        self.name, self.provider = f"{self.method}:{chat.name}", self.method
        self.concurrency = chat.concurrency
        self.own = own  # custom criteria, for a way that can rate on any
        self.reasons = False  # whether a way that rates on criteria is asked for reasons
        self.rounds = rounds  # how often a two-turn way infers and rates at most

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text between marks."""
        return self.chat.count_tokens(text) + _MARK_TOKENS

    def _rate(
        self,
        system: str,
        texts: Mapping[str, str],
        passages: Sequence[str],
        highest: Sequence[float],
        extra: str,
        *,
        fits: Callable[[LogprobRow], bool] | None = None,
        fewest: int | None = None,
        reasons: bool = False,
    ) -> Reply[dict[int, LogprobRow]]:
        """Return readable ratings by passage, counted from 0, and "reasons" if requested."""
        mark = mark_for(*texts.values(), *passages)
        parts = [marked(label, text, mark) for label, text in texts.items()]
        parts += [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]

        def read(answer: str) -> AnswerReading[tuple[dict[int, LogprobRow], dict[int, str]]]:
            text, said = part_reasons(answer) if reasons else (answer, {})
            ratings = read_ratings(text, len(passages), highest, fits=fits)
            return AnswerReading((ratings.value, said), ratings.problem, ratings.weight)

        row_tokens = _ROW_TOKENS * (1 + len(highest)) + _REASON_TOKENS * reasons
        task = ChatTask(
            system + _WHY * reasons,
            "\n\n".join(parts),
            read,
            # What an answer of the right form takes, with a margin for white space and names
            _SPARE_TOKENS + 2 * len(passages) * row_tokens,
            rows_schema(len(highest), fewest=fewest, reasons=reasons),
        )
        reply = ask(self.chat, task, extra=extra)
        reading = reply.value
        details = dict(reply.details) | ({"problem": reading.problem} if reading.problem else {})
        ratings, said = reading.value
        details |= {"reasons": [said.get(at + 1) for at in range(len(passages))]} if reasons else {}
        rows = {number - 1: row for number, row in ratings.items()}
        return carrying(reply, rows, details)

    def _expected(
        self, system: str, query_tokens: float, passage_tokens: Sequence[float], columns: int
    ) -> tuple[Amount, ...]:
        """Return the estimated usage of one prompt, without a second turn."""
        texts = query_tokens + sum(passage_tokens) + _MARK_TOKENS * (1 + len(passage_tokens))
        reasons = self.reasons and columns > 1
        answer = len(passage_tokens) * (_ROW_TOKENS * (1 + columns) + _REASON_TOKENS * reasons)
        return self.chat.expected(self.chat.count_tokens(system + _WHY * reasons) + texts, answer)


class RelevanceReranker(ChatReranker):
    """A reranker with one prompt per passage, so that no rating depends on other passages."""

    method = "relevance"
    batch_items = 1

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate one passage: 0 to 10, or NaN."""
        reply = self._rate(_ONE, {"question": query}, passages, [HIGHEST_RELEVANCE], extra)
        return carrying(reply, _scores(reply.value, len(passages), lambda row: row[0]))

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Return the estimated usage: one prompt per passage."""
        return total(self._expected(_ONE, query_tokens, [tokens], 1) for tokens in passage_tokens)


class ListwiseReranker(ChatReranker):
    """A reranker that rates all passages in one prompt, and discards those of too little relevance.

    Whatever else is shown beside the question is fixed, or inferred from it in a first turn. If that turn is
    unreadable, the fixed version is used; if a weight is unusable, all weights are equal. The details report
    both. Further rounds refine what was inferred, and end once the order stays the same: if the same is
    inferred again, so that nothing is rated again, or if the new ratings leave the order unchanged.
    """

    pointwise = False
    batch_items = MOST_PASSAGES
    system = _ALL
    label = ""  # what is shown beside the question
    rated: Criteria = ()  # the criteria that passages are rated on unless others are inferred
    first: FirstTurn | None = None  # infers the criteria, or points that a relevant passage speaks about

    def __init__(self, chat: Chat, own: Criteria = (), rounds: int = 1) -> None:
        super().__init__(chat, own, rounds)
        self.rated = own if own and self.rated else self.rated
        self.turns = 1 if self.first is None else 2 * rounds
        if chat.context_tokens is not None:
            self.batch_tokens = int(chat.context_tokens * _ANSWER_SHARE)

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate passages in one prompt; time and usage cover all turns."""
        if self.first is None:
            origin = "own" if self.own else "fixed"
            return self._scored(query, passages, self.rated, extra, origin=origin)
        inferred = self.first.infer(self.chat, query, extra=extra)
        reading, second = inferred.value, self._second(query, passages, inferred.value, extra)
        asked: list[Reply[Any]] = [inferred, second]
        for _ in range(1, self.rounds if reading.value.criteria else 1):
            before, earlier = reading.value.criteria, second
            refined = self.first.infer(self.chat, query, before=before, extra=extra)
            asked.append(refined)
            if refined.value.value.criteria in ((), before):
                break
            reading, second = refined.value, self._second(query, passages, refined.value, extra)
            asked.append(second)
            if _same_order(earlier, second):
                break
        whole = in_sequence(asked)
        details = self._inferred_details(reading, reading.value.criteria or self.rated)
        details |= {"saved_calls": 2 * self.rounds - len(asked)} if self.rounds > 1 else {}
        return carrying(whole, second.value, {**second.details, **whole.details, **details})

    def _second(
        self, query: str, passages: Sequence[str], reading: AnswerReading[Inferred], extra: str
    ) -> Reply[Scores]:
        """Rate on what was inferred, or on what is fixed."""
        inferred = reading.value
        origin = "inferred" if inferred.criteria and inferred.weighted else "fallback"
        return self._scored(query, passages, inferred.criteria or self.rated, extra, origin=origin)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Return the usage of every prompt of every round, though an unchanged order ends them early."""
        usual = 0 if self.first is None else USUAL_ANSWER_TOKENS
        shown = self.chat.count_tokens(listed(self.rated)) if self.rated else usual
        rating = self._expected(self.system, query_tokens + shown, passage_tokens, 1 + len(self.rated))
        if self.first is None:
            return rating
        inferring = self.first.expected(self.chat, query_tokens)
        return total([inferring, rating] * self.rounds)

    def _inferred_details(
        self, reading: AnswerReading[Inferred], shown: Sequence[Criterion]
    ) -> dict[str, Any]:
        inferred, names = reading.value, [criterion.name for criterion in shown]
        if not self.rated:
            return {"points": names} | ({} if names else {"points_problem": reading.problem})
        weights = {
            "weights": [criterion.weight for criterion in shown],
            "equal_weights": int(not inferred.weighted),
        }
        usable = inferred.criteria and inferred.weighted
        return {"criteria": names, **weights} | ({} if usable else {"criteria_problem": reading.problem})

    def _scored(
        self, query: str, passages: Sequence[str], shown: Sequence[Criterion], extra: str, *, origin: str
    ) -> Reply[Scores]:
        """Return composite scores; ties go to authority, or else to the first criterion.

        The paper (E.2, instruction 5) prefers the more authoritative passage or any other consistent rule;
        without criteria the order of retrieval stays.
        """
        texts = {"question": query} | ({self.label: listed(shown)} if shown else {})
        criteria = shown if self.rated else ()
        highest = [HIGHEST_RELEVANCE, *[HIGHEST_CRITERION] * len(criteria)]

        def fits(row: LogprobRow) -> bool:
            return len(row) == len(highest) or (len(row) == 1 and row[0] < THRESHOLD)

        why = self.reasons and bool(criteria)
        reply = self._rate(self.system, texts, passages, highest, extra, fits=fits, fewest=1, reasons=why)
        names = [criterion.name for criterion in criteria]
        column = 1 + (names.index(AUTHORITY) if AUTHORITY in names else 0)
        ties = _scores(reply.value, len(passages), lambda row: row[column] if len(row) > column else 0.0)
        weights = [criterion.weight for criterion in criteria]
        scores = _scores(reply.value, len(passages), lambda row: composite(row[0], row[1:], weights))
        rows = [reply.value.get(at) for at in range(len(passages))]
        details = dict(reply.details)
        about = told(criteria, origin, rows, details.pop("reasons", ())) if criteria else {}
        return carrying(reply, scores, {**details, **about, "ties": np.nan_to_num(ties).tolist()})


class RelevanceOneTurn(ListwiseReranker):
    """A reranker that rates relevance alone."""

    method = "relevance-one-turn"


class RelevanceTwoTurn(ListwiseReranker):
    """Reranker that first infers from the query what makes a passage relevant."""

    method, label, first = "relevance-two-turn", "points", POINTS


class RebelOneTurn(ListwiseReranker):
    """A reranker on the five fixed criteria, all with the paper's weight."""

    method, system, label, rated = "rebel-one-turn", _REBEL, "qualities", FIVE


class RebelTwoTurn(RebelOneTurn):
    """A reranker that first infers criteria, and a weight for each, from the query."""

    method, first = "rebel-two-turn", QUALITIES


KINDS = (RelevanceReranker, RelevanceOneTurn, RelevanceTwoTurn, RebelOneTurn, RebelTwoTurn)


def _same_order(one: Reply[Scores], other: Reply[Scores]) -> bool:
    """Return whether two ratings of the same passages rank them alike."""
    orders = [order_of(reply.value, reply.details["ties"]).tolist() for reply in (one, other)]
    return bool(orders[0] == orders[1])


def _scores(rows: Mapping[int, LogprobRow], count: int, score: Callable[[LogprobRow], float]) -> Scores:
    """Return float64 [count]: the score of each row, NaN for missing rows."""
    scores = np.full(count, np.nan)
    for at, row in rows.items():
        scores[at] = score(row)
    return scores
