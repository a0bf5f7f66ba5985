"""Results of MTEB: one file per model, revision and task, ``model_meta.json`` beside them.

Two forms: scores{split: [{hf_subset, ndcg_at_10, …}]}, and the older one with the splits at the top and, for
several languages, a level of subsets. Each task, split and subset is a collection of its own: their queries
differ. Tasks of retrieval and reranking are taken, told by their measures; others on request. MTEB says
neither how many queries there were nor how long one took (`evaluation_time` is the whole evaluation with the
encoding of the corpus).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.errors import InputError
from core.importers.account import TAKEN, Account, account
from core.importers.base import RESEMBLES, SURE, Format, Import, LeftOut, Options, merged
from core.importers.formats.mteb_files import (
    ALL_PARTS,
    MEASURE,
    NOT_MEASURES,
    PARTS,
    RETRIEVAL,
    Result,
    folder,
    kind,
    last_keys,
    meta_of,
    model_of,
    place_of,
    results,
    task_kind,
)
from core.importers.kept import kept
from core.importers.read.jsons import Json, at, number, optional
from core.importers.read.piece import Piece, Tree
from core.importers.read.text import shown
from core.importers.reported import MEASURES, Figure, Reported, reported_runs

_NO_LATENCY = "evaluation times: of a whole evaluation, not of a query (kept in the manifest)"


class Mteb(Format):
    """Result files of MTEB, one run per model, task, split and subset."""

    name, title = "mteb", "MTEB results"
    brings = ("aggregates",)
    takes = {  # noqa: RUF012
        "aggregates": "nDCG, AP, RR, R, P and Success at every cutoff of retrieval and reranking tasks, per "
        "split and subset; on request (--all-tasks) the measures of other tasks"
    }
    recognised = "JSON with scores per split and an MTEB version or dataset name, model_meta.json beside it"
    traps = (
        "evaluation_time is not a latency per query and becomes none.",
        "nAUC and other scores are left out and counted; main_score repeats one of the measures.",
        "Numbers of queries are not in the files, so that they stay unknown.",
    )

    def sniff(self, probe: Tree) -> float:
        """Sure when a file of it holds results; a description of a model alone resembles it."""
        kinds = {kind(piece) for piece in probe.pieces}
        return SURE if "results" in kinds else RESEMBLES if "model" in kinds else 0.0

    def why_not(self, probe: Tree) -> str:  # noqa: ARG002
        """A model's description without results."""
        return "it describes a model, but there are no results beside it"

    def mine(self, probe: Tree) -> tuple[Piece, ...]:
        """Results and descriptions of models."""
        return tuple(piece for piece in probe.pieces if kind(piece))

    def choices(self, trees: Sequence[Tree]) -> dict[str, tuple[str, ...]]:
        """Whether tasks of other kinds are taken too, where there are any."""
        keys = [last_keys(piece) for tree in trees for piece in tree.pieces if kind(piece) == "results"]
        return {"tasks": (RETRIEVAL, "all")} if any(task_kind(each) != RETRIEVAL for each in keys) else {}

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read results with the descriptions of their models."""
        done = _Read(all_tasks=options.all_tasks)
        for tree in trees:
            done.tree(tree)
        if not done.found:
            raise InputError(
                "There is no measure of retrieval in these results.",
                where=trees[0].name,
                do="--all-tasks takes the measures of other tasks." if done.other_tasks else "",
            )
        counted = (
            (done.empty, "results without a measure"),
            (done.others, "scores that are no measures of retrieval (nAUC and others)"),
            (done.timed, _NO_LATENCY),
        )
        return merged(
            (
                reported_runs(done.found, options, importer=self.name, source="MTEB results"),
                Import(
                    left_out=tuple(LeftOut(count, why) for count, why in counted if count),
                    accounts=tuple(done.accounts),
                    notes=(*done.notes, "MTEB does not say how many queries a result is over."),
                ),
            )
        )


@dataclass
class _Read:
    """What was read so far."""

    all_tasks: bool  # whether other tasks than retrieval are taken
    found: list[Reported] = field(default_factory=list)  # results that are taken
    accounts: list[Account] = field(default_factory=list)  # of the files
    notes: list[str] = field(default_factory=list)
    # files of other tasks, results without a measure, scores that are none, and times, counted
    other_tasks: int = 0
    empty: int = 0
    others: int = 0
    timed: int = 0

    def tree(self, tree: Tree) -> None:
        """Read the files of one offer."""
        metas = {folder(piece): piece for piece in tree.pieces if kind(piece) == "model"}
        described: set[str] = set()
        for piece in (each for each in tree.pieces if kind(each) != "model"):
            meta = metas.get(folder(piece))
            described |= {meta.name} if meta else set()
            self._file(piece, meta)
        for piece in metas.values():
            idle = "it describes a model without results"
            self.accounts.append(account(piece, {"*": TAKEN} if piece.name in described else idle))

    def _file(self, piece: Piece, meta: Piece | None) -> None:
        model, told = model_of(piece, meta), meta_of(meta)
        held = [(task_kind(each.scores), each) for each in results(piece)]
        taken = [(task, each) for task, each in held if task == RETRIEVAL or self.all_tasks]
        if held and not taken:
            self.other_tasks += 1
            self.accounts.append(account(piece, f"a task of {held[0][0]} (--all-tasks takes it)"))
            return
        self.empty += len(held) - len(taken)
        for task, each in taken:
            made, rest = _reported(each, model, told, ranks=task == RETRIEVAL)
            self.others += rest
            self.timed += "evaluation_time" in each.facts
            self.empty += not made.figures
            self.found += [made] if made.figures else []
        if meta is None:
            self.notes.append(f"No model_meta.json beside its results; the model is called {shown(model)}.")
        self.accounts.append(account(piece, ALL_PARTS if self.all_tasks else PARTS))


def _reported(result: Result, model: str, meta: Json, *, ranks: bool) -> tuple[Reported, int]:
    """The stack with its figures, and how many scores are none; `ranks`: a task that ranks passages."""
    where = at(result.piece.name, result.split, result.subset)
    figures, others = [], 0
    for key, given in result.scores.items():
        matched = MEASURE.fullmatch(key) if ranks else None
        plain = isinstance(given, int | float) and not isinstance(given, bool)
        if matched is None and (ranks or not plain or NOT_MEASURES.fullmatch(key)):
            others += plain and key not in ("main_score", "evaluation_time")
            continue
        value = number(result.scores, key, where)
        if value is not None:
            k = int(matched["k"]) if matched and matched["k"] else None
            name = MEASURES[matched["name"]] if matched else shown(key)
            figures.append(Figure(measure=name, value=value, k=k))
    revision = optional(meta, "revision", str, "model_meta.json") or ""
    _, experiment = place_of(result.piece)
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
        collection=result.collection,
        manifest={"result": kept(result.facts), "model": kept(meta), "revision": shown(revision)},
    )
    return made, others


def _spec(model: str, meta: Json) -> Json:
    name = shown(model, 200)
    if "bm25" in model.lower():
        return {"mode": "sparse", "sparse": "bm25", "name": name}
    if meta.get("is_cross_encoder") is True:
        return {"reranker": name, "name": name}
    dim = meta.get("embed_dim")
    size = {"dim": dim} if type(dim) is int and 0 < dim < 1 << 20 else {}
    return {"mode": "dense", "embedder": name, **size}
