"""Stores to test views and pages on: made by the product's own parts, or row by row."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from typer.testing import CliRunner

from core.cli.app import app as command
from core.importers.formats.published import published_batch
from core.pipeline.demo import grid, run_demo
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import TABLES, frame
from tests.many_stacks import seed

HOSTILE = (
    "<b>bold</b><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![i](http://evil.example/i.png)",
    ":material/delete: :red[red] :smile: :streamlit:",
    '=HYPERLINK("http://evil.example")',
    "$a^2$ **b** _c_ `d` ~~e~~ # f",
    "www.evil.example https://evil.example me@evil.example",
    "'; DROP TABLE runs; --",
    "%{customdata[1]} {name} <br>",
)
"""Names that would do something, were they taken for markup, a formula or a statement."""


def demo(path: Path) -> None:
    """The demo on ten stacks (sparse, dense, hybrid; two depths) and the published figures."""
    stacks = grid(embedder="fake", dims=(16,), indexes=("flat", "hnsw-f32"), depths=(10, 50))
    run_demo(lambda batch: add(path, batch, "demo"), stacks=stacks)
    published(path)


def shipped(path: Path) -> None:
    """The demo as it ships: what `core demo` fills a store with."""
    assert CliRunner().invoke(command, ["--store", str(path), "demo"]).exit_code == 0


def published(path: Path) -> None:
    """The published figures only."""
    add(path, published_batch(), "published")


def many(path: Path) -> None:
    """Ten thousand stacks, known by their aggregates only."""
    seed(path, 10_000)


def add(path: Path, batch: Batch, action: str) -> None:
    """Write a batch."""
    with Store.open(path).write(action) as writer:
        writer.add(batch)


_TEMPLATES: dict[str, Path] = {}
"""What stores were filled with, and a copy of the one that was written first."""


def filled(path: Path, key: str, write: Callable[[Path], object]) -> Path:
    """Fill a new store: what the same key stands for is written once, and copied from then on."""
    if key in _TEMPLATES:
        shutil.copytree(_TEMPLATES[key], path)
        return path
    write(path)
    if not _TEMPLATES:
        _TEMPLATES[""] = Path(tempfile.mkdtemp(prefix="clq-stores-"))
        atexit.register(shutil.rmtree, _TEMPLATES[""], ignore_errors=True)
    _TEMPLATES[key] = _TEMPLATES[""] / str(len(_TEMPLATES))
    shutil.copytree(path, _TEMPLATES[key])
    return path


class Lab:
    """A collection that is put together row by row.

    Attributes:
        collection_id: Its name; the golden set is called "gold".
        runs: The runs so far.
    """

    def __init__(self, collection_id: str = "lab") -> None:
        self.collection_id = collection_id
        self.runs: list[Run] = []
        self._golden: list[GoldenSet] = []
        self._rows: dict[str, list[dict[str, object]]] = {name: [] for name in TABLES}

    def judge(
        self, grades: Mapping[str, Mapping[str, int]], golden_set_id: str = "gold", *, by: str = ""
    ) -> Lab:
        """Add a golden set: query → passage → grade."""
        about = {"golden_set_id": golden_set_id, "collection_id": self.collection_id, "name": "Gold"}
        self._golden.append(GoldenSet(**about, judge=by))
        for query_id, judged in grades.items():
            for passage_id, grade in judged.items():
                row = {"golden_set_id": golden_set_id, "query_id": query_id, "passage_id": passage_id}
                self._rows["judgements"].append({**row, "grade": grade, "raw": grade})
        return self

    def ask(self, queries: Mapping[str, str], tags: Sequence[str] = ()) -> Lab:
        """Add queries: id → text."""
        self._rows["queries"] += [
            {"collection_id": self.collection_id, "query_id": key, "text": text, "tags": list(tags)}
            for key, text in queries.items()
        ]
        return self

    def hold(self, passages: Mapping[str, str], sources: Mapping[str, str] | None = None) -> Lab:
        """Add passages: id → text, and what some were cut from."""
        of = sources or {}
        self._rows["passages"] += [
            {"collection_id": self.collection_id, "passage_id": key, "text": text, "title": text,
             "source": of.get(key)}
            for key, text in passages.items()
        ]  # fmt: skip
        return self

    def run(
        self,
        run_id: str,
        *,
        label: str | None = None,
        spec: Mapping[str, object] | None = None,
        origin: Origin = Origin.IMPORT,
        pool: str | None = None,
        manifest: Mapping[str, object] | None = None,
        environment: Mapping[str, object] | None = None,
        final: Mapping[str, Sequence[str]] | None = None,
        candidates: Mapping[str, Sequence[str]] | None = None,
        ms: Mapping[str, Sequence[float]] | None = None,
        usage: Sequence[tuple[str, str, str, float]] = (),
        figures: Sequence[Mapping[str, object]] = (),
    ) -> Lab:
        """Add a run.

        Args:
            run_id: Its id.
            label: Its name; the id unless given.
            spec: Its stack.
            origin: Where it came from.
            pool: The convention of its candidate pool.
            manifest: Its manifest.
            environment: Where it ran.
            final: Query → passages in the final order.
            candidates: Query → passages of the pool.
            ms: Stage → one time per query.
            usage: Stage, item, unit, amount per query.
            figures: Rows of "aggregates" without the run.
        """
        self.runs.append(
            Run(
                run_id=run_id,
                collection_id=self.collection_id,
                stack=Stack({"name": run_id, **(spec or {})}),
                label=label or run_id,
                origin=origin,
                pool=pool,
                manifest=manifest or {},
                environment=environment or {},
            )
        )
        for stage, rankings in (("final", final or {}), ("pool", candidates or {})):
            self._rows["rankings"] += [
                {"run_id": run_id, "query_id": query, "stage": stage, "rank": rank, "passage_id": passage}
                for query, passages in rankings.items()
                for rank, passage in enumerate(passages, 1)
            ]
        for stage, times in (ms or {}).items():
            self._rows["timings"] += [
                {"run_id": run_id, "query_id": f"q{place}", "stage": stage, "repeat": 1, "ms": time}
                for place, time in enumerate(times, 1)
            ]
        self._rows["usage"] += [
            {"run_id": run_id, "stage": stage, "item": item, "unit": unit, "amount": amount,
             "basis": "measured"}
            for stage, item, unit, amount in usage
        ]  # fmt: skip
        self._rows["aggregates"] += [{"run_id": run_id, **row} for row in figures]
        return self

    def spend(self, rows: Iterable[Mapping[str, object]]) -> Lab:
        """Add rows of "usage", query by query."""
        self._rows["usage"] += [{"basis": "measured", **row} for row in rows]
        return self

    def answer(
        self,
        run_id: str,
        scores: Mapping[str, float],
        *,
        k: int,
        reader: str | None = "one",
        mode: str | None = "top_k",
        scorer: str = "f1",
        **about: object,
    ) -> Lab:
        """Add a reader's answers of one run, mode and k: query → score 0..1; `about` are further columns."""
        key = {"run_id": run_id, "reader": reader, "mode": mode, "k": k, "pass": 1}
        key |= {name: about.pop(name) for name in ("prompt", "temperature", "pass") if name in about}
        for query_id, value in scores.items():
            row = {**key, "query_id": query_id}
            self._rows["answers"].append({**row, "text": "an answer", **about})
            self._rows["answer_scores"].append({**row, "scorer": scorer, "value": value, "scale": "0-1"})
        return self

    def write(self, path: Path) -> Store:
        """Put it into a store."""
        batch = Batch(
            collections=(Collection(collection_id=self.collection_id, name="A lab"),),
            golden_sets=tuple(self._golden),
            runs=tuple(self.runs),
            frames={name: _filled(name, rows) for name, rows in self._rows.items() if rows},
        )
        at_any_time = [replace(run, created_at=None) for run in self.runs]
        if path.exists():
            add(path, batch, "test")
        else:
            key = repr((batch.collections, self._golden, at_any_time, self._rows))
            filled(path, key, lambda path: add(path, batch, "test"))
        return Store.open(path)


def _filled(table: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    return frame(table, [{name: row.get(name) for name in TABLES[table]} for row in rows])


def answered(path: Path) -> None:
    """Two stacks, whose passages two readers and the closed book answered forty questions from."""
    queries = [f"q{n}" for n in range(1, 41)]
    lab = Lab().judge({query: {f"gold-{query}": 5, "x1": 1} for query in queries})
    lab.ask({query: f"What is {query}?" for query in queries})
    lab.hold(
        {**{f"gold-{query}": "the answer" for query in queries}, **{f"x{n}": "noise" for n in range(1, 20)}}
    )
    for stack, first in (("dense", 2), ("sparse", 4)):
        # The gold passage of every second question comes at rank `first`, that of the others never.
        noise = [f"x{n}" for n in range(1, 20)]
        final = {
            query: [*noise[: first - 1], *([f"gold-{query}"] if place % 2 else []), *noise[first:]]
            for place, query in enumerate(queries)
        }
        lab.run(stack, final=final, ms={"dense": [10.0 * first] * len(queries)})
        for reader, skill in (("steady", 0.6), ("fickle", 0.8)):
            about = {"reader": reader, "prompt": "short", "temperature": 0.0}
            lab.answer(stack, dict.fromkeys(queries, 0.2), k=0, mode="none", **about)
            for k in (1, 2, 5, 10, 20):
                seen = k >= first
                lost = 0.03 * k if reader == "fickle" else 0.0
                scores = {
                    query: max(0.0, (skill if seen and place % 2 else 0.1) - lost)
                    for place, query in enumerate(queries)
                }
                cost = {"input_tokens": 100 * k, "output_tokens": 5, "usd": 1e-5 * k, "truncated": k == 20}
                lab.answer(stack, scores, k=k, **about, **cost)
                if seen:
                    lab.answer(stack, dict.fromkeys(queries[1::2], 0.9), k=k, mode="gold_only", **about)
    lab.write(path)


def hostile(path: Path) -> None:
    """Every text that a user can bring, as an attack: names of runs, a measure, queries, tags, passages."""
    lab = Lab().judge({f"q{n}": {f"p{n}": 5, f"x{n}": 1} for n in range(1, len(HOSTILE) + 1)})
    lab.ask({f"q{n}": name for n, name in enumerate(HOSTILE, 1)}, tags=[f"type={HOSTILE[0]}"])
    lab.hold({f"{kind}{n}": name for n, name in enumerate(HOSTILE, 1) for kind in "px"})
    for place, name in enumerate(HOSTILE):
        hits = {f"q{n}": [f"p{n}", f"x{n}"] if n > place else [f"x{n}"] for n in range(1, len(HOSTILE) + 1)}
        lab.run(
            f"r{place}",
            label=name,
            spec={"mode": "sparse", "embedder": name, "candidates": 10 + place},
            pool=name,
            environment={"cpu": name},
            final=hits,
            ms={"sparse": [1.0 + place] * len(HOSTILE)},
            usage=[("sparse", "requests", "requests", 1.0)],
            figures=[{"measure": HOSTILE[1], "k": 10, "value": 0.5, "n": 8}],
        )
        for k in (1, 2):
            about = {"reader": HOSTILE[place - 1], "prompt": name, "scorer": name}
            lab.answer(f"r{place}", dict.fromkeys(hits, 0.1 * place), k=k, **about)
    lab.write(path)
