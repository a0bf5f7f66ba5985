"""Results of MTEB: one file per model, revision and task, ``model_meta.json`` beside them.

Two forms: scores{split: [{hf_subset, ndcg_at_10, …}]}, and the older one with the splits at the top and, for
several languages, a level of subsets. Each task, split and subset is a collection of its own: their queries
differ. MTEB says neither how many queries there were nor how long one took (`evaluation_time` is the whole
evaluation with the encoding of the corpus).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from core.errors import InputError
from core.importers.base import RESEMBLES, SURE, Format, Import, LeftOut, Options, merged
from core.importers.jsons import Json, at, expect, number, optional, read_json
from core.importers.kept import kept
from core.importers.outline import outline
from core.importers.piece import Piece, Tree
from core.importers.reported import MEASURES, Figure, Reported, reported_runs
from core.importers.text import shown

_MEASURE = re.compile(r"(?P<name>ndcg|map|mrr|recall|precision|hit_rate)(?:_at_(?P<k>[1-9]\d{0,5}))?")
_FACTS = {
    "dataset_revision", "evaluation_time", "kg_co2_emissions", "mteb_version", "mteb_dataset_name",
    "task_name", "date", "dataset_name",
}  # fmt: skip
_EXPERIMENTS = "experiments"
_SPLIT, _SUBSET = "test", "default"
"""What names leave out."""
_SPLITS = {_SPLIT, "dev", "train", "val", "validation"}
_NO_LATENCY = "evaluation times: of a whole evaluation, not of a query (kept in the manifest)"


@dataclass(frozen=True, slots=True)
class _Result:
    """What a file says of one split and subset."""

    piece: Piece
    task: str
    split: str
    subset: str
    scores: Json
    facts: Json


class Mteb(Format):
    """Result files of MTEB, one run per model, task, split and subset."""

    name, title = "mteb", "MTEB results"
    brings = ("aggregates",)
    takes = {"aggregates": "nDCG, AP, RR, R, P and Success at every cutoff, per task, split and subset"}  # noqa: RUF012
    recognised = "JSON with scores per split and an MTEB version or dataset name, model_meta.json beside it"
    traps = (
        "evaluation_time is not a latency per query and becomes none.",
        "nAUC and other scores are left out and counted; main_score repeats one of the measures.",
        "Numbers of queries are not in the files, so that they stay unknown.",
    )

    def sniff(self, probe: Tree) -> float:
        """Sure when a file of it holds results; a description of a model alone resembles it."""
        kinds = {_kind(piece) for piece in probe.pieces}
        return SURE if "results" in kinds else RESEMBLES if "model" in kinds else 0.0

    def why_not(self, probe: Tree) -> str:  # noqa: ARG002
        """A model's description without results."""
        return "it describes a model, but there are no results beside it"

    def mine(self, probe: Tree) -> tuple[Piece, ...]:
        """Results and descriptions of models."""
        return tuple(piece for piece in probe.pieces if _kind(piece))

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read results with the descriptions of their models."""
        found: list[Reported] = []
        left, notes, used = [], [], set()
        others = timed = 0
        for tree in trees:
            metas = {_folder(piece): piece for piece in tree.pieces if _kind(piece) == "model"}
            for piece in (each for each in tree.pieces if _kind(each) != "model"):
                meta = metas.get(_folder(piece))
                used |= {meta.name} if meta else set()
                model = _model(piece, meta)
                for result in _results(piece):
                    made, rest = _reported(result, model, _meta(meta))
                    others += rest
                    timed += "evaluation_time" in result.facts
                    if made.figures:
                        found.append(made)
                    else:
                        left.append(LeftOut(1, "results without a measure of retrieval", piece.name))
                if meta is None:
                    notes.append(
                        f"{piece.name}: no model_meta.json beside it; the model is called {shown(model)}."
                    )
            idle = [piece.name for piece in metas.values() if piece.name not in used]
            left += [LeftOut(len(idle), "descriptions of models without results", idle[0])] if idle else []
        if not found:
            raise InputError("There is no measure of retrieval in these results.", where=trees[0].name)
        left += (
            [LeftOut(others, "scores that are no measures of retrieval (nAUC and others)")] if others else []
        )
        left += [LeftOut(timed, _NO_LATENCY)] if timed else []
        made_runs = reported_runs(found, options, importer=self.name, source="MTEB results")
        notes.append("MTEB does not say how many queries a result is over.")
        return merged((made_runs, Import(left_out=tuple(left), notes=tuple(notes))))


def _kind(piece: Piece) -> str | None:
    seen = outline(piece)
    if "object" not in seen.get("", ()):
        return None
    keys = {path for path in seen if path and "." not in path and "[" not in path}
    if "scores" in keys and keys & {"mteb_version", "task_name", "dataset_revision"}:
        return "results" if any(path.endswith("main_score") for path in seen) else None
    if keys & {"mteb_version", "mteb_dataset_name"} and any(
        re.search(r"(_at_10|main_score|evaluation_time)$", path) for path in seen
    ):
        return "results"
    if {"name", "revision"} <= keys and keys & {"loader", "n_parameters", "embed_dim"}:
        return "model"
    return None


def _folder(piece: Piece) -> str:
    return str(PurePosixPath(piece.relative).parent)


def _meta(piece: Piece | None) -> Json:
    value = read_json(piece) if piece else {}
    if piece and not isinstance(value, dict):
        raise InputError("It is not an object.", where=piece.name)
    return value if isinstance(value, dict) else {}


def _model(piece: Piece, meta: Piece | None) -> str:
    """The model's name: from its description, else from the folder above the revision's."""
    told = optional(_meta(meta), "name", str, meta.name) if meta else None
    if told:
        return told
    parts, _ = _place(piece)
    return parts[-3].replace("__", "/") if len(parts) >= 3 else "unnamed model"


def _place(piece: Piece) -> tuple[tuple[str, ...], str]:
    """Folders and name of a result, and its experiment (``revision/experiments/NAME/task.json``) if any."""
    parts = PurePosixPath(piece.relative).parts
    if len(parts) < 5 and piece.path is not None:
        parts = piece.path.absolute().parts
    if len(parts) > 2 and parts[-3] == _EXPERIMENTS:
        return (*parts[:-3], parts[-1]), shown(parts[-2], 100)
    return parts, ""


def _results(piece: Piece) -> Iterator[_Result]:
    whole = read_json(piece)
    name = piece.name
    task = optional(whole, "task_name", str, name) or optional(whole, "mteb_dataset_name", str, name)
    task = task or piece.stem
    assert isinstance(whole, dict)  # noqa: S101  (`optional` refuses anything else)
    facts = {key: value for key, value in whole.items() if key in _FACTS}
    if "scores" in whole:
        for split, rows in expect(whole, "scores", dict, name).items():
            for index, scores in enumerate(_list(rows, at(name, "scores", split))):
                where = at(name, "scores", split, index)
                subset = optional(scores, "hf_subset", str, where) or _SUBSET
                yield _Result(piece, task, split, subset, scores, facts)
        return
    for split, scores in whole.items():
        if split in _FACTS or not isinstance(scores, dict):
            continue
        facts |= {"evaluation_time": scores["evaluation_time"]} if "evaluation_time" in scores else {}
        subsets = {key: each for key, each in scores.items() if isinstance(each, dict)}
        if any(_MEASURE.fullmatch(key) for key in scores) or not subsets:
            subsets = {_SUBSET: scores}
        for subset, values in subsets.items():
            yield _Result(piece, task, split, subset, values, facts)


def _list(value: object, where: str) -> list[Json]:
    if not isinstance(value, list):
        raise InputError("It is not a list.", where=where)
    return value


def _reported(result: _Result, model: str, meta: Json) -> tuple[Reported, int]:
    """The stack with its figures, and how many scores are none."""
    where = at(result.piece.name, result.split, result.subset)
    figures, others = [], 0
    for key, given in result.scores.items():
        matched = _MEASURE.fullmatch(key)
        if matched is None:
            others += isinstance(given, int | float) and key not in ("main_score", "evaluation_time")
            continue
        value = number(result.scores, key, where)
        if value is not None:
            k = int(matched["k"]) if matched["k"] else None
            figures.append(Figure(measure=MEASURES[matched["name"]], value=value, k=k))
    revision = optional(meta, "revision", str, "model_meta.json") or ""
    _, experiment = _place(result.piece)
    made = Reported(
        label=f"{model} · {experiment}" if experiment else model,
        stem=revision[:12] or result.piece.stem,
        digest=result.piece.digest,
        decided={
            "task": shown(result.task, 200),
            "split": shown(result.split),
            "subset": shown(result.subset),
        },
        spec={**_spec(model, meta), **({"params": {"experiment": experiment}} if experiment else {})},
        figures=tuple(figures),
        collection=_collection(result),
        manifest={"result": kept(result.facts), "model": kept(meta), "revision": shown(revision)},
    )
    return made, others


def _collection(result: _Result) -> str:
    """What a result was measured on: a name that no other task, split and subset have."""
    whole = (result.task, result.split, result.subset)
    usual = (None, _SPLIT, _SUBSET)
    name = "-".join(part for part, left_out in zip(whole, usual, strict=True) if part != left_out)
    if _parted(name) == whole:
        return name
    return " · ".join(part.replace("·", "··") for part in whole)


def _parted(name: str) -> tuple[str, str, str]:
    """Task, split and subset as they are read off a short name."""
    task, _, rest = name.partition("-")
    split, _, subset = rest.partition("-")
    if split not in _SPLITS:
        split, subset = _SPLIT, rest
    return task, split, subset or _SUBSET


def _spec(model: str, meta: Json) -> Json:
    name = shown(model, 200)
    if "bm25" in model.lower():
        return {"mode": "sparse", "sparse": "bm25", "name": name}
    if meta.get("is_cross_encoder") is True:
        return {"reranker": name, "name": name}
    dim = meta.get("embed_dim")
    size = {"dim": dim} if type(dim) is int and 0 < dim < 1 << 20 else {}
    return {"mode": "dense", "embedder": name, **size}
