"""The demo: a collection frozen in data/demo (see its README), with stacks really run and measured here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from core.paths import DEMO
from core.records import Batch, Collection, GoldenSet, Run, Sink, Stack
from core.tables import TABLES, frame

COLLECTION_ID, GOLDEN_SET_ID, SECOND_SET_ID = "python-docs", "python-docs-graded", "python-docs-second"
PASSAGES, QUERIES = DEMO / "passages.parquet", DEMO / "queries.jsonl"
JUDGEMENTS, SECOND = DEMO / "judgements.tsv", DEMO / "judgements-second.tsv"
GOLD_ANSWERS = DEMO / "gold-answers.tsv"
REPEATS = 5
DEPTHS = (20, 50, 100, 200)
_TOKENIZER = "o200k_base"
_JUDGE = "an AI assistant of the team, reading each passage; one judge"
_SECOND = "a second language model, without sight of the first grades, checked by nobody"

Progress = Callable[[int, int, str], None]
"""Reports each step: steps done, steps in all, and what is happening now."""


@dataclass(frozen=True, slots=True)
class Demo:
    """The runs and judgements that the demo put into the sink."""

    runs: tuple[Run, ...]  # one per stack
    judged: pl.DataFrame  # frame of `TABLES["judgements"]`

    @property
    def summary(self) -> str:
        """Return one line for people with the numbers of measured stacks and of judgements."""
        counts = dict(self.judged.group_by("grade").len().iter_rows())
        grades = ", ".join(f"{counts.get(grade, 0)} of grade {grade}" for grade in range(5, 0, -1))
        asked = self.judged["query_id"].n_unique()
        judgements = f"{self.judged.height} judgements of {asked} questions ({grades})"
        perturbed = sum("perturb" in run.stack.spec for run in self.runs)
        noise = f", {perturbed} runs of perturbed questions" if perturbed else ""
        return f"{len(self.runs) - perturbed} stacks measured{noise}; {judgements}"


def collection() -> Collection:
    """Return the demo collection: docstrings of three packages."""
    return Collection(
        collection_id=COLLECTION_ID,
        name="Python documentation",
        source="Docstrings of numpy 2.4.6, polars 2.1.0, streamlit 1.67.0",
        notes="Frozen in data/demo, with the licences of the packages.",
    )


def golden_set() -> GoldenSet:
    """Return the graded judgements of the demo collection."""
    return GoldenSet(
        golden_set_id=GOLDEN_SET_ID,
        collection_id=COLLECTION_ID,
        name="Python documentation, graded",
        judge=_JUDGE,
        notes="Pool: the top 15 of BM25 and of wordllama 256 d, and answers that the author of a question"
        " knew; passages outside the pool are unjudged. See data/demo/README.md.",
    )


def second_set() -> GoldenSet:
    """Return a second judge's grades of a sample of the same passages."""
    return GoldenSet(
        golden_set_id=SECOND_SET_ID,
        collection_id=COLLECTION_ID,
        name="Python documentation, second judge",
        judge=_SECOND,
        notes="48 passages drawn at random of each grade of the first judge, shuffled within a question."
        " See data/demo/README.md.",
    )


def passages() -> pl.DataFrame:
    """Return the passages of the demo, a frame of `TABLES["passages"]`."""
    rows = pl.read_parquet(PASSAGES).with_columns(
        collection_id=pl.lit(COLLECTION_ID), tokenizer=pl.lit(_TOKENIZER)
    )
    return frame("passages", rows.select(list(TABLES["passages"])).to_dict())


def queries(path: Path = QUERIES) -> pl.DataFrame:
    """Return the queries in a file of the demo, a frame of `TABLES["queries"]`."""
    rows = pl.read_ndjson(path).with_columns(collection_id=pl.lit(COLLECTION_ID))
    return frame("queries", rows.select(list(TABLES["queries"])).to_dict())


def judgements(*, second: bool = False) -> pl.DataFrame:
    """Return judgements of the demo, a frame of `TABLES["judgements"]`; the second judge's if `second`."""
    path, golden = (SECOND, second_set()) if second else (JUDGEMENTS, golden_set())
    rows = pl.read_csv(path, separator="\t", quote_char=None).with_columns(
        golden_set_id=pl.lit(golden.golden_set_id), raw=pl.col("grade"), judge=pl.lit(golden.judge)
    )
    return frame("judgements", rows.select(list(TABLES["judgements"])).to_dict())


def gold_answers() -> pl.DataFrame:
    """Return short answers stated in docstrings, a frame of `TABLES["gold_answers"]`."""
    rows = pl.read_csv(GOLD_ANSWERS, separator="\t", quote_char=None)
    rows = rows.with_columns(collection_id=pl.lit(COLLECTION_ID))
    return frame("gold_answers", rows.select(list(TABLES["gold_answers"])).to_dict())


def grid(
    *,
    embedder: str = "wordllama",
    dims: Sequence[int] = (64, 128, 256),
    indexes: Sequence[str] = ("flat", "hnsw-f32", "int8"),
    depths: Sequence[int] = DEPTHS,
) -> list[Stack]:
    """List BM25, every dense combination, and BM25 fused with each of them, at every candidate depth."""
    from core.pipeline.sweep.fields import Encoder, Index  # noqa: PLC0415

    return _expanded(
        embedder=(Encoder(name=embedder),),
        dim=tuple(dims),
        index=tuple(Index(name=name) for name in indexes),
        candidates=tuple(depths),
    )


def noisy() -> list[Stack]:
    """Return BM25 and wordllama on questions with added small talk, and on the same questions rewritten."""
    return _expanded(
        mode=("sparse", "dense"),
        dim=(64, 256),
        candidates=(50,),
        noise=(0, 2, 4),
        rewrite=("none", "hygiene", "rules"),
    )


def reranked() -> list[Stack]:
    """List wordllama with the rerankers that need no model."""
    rerankers = ("bm25", "tf-idf", "rebel-rules")
    return _expanded(mode=("dense",), dim=(256,), candidates=(50,), reranker=rerankers)


def _expanded(**axes: Any) -> list[Stack]:  # noqa: ANN401 - those of `Axes`
    from core.pipeline.sweep.expand import grid as expand_axes  # noqa: PLC0415 - what only reads waits for none
    from core.pipeline.sweep.model import Axes  # noqa: PLC0415

    return expand_axes(Axes(**axes))


def run_demo(sink: Sink, progress: Progress | None = None, *, stacks: Sequence[Stack] | None = None) -> Demo:
    """Make the demo collection with its golden set, then run the stacks on it.

    Args:
        sink: Receives two batches: the collection, then all runs.
        stacks: What to run; by default the grid of 76 stacks, those of `noisy` and of `reranked`.
    """
    from core.pipeline.evaluate import Job, Protocol, Status, corpus_of, merged, run_job  # noqa: PLC0415
    from core.pipeline.evaluate.session import Site  # noqa: PLC0415

    if stacks is None:
        stacks = list({stack.stack_id: stack for stack in (*grid(), *noisy(), *reranked())}.values())
    tell = progress or (lambda *_: None)
    tell(0, 1, "read the documentation")
    asked, judged = queries(), judgements()
    both = pl.concat([judged, judgements(second=True)])
    frames = {"passages": passages(), "queries": asked, "judgements": both, "gold_answers": gold_answers()}
    sink(Batch(collections=(collection(),), golden_sets=(golden_set(), second_set()), frames=frames))
    job = Job(
        name="demo",
        collection_id=COLLECTION_ID,
        corpora={None: corpus_of(passages())},
        queries=asked,
        stacks=stacks,
        protocol=Protocol(repeats=REPEATS, shuffled=True),
    )

    def on_status(status: Status) -> None:
        tell(status.done, status.total, status.stage)

    batches: list[Batch] = []
    # Nothing is paid for and the whole takes a minute, so a later run need not resume anything.
    with tempfile.TemporaryDirectory(prefix="clq-demo-") as folder:
        run_job(job, batches.append, site=Site(work=Path(folder), progress=on_status))
    runs = merged(batches)
    sink(runs)
    return Demo(runs.runs, judged)
