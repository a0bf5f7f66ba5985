"""A custom pipeline as a retriever: asked like any remote model, with placed answers and reported faults.

A fault of one query (an exception, a hang, a crash, an unusable answer) costs that query's row: it has an
empty ranking and no time. A pipeline that cannot start, or fails query after query, ends the evaluation.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import ProviderError
from core.pipeline.own.config import OWN, OwnStack
from core.pipeline.own.endpoint import Endpoint
from core.pipeline.own.here import Here, offered
from core.pipeline.own.passages import Kept, PassageShelf, PlacedPassages
from core.pipeline.own.process import Ended, OwnWorker
from core.pipeline.ranking import Hits
from core.prices.cost import DOLLARS
from core.providers.base import LOCAL_ITEM, Amount, Meter, Model, Reply, believable
from core.providers.calls import Journal, Keys, call_key, redact, text_hash
from core.providers.calls.journal import once
from core.records import Basis, JsonMap

UNFILTERED = "asked_unfiltered"  # whether queries with filters were asked without them, in the manifest
IN_A_ROW = 20
"""Number of consecutive failures that end it: then the pipeline is broken, not the queries."""
ENDS = ("timeout", "exit", "segfault", "killed", "abort", "memory")
"""Faults after which a query is not asked again, as it would end the process once more."""
FAST_MS = 20.0
"""Queries that take at most this are asked in a row: after a pause, or other work, a processor's caches are
cold, and each would take .05 to .5 ms longer. A query that reports usage is paid for, and asked alone."""
_ROW_MS, _ROW = 200.0, 1000  # Maximum duration and number of queries in a row
_ECHOES = 21
_SHOWN = 300
_LISTED = 50
_MS_PER_HOUR = 3.6e6
Asker = OwnWorker | Here | Endpoint
_TOLD = (
    "fault", "stages", "calls", "answer", "shape", "unmatched", "headed", "named", "repeated", "known_by",
    "not_a_number", "retried", "beside_pool",
)  # fmt: skip
_LEFT_OUT = ("unmatched", "repeated")


class OwnQuestion(NamedTuple):
    """What is asked."""

    text: str  # the query
    only: str = ""  # its filter as JSON; "" = it has none

    @property
    def filter(self) -> JsonMap | None:
        """The filter as an object; None if there is none."""
        return json.loads(self.only) if self.only else None


class Retrieved(NamedTuple):
    """Passages of one query, with what they were chosen from; like `core.pipeline.ranking.Hits`."""

    passages: NDArray[np.int64]  # int64 [n], positions in the corpus, best first, as returned
    scores: NDArray[np.float64]  # float64 [n]; NaN = no score was given
    pool: Hits | None = None  # the candidates before the final ordering


def asker_of(config: OwnStack, keys: Keys) -> Asker:
    """Return an unstarted client for a pipeline: a process for a function, a connection for an endpoint.

    A pipeline that this process offered is asked here.
    """
    if config.call is None:
        return Endpoint(config, keys)
    return Here(config) if offered(config) else OwnWorker(config, list(config.points()))


class OwnRetriever(Model):
    """Asks one stack: a pipeline with parameters, over one corpus.

    Args:
        asks: The process or the endpoint, shared by the stacks of one pipeline.
        params: The parameters of this stack.
        identity: What distinguishes its answers in a journal.
    """

    local = False
    provider = OWN

    def __init__(
        self,
        config: OwnStack,
        asks: Asker,
        shelf: PassageShelf,
        *,
        params: JsonMap,
        identity: JsonMap,
        journal: Journal | None,
        meter: Meter | None,
    ) -> None:
        self.name = self.item = config.name
        self._config, self._asks, self.shelf = config, asks, shelf
        self._params, self._identity = params, identity
        self._journal, self._meter = journal, meter
        self._orders: dict[OwnQuestion, tuple[int, ...]] = {}
        self._again: Counter[str] = Counter()
        self._compared: set[tuple[OwnQuestion, str]] = set()
        self._ended: dict[OwnQuestion, JsonMap] = {}
        self._filtered = False
        self._failed = 0
        self._k = config.candidates
        self._coming: deque[OwnQuestion] = deque()  # the queries of this pass not asked yet
        self._answers: deque[tuple[OwnQuestion, dict[str, Any]]] = (
            deque()
        )  # answers of queries asked in a row
        self._ms: float | None = None  # duration of the last queries
        self._in_rows = True
        self._floors: list[float] = []

    def expect(self, questions: Sequence[OwnQuestion]) -> None:
        """Note which queries come next, and time an empty pipeline asked in the same way."""
        self._coming, self._answers = deque(questions), deque()
        if self._ms is None or isinstance(self._asks, Endpoint):
            return
        row = self._row()
        for _ in range(0, _ECHOES, row):
            self._floors += self._asks.echo(self._k, min(row, _ECHOES))

    def retrieve(self, text: str, *, only: str = "", extra: str = "") -> Reply[Retrieved]:
        """Ask one query.

        Args:
            only: Its filter as JSON, which is passed on if the pipeline takes one; "" = it has none.
            extra: Tells repeated calls apart.

        Raises:
            ProviderError: If it cannot be started, or the latest queries all failed.
        """
        question, self._filtered = OwnQuestion(text, only), self._filtered or bool(only)
        asked = [text_hash(text), *([text_hash(only)] if only else [])]
        key = call_key(OWN, self.name, {**self._identity, "k": self._k}, asked, extra)
        reply = once(self._journal, key, _is_kept, lambda: self._fresh(question))
        value = reply.value
        if value.get("fault"):
            if value["fault"]["kind"] in ENDS:
                self._ended[question] = value["fault"]
        else:
            self._compare((question, extra), tuple(map(self.shelf.position, value["passages"])))
        pool = value.get("pool")
        hits = Retrieved(
            *self._hits(value["passages"], value["scores"]), None if pool is None else self._hits(*pool)
        )
        details = {name: value[name] for name in _TOLD if value.get(name) is not None}
        details["returned"] = len(value["passages"]) + sum(value.get(name) or 0 for name in _LEFT_OUT)
        ms = float("nan") if value.get("fault") else reply.ms
        usage = tuple(amount for amount in reply.usage if amount.item != LOCAL_ITEM)
        cpu = next((amount.amount for amount in reply.usage if amount.item == LOCAL_ITEM), None)
        return Reply(
            hits, usage, ms, reply.waited_ms, reply.attempts, reply.fresh, {**details, "cpu_ms": cpu}
        )

    def _fresh(self, question: OwnQuestion) -> Reply[dict[str, Any]]:
        expected = expected_usage(self._config)
        held = self._meter.reserve(expected) if self._meter else None
        used: Sequence[Amount] = expected
        try:
            answer = self._asked(question)
            used = used_by(self._config, answer)
        except ProviderError:
            used = ()
            raise
        finally:
            if self._meter:
                self._meter.settle(held, [amount for amount in used if amount.item != LOCAL_ITEM] or expected)
        value = self._value(answer)
        self._watch(value.get("fault"))
        ms = float(answer.get("ms") or 0.0)
        return Reply(value, tuple(used), ms, answer.get("waited_ms", 0.0), answer.get("attempts", 1))

    def _asked(self, question: OwnQuestion) -> dict[str, Any]:
        if question in self._ended:
            return {"fault": {**self._ended[question], "again": True}}
        try:
            return self._next(question)
        except Ended as error:
            ended = error
        if ended.kind == "killed":  # perhaps by somebody else; a query at fault ends it once more
            try:
                return {**self._alone(question), "attempts": 2}
            except Ended as error:
                ended = error
        return {"fault": {"kind": ended.kind, "text": ended.text, "where": ""}}

    def _alone(self, question: OwnQuestion) -> dict[str, Any]:
        return self._asks.ask(question.text, self._k, self._params, question.filter)

    def _next(self, question: OwnQuestion) -> dict[str, Any]:
        """Return the answer to a query, asked in a row with the next ones if all are fast."""
        while self._answers:
            asked, answer = self._answers.popleft()
            if asked == question:
                return answer
        row = self._coming_row(question)
        if len(row) > 1 and not isinstance(self._asks, Endpoint):
            try:
                texts, filters = [each.text for each in row], [each.filter for each in row]
                given = filters if any(row_filter is not None for row_filter in filters) else ()
                answers = self._asks.ask_all(texts, self._k, self._params, given)
            except Ended:
                self._in_rows = False  # one of them ends it, so from here on each is asked alone
            else:
                self._learn(answers)
                self._answers.extend(zip(row[1:], answers[1:], strict=True))
                return answers[0]
        answer = self._alone(question)
        self._learn([answer])
        return answer

    def _learn(self, answers: Sequence[Mapping[str, Any]]) -> None:
        self._ms = median(float(answer["ms"]) for answer in answers)
        self._in_rows &= not any(answer.get("usage") for answer in answers)

    def _coming_row(self, question: OwnQuestion) -> list[OwnQuestion]:
        while self._coming and self._coming.popleft() != question:
            pass
        row = [question, *islice(self._coming, self._row() - 1)]
        return row[: next((at for at, each in enumerate(row) if each in self._ended), len(row))]

    def _row(self) -> int:
        """Return how many queries to ask in a row."""
        if self._ms is None or self._ms > FAST_MS or not self._in_rows:
            return 1
        most = min(_ROW_MS, 500 * self._config.timeout_s)
        return max(1, min(_ROW, int(most / max(self._ms, 0.01))))

    def _watch(self, fault: JsonMap | None) -> None:
        """End the evaluation if failure follows failure."""
        self._failed = self._failed + 1 if fault else 0
        if fault and self._failed >= IN_A_ROW:
            raise ProviderError(
                f"{IN_A_ROW} calls in a row failed, the last by {fault['kind']}: "
                f"{fault['text'].rstrip('.')}.",
                kind="server",
                where=self.name,
                do="Correct the pipeline and go on: what was answered is kept.",
            )

    def _value(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of an answer to store: positions and scores, or the fault."""
        fault = answer.get("fault")
        if fault is not None:
            text = redact(str(fault["text"]))[:_SHOWN]
            kept = {
                "kind": fault["kind"],
                "text": text,
                "where": redact(str(fault.get("where", "")))[:_SHOWN],
            }
            return {"fault": kept, "passages": [], "scores": []}
        placed = self.shelf.place(answer["hits"], self._config.match)
        if answer["hits"] and not placed.passages:
            text = f"none of its {placed.unmatched} passages is {placed.unknown(self._config.match)}: "
            text += ", ".join(placed.named)
            return {"fault": {"kind": "unknown ids", "text": text, "where": ""}, "passages": [], "scores": []}
        value: dict[str, Any] = {
            "passages": list(map(self.shelf.kept, placed.passages)),
            "scores": placed.scores,
            **_counts(placed),
            **{
                key: answer[key]
                for key in ("stages", "calls", "answer", "shape")
                if answer.get(key) not in (None, "", {})
            },
        }
        if (answer.get("notes") or {}).get("not_a_number"):
            value["not_a_number"] = answer["notes"]["not_a_number"]
        if answer.get("attempts", 1) > 1:
            value["retried"] = answer["attempts"] - 1
        if answer.get("pool") is not None:
            pool = self.shelf.place(answer["pool"], self._config.match)
            held, pairs = set(pool.passages), zip(placed.passages, placed.scores, strict=True)
            missing = [(at, score) for at, score in pairs if at not in held]
            ranked = [*zip(pool.passages, pool.scores, strict=True), *missing]
            value["pool"] = [[self.shelf.kept(at) for at, _ in ranked], [score for _, score in ranked]]
            value["beside_pool"] = len(missing) or None
        return value

    def _hits(self, kept: Sequence[Kept], scores: Sequence[float | None]) -> Hits:
        numbers = [float("nan") if score is None else score for score in scores]
        passages = np.array([self.shelf.position(one) for one in kept], dtype=np.int64)
        return Hits(passages, np.array(numbers, dtype=np.float64))

    def _compare(self, call: tuple[OwnQuestion, str], order: tuple[int, ...]) -> None:
        """Note whether a query that was asked before gets the same order again."""
        asked = call[0]
        if call in self._compared:
            return
        self._compared.add(call)
        if asked in self._orders:
            self._again["asked"] += 1
            self._again["differ"] += order != self._orders[asked]
        else:
            self._orders[asked] = order

    def about(self) -> JsonMap:
        """Return how it was started, and how often repeating a query changed the order.

        The manifest records both.
        """
        hello = {
            key: self._asks.hello[key]
            for key in ("python", "packages", "start_s", "spans", "size")
            if key in self._asks.hello
        }
        begun = {"processes": self._asks.begun} if isinstance(self._asks, OwnWorker) else {}
        floor = {"floor_ms": round(median(self._floors), 6)} if self._floors else {}
        asked = {"asked_again": self._again["asked"], "in_another_order": self._again["differ"]}
        taken = {UNFILTERED: not self._asks.hello.get("filters")} if self._filtered else {}
        return {**hello, **begun, **floor, **asked, **taken}


def _is_kept(value: object) -> bool:
    """Return whether a journal's entry is still valid.

    A fault is retried, since it may be fixed, unless it ended the process.
    """
    fault = value.get("fault") if isinstance(value, dict) else None
    return isinstance(value, dict) and (not fault or fault["kind"] in ENDS)


def faults(query_ids: Sequence[str], details: Sequence[Mapping[str, Any]], wanted: int) -> JsonMap:
    """Sum up the faults of queries and the unusable parts of answers, for the manifest.

    Args:
        details: The details from `OwnRetriever.retrieve` for each query.
        wanted: Number of passages requested, at most as many as exist.
    """
    failed = [
        {"query_id": query_id, **asked["fault"]}
        for query_id, asked in zip(query_ids, details, strict=True)
        if asked.get("fault")
    ]
    sums = {
        name: sum(detail.get(name) or 0 for detail in details)
        for name in ("unmatched", "headed", "repeated", "not_a_number", "retried", "beside_pool")
    }
    known_by = sum((Counter(detail.get("known_by") or {}) for detail in details), Counter[str]())
    named = list(dict.fromkeys(name for detail in details for name in detail.get("named") or ()))
    shapes = list(dict.fromkeys(detail["shape"] for detail in details if detail.get("shape")))
    return {
        "failed": len(failed),
        "faults": failed[:_LISTED],
        **{name: count for name, count in sums.items() if count},
        **({"unmatched_passages": named[:_LISTED]} if named else {}),
        **({"known_by": dict(known_by)} if known_by.keys() - {"id"} else {}),
        **_fewer([detail["returned"] for detail in details if not detail.get("fault")], wanted),
        "understood_as": shapes,
    }


def _fewer(returned: Sequence[int], wanted: int) -> JsonMap:
    """Return the maximum number of passages in an answer if below the requested one, and whether it is a cap.

    A search that returns all matches returns a different number for each query; most queries reach a cap.
    """
    most = max(returned, default=wanted)
    capped = 0 < most < wanted and 2 * sum(number == most for number in returned) >= len(returned)
    fewer = {"most_returned": most, "wanted": wanted} if most < wanted else {}
    return {**fewer, **({"capped_at": most} if capped else {})}


def expected_usage(config: OwnStack) -> tuple[Amount, ...]:
    """Return the maximum usage of a query if given; otherwise its requests, which have no price."""
    if config.usd_per_query is not None:
        return (Amount(config.name, DOLLARS, config.usd_per_query, Basis.MODELLED),)
    if config.usd_per_hour is not None:
        usd = config.usd_per_hour * config.timeout_s / 3600
        return (Amount(config.name, DOLLARS, usd, Basis.MODELLED),)
    return (Amount(config.name, "requests", 1.0, Basis.MEASURED),)


def used_by(config: OwnStack, answer: Mapping[str, Any]) -> tuple[Amount, ...]:
    """Return a query's usage: configured, otherwise reported in the answer, otherwise unpriced requests.

    Processor time of a function counts if nothing is known about its costs.
    """
    if config.usd_per_query is not None:
        return expected_usage(config)
    if config.usd_per_hour is not None:
        ms = answer.get("ms") or 0.0
        return (Amount(config.name, DOLLARS, config.usd_per_hour * ms / _MS_PER_HOUR, Basis.MODELLED),)
    amounts = [amount for row in answer.get("usage") or () for amount in _amounts(config.name, row)]
    cpu_ms = answer.get("cpu_ms")
    here = [] if cpu_ms is None else [Amount(LOCAL_ITEM, "cpu_ms", float(cpu_ms), Basis.MEASURED)]
    return believable([*(amounts or expected_usage(config)), *here])


def _amounts(name: str, row: Mapping[str, Any]) -> list[Amount]:
    item = str(row.get("model") or name)
    if row.get(DOLLARS) is not None:
        return [Amount(item, DOLLARS, float(row[DOLLARS]), Basis.MEASURED)]
    units = ("input_tokens", "output_tokens", "search_units")
    return [
        Amount(item, unit, float(row[unit]), Basis.MEASURED) for unit in units if row.get(unit) is not None
    ]


def _counts(placed: PlacedPassages) -> dict[str, Any]:
    counts = {name: getattr(placed, name) for name in ("unmatched", "headed", "repeated", "named")}
    ways = {"known_by": dict(placed.known_by)} if placed.known_by.keys() - {"id"} else {}
    return {name: count for name, count in counts.items() if count} | ways
