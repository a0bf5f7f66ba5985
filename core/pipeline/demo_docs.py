"""The first look: stacks with a real trade-off over the demo's texts and questions, shipped as results.

They were measured by `tools/demo/stacks.py`, which says how; data/demo/README.md says on what.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.importers import load
from core.paths import DEMO
from core.pipeline import demo
from core.records import Batch, Collection, GoldenSet
from core.tables import TABLES, frame

COLLECTION_ID = "docs-search"
GOLDEN_SET_ID, SECOND_SET_ID = "docs-search-graded", "docs-search-second"
RESULTS = DEMO / "measured"
MORE = DEMO / "queries-more.jsonl"
RUNNING_ID, RUNS_TODAY = "python-help", "BM25 ⊕ MiniLM"
"""A second workspace, and the stack of it that runs today."""
CANDIDATES = (
    "BM25",
    "MiniLM",
    "MiniLM int8",
    "BM25 ⊕ wordllama",
    "BM25 ⊕ MiniLM · rrf constant 10",
    "BM25 + late interaction, K = 20",
)
"""The other stacks there: without the fusions that gain most, which *What if → steps* replays."""
LATER = {
    DEMO / "judgements-later.tsv": "a language model, 27 November 2026: what encoders and a reranker bring",
    DEMO / "judgements-whole.tsv": "language models, 28 November 2026: blind, first ten of every stack",
}
"""Files of grades for passages outside the demo's pools, with their judge."""


def collection() -> Collection:
    """Return the collection: the passages and questions of the demo."""
    return replace(
        demo.collection(),
        collection_id=COLLECTION_ID,
        name="Docstrings of numpy, polars and streamlit",
        notes="The texts of python-docs and 150 questions that language models wrote, searched by encoders"
        " and a reranker too; measured once and shipped as results. Reader fake repeats a sentence, to try"
        " the pages of readers. See data/demo/README.md.",
    )


def golden_sets() -> tuple[GoldenSet, GoldenSet]:
    """Return the demo's golden set, extended by grades of later candidates, and the second judge's."""
    return (
        replace(
            demo.golden_set(),
            golden_set_id=GOLDEN_SET_ID,
            collection_id=COLLECTION_ID,
            name="Search in Python documentation, graded",
            judge="language models, which wrote the queries too, checked by nobody",
            notes="The first ten of every stack, and the pools of python-docs-graded. Language models"
            " graded, blind to ranks, stacks and other grades; no person checked. See data/demo/README.md.",
        ),
        replace(
            demo.second_set(),
            golden_set_id=SECOND_SET_ID,
            collection_id=COLLECTION_ID,
            name="Search in Python documentation, second judge",
        ),
    )


def queries() -> pl.DataFrame:
    """Return the demo's questions, then those of this workspace alone, as a frame of `TABLES["queries"]`."""
    rows = pl.concat([demo.queries(), demo.queries(MORE)]).with_columns(collection_id=pl.lit(COLLECTION_ID))
    return frame("queries", rows.to_dict())


def later() -> pl.DataFrame:
    """Return grades of passages outside the demo's pools, a frame of `TABLES["judgements"]`."""
    rows = pl.concat(
        pl.read_csv(file, separator="\t", quote_char=None).with_columns(judge=pl.lit(judge))
        for file, judge in LATER.items()
    ).with_columns(golden_set_id=pl.lit(GOLDEN_SET_ID), raw=pl.col("grade"))
    return frame("judgements", rows.select(list(TABLES["judgements"])).to_dict())


def texts() -> Batch:
    """Return the collection with its texts, questions, grades and right answers, without results."""
    here = pl.lit(COLLECTION_ID)
    graded = {GOLDEN_SET_ID: demo.judgements(), SECOND_SET_ID: demo.judgements(second=True)}
    given = [rows.with_columns(golden_set_id=pl.lit(name)) for name, rows in graded.items()]
    frames = {
        "passages": demo.passages().with_columns(collection_id=here),
        "queries": queries(),
        "gold_answers": demo.gold_answers().with_columns(collection_id=here),
        "judgements": pl.concat([*given, later()]),
    }
    return Batch(collections=(collection(),), golden_sets=golden_sets(), frames=frames)


def running(workspace: Batch) -> tuple[Batch, str]:
    """Return a workspace in which a stack runs today, and the run of that stack.

    Args:
        workspace: The workspace from `shipped`; the other holds its later questions with the same results.
    """
    stacks = [run for run in workspace.runs if run.label in (RUNS_TODAY, *CANDIDATES)]
    ids = {run.run_id: f"{run.run_id}-{RUNNING_ID}" for run in stacks}
    runs = tuple(replace(run, run_id=ids[run.run_id], collection_id=RUNNING_ID) for run in stacks)
    asked, golden = demo.queries(MORE).with_columns(collection_id=pl.lit(RUNNING_ID)), f"{RUNNING_ID}-graded"
    own = asked["query_id"].to_list()

    def held(table: str) -> pl.LazyFrame:
        return workspace.frames[table].lazy().filter(pl.col("query_id").is_in(own))

    frames: dict[str, pl.DataFrame] = {"queries": asked}
    for name in ("rankings", "timings", "usage"):
        rows = held(name).filter(pl.col("run_id").is_in(list(ids))).collect()
        frames[name] = rows.with_columns(pl.col("run_id").replace_strict(ids))
    judged = held("judgements").filter(golden_set_id=GOLDEN_SET_ID).collect()
    shown = {*frames["rankings"]["passage_id"], *judged["passage_id"]}
    passages = demo.passages().filter(pl.col("passage_id").is_in(list(shown)))
    frames["passages"] = passages.with_columns(collection_id=pl.lit(RUNNING_ID))
    frames["judgements"] = judged.with_columns(golden_set_id=pl.lit(golden))
    about_it = "The later questions and the results of docs-search, with a stack marked as running today."
    whole = replace(collection(), collection_id=RUNNING_ID, name="Help on Python packages", notes=about_it)
    graded = replace(
        golden_sets()[0],
        golden_set_id=golden,
        collection_id=RUNNING_ID,
        name="Help on Python packages, graded",
    )
    batch = Batch(collections=(whole,), golden_sets=(graded,), runs=runs, frames=frames)
    return batch, next(run.run_id for run in runs if run.label == RUNS_TODAY)


def shipped() -> tuple[Batch, Batch]:
    """Return the whole workspace (what `texts` returns, with results), and name figures."""
    held, measured = texts(), load([RESULTS])
    frames = dict(measured.frames)
    names = {table: frames.pop(table) for table in ("diagnostics",) if table in frames}
    workspace = replace(held, runs=measured.runs, frames={**held.frames, **frames})
    return workspace, Batch(collections=measured.collections, frames=names)
