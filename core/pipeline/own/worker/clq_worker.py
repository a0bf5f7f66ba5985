"""Asks a retrieval pipeline in the interpreter that it needs, and times it there; one file, no dependencies.

CLQ Explorer starts it (Python 3.9 or later) and talks to it over pipes; whatever the pipeline prints goes to
a log. Copy it beside your own code to tell stages apart, which costs nothing unless measured::

    from clq_worker import clq_stage

    with clq_stage("rerank"):
        ...
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import inspect
import json
import math
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

OLDEST = (3, 9)
"""The oldest version of Python that this runs on."""
HITS = (
    "hits", "results", "documents", "passages", "nodes", "source_nodes", "matches", "ranking", "points",
    "docs", "objects", "ids",
)  # fmt: skip
"""Keys of a mapping, or attributes of an object, where passages are looked for, in this order."""
IDS = (
    "id", "_id", "passage_id", "doc_id", "docid", "document_id", "chunk_id", "pid", "source_id", "key",
    "uuid",
)  # fmt: skip
SCORES = ("score", "_score", "similarity", "relevance_score", "_relevance_score", "rerank_score")
TEXTS = ("text", "content", "page_content", "passage", "body", "document")
INNER = ("metadata", "meta", "_source", "payload", "fields", "entity", "properties")
"""Keys under which a passage has further data on itself."""
COLUMNS = {"ids": "id", "scores": "score", "documents": "text", "texts": "text", "metadatas": "metadata"}
"""Keys of a mapping of columns, as Chroma returns it, and what each says about a passage."""
SOURCES = (
    "source", "file_path", "filepath", "file_name", "filename", "file", "path", "url", "uri", "document",
    "document_name", "doc",
)  # fmt: skip
"""Keys for the document that a passage is from."""
STARTS = (
    "start_char",
    "start_index",
    "start_char_idx",
    "split_idx_start",
    "char_start",
    "start_offset",
    "start",
)
ENDS = ("end_char", "end_index", "end_char_idx", "char_end", "end_offset", "end")
"""Keys for the characters of its document between which a passage lies."""
AT = ("source", "start", "end", "heading")
"""What may be given about a passage's origin; each is also a separate key."""
HEADINGS = ("heading", "headings", "section", "section_title", "section_name", "header", "header_path")
"""Keys for the heading above a passage in its document; levels may have separate keys."""
_LEVELS = tuple(f"{word}{level}" for level in range(6, 0, -1) for word in ("Header ", "header_", "h", "H"))
METHODS = ("retrieve", "invoke", "run", "search", "query", "get_relevant_documents", "__call__")
"""Methods of an object that answer a query, in this order."""
SIZES = (
    "k", "top_k", "limit", "size", "n", "num_results", "n_results", "similarity_top_k", "max_results", "topk",
    "top_n", "n_docs", "num_docs", "num_hits", "count",
)  # fmt: skip
"""Parameters for the number of passages wanted, if the pipeline takes one."""
FILTER = "filter"
"""Parameter for what the asker may see, as an object of fields, if the pipeline takes one."""
QUERY_TEXTS = "query_texts"
"""Parameter of Chroma that takes a list of queries."""
QUERIES = ("query", "text", "question", "query_str", "prompt")
"""Inputs of a Haystack pipeline that take the query."""
PACKAGES = (
    "langchain", "langchain-core", "langchain-community", "llama-index-core", "haystack-ai", "dspy",
    "opentelemetry-sdk", "torch", "transformers", "sentence-transformers", "faiss-cpu", "rank-bm25", "bm25s",
)  # fmt: skip


Ask = Callable[..., Any]
"""Asks the pipeline a query for K passages; a third argument is the filter of the query, if it has one."""


class Refused(Exception):  # noqa: N818 - an answer that cannot be read isn't an error of this program
    """An unusable answer; the message says what came instead."""


# --- Stages ---

_stages: dict[str, float] = {}
_lock = threading.Lock()
_open: contextvars.ContextVar[list[float] | None] = contextvars.ContextVar("clq_open", default=None)


@contextlib.contextmanager
def clq_stage(name: str) -> Iterator[None]:
    """Time a stage of the pipeline; stages inside it keep their own time."""
    main = sys.modules.get("clq_worker", sys.modules[__name__])
    inner = [0.0]
    outer = main._open.get()
    token = main._open.set(inner)
    begin = time.perf_counter()
    try:
        yield
    finally:
        ms = (time.perf_counter() - begin) * 1000
        main._open.reset(token)
        if outer is not None:
            outer[0] += ms
        with main._lock:
            main._stages[str(name)] = main._stages.get(str(name), 0.0) + ms - inner[0]


# --- Answers ---


def understood(answer: Any, output: str = "") -> dict[str, Any]:
    """Read an answer in any of the shapes that retrieval pipelines return.

    Args:
        answer: A list of ids, of (id, score), of dicts, of a framework's documents or nodes; a mapping with
            one of these under a key of `HITS`, or id → score; what Haystack returns.
        output: The component of a Haystack pipeline whose documents count, if several return some.

    Returns:
        hits as [[candidate ids], score or None, text or None], followed by the passage's origin (source,
        start, end, heading) if given; shape (how it was read) and, if they are there, pool, stages, usage,
        calls and answer.

    Raises:
        Refused: If it is none of these.
    """
    if answer is None:
        raise Refused("nothing came back (None): it has to return its passages")
    if isinstance(answer, Mapping):
        return _of_mapping(answer, output)
    held = None if isinstance(answer, (str, bytes, list, tuple)) else _held(answer)
    if held is not None:
        said = _text_of(getattr(answer, "response", None))
        return {**_listed(held), **({} if said is None else {"answer": said})}
    return _listed(answer)


def _held(answer: Any) -> Any:
    """Return the list of passages in an object (a response, a query's result), if it has one."""
    found = (getattr(answer, name, None) for name in HITS)
    return next((each for each in found if isinstance(each, (list, tuple))), None)


def _of_mapping(answer: Mapping[Any, Any], output: str) -> dict[str, Any]:
    more = {key: answer[key] for key in ("stages", "usage", "answer") if answer.get(key) is not None}
    fields: dict[str, Any] = {}
    calls = answer.get("calls")
    if isinstance(calls, Sequence) and not isinstance(calls, (str, bytes)):
        fields = _united(calls)
    else:
        key = next((key for key in HITS if answer.get(key) is not None), None)
        columns = {name: answer[key] for key, name in COLUMNS.items() if answer.get(key) is not None}
        if "id" in columns and len(columns) > 1:
            fields = {**_listed(_of_columns(columns)), "shape": "columns"}
        elif key is not None:
            fields = _listed(answer[key])
        elif answer and all(_number(value) is not None for value in answer.values()) and not more:
            ranked = sorted(answer.items(), key=lambda pair: -float(_number(pair[1]) or 0.0))
            fields = {**_listed(ranked), "shape": "id → score"}
        else:
            fields = _of_components(answer, output)
        if isinstance(calls, int) and not isinstance(calls, bool):
            fields["calls"] = calls
    if answer.get("pool") is not None:
        fields["pool"] = _listed(answer["pool"])["hits"]
    return {**fields, **_plain_more(more)}


def _of_components(answer: Mapping[Any, Any], output: str) -> dict[str, Any]:
    """Find the documents of a Haystack pipeline: {"joiner": {"documents": […]}}."""
    parts = {
        str(name): part["documents"]
        for name, part in answer.items()
        if isinstance(part, Mapping) and part.get("documents") is not None
    }
    if output and output not in parts:
        listed = ", ".join(parts) or "none"
        raise Refused(f"no component {output!r} returned documents; those that did: {listed}")
    if len(parts) > 1 and not output:
        raise Refused(f"several components returned documents ({', '.join(parts)}): name one as output")
    if not parts:
        keys = ", ".join(map(str, list(answer)[:8])) or "none"
        raise Refused(f"a mapping without passages; its keys: {keys}")
    name = output or next(iter(parts))
    replies = [
        part.get("replies") or part.get("answers") for part in answer.values() if isinstance(part, Mapping)
    ]
    said = next((reply for reply in replies if reply), None)
    fields = {**_listed(parts[name]), "shape": f"Haystack documents of {name}"}
    if said:
        first = said[0]
        text = (
            first if isinstance(first, str) else getattr(first, "data", None) or getattr(first, "text", None)
        )
        if isinstance(text, str):
            fields["answer"] = text
    return fields


def _united(calls: Sequence[Any]) -> dict[str, Any]:
    """Unite the results of several retrievals for one question: best places first, each passage once."""
    lists = [understood(call)["hits"] for call in calls]
    united: list[Any] = []
    seen: set[str] = set()
    for place in range(max(map(len, lists), default=0)):
        for hits in lists:
            if place < len(hits):
                ids, _, *rest = hits[place]
                key = json.dumps([ids, *rest])
                if key not in seen:
                    seen.add(key)
                    united.append([ids, None, *rest])
    return {"hits": united, "shape": "several retrievals, united", "calls": len(lists)}


def _plain_more(more: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if isinstance(more.get("stages"), Mapping):
        times = {str(name): _number(ms) for name, ms in more["stages"].items()}
        plain["stages"] = {name: ms for name, ms in times.items() if ms is not None and 0 <= ms < math.inf}
    if more.get("usage") is not None:
        plain["usage"] = _usage(more["usage"])
    if isinstance(more.get("answer"), str):
        plain["answer"] = more["answer"]
    return plain


def _usage(given: Any) -> list[dict[str, Any]]:
    """Return usage as a list of {model, input_tokens, output_tokens, usd}; a mapping may be by model."""
    if isinstance(given, Mapping):
        inner = all(isinstance(value, Mapping) for value in given.values())
        given = (
            [{"model": name, **row_given} for name, row_given in given.items()]
            if inner and given
            else [given]
        )
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise Refused(f"usage is {_kind(given)}, not a list of model, input_tokens, output_tokens, usd")
    rows = []
    for row_given in given:
        if not isinstance(row_given, Mapping):
            raise Refused(f"usage holds {_kind(row_given)}, not model, input_tokens, output_tokens, usd")
        row: dict[str, Any] = {"model": str(row_given.get("model") or row_given.get("item") or "")}
        for unit in ("input_tokens", "output_tokens", "search_units", "usd"):
            amount = _number(row_given.get(unit))
            if amount is not None and 0 <= amount < math.inf:
                row[unit] = amount
        rows.append(row)
    return rows


def _listed(answer: Any) -> dict[str, Any]:
    if isinstance(answer, (str, bytes, bytearray)) or _number(answer) is not None:
        raise Refused(f"{_kind(answer)} came back, not a list of passages")
    if isinstance(answer, (set, frozenset)):
        raise Refused("a set came back, which has no order")
    if isinstance(answer, Mapping):
        return _of_mapping(answer, "")
    if (rows := _rows(answer)) is not None:
        return {**_listed(rows), "shape": f"rows of a {_kind(answer)}"}
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if not hasattr(answer, "__iter__") or inspect.isclass(answer):
        raise Refused(f"{_kind(answer)} came back, not a list of passages")
    items = _parallel(answer) or _alone(list(answer))
    hits, shapes = [], []
    for place, item in enumerate(items, 1):
        hit, shape = _hit(item, place)
        hits.append(hit)
        if shape not in shapes:
            shapes.append(shape)
    return {"hits": hits, "shape": " and ".join(shapes) or "an empty list"}


def _nested(items: Any) -> bool:
    """Return whether these are the passages of the only query, from an engine that answers many at once."""
    return isinstance(items, (list, tuple)) and len(items) == 1 and isinstance(items[0], list)


def _alone(items: list[Any]) -> list[Any]:
    """Return the passages of the only query; a list of an id and a score is a passage itself."""
    if not _nested(items) or (len(items[0]) > 1 and _number(items[0][1]) is not None):
        return items
    return list(items[0])


def _of_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of columns, each of which is a list, or a list of the only query's list."""
    lists = {name: list(values[0] if _nested(values) else values) for name, values in columns.items()}
    sizes = {name: len(values) for name, values in lists.items()}
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{size} of {name}" for name, size in sizes.items())
        raise Refused(f"the columns of the answer are not equally long: {said}")
    return [dict(zip(lists, row)) for row in zip(*lists.values())]


def _rows(answer: Any) -> list[Any] | None:
    """Return the rows of a table (Arrow, Polars, pandas) as dicts, or None if it isn't a table."""
    names, index = getattr(answer, "columns", None), type(getattr(answer, "index", None)).__name__
    if hasattr(answer, "to_pylist"):  # Arrow
        return list(answer.to_pylist())
    if names is not None and hasattr(answer, "to_dicts"):  # Polars
        return list(answer.to_dicts())
    if names is not None and hasattr(answer, "itertuples"):  # pandas, whose index may contain the ids
        named = index == "RangeIndex" or any(name in names for name in IDS)
        return list((answer if named else answer.rename_axis("id").reset_index()).to_dict("records"))
    if hasattr(answer, "iloc") and index != "RangeIndex":  # pandas: scores by id
        pairs = list(answer.items())
        return pairs if all(_number(value) is not None for _, value in pairs) else None
    return None


def _fetched(answer: Any) -> list[Any]:
    """Return the rows of a pending database query, as dicts if some column has a known name."""
    names = getattr(answer, "columns", None) or [column[0] for column in answer.description or ()]
    known = any(name in (*IDS, *TEXTS, *SOURCES) for name in names)
    return [dict(zip(names, row)) if known else tuple(row) for row in answer.fetchall()]


def _parallel(answer: Any) -> list[Any] | None:
    """Pair ids with scores that came as two parallel lists."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        return None
    halves = (half.tolist() if hasattr(half, "tolist") else half for half in answer)
    one, two = (half[0] if _nested(half) else half for half in halves)
    if not (isinstance(one, list) and isinstance(two, list) and len(one) == len(two)):
        return None
    if any(_number(half) is None for half in two) or any(isinstance(half, (list, tuple)) for half in one):
        return None
    return [(one[place], two[place]) for place in range(len(one))]


def _hit(item: Any, place: int) -> tuple[list[Any], str]:
    if isinstance(item, bool) or item is None or isinstance(item, (bytes, bytearray)):
        raise Refused(f"passage {place} of the answer is {_kind(item)}")
    if isinstance(item, str) or _number(item) is not None:
        return [[_id(item)], None, item if isinstance(item, str) else None], "ids"
    if isinstance(item, Mapping):
        return _of_dict(item, place), "dicts"
    if isinstance(item, (list, tuple)):
        return _of_row(item, place)
    if hasattr(item, "keys") and hasattr(item, "__getitem__"):  # a row of SQLite, a hit of Whoosh
        fields = {key: item[key] for key in item.keys()}  # noqa: SIM118 - it is no mapping
        return _of_dict({"score": getattr(item, "score", None), **fields}, place), type(item).__name__
    return _of_object(item, place)


def _of_dict(item: Mapping[Any, Any], place: int) -> list[Any]:
    inner = [item[key] for key in INNER if key in item]
    parts = [item, *(part for part in inner if isinstance(part, Mapping))]
    ids = [_id(part[key]) for part in parts for key in IDS if _is_id(part.get(key))]
    text = next((item[key] for key in TEXTS if isinstance(item.get(key), str)), None)
    at = where(parts, text)
    if not ids and text is None and "source" not in at:
        keys = ", ".join(map(str, list(item)[:8])) or "none"
        raise Refused(f"passage {place} of the answer has neither an id nor a text; its keys: {keys}")
    score = next((_number(item[key]) for key in SCORES if _number(item.get(key)) is not None), None)
    return placed(ids, score, text, at)


def placed(ids: list[str], score: float | None, text: str | None, at: dict[str, Any]) -> list[Any]:
    """Return a hit, with its location if known."""
    return [ids, score, text, at] if at else [ids, score, text]


def where(parts: Sequence[Mapping[Any, Any]], text: str | None) -> dict[str, Any]:
    """Find a passage's origin, if given: source, start, end, heading."""
    at: dict[str, Any] = {}
    for part in parts:
        found = {
            "source": next(
                (part[key] for key in SOURCES if part.get(key) and isinstance(part[key], str)), None
            ),
            "start": next((_place(part[key]) for key in STARTS if _place(part.get(key)) is not None), None),
            "end": next((_place(part[key]) for key in ENDS if _place(part.get(key)) is not None), None),
            "heading": _heading(part),
        }
        at = {**{key: value for key, value in found.items() if value is not None}, **at}
    return {key: value for key, value in at.items() if key != "source" or value != text}


def _place(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _heading(part: Mapping[Any, Any]) -> str | None:
    """Return the innermost heading, which is the last of a list or a path."""
    value = next((part[key] for key in (*HEADINGS, *_LEVELS) if part.get(key)), None)
    if isinstance(value, (list, tuple)) and value:
        value = value[-1]
    if not isinstance(value, str):
        return None
    mark = "/" if value.startswith("/") else " > "
    return next((part.strip() for part in reversed(value.split(mark)) if part.strip()), None)


def _of_row(item: Sequence[Any], place: int) -> tuple[list[Any], str]:
    """Read (id,), (id, score) or (id, text), either followed by the other, or (score, id), as from SQL."""
    first, *rest = item or [None]
    if not rest:
        return _hit(first, place)
    if len(rest) == 1 and isinstance(first, float) and isinstance(rest[0], str):
        return [[rest[0]], first, rest[0]], "(score, id)"
    scores = [_number(part) for part in rest if _number(part) is not None]
    texts = [part for part in rest if isinstance(part, str)]
    read = len(scores) < 2 and len(texts) < 2 and len(scores) + len(texts) == len(rest)
    if not read and hasattr(item, "_asdict"):
        return _of_dict(item._asdict(), place), type(item).__name__
    if not read or isinstance(first, (list, tuple)):
        kinds = ", ".join(_kind(part) for part in item[:4])
        raise Refused(f"passage {place} of the answer is a {type(item).__name__} of {len(item)} ({kinds})")
    (ids, _, text, *at), shape = _hit(first, place)
    said = f"({'id' if shape == 'ids' else shape}, {'score' if scores else 'text'})"
    return [ids, scores[0] if scores else None, texts[0] if texts else text, *at], said


def _of_object(item: Any, place: int) -> tuple[list[Any], str]:
    node, score, shape = item, _number(getattr(item, "score", None)), type(item).__name__
    if hasattr(item, "node"):  # LlamaIndex
        node = item.node
        text = getattr(node, "text", None)
        own = [getattr(node, name, None) for name in ("node_id", "id_", "ref_doc_id")]
        shape = "LlamaIndex NodeWithScore"
    elif hasattr(item, "page_content"):  # LangChain
        text, own, shape = item.page_content, [getattr(item, "id", None)], "LangChain Documents"
    elif hasattr(item, "content") and hasattr(item, "meta"):  # Haystack
        text, own, shape = item.content, [getattr(item, "id", None)], "Haystack Documents"
    elif hasattr(item, "__dict__") or hasattr(item, "_asdict"):
        fields = item._asdict() if hasattr(item, "_asdict") else vars(item)
        return _of_dict(fields, place), shape
    else:
        raise Refused(f"passage {place} of the answer is {_kind(item)}")
    meta = getattr(node, "metadata", None) or getattr(node, "meta", None) or {}
    text, parts = text if isinstance(text, str) else None, []
    if isinstance(meta, Mapping):
        own = [meta[key] for key in IDS if key in meta] + own + [meta.get("source")]
        parts = [meta]
    characters = {key: getattr(node, key, None) for key in ("start_char_idx", "end_char_idx")}  # LlamaIndex
    at = where([characters, *parts], text)
    return placed([_id(each) for each in own if _is_id(each)], score, text, at), shape


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (_number(value) is not None)


def _id(value: Any) -> str:
    if isinstance(value, str):
        return value
    number = _number(value)
    return str(int(number)) if number is not None and number == int(number) else str(value)


def _number(value: Any) -> float | None:
    """Return a number, NaN and infinities included, or None for anything else."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes)):
        return None
    if isinstance(value, (int, float)) or type(value).__name__ == "Decimal":  # as SQL returns it
        return float(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _number(value.item())
    return None


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


# --- The pipeline ---


class Pipeline:
    """Pipeline that is asked: a function, a class's method, or an object that answers by one of `METHODS`."""

    def __init__(self, target: str, *, entry: str = "", output: str = "") -> None:
        self.output, self._entry = output, entry
        module, _, path = target.partition(":")
        self._built = path.endswith("()")
        self._path = path[:-2] if self._built else path
        self._module = importlib.import_module(module)
        self._asks: dict[str, Ask] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.size: str | None = None
        self.filters = False

    def finished(self, answer: Any) -> Any:
        """Await an awaitable, and read a lazy result to its end."""
        if type(answer) in (list, tuple, dict):
            return answer
        if inspect.isawaitable(answer):
            answer = self._run(_awaited(answer))
        if hasattr(answer, "__aiter__"):
            answer = self._run(_gathered(answer))
        if hasattr(answer, "fetchall"):
            return _fetched(answer)
        return list(answer) if inspect.isgenerator(answer) or _is_lazy(answer) else answer

    def prepared(self, params: dict[str, Any]) -> Ask:
        """Return the callable for these parameters, built once if construction takes parameters."""
        key = json.dumps(params, sort_keys=True)
        if key not in self._asks:
            if self._built:
                self._asks[key] = self._asking(_made(self._find(), params), {})
            else:
                self._asks[key] = self._asking(self._find(), params)
        return self._asks[key]

    def _find(self) -> Any:
        target: Any = self._module
        for part in self._path.split("."):
            if not hasattr(target, part):
                names = ", ".join(name for name in dir(target) if not name.startswith("_")) or "none"
                raise AttributeError(
                    f"there is no {part!r} in {getattr(target, '__name__', self._path)}: {names[:400]}"
                )
            owner, target = target, getattr(target, part)
            if (
                inspect.isclass(owner)
                and inspect.isfunction(target)
                and "self" in inspect.signature(target).parameters
            ):
                target = getattr(self._only(owner), part)
        return self._only(target) if inspect.isclass(target) and not self._built else target

    def _only(self, kind: type) -> Any:
        return kind()

    def _asking(self, target: Any, params: dict[str, Any]) -> Ask:
        if _is_haystack(target):
            return lambda query, *_: target.run(_inputs(target, query, self._entry, params))
        plain = inspect.isroutine(target) or isinstance(target, type(lambda: 0))
        method = target if plain else _method(target)
        names, rest = _takes(method)
        self.size = size = next((name for name in SIZES if name in names and name not in params), None)
        by_name = "query" in names and _keyword_only(method, "query")
        if QUERY_TEXTS in names:
            return lambda query, k, _=None: method(
                query_texts=[query], **{**params, **({size: k} if size else {})}
            )
        known = dict(params)
        unknown = [name for name in known if name not in names and not rest]
        if unknown:
            raise TypeError(
                f"{self._path} takes no {', '.join(unknown)}; it takes {', '.join(names) or 'nothing'}"
            )
        self.filters = filters = FILTER in names and FILTER not in params
        if filters and _needs(method, FILTER):
            known[FILTER] = {}
        self._require(method, [*known, size])

        def ask(query: str, k: int, only: Any = None) -> Any:
            more = {**known, size: k} if size else known
            if filters and only is not None:
                more = {**more, FILTER: only}
            return method(query=query, **more) if by_name else method(query, **more)

        return ask

    def _require(self, method: Callable[..., Any], given: Sequence[str | None]) -> None:
        """Refuse a callable that takes no query, or needs more than it gets."""
        parameters = _parameters(method)
        if parameters is None:
            return
        if not parameters:
            raise TypeError(f"{self._path} takes no query: the question is its first argument")
        query = "query" if _keyword_only(method, "query") else next(iter(parameters))
        named = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        lacking = [
            name for name, parameter in parameters.items()
            if parameter.default is parameter.empty and parameter.kind not in named
            and name != query and name not in given
        ]  # fmt: skip
        if lacking:
            raise TypeError(f"{self._path} needs {', '.join(lacking)} too: give it as a parameter")

    def _run(self, work: Any) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(work)


def _made(factory: Any, params: dict[str, Any]) -> Any:
    built = factory(**params)
    if inspect.isawaitable(built):
        return asyncio.new_event_loop().run_until_complete(_awaited(built))
    return built


def _method(target: Any) -> Callable[..., Any]:
    methods = [each for name in METHODS if callable(each := getattr(target, name, None))]
    if not methods:
        raise TypeError(f"{_kind(target)} has none of {', '.join(METHODS)}")
    chosen: Callable[..., Any] = next(
        (each for each in methods if QUERY_TEXTS in _takes(each)[0]), methods[0]
    )
    return chosen


def _parameters(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a callable by name, or None if they are unknown."""
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return None


def _takes(method: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names of a callable's parameters, and whether it takes any name."""
    parameters = _parameters(method)
    if parameters is None:
        return [], True
    named = [
        parameter.name
        for parameter in parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    return named, any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def _needs(method: Callable[..., Any], name: str) -> bool:
    parameters = _parameters(method) or {}
    return name in parameters and parameters[name].default is inspect.Parameter.empty


def _keyword_only(method: Callable[..., Any], name: str) -> bool:
    parameters = _parameters(method)
    if parameters is None or name not in parameters:
        return False
    return parameters[name].kind is inspect.Parameter.KEYWORD_ONLY or next(iter(parameters)) != name


def _is_haystack(target: Any) -> bool:
    return (
        type(target).__module__.startswith("haystack")
        and hasattr(target, "inputs")
        and hasattr(target, "run")
    )


def _inputs(pipeline: Any, query: str, entry: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a Haystack pipeline.

    They are the query, for each open input named in `QUERIES` or for `entry`.
    """
    given: dict[str, dict[str, Any]] = {}
    if entry:
        part, _, name = entry.partition(".")
        given[part] = {name or "query": query}
    else:
        for part, inputs in pipeline.inputs().items():
            taken = next((name_taken for name_taken in QUERIES if name_taken in inputs), None)
            if taken is not None:
                given[part] = {taken: query}
    if not given:
        raise TypeError(f"no component takes a query by one of {', '.join(QUERIES)}: name it as input")
    for key, value in params.items():
        part, _, name = key.partition(".")
        if not name:
            raise TypeError(f"parameter {key!r} of a pipeline is named component.parameter")
        given.setdefault(part, {})[name] = value
    return given


def _is_lazy(answer: Any) -> bool:
    return isinstance(answer, Iterator) and not isinstance(answer, (str, bytes, list, tuple, Mapping))


async def _awaited(work: Any) -> Any:
    return await work


async def _gathered(work: Any) -> list[Any]:
    return [item async for item in work]


# --- Spans ---

_KINDS = {"RETRIEVER": "retrieve", "RERANKER": "rerank", "EMBEDDING": "embed", "LLM": "generate"}
_OPERATIONS = {
    "embeddings": "embed", "chat": "generate", "text_completion": "generate", "generate_content": "generate",
}  # fmt: skip
_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "embedding.model_name",
    "reranker.model_name",
)
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")


class Spans:
    """Collects OpenTelemetry spans in memory, if the SDK is installed."""

    def __init__(self) -> None:
        self.on = False
        self.ended: list[Any] = []
        self._provider: Any = None

    def listen(self) -> None:
        """Listen to the provider that the pipeline set, or to a new one if it set none."""
        try:
            from opentelemetry import trace  # noqa: PLC0415 - theirs, if at all
            from opentelemetry.sdk.trace import SpanProcessor, TracerProvider  # noqa: PLC0415
        except Exception:  # whatever their installation raises
            return
        provider = trace.get_tracer_provider()
        if provider is self._provider:
            return
        if not hasattr(provider, "add_span_processor"):
            provider = TracerProvider()
            trace.set_tracer_provider(provider)
        ended = self.ended

        class Catcher(SpanProcessor):  # type: ignore[misc]
            def on_end(self, span: Any) -> None:
                ended.append(span)

        provider.add_span_processor(Catcher())
        self._provider, self.on = provider, True

    def clear(self) -> None:
        """Drop the collected spans."""
        self.ended.clear()

    def read(self) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Return milliseconds by stage, without the time of spans inside, and tokens by model."""
        spans = list(self.ended)
        stage_of = {span.context.span_id: _stage_of(span) for span in spans}
        parent_of = {span.context.span_id: span.parent.span_id if span.parent else None for span in spans}
        stages: dict[str, float] = {}
        usage: dict[str, dict[str, Any]] = {}
        for span in spans:
            stage = stage_of[span.context.span_id]
            if not stage:
                continue
            ms = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
            stages[stage] = stages.get(stage, 0.0) + ms
            above = parent_of[span.context.span_id]
            while above is not None and not stage_of.get(above):
                above = parent_of.get(above)
            if above is not None:
                stages[stage_of[above]] = stages.get(stage_of[above], 0.0) - ms
            _add_tokens(usage, span.attributes or {})
        return {name: ms for name, ms in stages.items() if ms > 0}, list(usage.values())


def _stage_of(span: Any) -> str:
    attributes = span.attributes or {}
    kind = attributes.get("openinference.span.kind")
    return (
        _KINDS.get(str(kind).upper()) or _OPERATIONS.get(str(attributes.get("gen_ai.operation.name"))) or ""
    )


def _add_tokens(usage: dict[str, dict[str, Any]], attributes: Mapping[str, Any]) -> None:
    model = next((str(attributes[key]) for key in _MODELS if attributes.get(key)), "")
    for unit, keys in (("input_tokens", _INPUT), ("output_tokens", _OUTPUT)):
        amount = next(
            (_number(attributes[key]) for key in keys if _number(attributes.get(key)) is not None), None
        )
        if amount is not None:
            row = usage.setdefault(model, {"model": model})
            row[unit] = row.get(unit, 0.0) + amount


# --- Over the pipes ---


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message, or None at the end."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    body = stream.read(size)
    return json.loads(body) if len(body) == size else None


def packed(message: dict[str, Any]) -> bytes:
    """Return a message: four bytes of length, then JSON; NaN and infinities become null."""
    body = json.dumps(message, default=str).encode("utf-8", "surrogatepass")
    return struct.pack(">I", len(body)) + body


def _finite(hits: list[Any], notes: dict[str, int]) -> list[Any]:
    for hit in hits:
        if hit[1] is not None and not math.isfinite(hit[1]):
            notes["not_a_number"] = notes.get("not_a_number", 0) + 1
            hit[1] = None
    return hits


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _fault(kind: str, error: BaseException) -> dict[str, Any]:
    """Return a fault with the last part of its traceback in the pipeline's own code."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename) != os.path.abspath(__file__) and "importlib" not in frame.filename
    ]  # fmt: skip
    where = "; ".join(f"{os.path.basename(f.filename)}:{f.lineno} in {f.name}" for f in frames[-3:])
    said = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    traceback.print_exception(type(error), error, error.__traceback__)  # the whole traceback, in the log
    return {"fault": {"kind": kind, "text": said[:1000], "where": where[:500]}}


class Server:
    """Answers messages until there are no more."""

    def __init__(self, given: BinaryIO, taken: BinaryIO) -> None:
        self._given, self._taken = given, taken
        self._spans = Spans()
        self._pipeline: Any = None
        self._most = 0

    def serve(self) -> None:
        """Answer until the other side closes."""
        while True:
            message = read_message(self._given)
            if message is None:
                return
            for answer in self._answers(message):
                self._taken.write(self._bounded(answer))
            self._taken.flush()

    def _answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if "call" in message:
            return [self.begin(message)]
        if "echo" in message:
            return [self.echo(int(message["k"]), int(message["echo"]))]
        return self.ask(message)

    def _bounded(self, answer: dict[str, Any]) -> bytes:
        data = packed(answer)
        if not self._most or len(data) <= self._most:
            return data
        text = f"the answer takes {len(data) / 1e6:.1f} MB, and {self._most / 1e6:g} MB are allowed"
        return packed({"ms": answer.get("ms"), "fault": {"kind": "too large", "text": text, "where": ""}})

    def begin(self, told: dict[str, Any]) -> dict[str, Any]:
        """Look up the pipeline to ask; return a description of it, or the fault."""
        begin, version = time.perf_counter(), tuple(sys.version_info[:3])
        if version < OLDEST:
            text = f"Python {_dotted(OLDEST)} or later is needed, found {_dotted(version)}"
            return {"fault": {"kind": "start", "text": text, "where": ""}}
        self._most = int(told.get("max_bytes") or 0)
        _limit_memory(told.get("memory_mb"))
        try:
            self._pipeline = Pipeline(
                told["call"], entry=told.get("input") or "", output=told.get("output") or ""
            )
            for params in told.get("params") or [{}]:
                self._pipeline.prepared(params)
        except BaseException as error:  # whatever their code raises, sys.exit included
            return _fault("start", error)
        self._spans.listen()
        return {
            "ready": True,
            "start_s": time.perf_counter() - begin,
            "python": _dotted(version),
            "packages": _versions(),
            "size": self._pipeline.size or "",
            "filters": self._pipeline.filters,
            "spans": self._spans.on,
        }

    def ask(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        """Ask queries one after another, as a plain loop does; return for each its passages or its fault."""
        k, params = int(told["k"]), told.get("params") or {}
        return self._row(told["queries"], k, lambda: self._pipeline.prepared(params), told.get("filters"))

    def echo(self, k: int, times: int) -> dict[str, Any]:
        """Time a pipeline that returns the same ids at once: the minimum time of a query here."""
        ids = [str(place) for place in range(k)]
        answers = self._row([""] * times, k, lambda: lambda _, __: ids)
        return {"ms": [answer["ms"] for answer in answers]}

    def _row(
        self, queries: Sequence[str], k: int, find: Callable[[], Ask], filters: Sequence[Any] | None = None
    ) -> list[dict[str, Any]]:
        """Ask all, then read the answers: reading in between would leave cold caches for the next query."""
        if filters is None:
            taken = [self._take(find, query, k) for query in queries]
        else:
            taken = [self._take(find, query, k, only) for query, only in zip(queries, filters)]
        read = [told if answer is None else self._read(told, answer, k) for told, answer in taken]
        self._spans.listen()  # the first call may have set a provider
        return read

    def _take(self, find: Callable[[], Ask], query: str, k: int, *only: Any) -> tuple[dict[str, Any], Any]:
        """Ask one query; return its times and an answer yet to be read, or the whole reply and None."""
        _stages.clear()
        self._spans.clear()
        begin = time.perf_counter_ns()
        try:
            ask, finished = find(), self._pipeline.finished
            cpu = time.process_time_ns()
            begin = time.perf_counter_ns()
            answer = finished(ask(query, k, *only))
            ms = (time.perf_counter_ns() - begin) / 1e6
            cpu_ms = (time.process_time_ns() - cpu) / 1e6
        except BaseException as error:  # whatever their code raises
            kind = {MemoryError: "memory", SystemExit: "exit"}.get(type(error), "exception")
            return {"ms": (time.perf_counter_ns() - begin) / 1e6, **_fault(kind, error)}, None
        told = {"ms": ms, "cpu_ms": cpu_ms}
        if _lasts(answer) and not _stages and not self._spans.ended:
            return told, list(answer)
        return self._read(told, answer, k), None

    def _read(self, times: dict[str, Any], answer: Any, k: int) -> dict[str, Any]:
        try:
            return {**times, **self._said(answer, k)}
        except Refused as error:
            return {"ms": times["ms"], "fault": {"kind": "shape", "text": str(error), "where": ""}}
        except Exception as error:  # properties of their objects run their code
            return {"ms": times["ms"], **_fault("shape", error)}

    def _said(self, answer: Any, k: int) -> dict[str, Any]:
        fields, notes = understood(answer, self._pipeline.output), dict[str, int]()
        fields["hits"] = _finite(fields["hits"][:k], notes)
        if "pool" in fields:
            fields["pool"] = _finite(fields["pool"], notes)
        spans, usage = self._spans.read()
        fields.setdefault("stages", dict(_stages) or spans)
        if usage and "usage" not in fields:
            fields["usage"] = usage
        return {**fields, "notes": notes}


def _lasts(answer: Any) -> bool:
    """Return whether an answer survives the next query unchanged: a list of ids, or of tuples of them."""
    return type(answer) is list and bool(answer) and type(answer[0]) in (str, int, tuple)


def _versions() -> dict[str, str]:
    from importlib import metadata  # noqa: PLC0415 - half a tenth of a second

    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _limit_memory(megabytes: float | None) -> None:
    if not megabytes:
        return
    import resource  # noqa: PLC0415 - not on every system

    most = int(megabytes * 1_000_000)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_parent(parent: int) -> None:
    """End this process once its parent has ended, even in the middle of a call."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def main(folder: str) -> None:
    """Serve standard input and output; what the pipeline prints goes to standard error, the log."""
    given, taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.modules["clq_worker"] = sys.modules[__name__]
    sys.path[0] = folder  # in place of this file's own folder
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    Server(given, taken).serve()


if __name__ == "__main__":
    main(sys.argv[1])
