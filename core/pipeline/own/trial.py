"""A single query to a custom pipeline: the response, how it was read, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from core.pipeline.evaluate.job import Corpus
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import filled
from core.pipeline.own.model import asker_of, used_by
from core.pipeline.own.parts import DocumentShelf, shelf_of
from core.pipeline.own.passages import PassageShelf, PlacedPassages, ToldPassages
from core.pipeline.own.process import Ended
from core.pipeline.own.signature import fewer_words
from core.providers.calls import Keys, redact
from core.records import JsonMap
from core.tables import schema

TRIED = schema("rank:int64 returned passage_id score:float known_by text")
_NO_ROWS = pl.DataFrame(schema=TRIED)
_TEXT = 160


@dataclass(frozen=True, slots=True)
class QueryTrial:
    """The answer to one query, and how it was read."""

    rows: pl.DataFrame  # columns of `TRIED`, as returned
    ms: float | None = None  # duration of the call in milliseconds
    shape: str = ""  # how the answer was read
    fault: str = ""  # what went wrong; empty = nothing
    hello: JsonMap | None = None  # the process's description of itself
    lacks: tuple[str, ...] = ()  # what is missing, and what would provide it
    answer: str = ""  # a generated answer, if one was returned
    printed: str = ""  # the end of its output
    headed: int = 0  # unmatched passages that source and heading would identify


def try_query(own: OwnStack, query: str, corpus: Corpus) -> QueryTrial:
    """Ask one query with the first value of each parameter; nothing is stored.

    Raises:
        ProviderError: If the pipeline cannot be started.
        InputError: If its key may not be sent there.
    """
    config = filled(own)
    asks = asker_of(config, Keys())
    params = next(iter(config.points()))
    try:
        answer: dict[str, Any] = asks.ask(query, config.candidates, params)
        printed = getattr(asks, "printed", str)()
    except Ended as error:
        return QueryTrial(_NO_ROWS, fault=f"{error.kind}: {redact(error.text)}")
    finally:
        asks.close()
    if "fault" in answer:
        fault = answer["fault"]
        where = f" ({fault['where']})" if fault.get("where") else ""
        said = f"{fault['kind']}: {redact(str(fault['text']))}{where}"
        return QueryTrial(_NO_ROWS, answer.get("ms"), fault=said, hello=asks.hello, printed=printed)
    shelf = shelf_of(corpus)
    rows, placed = _rows(answer["hits"], shelf, config), shelf.place(answer["hits"], config.match)
    return QueryTrial(
        rows,
        answer["ms"],
        str(answer.get("shape", "")),
        hello=asks.hello,
        lacks=tuple(_lacks(config, answer, shelf, placed, asks.hello)),
        answer=str(answer.get("answer") or ""),
        printed=redact(printed),
        headed=placed.headed,
    )


def _rows(hits: list[Any], shelf: PassageShelf, config: OwnStack) -> pl.DataFrame:
    rows = []
    for rank, hit in enumerate(hits, 1):
        told = ToldPassages.of(hit)
        at, way = shelf.find(told, config.match)
        passage, text = (None, told.text) if at is None else shelf.shown(at)
        known = "nothing" if at is None else way
        rows.append((rank, told.name, passage, hit[1], known, " ".join(text[: 2 * _TEXT].split())[:_TEXT]))
    return pl.DataFrame(rows, schema=TRIED, orient="row")


def _lacks(
    config: OwnStack, answer: JsonMap, shelf: PassageShelf, placed: PlacedPassages, hello: JsonMap
) -> list[str]:
    """List what pages will lack, and what would provide it."""
    hits, whole = answer["hits"], sum(at < len(shelf) for at in placed.passages)
    priced = any(
        amount.unit != "requests" and amount.item != "local-cpu" for amount in used_by(config, answer)
    )
    wanted, size = min(config.candidates, len(shelf)), hello.get("size")
    sentences = {
        fewer_words(len(hits), wanted, size): len(hits) < wanted,
        f"{placed.unmatched} of {len(hits)} passages match nothing {placed.unknown(config.match)};"
        " they would be left out and counted.": placed.unmatched > 0,
        "These are whole documents: stacks that retrieve passages of them would not be compared with it.":
            isinstance(shelf, DocumentShelf) and 2 * whole > len(placed.passages),
        "Headroom and %PROC need the candidates before the last order: return pool.": not answer.get("pool"),
        "Latency will show one stage: time them with clq_stage, return stages, or emit OpenTelemetry spans.":
            not answer.get("stages"),
        "Its cost will be unknown: give usd_per_query or usd_per_hour, or return usage.": not priced,
        "Cut-off methods on K curves need scores.": bool(hits) and all(hit[1] is None for hit in hits),
    }  # fmt: skip
    return [words for words, lacking in sentences.items() if lacking]
