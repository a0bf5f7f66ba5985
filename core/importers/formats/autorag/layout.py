"""Layout of AutoRAG project files: trials, node lines, nodes, their summaries and results; YAML."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
import yaml

from core.errors import InputError
from core.importers.read.jsons import DEEPEST, Json, plain
from core.importers.read.member import BROKEN, MIB, Archive, Member, head_lines, per_member
from core.importers.read.tabular import PARQUET, Table, read_table
from core.importers.read.text import place, shown, whole

SUMMARY = "filename,module_name,module_params,execution_time"
_FOOTER = 64 * 1024
_ORDER = (
    "query_expansion", "lexical_retrieval", "semantic_retrieval", "retrieval", "hybrid_retrieval",
    "passage_augmenter", "passage_reranker", "passage_filter", "passage_compressor", "prompt_maker",
    "generator",
)  # fmt: skip
_LONGEST = 100_000  # Characters of a parameter cell beyond which it is not parsed

_MOST_BYTES = 4 * MIB
_TEXT_LIMIT = 100_000


@dataclass(frozen=True)
class Module:
    """One configuration of a node: a line of its summary, and the files with its results."""

    trial: str  # path of its trial
    node: str  # AutoRAG's type of node
    file: str  # name of its results, for example ``0.parquet``
    name: str  # AutoRAG's name of the module
    params: Json  # its parameters
    row: Mapping[str, str | None]  # its row of the summary, cells as text
    line: int  # number of that row's line
    best: bool  # whether the trial continued with it
    # its own results, or else the copy that the trial continued with; None if neither exists
    results: Member | None
    summary: str  # name of the summary file

    @cached_property
    def table(self) -> Table | None:
        """Return the module's results, or None if they are absent."""
        return read_table(self.results, "parquet") if self.results else None

    @property
    def stem(self) -> str:
        """The module's path within the project, for labels."""
        return f"{self.node} {self.file.removesuffix('.parquet')}"


@dataclass(frozen=True)
class AutoRagTrial:
    """One optimisation: its modules in the order in which AutoRAG runs the nodes, and its configuration."""

    name: str
    modules: tuple[Module, ...]
    config: Member | None
    finished: bool


@dataclass(frozen=True)
class Project:
    """The offered files of one project."""

    qa: Member | None  # the questions: the project's own table, or a copy of it in results
    corpus: Member | None  # the passages; None if not offered
    trials: tuple[AutoRagTrial, ...]  # trials with results
    empty: tuple[str, ...]  # trials that hold only a configuration
    vectors: tuple[Member, ...]  # files that name the vector stores
    used: frozenset[str]  # every file that contributes something


@per_member
def kind(member: Member) -> str | None:
    """Judge a file by content: "summary", "qa", "corpus" or None."""
    if not member.head.startswith(PARQUET):
        first = next(iter(head_lines(member, 1)), "")
        return "summary" if first.startswith(SUMMARY) else None
    try:
        with member.opener() as file:
            file.seek(max(0, file.seek(0, 2) - _FOOTER))
            end = file.read(_FOOTER)
    except BROKEN:
        return None
    if all(name in end for name in (b"qid", b"query", b"retrieval_gt")):
        return "qa"
    return "corpus" if all(name in end for name in (b"doc_id", b"contents", b"metadata")) else None


def project(archives: Sequence[Archive]) -> Project:
    """Find the parts of a project."""
    members = {
        f"{archive.name}/{member.relative}": member for archive in archives for member in archive.members
    }
    if any(len(archive.members) == 1 for archive in archives):
        members = {f"data/{path}" if "/" not in path else path: member for path, member in members.items()}
    kinds = {path: kind(member) for path, member in members.items()}
    copies, corpus, nodes = (
        [path for path, role in kinds.items() if role == wanted] for wanted in ("qa", "corpus", "summary")
    )
    qa = [path for path in copies if "/best_" not in f"/{path}"]
    for several, what in ((qa, "questions"), (corpus, "passages")):
        if len(several) > 1:
            names = ", ".join(shown(path) for path in several[:3])
            raise InputError(
                f"There are {len(several)} tables of {what}: {names}.", do="Offer one project at a time."
            )
    roots = sorted({_up(path, 3) for path in nodes})
    configs = [path for path in members if path.endswith("/config.yaml")]
    empty = tuple(sorted(_up(path).rsplit("/", 1)[-1] for path in configs if _up(path) not in roots))
    vectors = [path for path in members if path.endswith("resources/vectordb.yaml")]
    chosen = (qa or sorted(copies))[:1]
    return Project(
        qa=members[chosen[0]] if chosen else None,
        corpus=members[corpus[0]] if corpus else None,
        trials=tuple(_trial(root, nodes, members) for root in roots),
        empty=empty,
        vectors=tuple(members[path] for path in vectors),
        used=frozenset(members[path].name for path in (*chosen, *corpus, *nodes, *configs, *vectors)),
    )


def _up(path: str, levels: int = 1) -> str:
    parts = path.split("/")
    return "/".join(parts[:-levels]) if len(parts) > levels else ""


def _trial(root: str, nodes: Sequence[str], members: Mapping[str, Member]) -> AutoRagTrial:
    mine = [path for path in nodes if _up(path, 3) == root]
    modules = [module for path in mine for module in _modules(path, root, members)]
    order = {node: place for place, node in enumerate(_ORDER)}
    modules.sort(key=lambda entry: (order.get(entry.node, len(_ORDER)), entry.node, entry.line))
    return AutoRagTrial(
        name=root.rsplit("/", 1)[-1],
        modules=tuple(modules),
        config=members.get(f"{root}/config.yaml"),
        finished=f"{root}/summary.csv" in members,
    )


def _modules(path: str, root: str, members: Mapping[str, Member]) -> list[Module]:
    summary = members[path]
    table, folder, modules = read_table(summary, ","), _up(path), []
    cells = table.rows.select(pl.col(pl.String)).with_columns(table.lines.alias("line"))
    for row in cells.iter_rows(named=True):
        file, line = row["filename"] or "", row.pop("line")
        if not file or not row["module_name"]:
            raise InputError("The row names no file or no module.", where=place(summary.name, line))
        modules.append(
            Module(
                trial=root.rsplit("/", 1)[-1],
                node=folder.rsplit("/", 1)[-1],
                file=file,
                name=row["module_name"],
                params=_parameters(row["module_params"], place(summary.name, line, "module_params")),
                row=row,
                line=line,
                best=str(row.get("is_best") or "").strip().lower() == "true",
                results=members.get(f"{folder}/{file}") or members.get(f"{folder}/best_{file}"),
                summary=summary.name,
            )
        )
    return modules


def _parameters(text: str | None, where: str) -> dict[str, Any]:
    try:
        value = ast.literal_eval(text or "{}") if len(text or "") <= _LONGEST else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(f"The parameters are not a plain literal: {shown(error)}.", where=where) from error
    if not isinstance(value, dict):
        raise InputError("The parameters are not a map.", where=where)
    return plain(value)


def read_yaml(member: Member) -> object:
    """Return one document of a YAML file: maps, lists, texts (dates too), finite numbers, booleans, None."""
    if member.size > _MOST_BYTES:
        raise InputError("A YAML file of this size is not read.", where=member.name)
    text = whole(member).decode()
    try:
        _check(text, member.name)
        return plain(yaml.safe_load(text), _TEXT_LIMIT)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = place(member.name, mark.line + 1 if mark else None)
        raise InputError(f"This is not valid YAML: {shown(error.problem, 120)}.", where=at) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"This is not valid YAML: {shown(error, 120)}.", where=member.name) from error


def _check(text: str, name: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            at = place(name, event.start_mark.line + 1)
            raise InputError("YAML with anchors or aliases is not read.", where=at, do="Write it out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise InputError(f"The YAML is nested deeper than {DEEPEST} levels.", where=name)
