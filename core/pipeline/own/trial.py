"""One query asked of a pipeline of one's own: what came back, how it was understood, what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from core.pipeline.evaluate.job import Corpus
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import filled
from core.pipeline.own.model import asker_of, used_by
from core.pipeline.own.passages import Shelf
from core.pipeline.own.process import Ended
from core.providers.calls import Keys, redact
from core.records import JsonMap
from core.tables import schema

TRIED = schema("rank:int64 returned passage_id score:float known_by text")
_TEXT = 160


@dataclass(frozen=True, slots=True)
class Trial:
    """Answer of one query, and how it was understood."""

    rows: pl.DataFrame  # columns of `TRIED`, as they were returned
    ms: float | None = None  # milliseconds around the call
    shape: str = ""  # how the answer was read
    fault: str = ""  # what went wrong; empty = nothing
    hello: JsonMap | None = None  # what the process said of itself
    lacks: tuple[str, ...] = ()  # what is not known without more, and what would tell it
    answer: str = ""  # a generated answer that came along
    printed: str = ""  # the end of what it printed


def try_query(own: OwnStack, query: str, corpus: Corpus, *, keys: Keys | None = None) -> Trial:
    """Ask one query with the first of each parameter; nothing is stored.

    Raises:
        ProviderError: If the pipeline cannot be begun.
        InputError: If its key may not be sent there.
    """
    config = filled(own)
    asks = asker_of(config, keys or Keys())
    params = next(iter(config.points()))
    try:
        answer: dict[str, Any] = asks.ask(query, config.candidates, params)
        printed = getattr(asks, "printed", str)()
    except Ended as error:
        return Trial(_rows([], corpus), fault=f"{error.kind}: {redact(error.text)}")
    finally:
        asks.close()
    if "fault" in answer:
        fault = answer["fault"]
        where = f" ({fault['where']})" if fault.get("where") else ""
        said = f"{fault['kind']}: {redact(str(fault['text']))}{where}"
        return Trial(_rows([], corpus), answer.get("ms"), fault=said, hello=asks.hello, printed=printed)
    rows = _rows(answer["hits"], corpus)
    return Trial(
        rows,
        answer["ms"],
        str(answer.get("shape", "")),
        hello=asks.hello,
        lacks=tuple(_lacks(config, answer, rows)),
        answer=str(answer.get("answer") or ""),
        printed=redact(printed),
    )


def _rows(hits: list[Any], corpus: Corpus) -> pl.DataFrame:
    shelf, names = Shelf(corpus.passage_ids, corpus.texts), corpus.passage_ids
    rows = []
    for rank, (ids, score, text) in enumerate(hits, 1):
        placed = shelf.place([(ids, score, text)])
        at = placed.passages[0] if placed.passages else None
        known = "nothing" if at is None else "text" if placed.by_text else "id"
        shown = ((corpus.texts[at] if at is not None else text) or "")[:_TEXT]
        passage = None if at is None else names[at]
        rows.append((rank, ids[0] if ids else None, passage, score, known, shown))
    return pl.DataFrame(rows, schema=TRIED, orient="row")


def _lacks(config: OwnStack, answer: JsonMap, rows: pl.DataFrame) -> list[str]:
    """List what pages will not know, and what would tell them."""
    unknown = rows.filter(known_by="nothing").height
    priced = any(
        amount.unit != "requests" and amount.item != "local-cpu" for amount in used_by(config, answer)
    )
    sentences = {
        f"{unknown} of {rows.height} passages match nothing in the collection, by id or text; they would be"
        " left out and counted.": unknown > 0,
        "Headroom and %PROC need the candidates before the last order: return pool.": not answer.get("pool"),
        "Latency will show one stage: time them with clq_stage, return stages, or emit OpenTelemetry spans.":
            not answer.get("stages"),
        "Its cost will be unknown: give usd_per_query or usd_per_hour, or return usage.": not priced,
        "Cut-off methods on K curves need scores.": rows["score"].is_null().all() and rows.height > 0,
    }  # fmt: skip
    return [words for words, lacking in sentences.items() if lacking]
