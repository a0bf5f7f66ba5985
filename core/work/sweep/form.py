"""The form of page Run: its fields, its starting points, and its specification."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from core.analysis.workspace.scope import Scope
from core.errors import ClqError
from core.importers import preview
from core.metrics.robust import PERTURBATIONS
from core.pipeline.own.config import OWN
from core.pipeline.sweep import presets
from core.pipeline.sweep.expand import point
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.model import CollectionSource
from core.pipeline.sweep.problems import Problem
from core.providers.embed import EMBEDDERS
from core.records import JsonMap, Origin, canonical_json, stack_label
from core.store import Snapshot
from core.toml_text import toml, toml_text

WORKSPACE = "this workspace"
# Session slots, each with the workspace where it was chosen, because it means nothing in another: the
# documents to make questions from, and the folder of a set of questions that the form starts from
ASKED_OF, MADE = "ask_documents", "questions_made"
MAKE = "Make questions from these documents"
_FIRST = ("quick-local", "clq-paper")
AXES: Mapping[str, str] = {
    "mode": "Search",
    "embedder": "Embedders",
    "reranker": "Rerankers",
    "candidates": "Candidates (K) for the reranker",
    "dim": "Dimensions",
    "index": "Vector index",
    "rewrite": "Rewrites of what is typed",
}
"""Axis of a specification → its field; each allows several values."""
LEVELS: Mapping[str, tuple[str, ...]] = {
    way.name: tuple(str(level) for level in (way.choices or range(int(way.high) + 1)))[1:]
    for way in PERTURBATIONS
}
"""Perturbation of the questions → its levels; unchanged questions are always run too."""
_ENCODER = "all-MiniLM-L6-v2"  # The demo's; the product has no weights of it, but writes its folder
_MODES = ("sparse", "dense", "hybrid")
SENT = ("1", "2", "3", "5", "10", "20", "50")  # Common numbers of passages sent to readers
_NONE = ("reranker", "rewrite")
_DEPTHS = ("10", "20", "50", "100", "150", "200")
_KEY = re.compile(
    r"(?:[^ ,]*, )?(?:axes\.)?"
    rf"(?P<key>{'|'.join((*AXES, *LEVELS))}|collection|queries|golden_set|latency|budget|name|reader)\b(?! =)"
)
_SEARCH = re.compile(r"(?:[^ ,]*, )?(?:axes\.method|search\.\w+)\b(?! =)")  # only a search has a method here
FOLDER = "FOLDER"
"""Where lines of a stack leave room for the folder of a model that no catalogue has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepForm:
    """Values of the form's fields, as text; empty = not specified."""

    name: str = "sweep"  # of the evaluation
    preset: str = ""  # the source of values that the form does not specify
    documents: str = ""  # a stored collection, or a path
    judgements: str = ""  # a stored golden set, or a path
    split: str = ""  # of the judgements, if a folder holds several
    questions: str = ""  # a path; "" = those of the documents
    limit: int | None = None  # number of questions; None = all
    axes: Mapping[str, tuple[str, ...]]  # axis → the values to combine; for a perturbation the levels above 0
    trials: int | None = None  # maximum number of stacks that a search starts; None = all stacks run
    repeats: int = 3  # number of times that every question is asked
    budget: float | None = None  # hard limit in dollars; None = none
    readers: tuple[str, ...] = ()  # models that answer from the passages; none = no readers
    prompts: tuple[str, ...] = ("short",)  # their prompts
    sent: tuple[str, ...] = ("1", "5", "10")  # numbers of passages to send
    modes: tuple[str, ...] = ("top_k", "none")  # which passages to send
    chunkers: tuple[JsonMap, ...] = ()  # how to chunk the documents; none = the default
    note: str = ""  # a note on the documents
    judges: tuple[str, ...] = ()  # models that also score the answers
    judged_by: tuple[str, ...] = ()  # the judges' scores; none = the default
    runs: tuple[str, ...] = ()  # stored runs to read instead of new ones
    stacks: tuple[JsonMap, ...] = ()  # specifications of stacks to run as they are


@dataclass(frozen=True, slots=True)
class Ran:
    """Documents that were searched in chunks."""

    documents: str  # a stored collection, or a path
    questions: str  # a path; "" = those of the documents
    chunkers: tuple[JsonMap, ...]  # their chunkers; none = the chunking cannot be repeated
    name: str = ""  # of the evaluation: stacks are added to it under this name

    @property
    def words(self) -> str:
        """Describe how they are chunked, or that they are not."""
        if not self.chunkers:
            return "The files of the latest run are not there: the stored documents are searched whole."
        said = (" ".join(str(cut[key]) for key in ("method", "size") if key in cut) for cut in self.chunkers)
        return f"Cut as in the latest run: {', '.join(dict.fromkeys(said))}."


def starts(
    scope: Scope | None,
    collections: Sequence[str],
    golden_sets: Mapping[str, str],
    before: Ran | None = None,
) -> dict[str, SweepForm]:
    """Return forms to start from by name: the open workspace, then the presets.

    Args:
        scope: The workspace; None while there is none.
        collections: Those with passages; others have nothing to search.
        golden_sets: The collection of each.
        before: The latest evaluation of the workspace, if it chunked documents (`ran`).
    """
    opened, judged = ("", "") if scope is None else (scope.collection_id, scope.golden_set_id or "")
    documents = opened if opened in collections else ""
    judgements = judged if documents and golden_sets.get(judged) == documents else ""
    names = sorted(presets(), key=lambda name: (*(name != first for first in _FIRST), name))
    before = before if documents else None

    def placed(form: SweepForm) -> SweepForm:
        form = replace(form, documents=documents, judgements=judgements)
        if before is None:
            return form
        return replace(
            form,
            documents=before.documents,
            questions=before.questions,
            chunkers=before.chunkers,
            note=before.words,
        )

    forms = {name: placed(_preset(name)) for name in names}
    if not judged:
        return forms
    here = SweepForm(
        name=(before.name if before else "") or f"{opened} again",
        axes={
            "mode": _MODES,
            "embedder": ("wordllama",),
            "reranker": ("none",),
            "candidates": ("20", "50"),
            "dim": ("128", "256"),
            "index": ("flat",),
            "rewrite": ("none",),
        },
    )
    return {WORKSPACE: placed(here), **forms}


def ran(snapshot: Snapshot, collection_id: str) -> Ran | None:
    """Return the latest evaluation of a collection, if it chunked documents, otherwise None.

    The store has their texts without the chunkers' input: to chunk them again they are read from the source.
    """
    runs = snapshot.runs(collection_id).filter(pl.col("origin") == Origin.RUN.value)
    runs = runs.filter(pl.col("spec").str.json_path_match("$.mode").ne_missing(OWN))  # they use no chunker
    of = pl.col("manifest").str.json_path_match("$.evaluation.id")
    latest = runs.sort("created_at", "run_id").filter(of.eq_missing(of.last()))
    if latest["chunking"].is_null().all():
        return None
    said: JsonMap = json.loads(latest["manifest"][-1]).get("sweep") or {}
    documents, questions = ({**(said.get(name) or {})} for name in ("collection", "queries"))
    specs = (json.loads(spec).get("chunker") for spec in latest["spec"])
    cut = tuple({canonical_json(chunker): chunker for chunker in specs if chunker}.values())
    if documents.get("stored"):
        return Ran(str(documents["stored"]), "", cut, str(said.get("name", "")))
    place, asked = str(documents.get("path") or ""), str(questions.get("path") or "")
    usual = CollectionSource(path=Path(place)).model_dump(mode="json")
    same = {**documents, "id": None} == {**usual, "path": documents.get("path")}
    same = same and not questions.get("columns")
    if place and same and all(Path(path).exists() for path in (place, asked) if path):
        return Ran(place, asked, cut, str(said.get("name", "")))
    return Ran(collection_id, "", ())


def absent(snapshot: Snapshot, collection_id: str) -> str:
    """Name the embedders of a collection's runs that no catalogue offers, and how to run them; "" if none."""
    used = snapshot.runs(collection_id)["spec"].str.json_path_match("$.embedder").unique().drop_nulls()
    names = [name for name in used.sort() if name not in KnownNames().names["embedder"]]
    folders = "Name its folder" if len(names) == 1 else "Name their folders"
    made = "Run tools/demo/minilm.py and name its folder" if names == [_ENCODER] else folders
    return f"Not offered: {', '.join(names)}. {made} under [models] in Text." if names else ""


def with_questions(forms: Mapping[str, SweepForm], folder: Path) -> dict[str, SweepForm]:
    """Return the forms to start from, first one with the questions of a folder and their documents.

    A folder without such a set adds nothing.
    """
    try:
        said = tomllib.loads((folder / "evaluation.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return dict(forms)
    collection, quotes = said.get("collection", {}), folder / "quotes.csv"
    with quotes.open(encoding="utf-8") as table:
        placed = sum(1 for _, _ in zip(table, range(2), strict=False)) == 2  # a log has no quotes
    made = replace(
        forms[_FIRST[0]],
        name=str(said.get("name", "questions")),
        documents=str(collection.get("stored") or collection.get("path", "")),
        judgements=str(quotes) if placed else "",
        questions=str(folder / "queries.jsonl"),
    )
    return {f"questions {made.name}": made, **forms}


def with_candidate(forms: Mapping[str, SweepForm], spec: str) -> dict[str, SweepForm]:
    """Return the forms to start from, first one that runs a stack and nothing else."""
    stack: JsonMap = json.loads(spec)
    first = next(iter(forms.values()))
    name = stack_label(stack)
    alone = replace(
        first,
        name=name,
        preset="",
        axes=dict.fromkeys(AXES, ()),
        stacks=(stack,),
        chunkers=(),
        note=f"Runs {name}; what you choose in the fields runs beside it.",
    )
    return {"this stack": alone, **forms}


def stack_lines(stack: JsonMap, documents: str, judgements: str) -> str:
    """Return a specification (TOML) that runs a stack on a stored collection.

    An embedder of no catalogue is one in a folder, which whoever runs it puts in place of `FOLDER`.
    """
    form = SweepForm(
        name=stack_label(stack), documents=documents, judgements=judgements, axes={}, stacks=(stack,)
    )
    lines, embedder = specification(form, {documents}, {judgements}), stack.get("embedder")
    if embedder is None or embedder in EMBEDDERS:
        return lines
    return "\n".join((lines, toml_text((f"models.{toml(embedder)}", {"provider": "onnx", "path": FOLDER}))))


def _preset(name: str) -> SweepForm:
    preset = tomllib.loads(presets()[name].read_text(encoding="utf-8"))
    said = preset.get("axes", {})
    axes = {axis: _names(said.get(axis, ["none"] if axis in _NONE else [])) for axis in AXES}
    axes |= {way: tuple(level for level in _names(said.get(way, [])) if level != "0") for way in LEVELS}
    repeats = preset.get("latency", {}).get("repeats", SweepForm.__dataclass_fields__["repeats"].default)
    limit = preset.get("queries", {}).get("limit")
    return SweepForm(name=preset.get("name", name), preset=name, limit=limit, axes=axes, repeats=repeats)


def _names(values: object) -> tuple[str, ...]:
    """Return values of an axis as text; for one with parameters its name."""
    several = values if isinstance(values, list) else [values]
    return tuple(str(value["name"]) if isinstance(value, Mapping) else str(value) for value in several)


def offered(form: SweepForm) -> dict[str, list[str]]:
    """List the options of each axis, besides those already in the form."""
    known = KnownNames()
    dims = {dim for name in form.axes["embedder"] for dim in known.dims(name)}
    rerankers = sorted(known.names["reranker"], key=lambda name: (name != "none", ":" in name, name))
    rewrites = sorted(
        known.names["rewrite"], key=lambda name: (name != "none", ":" in name, name[:5] != "chat:", name)
    )
    usual: dict[str, Iterable[str]] = {
        "mode": _MODES,
        "embedder": sorted(known.names["embedder"]),
        "reranker": rerankers,
        "candidates": _DEPTHS,
        "dim": map(str, sorted(dims)),
        "index": sorted(known.names["index"]),
        "rewrite": rewrites,
    }
    return {axis: list(dict.fromkeys([*form.axes[axis], *values])) for axis, values in usual.items()}


def stored(snapshot: Snapshot) -> tuple[list[str], dict[str, str]]:
    """Return the collections that have passages, and the golden sets with the collection of each."""
    collections = snapshot.collections().filter(snapshot.collections()["passages"] > 0)
    golden = snapshot.golden_sets().select("golden_set_id", "collection_id")
    return collections["collection_id"].to_list(), dict(golden.iter_rows())


def splits(path: Path) -> tuple[str, ...]:
    """Return the relevance-judgement splits in a folder or archive, the default first; () if at most one."""
    try:
        seen = preview([path])
    except (ClqError, OSError):  # its problems are reported where the specification is read
        return ()
    names = [name for file in seen for name in file.choices.get("split", ()) if name != "all"]
    return tuple(sorted(names, key=lambda name: (name != "test", name)))


def specification(form: SweepForm, collections: Container[str], golden_sets: Container[str]) -> str:
    """Return the form as the text of a specification (TOML).

    Args:
        collections: Names in the documents field that mean stored collections; others are paths.
    """
    preset = _preset(form.preset) if form.preset else None
    usual = SweepForm(axes={}) if preset is None else preset
    said = {} if preset is None else preset.axes
    axes = {
        axis: _numbers(("0", *values) if axis in LEVELS else values)
        for axis, values in form.axes.items()
        if (values or axis in LEVELS) and values != said.get(axis, () if axis in LEVELS else None)
    }
    head = {
        "name": form.name,
        "preset": form.preset,
        _place("collection", form.documents, collections): form.documents,
        _place("golden_set", form.judgements, golden_sets, alone=not form.split): form.judgements,
        "golden_set.split": form.split,
        "queries.path": form.questions,
        "queries.limit": None if form.limit == usual.limit else form.limit,
        "latency.repeats": None if form.repeats == usual.repeats else form.repeats,
        "budget.usd": form.budget,
    }
    alone = form.stacks and not any(form.axes.values())
    method = "list" if alone else "search" if form.trials else None
    listed = [("[stack]", point(stack)) for stack in form.stacks]
    search = {"trials": form.trials}
    reader = _reader(form) if form.readers else {}
    axes_of = {"method": method, **axes, "chunker": [dict(chunker) for chunker in form.chunkers] or None}
    return toml_text(("", head), ("axes", axes_of), ("search", search), ("reader", reader), *listed)


def reader_specification(form: SweepForm) -> str:
    """Return the form as the text of a specification of readers on stored runs (TOML)."""
    head = {"name": form.name, "collection.stored": form.documents, "budget_usd": form.budget}
    return toml_text(("", head), ("reader", _reader(form)))


def _reader(form: SweepForm) -> dict[str, object]:
    return {
        "runs": _numbers(form.runs) or None,
        "golden_set": form.judgements if form.runs else None,
        "models": _numbers(form.readers),
        "prompts": _numbers(form.prompts),
        "k": _numbers(form.sent),
        "modes": _numbers(form.modes),
        "judge.model": list(form.judges) or None,
        "judge.scorers": list(form.judged_by) or None if form.judges else None,
    }


def _place(key: str, name: str, known: Container[str], *, alone: bool = True) -> str:
    """Return the key for a location; a path needs its own key unless it is the only value."""
    if name in known:
        return f"{key}.stored"
    return key if alone else f"{key}.path"


def _numbers(values: Iterable[str]) -> list[int | str]:
    """Return numbers as numbers, and the rest as text, so that mistakes are found by the common checks."""
    return [int(value) if value.isascii() and value.isdigit() else value for value in values]


def by_field(problems: Sequence[Problem], form: SweepForm) -> tuple[dict[str, list[Problem]], list[Problem]]:
    """Return problems by the field of the form that they are about, and those about none."""
    fields: dict[str, list[Problem]] = {}
    others: list[Problem] = []
    for problem in problems:
        models = {axis for axis, values in form.axes.items() if {*problem.where.split(", ")} & {*values}}
        searched = "trials" if _SEARCH.match(problem.where) else None
        key = searched or next(iter(models), None) or ((named := _KEY.match(problem.where)) and named["key"])
        if key:
            fields.setdefault(key, []).append(problem)
        else:
            others.append(problem)
    return fields, others
