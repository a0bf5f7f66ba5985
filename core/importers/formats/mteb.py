"""Results of MTEB: one file per model, revision and task, with ``model_meta.json`` beside them.

There are two forms: scores{split: [{hf_subset, ndcg_at_10, …}]}, and the older one with the splits at the top
and, for several languages, a level of subsets. Each task, split and subset is a separate collection, because
their queries differ. Tasks of retrieval and reranking are taken, recognised by their measures; others on
request. MTEB states neither how many queries there were nor how long one took (`evaluation_time` is the whole
evaluation, including the encoding of the corpus).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from core.errors import InputError
from core.importers.base import RESEMBLES, SURE, Format, Import, Options, counted, merged
from core.importers.read.jsons import Json, at, expect, number, optional, outline, read_object
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, file_report
from core.importers.runs import MEASURES, Figure, Reported, reported_runs
from core.importers.settings import kept

_EMPTY = "results without a measure"
_OTHERS = "scores that are not measures of retrieval (nAUC and others)"
_NO_LATENCY = "evaluation times: of a whole evaluation, not of a query (kept in the manifest)"

_MEASURE = re.compile(r"(?P<name>ndcg|map|mrr|recall|precision|hit_rate)(?:_at_(?P<k>[1-9]\d{0,5}))?")
_FACTS = {
    "dataset_revision", "evaluation_time", "kg_co2_emissions", "mteb_version", "mteb_dataset_name",
    "task_name", "date", "dataset_name",
}  # fmt: skip
_RANKS = re.compile(r"(ndcg|map|mrr)(_at_[1-9]\d*)?")
_KINDS = (
    ("clustering", r"v_measures?"),
    ("similarity of texts", r"(\w+_)?(spearman|pearson)|cos_sim|manhattan|euclidean"),
    ("pairs of texts", r"(max|similarity|cosine|cos_sim|dot|manhattan|euclidean)_(ap|f1|accuracy)"),
    ("classification", r"lrap|ap|\w+_weighted|accuracy_stderr|scores_per_experiment"),
    ("mining of translations", r"recall"),
    ("classification", r"accuracy"),
)
"""Kinds of tasks without ranked lists, each with a characteristic measure; the most telling first."""
_RETRIEVAL, _OTHER = "retrieval and reranking", "other tasks"
_NOT_MEASURES = re.compile(r"nauc_.*|evaluation_time|main_score", re.IGNORECASE)
_EXPERIMENTS = "experiments"
_NO_MODELS = {"results", "mteb", "output", "outputs", "/"}  # Folders that name no model
_REVISION = re.compile(r"[0-9a-f]{7,40}|no_revision_available|external|v?\d+(\.\d+)*", re.IGNORECASE)
_SPLIT, _SUBSET = "test", "default"  # Values that names omit
_SPLITS = {_SPLIT, "dev", "train", "val", "validation"}
_NO_RANKS = "no measure of retrieval"
_FIGURES = {
    **dict.fromkeys(("ndcg*", "map*", "mrr*", "recall*", "precision*", "hit_rate*", "hf_subset"), TAKEN),
    "main_score": "it repeats one of the measures",
    "languages": "the subset is named",
    "evaluation_time": "it is not a time of a query",
}
_HEADS = ("scores.*", "*", "*.*")
"""Paths of measures: in new results, in old ones, and in old ones with subsets."""
_PARTS, _ALL_PARTS = (
    {
        **dict.fromkeys(_FACTS, TAKEN),
        **{f"{head}.{key}": verdict for head in _HEADS for key, verdict in (_FIGURES | others).items()},
        "*.*": _NO_RANKS,
    }
    for others in (dict.fromkeys(("nauc_*", "nAUC_*", "accuracy*"), _NO_RANKS), {"*": TAKEN})
)
"""Parts of a file that are taken: for retrieval tasks only, and for all tasks."""


class Mteb(Format):
    """Result files of MTEB, one run per model, task, split and subset."""

    name, title = "mteb", "MTEB results"
    takes = {
        "aggregates": "nDCG, AP, RR, R, P and Success at every cutoff of retrieval and reranking tasks, per "
        "split and subset; on request (--all-tasks) the measures of other tasks"
    }
    recognised = "JSON with scores per split and an MTEB version or dataset name, model_meta.json beside it"
    traps = (
        "evaluation_time is not a latency per query and becomes none.",
        "nAUC and other scores are left out and counted; main_score repeats one of the measures.",
        "Numbers of queries are not in the files, so that they stay unknown.",
    )

    def sniff(self, probe: Archive) -> float:
        kinds = {kind(member) for member in probe.members}
        return SURE if "results" in kinds else RESEMBLES if "model" in kinds else 0.0

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return "it describes a model, but there are no results beside it"

    def mine(self, probe: Archive) -> tuple[Member, ...]:
        return tuple(member for member in probe.members if kind(member))

    def choices(self, archives: Sequence[Archive]) -> dict[str, tuple[str, ...]]:
        """Offer other kinds of tasks, if any, judging by the last keys of all paths in a file's head."""
        outlines = [outline(member) for member in members_of(archives) if kind(member) == "results"]
        kinds = [_task_kind(path.rsplit(".", 1)[-1] for path in paths) for paths in outlines]
        return {"tasks": (_RETRIEVAL, "all")} if set(kinds) - {_RETRIEVAL} else {}

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        done = _Read(all_tasks=options.all_tasks)
        for archive in archives:
            done.archive(archive)
        if not done.reports:
            raise InputError(
                "There is no measure of retrieval in these results.",
                where=archives[0].name,
                do="--all-tasks takes the measures of other tasks." if done.other_tasks else "",
            )
        notes = (*done.notes, "MTEB does not say how many queries a result is over.")
        runs = reported_runs(done.reports, options, importer=self.name, source="MTEB results")
        rest = Import(left_out=counted(done.left), reports=tuple(done.file_reports), notes=notes)
        return merged((runs, rest))


@dataclass
class _Read:
    all_tasks: bool  # whether tasks other than retrieval are taken
    reports: list[Reported] = field(default_factory=list)  # results that are taken
    file_reports: list[FileReport] = field(default_factory=list)  # one per file
    notes: list[str] = field(default_factory=list)
    other_tasks: int = 0  # files of other tasks
    left: Counter[str] = field(default_factory=Counter)

    def archive(self, archive: Archive) -> None:
        """Read the files of one offer."""
        metas = {_folder(member): member for member in archive.members if kind(member) == "model"}
        results = [member for member in archive.members if kind(member) != "model"]
        for member in results:
            self._file(member, metas.get(_folder(member)))
        described = set(map(_folder, results))
        for place, member in metas.items():
            idle = "it describes a model without results"
            self.file_reports.append(file_report(member, {"*": TAKEN} if place in described else idle))

    def _file(self, member: Member, meta: Member | None) -> None:
        model_meta = read_object(meta) if meta else {}
        model = (optional(model_meta, "name", str, meta.name) if meta else None) or _named_by(member)
        held = [(_task_kind(result.scores), result) for result in _results(member)]
        taken = [(task, entry) for task, entry in held if task == _RETRIEVAL or self.all_tasks]
        if held and not taken:
            self.other_tasks += 1
            self.file_reports.append(file_report(member, f"a task of {held[0][0]} (--all-tasks takes it)"))
            return
        self.left[_EMPTY] += len(held) - len(taken)
        for task, entry in taken:
            reported, rest = _reported(entry, model, model_meta, ranks=task == _RETRIEVAL)
            self.left[_OTHERS] += rest
            self.left[_NO_LATENCY] += "evaluation_time" in entry.facts
            self.left[_EMPTY] += not reported.figures
            self.reports += [reported] if reported.figures else []
        if meta is None:
            self.notes.append(f"No model_meta.json beside its results; the model is called {shown(model)}.")
        self.file_reports.append(file_report(member, _ALL_PARTS if self.all_tasks else _PARTS))


def _reported(result: _Result, model: str, meta: Json, *, ranks: bool) -> tuple[Reported, int]:
    """Return the stack's figures and the number of missing scores; `ranks`: the task ranks passages."""
    where = at(result.member.name, result.split, result.subset)
    figures, others = [], 0
    for key, given in result.scores.items():
        matched = _MEASURE.fullmatch(key) if ranks else None
        plain = isinstance(given, int | float) and not isinstance(given, bool)
        if matched is None and (ranks or not plain or _NOT_MEASURES.fullmatch(key)):
            others += plain and key not in ("main_score", "evaluation_time")
            continue
        value = number(result.scores, key, where)
        if value is not None:
            k = int(matched["k"]) if matched and matched["k"] else None
            name = MEASURES[matched["name"]] if matched else shown(key)
            figures.append(Figure(measure=name, value=value, k=k))
    revision = optional(meta, "revision", str, "model_meta.json") or ""
    _, experiment = _place(result.member)
    reported = Reported(
        label=f"{model} · {experiment}" if experiment else model,
        stem=revision[:12] or result.member.stem,
        digest=result.member.digest,
        decided={
            "task": shown(result.task, 200),
            "split": shown(result.split),
            "subset": shown(result.subset),
        },
        spec={**_spec(model, meta), **({"params": {"experiment": experiment}} if experiment else {})},
        figures=tuple(figures),
        collection=result.collection,
        manifest={"result": kept(result.facts), "model": kept(meta), "revision": shown(revision)},
    )
    return reported, others


def _spec(model: str, meta: Json) -> Json:
    name, dim = shown(model, 200), meta.get("embed_dim")
    if "bm25" in model.lower():
        return {"mode": "sparse", "sparse": "bm25", "name": name}
    if meta.get("is_cross_encoder") is True:
        return {"reranker": name, "name": name}
    dense = {"mode": "dense", "embedder": name}
    return {**dense, "dim": dim} if type(dim) is int and 0 < dim < 1 << 20 else dense


@dataclass(frozen=True, slots=True)
class _Result:
    member: Member
    task: str
    split: str
    subset: str
    scores: Json
    facts: Json

    @property
    def collection(self) -> str:
        """Return a name for the measured data that is unique to this task, split and subset."""
        whole = (self.task, self.split, self.subset)
        usual = (None, _SPLIT, _SUBSET)
        name = "-".join(part for part, left_out in zip(whole, usual, strict=True) if part != left_out)
        task, _, rest = name.partition("-")  # the data set it is read as
        split, _, subset = rest.partition("-")
        if split not in _SPLITS:
            split, subset = _SPLIT, rest
        clear = (task, split, subset or _SUBSET) == whole
        return name if clear else " · ".join(part.replace("·", "··") for part in whole)


def _task_kind(keys: Iterable[str]) -> str:
    keys = set(keys)
    if any(_RANKS.fullmatch(key) for key in keys):
        return _RETRIEVAL
    kinds = (kind for kind, mark in _KINDS if any(re.fullmatch(mark, key) for key in keys))
    return next(kinds, _OTHER)


def kind(member: Member) -> str | None:
    """Return whether a file holds "results", describes a "model", or neither."""
    seen = outline(member)
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


def _folder(member: Member) -> str:
    """Return the folder of a file, which holds both results and the description of their model."""
    return str(PurePosixPath(member.relative).parent)


def _place(member: Member) -> tuple[tuple[str, ...], str]:
    """Return folders and name of a result, and its experiment (``revision/experiments/NAME/task.json``)."""
    parts = PurePosixPath(member.relative).parts
    if len(parts) < 5 and member.path is not None:
        parts = member.path.absolute().parts
    if len(parts) > 2 and parts[-3] == _EXPERIMENTS:
        return (*parts[:-3], parts[-1]), shown(parts[-2], 100)
    return parts, ""


def _named_by(member: Member) -> str:
    """Name a model after a folder: ``ORG__MODEL/REVISION/TASK.json``, or the folder of its result."""
    above = [part for part in _place(member)[0][:-1] if part not in _NO_MODELS]
    revised = len(above) > 1 and ("__" in above[-2] or _REVISION.fullmatch(above[-1]))
    return above[-2 if revised else -1].replace("__", "/") if above else "unnamed model"


def _results(member: Member) -> Iterator[_Result]:
    whole, name = read_object(member), member.name
    named = optional(whole, "task_name", str, name) or optional(whole, "mteb_dataset_name", str, name)
    task = named or member.stem
    facts = {key: value for key, value in whole.items() if key in _FACTS}
    if "scores" in whole:
        splits = expect(whole, "scores", dict, name)
        for split in splits:
            for index, scores in enumerate(expect(splits, split, list, at(name, "scores"))):
                where = at(name, "scores", split, index)
                subset = optional(scores, "hf_subset", str, where) or _SUBSET
                yield _Result(member, task, split, subset, scores, facts)
        return
    for split, scores in whole.items():
        if split in _FACTS or not isinstance(scores, dict):
            continue
        facts |= {"evaluation_time": scores["evaluation_time"]} if "evaluation_time" in scores else {}
        subsets = {key: inner for key, inner in scores.items() if isinstance(inner, dict)}
        if any(_MEASURE.fullmatch(key) for key in scores) or not subsets:
            subsets = {_SUBSET: scores}
        for subset, values in subsets.items():
            yield _Result(member, task, split, subset, values, facts)
