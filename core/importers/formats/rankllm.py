r"""rank_llm and pyserini: reranked lists, and trec_eval's results for files of rankings.

Results are {query: {text, qid}, candidates: [{docid, score, doc}]}, a list or lines. Candidates are in their
ranked order; that order counts, not their scores, which some rerankers leave unchanged. A history of calls
({query, invocations_history}) beside a single file of results supplies the reranker's tokens.

Aggregated results are {file, result} per line, where ``result`` holds trec_eval's lines
(``ndcg_cut_10 \tall\t0.7493``) or objects {metric, value}. The tool names files of rankings after model,
window, depth, data set and settings, and their folder after the first stage: known data sets are collections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.read.jsons import (
    Json,
    amount,
    at,
    expect,
    identifier,
    number,
    objects,
    outline,
    text,
)
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, keys_of
from core.importers.read.text import quoted, shown
from core.importers.report import TAKEN
from core.importers.runs import Figure, Reported, of_tool, reported_runs
from core.importers.samples import UNNAMED, AnsweredSamples, FormatSample, answered, assemble

_QUERY: Fields = {"id": ("query.qid!", identifier), "text": ("query.text", text)}
_CANDIDATE: Fields = {"id": ("docid!", identifier), "score": ("score", number)}
_TEXTS = ("contents", "content", "text", "segment", "passage", "body", "abstract")
_RESULT: Fields = {**_QUERY, "candidates": ("candidates!", _CANDIDATE)}
_CALL: Fields = {
    "input_tokens": ("input_token_count", amount), "output_tokens": ("output_token_count", amount),
}  # fmt: skip
_HISTORY: Fields = {"id": _QUERY["id"], "calls": ("invocations_history!", _CALL)}
_UNNAMED = "The histories of calls do not say which model was called; its tokens have no price."

_QUERIES = "num_q"
_MODEL = re.compile(r"(?P<model>.+?)_\d+_(?P<depth>[1-9]\d{0,5})_")
_NO_STAGE = {"", ".", "..", "/", "rerank_results", "results", "runs", "output", "outputs"}
_COUNTS = re.compile(r"num_(ret|rel|rel_ret|nonrel_judged_ret)|runid")
_ALL = "all"
_DATASETS = re.compile(
    r"(?:^|[_.-])(dl(?:19|2[0-3])|covid|arguana|touche|news|scifact|fiqa|scidocs|nfc|quora|dbpedia|fever|robust04"
    r"|signal|rag24(?:\.\w+)?)(?=[_.-]|$)"
)


class RankLlm(Format):
    """Reranked lists with their texts, and the tokens of the calls that made them."""

    name, title = "rank-llm", "rank_llm results (JSON, JSONL)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "rankings": "the candidates in their order, with their scores",
        "usage": "input and output tokens of the reranker, from the history of calls",
    }
    recognised = "objects with query{text, qid} and candidates[{docid, score, doc}]"
    traps = ("The order of the candidates counts; scores that contradict it are kept as they are.",)
    names_collection = 1
    known = {
        "results": dict.fromkeys(
            (*keys_of(_RESULT), *(f"candidates.doc.{name}" for name in ("title", *_TEXTS))), TAKEN
        ),
        "calls": dict.fromkeys(keys_of(_HISTORY), TAKEN),
    }

    def kind(self, member: Member) -> str | None:
        seen = outline(member)
        for root in ("[]", ""):
            keys = {path.removeprefix(f"{root}.").lstrip(".") for path in seen if path.startswith(root)}
            if "query.qid" in keys and "candidates" in keys:
                return "results"
            if "query.qid" in keys and "invocations_history" in keys:
                return "calls"
        return None

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every file of results as a run."""
        members = members_of(archives)
        results = [member for member in members if self.kind(member) != "calls"]
        calls = [member for member in members if member not in results]
        if not results:
            raise InputError("There is a history of calls, but no results.", where=calls[0].name)
        used: dict[str, dict[str, float]] = {}
        for member in calls if len(results) == 1 else ():
            _count_tokens(member, used)
        parts = [_answered(member, used) for member in results]
        imported = assemble(parts, options, importer=self.name, source="rank_llm results")
        if not calls:
            return imported
        why = "histories of calls: which of several results they belong to is not known"
        unused = Import(left_out=counted({why: len(calls)}, calls[0].name))
        return merged((imported, unused if len(results) > 1 else Import(notes=(_UNNAMED,))))


def _answered(member: Member, used: Mapping[str, Mapping[str, float]]) -> AnsweredSamples:
    samples: dict[str, FormatSample] = {}
    for where, entry in objects(member):
        result = PathRow(entry, _RESULT, where)
        if (query := result["id"]) in samples:
            raise InputError(f"The query {quoted(query)} stands twice.", where=where)
        candidates = result["candidates"]
        samples[query] = FormatSample(
            query_id=query,
            text=result["text"] or query,
            contexts=[_text(candidate.holder) for candidate in candidates],
            context_ids=[candidate["id"] for candidate in candidates],
            scores=[candidate["score"] for candidate in candidates],
            used={("rerank", UNNAMED, unit): count for unit, count in used.get(query, {}).items()},
        )
    if not samples:
        raise InputError("The file holds no results.", where=member.name)
    return answered(member, list(samples.values()))


def _text(candidate: object) -> str | None:
    doc = candidate.get("doc") if isinstance(candidate, dict) else None
    if isinstance(doc, str):
        return doc or None
    if not isinstance(doc, dict):
        return None
    title, words = (
        next((doc[key] for key in keys if isinstance(doc.get(key), str)), None)
        for keys in (["title"], _TEXTS)
    )
    return f"{title}\n{words}" if title and words else words or title


def _count_tokens(member: Member, used: dict[str, dict[str, float]]) -> None:
    for where, entry in objects(member):
        history = PathRow(entry, _HISTORY, where)
        counts = used.setdefault(history["id"], {})
        for call in history["calls"]:
            for unit in _CALL:
                if (count := call[unit]) is not None:
                    counts[unit] = counts.get(unit, 0.0) + count


class RankLlmResults(Format):
    """Results of rank_llm's evaluations, one run per file of rankings."""

    name, title = "rank-llm-results", "rank_llm aggregated results (JSONL)"
    takes = {"aggregates": "every measure of trec_eval over all queries, with its cutoff"}
    known = {"results": dict.fromkeys(("file", "result.metric", "result.value"), TAKEN)}
    recognised = "objects with file and result[], trec_eval's lines or {metric, value}"
    traps = (
        "Values of single queries are left out: they are not the mean over all.",
        "Of several lines for one file of rankings the last counts: the tool adds to its file.",
    )

    def kind(self, member: Member) -> str | None:
        shape = outline(member)
        root = "[]." if "list" in shape.get("", ()) else ""
        lines = "text" in shape.get(f"{root}result[]", ())
        known = f"{root}file" in shape and (lines or f"{root}result[].metric" in shape)
        return "results" if known else None

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read the results of every file of rankings."""
        latest: dict[tuple[str, str], Reported] = {}
        lines, unknown = 0, 0
        for member in members_of(archives):
            for where, entry in objects(member):
                reported, others = _reported(member, entry, where)
                lines += 1
                unknown += others
                latest[member.name, str(reported.decided["file"])] = reported
        with_figures = [report for report in latest.values() if report.figures]
        if not with_figures:
            raise InputError("No file of rankings has a result.", where=archives[0].name)
        left = {
            "earlier results of a file of rankings that has later ones": lines - len(latest),
            "files of rankings without a mean over all queries": len(latest) - len(with_figures),
            "results that are not a measure over all queries": unknown,
        }
        note = "Data sets are told by the names of the files of rankings; each is a collection of its own."
        named = any(with_figure.collection for with_figure in with_figures)
        made_runs = reported_runs(with_figures, options, importer=self.name, source="rank_llm results")
        return merged((made_runs, Import(left_out=counted(left, archives[0].name), notes=(note,) * named)))


def _reported(member: Member, entry: Json, where: str) -> tuple[Reported, int]:
    """Return the run of a line, and how many of its results are not numbers."""
    path = expect(entry, "file", str, where)
    name = PurePosixPath(path.replace("\\", "/")).name
    own = re.sub(r"\.(txt|trec|run|tsv)$", "", name) or "unnamed"
    stage = _first_stage(path)
    label = shown(f"{stage} + {own}" if stage else own, 200)
    values: dict[str, float] = {}
    others = 0
    for measure, query, value in _results(entry, where):
        if query != _ALL or value is None or _COUNTS.fullmatch(measure):
            others += 1
        elif measure in values:
            raise InputError(f"The measure {quoted(measure)} stands twice.", where=where)
        else:
            values[measure] = value
    n = values.pop(_QUERIES, None)
    queries = int(n) if n is not None and n >= 0 and n.is_integer() and n < 1 << 31 else None
    dataset = _DATASETS.search(own)
    reported = Reported(
        label=label,
        stem=member.stem,
        digest=member.digest,
        decided={"file": shown(path, 500)},
        spec={"name": label, **_spec(own, stage)},
        figures=_figures(values, queries),
        collection=dataset[1] if dataset else "",
        manifest={"file": shown(path, 500)},
    )
    return reported, others


def _first_stage(path: str) -> str:
    """Return the first-stage retriever from the folder of a file of rankings, or "" if it isn't named."""
    folder = PurePosixPath(path.replace("\\", "/")).parent.name
    return "" if folder.lower() in _NO_STAGE else folder


def _spec(name: str, stage: str) -> Json:
    model = _MODEL.match(name)
    spec: Json = {"reranker": shown(model["model"]), "candidates": int(model["depth"])} if model else {}
    if not stage:
        return spec
    return spec | (
        {"mode": "sparse", "sparse": "bm25"} if stage.lower() == "bm25" else {"retriever": shown(stage)}
    )


def _results(entry: Json, where: str) -> Iterator[tuple[str, str, float | None]]:
    """Yield measure, query and value of every result on a line, with None for values that aren't numbers."""
    for index, result in enumerate(expect(entry, "result", list, where)):
        spot = at(where, "result", index)
        if isinstance(result, dict):
            yield expect(result, "metric", str, spot).strip(), _ALL, number(result, "value", spot)
            continue
        fields = result.split() if isinstance(result, str) else []
        if len(fields) != 3:
            raise InputError(f"{quoted(result)} is not a measure, a query and a value.", where=spot)
        measure, query, text = fields
        value: float | str = text
        with suppress(ValueError):  # a text that isn't a number is refused with its key
            value = float(text)
        counts = _COUNTS.fullmatch(measure)
        yield measure, query, None if counts else number({"value": value}, "value", spot)


def _figures(values: Mapping[str, float], queries: int | None) -> tuple[Figure, ...]:
    figures: dict[tuple[str, int | None], Figure] = {}
    for measure, value in values.items():
        name, k = of_tool(measure)
        figures[name, k] = Figure(measure=name, value=value, k=k, n=queries)
    return tuple(figures.values())
