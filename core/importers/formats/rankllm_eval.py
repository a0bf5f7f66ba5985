r"""Aggregated results of rank_llm: what trec_eval said of every file of rankings, ``{file, result}`` a line.

``result`` holds trec_eval's lines (``ndcg_cut_10 \tall\t0.7493``) or objects {metric, value}. The tool names
files of rankings after model, data set and settings: data sets that it knows are collections of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from core.errors import InputError
from core.importers.account import TAKEN, Parts
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.read.jsons import Json, at, expect, number
from core.importers.read.objects import objects
from core.importers.read.outline import outline
from core.importers.read.piece import Piece, Tree
from core.importers.read.text import quoted, shown
from core.importers.reported import MEASURES, Figure, Reported, reported_runs

_NAME = re.compile(
    r"(?P<name>ndcg|map|recip_rank|mrr|recall|P|success)(?:_cut)?(?:[_@.](?P<k>[1-9]\d{0,5}))?", re.IGNORECASE
)
_QUERIES = "num_q"
_COUNTS = re.compile(r"num_(ret|rel|rel_ret|nonrel_judged_ret)|runid")
_ALL = "all"
_DATASETS = re.compile(
    r"(?:^|[_.-])(dl(?:19|2[0-3])|covid|arguana|touche|news|scifact|fiqa|scidocs|nfc|quora|dbpedia|fever|robust04"
    r"|signal|rag24(?:\.\w+)?)(?=[_.-]|$)"
)


class RankLlmResults(Format):
    """Results of rank_llm's evaluations, one run per file of rankings."""

    name, title = "rank-llm-results", "rank_llm aggregated results (JSONL)"
    brings = ("aggregates",)
    takes = {"aggregates": "every measure of trec_eval over all queries, with its cutoff"}  # noqa: RUF012
    recognised = "objects with file and result[], trec_eval's lines or {metric, value}"
    traps = (
        "Values of single queries are left out: they are not the mean over all.",
        "Of several lines for one file of rankings the last counts: the tool adds to its file.",
    )

    def sniff(self, probe: Tree) -> float:
        """Sure when every file of it has results of files."""
        return SURE if probe.pieces and all(map(_is_results, probe.pieces)) else 0.0

    def parts(self, piece: Piece, options: Options) -> Parts | str | None:  # noqa: ARG002
        """Files and their results."""
        return {"file": TAKEN, "result.metric": TAKEN, "result.value": TAKEN}

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read the results of every file of rankings."""
        found: dict[tuple[str, str], Reported] = {}
        lines, unknown = 0, 0
        for piece in (piece for tree in trees for piece in tree.pieces):
            for where, entry in objects(piece):
                made, others = _reported(piece, entry, where)
                lines += 1
                unknown += others
                found[piece.name, str(made.decided["file"])] = made
        with_figures = [each for each in found.values() if each.figures]
        if not with_figures:
            raise InputError("No file of rankings has a result.", where=trees[0].name)
        counted = (
            (lines - len(found), "earlier results of a file of rankings that has later ones"),
            (len(found) - len(with_figures), "files of rankings without a mean over all queries"),
            (unknown, "results that are no measure over all queries"),
        )
        left = tuple(LeftOut(count, why, trees[0].name) for count, why in counted if count)
        note = "Data sets are told by the names of the files of rankings; each is a collection of its own."
        named = any(each.collection for each in with_figures)
        made_runs = reported_runs(with_figures, options, importer=self.name, source="rank_llm results")
        return merged((made_runs, Import(left_out=left, notes=(note,) * named)))


def _is_results(piece: Piece) -> bool:
    shape = outline(piece)
    root = "[]." if "list" in shape.get("", ()) else ""
    lines = "text" in shape.get(f"{root}result[]", ())
    return f"{root}file" in shape and (lines or f"{root}result[].metric" in shape)


def _reported(piece: Piece, entry: Json, where: str) -> tuple[Reported, int]:
    """The run of a line, and how many of its results are none."""
    path = expect(entry, "file", str, where)
    name = PurePosixPath(path.replace("\\", "/")).name
    label = shown(re.sub(r"\.(txt|trec|run|tsv)$", "", name) or "unnamed", 200)
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
    dataset = _DATASETS.search(label)
    made = Reported(
        label=label,
        stem=piece.stem,
        digest=piece.digest,
        decided={"file": shown(path, 500)},
        spec={"name": label},
        figures=_figures(values, queries),
        collection=dataset[1] if dataset else "",
        manifest={"file": shown(path, 500)},
    )
    return made, others


def _results(entry: Json, where: str) -> Iterator[tuple[str, str, float | None]]:
    """Measure, query and value of every result of a line; None where a value is no number."""
    for index, each in enumerate(expect(entry, "result", list, where)):
        spot = at(where, "result", index)
        if isinstance(each, dict):
            yield expect(each, "metric", str, spot).strip(), _ALL, number(each, "value", spot)
            continue
        fields = each.split() if isinstance(each, str) else []
        if len(fields) != 3:
            raise InputError(f"{quoted(each)} is not a measure, a query and a value.", where=spot)
        measure, query, value = fields
        yield measure, query, None if _COUNTS.fullmatch(measure) else number(_parsed(value), "value", spot)


def _parsed(value: str) -> Mapping[str, object]:
    try:
        return {"value": float(value)}
    except ValueError:
        return {"value": value}


def _figures(values: Mapping[str, float], queries: int | None) -> tuple[Figure, ...]:
    figures: dict[tuple[str, int | None], Figure] = {}
    for measure, value in values.items():
        known = _NAME.fullmatch(measure)
        name = _measure(known["name"]) if known else shown(measure)
        k = int(known["k"]) if known and known["k"] else None
        figures[name, k] = Figure(measure=name, value=value, k=k, n=queries)
    return tuple(figures.values())


def _measure(name: str) -> str:
    plain = name.lower()
    return MEASURES["mrr" if plain == "recip_rank" else plain]
