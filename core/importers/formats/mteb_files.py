"""MTEB's files: which there are, which model and task they are of, and what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from core.errors import InputError
from core.importers.account import TAKEN
from core.importers.read.jsons import Json, at, expect, optional, read_json
from core.importers.read.outline import outline
from core.importers.read.piece import Piece
from core.importers.read.text import shown

MEASURE = re.compile(r"(?P<name>ndcg|map|mrr|recall|precision|hit_rate)(?:_at_(?P<k>[1-9]\d{0,5}))?")
_FACTS = {
    "dataset_revision", "evaluation_time", "kg_co2_emissions", "mteb_version", "mteb_dataset_name",
    "task_name", "date", "dataset_name",
}  # fmt: skip
_RANKS = re.compile(r"(ndcg|map|mrr)(_at_[1-9]\d*)?")
_KINDS = (
    ("clustering", re.compile(r"v_measures?")),
    ("similarity of texts", re.compile(r"(\w+_)?(spearman|pearson)|cos_sim|manhattan|euclidean")),
    (
        "pairs of texts",
        re.compile(r"(max|similarity|cosine|cos_sim|dot|manhattan|euclidean)_(ap|f1|accuracy)"),
    ),
    ("classification", re.compile(r"lrap|ap|\w+_weighted|accuracy_stderr|scores_per_experiment")),
    ("mining of translations", re.compile(r"recall")),
    ("classification", re.compile(r"accuracy")),
)
"""Kinds of tasks without ranked lists, each with a measure that it has; the most telling first."""
RETRIEVAL, OTHER = "retrieval and reranking", "other tasks"
NOT_MEASURES = re.compile(r"nauc_.*|evaluation_time|main_score", re.IGNORECASE)
_EXPERIMENTS = "experiments"
_SPLIT, _SUBSET = "test", "default"
"""What names leave out."""
_SPLITS = {_SPLIT, "dev", "train", "val", "validation"}
_NO_RANKS = "no measure of retrieval"
_FIGURES = {
    **dict.fromkeys(("ndcg*", "map*", "mrr*", "recall*", "precision*", "hit_rate*", "hf_subset"), TAKEN),
    "main_score": "it repeats one of the measures",
    "languages": "the subset is named",
    "evaluation_time": "it is no time of a query",
}
_HEADS = ("scores.*", "*", "*.*")
"""Where measures stand: in new results, in old ones, and in old ones with subsets."""
PARTS, ALL_PARTS = (
    {
        **dict.fromkeys(_FACTS, TAKEN),
        **{f"{head}.{key}": verdict for head in _HEADS for key, verdict in (_FIGURES | others).items()},
        "*.*": _NO_RANKS,
    }
    for others in (dict.fromkeys(("nauc_*", "nAUC_*", "accuracy*"), _NO_RANKS), {"*": TAKEN})
)
"""What of a file is taken, of retrieval tasks only and of all."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a file says of one split and subset."""

    piece: Piece
    task: str
    split: str
    subset: str
    scores: Json
    facts: Json

    @property
    def collection(self) -> str:
        """What it was measured on: a name that no other task, split and subset have."""
        whole = (self.task, self.split, self.subset)
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


def last_keys(piece: Piece) -> frozenset[str]:
    """The last keys of all paths in the head of a file."""
    return frozenset(path.rsplit(".", 1)[-1] for path in outline(piece))


def task_kind(keys: Iterable[str]) -> str:
    """What kind of task these measures are of."""
    keys = set(keys)
    if any(_RANKS.fullmatch(key) for key in keys):
        return RETRIEVAL
    told = (kind for kind, mark in _KINDS if any(mark.fullmatch(key) for key in keys))
    return next(told, OTHER)


def kind(piece: Piece) -> str | None:
    """Whether a file holds "results", describes a "model", or neither."""
    seen = outline(piece)
    if "object" not in seen.get("", ()):
        return None
    keys = {path for path in seen if path and "." not in path and "[" not in path}
    if "scores" in keys and keys & {"mteb_version", "task_name", "dataset_revision"}:
        return "results" if any(path.endswith("main_score") for path in seen) else None
    if keys & {"mteb_version", "mteb_dataset_name"} and any(
        re.search(r"(_at_10|main_score|evaluation_time|\.map|\.mrr)$", path) for path in seen
    ):
        return "results"
    if {"name", "revision"} <= keys and keys & {"loader", "n_parameters", "embed_dim"}:
        return "model"
    return None


def folder(piece: Piece) -> str:
    """The folder of a file: results and the description of their model are in the same."""
    return str(PurePosixPath(piece.relative).parent)


def meta_of(piece: Piece | None) -> Json:
    """The description of a model; empty if there is none."""
    value = read_json(piece) if piece else {}
    if piece and not isinstance(value, dict):
        raise InputError("It is not an object.", where=piece.name)
    return value if isinstance(value, dict) else {}


def model_of(piece: Piece, meta: Piece | None) -> str:
    """The model's name: from its description, else from the folder above the revision's."""
    told = optional(meta_of(meta), "name", str, meta.name) if meta else None
    if told:
        return told
    parts, _ = place_of(piece)
    return parts[-3].replace("__", "/") if len(parts) >= 3 else "unnamed model"


def place_of(piece: Piece) -> tuple[tuple[str, ...], str]:
    """Folders and name of a result, and its experiment (``revision/experiments/NAME/task.json``) if any."""
    parts = PurePosixPath(piece.relative).parts
    if len(parts) < 5 and piece.path is not None:
        parts = piece.path.absolute().parts
    if len(parts) > 2 and parts[-3] == _EXPERIMENTS:
        return (*parts[:-3], parts[-1]), shown(parts[-2], 100)
    return parts, ""


def results(piece: Piece) -> Iterator[Result]:
    """What a file says of every split and subset, in both forms."""
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
                yield Result(piece, task, split, subset, scores, facts)
        return
    for split, scores in whole.items():
        if split in _FACTS or not isinstance(scores, dict):
            continue
        facts |= {"evaluation_time": scores["evaluation_time"]} if "evaluation_time" in scores else {}
        subsets = {key: each for key, each in scores.items() if isinstance(each, dict)}
        if any(MEASURE.fullmatch(key) for key in scores) or not subsets:
            subsets = {_SUBSET: scores}
        for subset, values in subsets.items():
            yield Result(piece, task, split, subset, values, facts)


def _list(value: object, where: str) -> list[Json]:
    if not isinstance(value, list):
        raise InputError("It is not a list.", where=where)
    return value
