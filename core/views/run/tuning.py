"""A sweep of indexes around a stack: which settings to try, and the specification that tries them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from core.analysis.workspace.scope import resolve_runs
from core.analysis.workspace.view import View
from core.errors import InputError
from core.pipeline.index import index_options, kind_of
from core.pipeline.index.bench import effort_of, refining_of
from core.pipeline.sweep.expand import point
from core.records import JsonMap, Stack, canonical_json, part_id

STEPS = 5
"""Number of efforts tried on a graph by default: from its depth on, each twice the previous one."""
REFINED = (0, 2, 10)
"""How many times the depth is compared again with the exact vectors, if an index can do so."""
_INDEX = ("index", "index_params")


@dataclass(frozen=True, slots=True)
class Around:
    """A stack with alternative indexes to try."""

    spec: JsonMap  # with a flat index
    run_id: str  # a run of it, or of a stack that differs only in its index
    chunking: str | None
    manifest: JsonMap  # the manifest of that run

    @property
    def depth(self) -> int:
        """The number of passages requested from its index."""
        return int(self.spec.get("fusion", {}).get("depth") or self.spec.get("candidates") or 1)


def around(view: View, named: str | None = None) -> Around:
    """Return a stack of the workspace with vectors: the named one, otherwise the best on clean queries.

    Raises:
        UnknownNameError: If there is no such run.
        InputError: If it, or every stack, has no vectors.
    """
    specs = dict(view.table.select("run_id", "spec").iter_rows())
    order = view.table.sort("quality", descending=view.quality.higher_is_better, nulls_last=True)["run_id"]
    labels = view.table.select("run_id", label="name")
    wanted = order.to_list() if named is None else resolve_runs(labels, [named])
    for run_id in wanted:
        spec = json.loads(specs[run_id])
        if spec.get("embedder") and spec.get("mode") in ("dense", "hybrid") and not spec.get("perturb"):
            runs = view.snapshot.runs(view.scope.collection_id)
            run = runs.row(by_predicate=pl.col("run_id") == run_id, named=True)
            flat = {**{key: value for key, value in spec.items() if key not in _INDEX}, "index": "flat"}
            return Around(flat, run_id, run["chunking"], json.loads(run["manifest"] or "{}"))
    raise InputError(
        f"{named or 'Every stack'} searches without vectors, so that there is no index to tune.",
        where="--stack",
        do="Name a dense or hybrid stack that was run here.",
    )


def passages(base: Around, view: View) -> int:
    """Return the number of passages in an index of a stack."""
    name = part_id(view.scope.collection_id, base.chunking) if base.chunking else view.scope.collection_id
    known = view.snapshot.collections().filter(collection_id=name)["passages"]
    return int(known[0]) if len(known) else 0


def settings(
    base: Around, kinds: Sequence[tuple[str, JsonMap]], efforts: Sequence[int], indexed: int
) -> list[Stack]:
    """Return the stack with a flat index, then with every kind at every effort, each once.

    Args:
        kinds: Kinds of index with their options.
        efforts: Search efforts; none = doubling steps, for lists from 1 to all, for graphs from
            the requested depth, below which a graph visits that many anyway.
        indexed: Number of passages.

    Raises:
        UnknownNameError: If there is no such kind or option.
        InputError: If it cannot be built with that many passages.
    """
    specs: list[JsonMap] = [base.spec]
    for name, params in kinds:
        usual = {option.name: option.default for option in kind_of(name).options}
        for given in _given(base, name, params, efforts, indexed):
            told = {key: value for key, value in given.items() if value != usual.get(key)}
            specs.append({**base.spec, "index": name, **({"index_params": told} if told else {})})
    return list({canonical_json(spec): Stack(spec) for spec in specs}.values())


def _given(
    base: Around, name: str, params: JsonMap, efforts: Sequence[int], indexed: int
) -> Iterator[JsonMap]:
    """Yield the options of a kind at every effort and every number of passages compared exactly again."""
    options = index_options(name, params, dim=base.spec.get("dim"), passages=indexed)
    knob, again = effort_of(name, options), refining_of(name, options)
    steps: Sequence[int | None] = [None]
    if knob and knob not in params:
        steps = efforts or _doubling(name, knob, base.depth, options)
    rounds: Sequence[int | None] = REFINED if again and again not in params else [None]
    for step, times in product(steps, rounds):
        yield {
            **params,
            **({} if step is None else {knob: step}),
            **({} if times is None else {again: times}),
        }


def _doubling(name: str, knob: str, depth: int, options: JsonMap) -> list[int]:
    if knob not in ("nprobe", "probes"):
        most = next(option.high for option in kind_of(name).options if option.name == knob)
        return [depth * 2**step for step in range(STEPS) if step == 0 or depth * 2**step <= most]
    lists = int(options.get("lists") or options.get("partitions") or 2 ** (2 * STEPS - 1))
    return [*(2**step for step in range((lists - 1).bit_length())), lists]


def missing(stacks: Sequence[Stack], view: View) -> list[Stack]:
    """Return the stacks that the workspace has no run of."""
    there = {Stack(json.loads(spec)).stack_id for spec in view.table["spec"]}
    return [stack for stack in stacks if stack.stack_id not in there]


def specification(base: Around, stacks: Sequence[Stack], view: View) -> dict[str, Any]:
    """Return the specification of a sweep that runs the stacks on the base's data.

    The base's source files are read again; if they are gone, the texts in the store are searched.

    Raises:
        InputError: If these cannot be cut into the chunks that the base searched.
    """
    said: Mapping[str, Any] = base.manifest.get("sweep") or {}
    read, scope = said.get("collection") or {}, view.scope
    there = read.get("path") and Path(read["path"]).exists()
    if there or (base.chunking is not None and read.get("stored")):
        material = {key: said[key] for key in ("collection", "golden_set", "queries") if said.get(key)}
    elif base.chunking is None:
        source = {"stored": scope.collection_id, "language": read.get("language", "english")}
        material = {"collection": source, "golden_set": {"stored": scope.golden_set_id}}
    else:
        problem = "The documents that its chunks were cut from are not there."
        raise InputError(problem, where=base.run_id, do="Bring them back, or name another stack.")
    kept = {key: said[key] for key in ("models", "latency", "resources") if said.get(key)}
    own = [point(stack.spec) for stack in stacks]
    return {"name": f"indexes on {scope.collection_id}", **material, **kept, "stack": own}
