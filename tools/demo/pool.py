"""Makes the sheets on which the demo's candidates are judged.

    python -m tools.demo.pool FOLDER [--unjudged | --first-look]

writes one Markdown sheet per question with its pool: the top 15 of BM25, the top 15 of exact dense retrieval
and the answers that the author of the question expected, in an order that does not tell who found what. The
grades go into data/demo/judgements.tsv. With --unjudged only candidates without a grade are written: what is
left to judge after a package was updated or a question was added. With --first-look the sheets are tables of
what has no grade yet among the first ten of every stack of `docs-search`, noisy questions aside, and of what
the authors of its questions expected; grades go into data/demo/judgements-whole.tsv.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import polars as pl

from core.importers import load
from core.pipeline import demo, demo_docs
from core.pipeline.demo import COLLECTION_ID
from core.pipeline.evaluate import Job, Protocol, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.records import Batch, JsonMap, Stack

DEPTH = 15
SHOWN_CHARACTERS = 1100
FIRST, SHOWN_IN_TABLE, PER_TABLE = 10, 500, 700
SYSTEMS: tuple[JsonMap, ...] = (
    {"mode": "sparse", "sparse": "bm25"},
    {"mode": "dense", "embedder": "wordllama", "dim": 256, "index": "flat"},
)


def pools(
    corpus: pl.DataFrame,
    queries: pl.DataFrame,
    *,
    expected: Mapping[str, Sequence[str]],
    systems: Sequence[JsonMap] = SYSTEMS,
    depth: int = DEPTH,
) -> dict[str, list[str]]:
    """Pool the candidates of several systems per question.

    Args:
        corpus: Frame of `TABLES["passages"]`.
        queries: Frame of `TABLES["queries"]`.
        expected: Further passages by query_id; those missing from the corpus are left out.
        systems: Specifications of stacks, as in `Stack.spec`.
        depth: Number of passages from each system, ≥ 1.

    Returns:
        Passage ids by query_id, without repetition, shuffled by the query_id alone.
    """
    found = _found(corpus, queries, systems, depth)
    known = set(corpus["passage_id"])
    made = {}
    for query_id in queries["query_id"]:
        hoped = {each for each in expected.get(query_id, ()) if each in known}
        pool = sorted({*found.get(query_id, ()), *hoped})
        Random(query_id).shuffle(pool)  # noqa: S311 - hides the systems from the judge, guards no secret
        made[query_id] = pool
    return made


def _found(
    corpus: pl.DataFrame, queries: pl.DataFrame, systems: Sequence[JsonMap], depth: int
) -> dict[str, list[str]]:
    """Return, per query, the passages ranked by any system."""
    specs = [{**system, "candidates": depth} for system in systems]
    job = Job(
        name="pool",
        collection_id=COLLECTION_ID,
        corpora={None: corpus_of(corpus)},
        queries=queries,
        stacks=list({stack.stack_id: stack for stack in map(Stack, specs)}.values()),
        protocol=Protocol(repeats=0),
    )
    batches: list[Batch] = []
    with tempfile.TemporaryDirectory(prefix="clq-pool-") as folder:
        run_job(job, batches.append, site=Site(work=Path(folder)))
    rows = merged(batches).frames["rankings"].lazy().select("query_id", "passage_id").collect()
    return dict(rows.group_by("query_id").agg("passage_id").iter_rows())


def sheet(query_id: str, question: str, pool: pl.DataFrame) -> str:
    """Return a sheet for the judge: the question, and each candidate with its title and first lines."""
    parts = [f"# {query_id}\nQuestion: {question}\nPassages: {pool.height}\n"]
    for number, (passage_id, title, text) in enumerate(
        pool.select("passage_id", "title", "text").iter_rows(), start=1
    ):
        start = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} […]"
        parts.append(f"## {number}. {passage_id}\ntitle: {title}\n\n{start}\n\n---\n")
    return "\n".join(parts)


def expected_answers() -> dict[str, list[str]]:
    """Return, by query_id, the passages that the author of the question had in mind."""
    return dict(pl.read_ndjson(demo.QUERIES).select("query_id", "answers").iter_rows())


def write_sheets(folder: Path, *, unjudged: bool = False) -> int:
    """Write the sheets of the demo's questions.

    Args:
        folder: Created if it doesn't exist; sheets of the same name are replaced.
        unjudged: Leave out candidates with a grade, and sheets that would be empty.

    Returns:
        The number of question-passage pairs written.

    Raises:
        InputError: If the demo's files cannot be read.
    """
    corpus, questions = demo.passages(), demo.queries()
    pooled = pools(corpus, questions, expected=expected_answers())
    if unjudged:
        done = set(demo.judgements().select("query_id", "passage_id").iter_rows())
        pooled = {
            query: [each for each in pool if (query, each) not in done] for query, pool in pooled.items()
        }
    folder.mkdir(parents=True, exist_ok=True)
    for query_id, text in questions.select("query_id", "text").iter_rows():
        if pooled[query_id]:
            rows = pl.DataFrame({"passage_id": pooled[query_id]}).join(
                corpus, on="passage_id", how="left", maintain_order="left"
            )
            (folder / f"{query_id}.md").write_text(sheet(query_id, text, rows), encoding="utf-8")
    return sum(map(len, pooled.values()))


def write_tables(folder: Path, results: Path = demo_docs.RESULTS) -> int:
    """Write tables of the remaining first-look judgements: question, passage, title and first characters.

    Args:
        folder: Created if it doesn't exist; tables of the same name are replaced.
        results: Location of the measured stacks.

    Returns:
        The number of question-passage pairs written.
    """
    asked = demo_docs.queries().select("query_id", "text").with_row_index("place")
    found = _first(load([results])).join(_hoped(), on=["query_id", "passage_id"], how="full", coalesce=True)
    graded = pl.concat([demo.judgements(), demo_docs.later()]).select("query_id", "passage_id")
    rows = (
        found.join(graded, on=["query_id", "passage_id"], how="anti")
        .join(demo.passages().select("passage_id", "title", body="text"), on="passage_id")
        .join(asked, on="query_id")
        .with_columns(order=pl.struct("query_id", "passage_id").hash(seed=1))  # hides who found what
        .sort("place", "order")
        .select("query_id", "passage_id", "text", "title", pl.col("body").str.slice(0, SHOWN_IN_TABLE))
        .with_columns(pl.col("text", "title", "body").str.replace_all(r"\s+", " "))
    )
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(rows.iter_slices(PER_TABLE), start=1):
        part.write_csv(folder / f"{number:02}.tsv", separator="\t", quote_style="never")
    return rows.height


def _first(batch: Batch) -> pl.DataFrame:
    """Return the first passages of every offered stack, each once per question."""
    offered = [run.run_id for run in batch.runs if "perturb" not in run.stack.spec]
    final = pl.col("stage") == "final"
    kept = pl.col("run_id").is_in(offered) & final & (pl.col("rank") <= FIRST)
    return batch.frames["rankings"].lazy().filter(kept).select("query_id", "passage_id").unique().collect()


def _hoped() -> pl.DataFrame:
    rows = pl.read_ndjson(demo_docs.MORE).select("query_id", passage_id="answers").explode("passage_id")
    return rows.cast(pl.String)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo.pool", description=__doc__)
    parser.add_argument("folder", type=Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--unjudged", action="store_true", help="only candidates without a grade")
    which.add_argument("--first-look", action="store_true", help="what docs-search has no grade of yet")
    chosen = parser.parse_args(arguments)
    if chosen.first_look:
        pairs = write_tables(chosen.folder)
    else:
        pairs = write_sheets(chosen.folder, unjudged=chosen.unjudged)
    sys.stdout.write(f"{pairs} pairs to judge in {chosen.folder}\n")


if __name__ == "__main__":
    main()
