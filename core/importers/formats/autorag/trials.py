"""The trials of an AutoRAG project, node by node: each continues from the best module before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from core.importers.base import Import, Options, frames_of, merged
from core.importers.formats.autorag import results
from core.importers.formats.autorag.layout import AutoRagTrial, Module, Project, read_yaml
from core.importers.read.jsons import Json
from core.importers.read.member import Member, digest_of
from core.importers.read.text import shown
from core.importers.runs import imported_run, run_labels
from core.importers.settings import kept
from core.records import Run

_SEARCHES = ("lexical_retrieval", "semantic_retrieval", "retrieval")
_POOLED = ("passage_reranker", "passage_filter")
_LEGS = ("sparse", "embedder")


@dataclass
class _Way:
    """Progress in reading a trial."""

    base: Json = field(default_factory=dict)  # axes before anything was searched
    legs: Json = field(default_factory=dict)  # what the best searches add to a hybrid
    spec: Json = field(default_factory=dict)  # axes of the best stack so far
    lists: results.AutoRagLists | None = None  # the lists of that stack; None before anything returned some
    node: str = ""  # the node that returned them
    offered: results.AutoRagLists | None = None  # the lists that its reranker or filter chose from
    pool: str | None = None  # the name of that pool's convention
    # stage → mean milliseconds per query of the best modules so far
    times: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Read:
    module: Module
    part: Import
    spec: Json
    lists: results.AutoRagLists | None = None
    offered: results.AutoRagLists | None = None
    pool: str | None = None


def makes_run(module: Module) -> bool:
    """Return whether a module has rankings or answers, and the offer contains them."""
    return module.results is not None and (module.node in results.RANKS or module.node == "generator")


def trials(contents: Project, ids: pl.Series, members: Sequence[Member], options: Options) -> list[Import]:
    """Read all trials."""
    models = results.embedders(contents.vectors)
    wanted = [module for trial in contents.trials for module in trial.modules if makes_run(module)]
    several = len(contents.trials) > 1
    own = [
        (f"trial {module.trial} · " * several + f"{module.node} · {module.name}", module.file.split(".")[0])
        for module in wanted
    ]
    labels = {
        (module.summary, module.line): label
        for module, label in zip(wanted, run_labels(own, options), strict=True)
    }
    digest = digest_of(member for member in members if member.name in contents.used)
    return [
        part
        for trial in contents.trials
        for part in _Reader(trial, ids, models, labels, options, digest=digest).parts()
    ]


class _Reader:
    def __init__(
        self,
        trial: AutoRagTrial,
        ids: pl.Series,
        models: Mapping[str, str],
        labels: Mapping[tuple[str, int], str],
        options: Options,
        *,
        digest: str,
    ) -> None:
        self.trial, self.ids, self.labels = trial, ids, labels
        self.models = {**models, **results.embedders([trial.config] if trial.config else [])}
        self.digest, self.options = digest, options
        self.config = kept(read_yaml(trial.config)) if trial.config else None

    def parts(self) -> list[Import]:
        """Read the output of each module."""
        way, imports = _Way(), []
        for node in dict.fromkeys(module.node for module in self.trial.modules):
            read = [self._module(module, way) for module in self.trial.modules if module.node == node]
            imports += [result.part for result in read]
            best = [result for result in read if result.module.best]
            if chosen := (best or (read if len(read) == 1 else []))[:1]:
                _go_on(way, chosen[0])
        return imports

    def _module(self, module: Module, way: _Way) -> _Read:
        given, searches = way.lists.depth if way.lists else None, module.node in _SEARCHES
        before = {**way.base, **way.legs} if module.node == "hybrid_retrieval" else way.spec
        spec = results.axes(module, way.base if searches else before, self.models, given)
        if not makes_run(module):
            return _Read(module, Import(), spec)
        generates = module.node == "generator"
        retrieved = way.lists if generates else results.lists(module, self.ids)
        offered, pool = (way.offered, way.pool) if generates else (None, None)
        if module.node in _POOLED and way.lists:
            offered, pool = way.lists, self.options.pool or f"{way.node}@{given}"
        run = self._run(module, spec, pool)
        times = {stage: ms for stage, ms in way.times.items() if not searches or stage == "rewrite"}
        parts = [
            Import(runs=(run,)),
            results.measures(module, run, self.ids, retrieved),
            results.costs(module, run, times),
        ]
        for rows, stage in ((retrieved, "final"), (offered, "pool")):
            if rows:
                parts.append(Import(frames=frames_of(rankings=rows.of(run.run_id, stage))))
        if generates:
            parts.append(results.answers(module, run, self.ids, retrieved, self.options.columns.get("grade")))
        elif retrieved:
            parts.append(Import(left_out=retrieved.left_out))
        return _Read(module, merged(parts), spec, retrieved, offered, pool)

    def _run(self, module: Module, spec: Json, pool: str | None) -> Run:
        label = self.labels[module.summary, module.line]
        decided = {
            "trial": module.trial, "node": module.node, "file": module.file, "module": shown(module.name),
            "params": kept(module.params), "config": self.config,
            "summary": {name: cell for name, cell in module.row.items() if name != "module_params"},
        }  # fmt: skip
        spec = {**spec, "name": shown(label, 200)}
        return imported_run(
            self.options, label, self.digest, importer="autorag", decided=decided, spec=spec, pool=pool
        )


def _go_on(way: _Way, best: _Read) -> None:
    """Take a step: whatever comes next starts from the best module of a node."""
    node = best.module.node
    way.spec = best.spec
    if node == "query_expansion":
        way.base = best.spec
    if node in _SEARCHES:
        way.legs |= {axis: best.spec[axis] for axis in _LEGS if axis in best.spec}
    if node in results.RANKS and best.lists:
        way.lists, way.node = best.lists, node
        way.offered, way.pool = best.offered, best.pool
    if (ms := results.milliseconds(best.module)) is not None:
        way.times[results.stage_of(best.module)] = ms
