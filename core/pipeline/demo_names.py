"""Questions with names for the demo: remarks on a function found elsewhere in numpy's documentation.

Many docstrings have a section See Also, in which their authors name other functions and say what these do:
"unravel_index : Convert a flat index into an index tuple." Such a line is a question here, and the docstring
of the function that it names the passage to find. Nobody graded anything: the authors' link is the judgement.
With them come the demo's own 64 questions, which name nothing, with their grades, and questions that these
texts do not answer.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from core.importers.samples import ASKED_AT
from core.paths import DEMO
from core.pipeline import demo
from core.pipeline.environment import describe, threads
from core.pipeline.evaluate import Job, Protocol, Status, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index import make_index
from core.pipeline.query.entities import TAG, named
from core.pipeline.sweep.expand import grid as expand_axes
from core.pipeline.sweep.model import Axes
from core.providers.base import Purpose
from core.providers.embed import make_embedder
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack, short_hash
from core.tables import TABLES, frame

COLLECTION_ID, GOLDEN_SET_ID = "python-names", "python-names-linked"
WITHOUT, UNANSWERABLE = DEMO / "unanswerable.txt", "unanswerable"
NAMED = "n"  # Prefix of the identifiers of questions that name something
QUESTIONS = 120
"""Number of links that are asked, the first by a hash of their texts."""
REPEATS, DEPTH = 3, 50
_SECTION = re.compile(r"See Also\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-{3,}|\Z)", re.DOTALL)
_LINE = re.compile(r"^(?:numpy\.)?([\w.]+) ?: ([A-Z].{20,}\.)$", re.MULTILINE)
_NAMED = re.compile(r"[_\d]|^.{6,}$")  # not "any" or "all", which sentences contain by chance
_EMBEDDER, _DIM = "wordllama", 256


def links(passages: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of See Also whose words do not occur in the function's own docstring.

    Args:
        passages: passage_id and text.

    Returns:
        text ("unravel_index: Convert a flat index into an index tuple."), name, passage_id (the function that
        is named) and source (the docstring that names it); one line a function.
    """
    texts = dict(passages.sort("passage_id").select("passage_id", "text").iter_rows())
    rows = [row for source, text in texts.items() for row in _links(source, text or "", texts)]
    found = pl.DataFrame(rows, schema=["text", "name", "passage_id", "source"], orient="row")
    drawn = found.with_columns(key=pl.col("text").map_elements(short_hash, return_dtype=pl.String)).sort(
        "key"
    )
    return drawn.unique("passage_id", keep="first", maintain_order=True).drop("key")


def _links(source: str, text: str, texts: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield text, name, passage and source of the links of a docstring of numpy."""
    section = _SECTION.search(text) if source.startswith("numpy.") else None
    for name, says in _LINE.findall(section[1]) if section else ():
        meant = (name, f"numpy.{name}", f"{source.rpartition('.')[0]}.{name}")
        there = next((full for full in meant if full in texts and full != source), None)
        if there and _NAMED.search(name) and says.rstrip(".").lower() not in texts[there].lower():
            yield f"{name}: {says}", name, there, source


def _asked(passages: pl.DataFrame) -> pl.DataFrame:
    return links(passages).head(QUESTIONS).with_columns(
        query_id=pl.format(NAMED + "{}", pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(3))
    )  # fmt: skip


def without_answer() -> pl.DataFrame:
    """Return the questions that the texts do not answer: query_id, text."""
    asked = WITHOUT.read_text("utf-8").splitlines()
    return pl.DataFrame({"query_id": [f"u{place:02}" for place in range(1, len(asked) + 1)], "text": asked})


def workspace() -> Batch:
    """Return the collection with questions and judgements."""
    passages = demo.passages().with_columns(collection_id=pl.lit(COLLECTION_ID))
    asked, own = _asked(passages), demo.queries()
    tags = pl.concat_list(pl.lit("kind=named"), pl.lit(TAG) + pl.col("name"))
    naming = asked.select(
        pl.lit(COLLECTION_ID).alias("collection_id"), "query_id", "text", tags.alias("tags")
    )
    plain = own.with_columns(
        collection_id=pl.lit(COLLECTION_ID), tags=pl.concat_list("tags", pl.lit("kind=plain"))
    )
    no_answer = without_answer().select(
        pl.lit(COLLECTION_ID).alias("collection_id"), "query_id", "text",
        tags=pl.lit([UNANSWERABLE], pl.List(pl.String)),
    )  # fmt: skip
    judge = "the authors of the documentation, who wrote the link"
    linked = asked.select(
        pl.lit(GOLDEN_SET_ID).alias("golden_set_id"), "query_id", "passage_id",
        pl.lit(5).alias("grade"), pl.lit(5).alias("raw"), pl.lit(judge).alias("judge"),
    )  # fmt: skip
    graded = demo.judgements().with_columns(golden_set_id=pl.lit(GOLDEN_SET_ID))
    judgements = pl.concat([linked.select(graded.columns).cast(graded.schema), graded])
    return Batch(
        collections=(
            Collection(
                collection_id=COLLECTION_ID,
                name="Python documentation, by name",
                source=demo.collection().source,
                notes="Lines of See Also of numpy as questions, the function that they name as the answer;"
                " the questions of python-docs, and some without an answer here. Reader fake repeats a"
                " sentence, to try the pages of readers. See data/demo/README.md.",
            ),
        ),
        golden_sets=(
            GoldenSet(
                golden_set_id=GOLDEN_SET_ID,
                collection_id=COLLECTION_ID,
                name="Python documentation, links of its authors",
                judge=judge,
                notes="One passage a question that names something: others may serve as well, unjudged."
                " The other questions have the grades of python-docs-graded.",
            ),
        ),
        frames={
            "passages": passages,
            "queries": frame(
                "queries",
                pl.concat([naming, *(some.select(naming.columns) for some in (plain, no_answer))]).to_dict(),
            ),
            "gold_answers": demo.gold_answers().with_columns(collection_id=pl.lit(COLLECTION_ID)),
            "judgements": frame("judgements", judgements.to_dict()),
        },
    )


def stacks() -> list[Stack]:
    """Return BM25 and wordllama, alone and fused, each asked with original, near-miss and gibberish names."""
    return expand_axes(Axes(dim=(64, 256), candidates=(DEPTH,), names=("0", "1", "gibberish")))


def measured(progress: demo.Progress | None = None) -> list[Batch]:
    """Return the workspace, its stacks run on this machine, and its traffic in the order it was asked."""
    given, tell = workspace(), progress or (lambda *_: None)
    passages, queries = (given.frames[name].lazy().collect() for name in ("passages", "queries"))

    def on_status(status: Status) -> None:
        tell(status.done, status.total, f"questions with names: {status.stage}")

    job = Job(
        name="names",
        collection_id=COLLECTION_ID,
        corpora={None: corpus_of(passages)},
        queries=queries,
        stacks=stacks(),
        names=named(queries, passages),
        protocol=Protocol(repeats=REPEATS, shuffled=True),
    )
    runs: list[Batch] = []
    with tempfile.TemporaryDirectory(prefix="clq-names-") as folder:
        run_job(job, runs.append, site=Site(work=Path(folder), progress=on_status))
    judged = queries.join(given.frames["judgements"].lazy().collect(), on="query_id", how="semi")
    return [given, merged(runs), traffic(passages, judged)]


def traffic(passages: pl.DataFrame, queries: pl.DataFrame) -> Batch:
    """Ask a stack every question once and log when: first those that name something, then the others.

    The change half way is deliberate, so that there is a drift to see; the times are real.
    """
    corpus = corpus_of(passages)
    ids, began = corpus.passage_ids.to_list(), time.time()
    run_id = f"r-{short_hash('traffic', str(began))}"
    rows: dict[str, list[tuple[Any, ...]]] = {"rankings": [], "timings": [], "signals": []}
    with threads(1), make_embedder(_EMBEDDER, _DIM) as embedder:
        index = make_index("flat", embedder.embed(corpus.texts.to_list()))
        for place, (query_id, text) in enumerate(queries.select("query_id", "text").iter_rows(), 1):
            at, start = time.time(), time.perf_counter()
            (vector,) = embedder.embed([text], Purpose.QUERY)
            embedded = time.perf_counter()
            hits = index.search(vector, DEPTH)
            done = time.perf_counter()
            rows["signals"].append((run_id, query_id, ASKED_AT, None, at))
            rows["timings"] += [(run_id, query_id, "embed", 1, 1000 * (embedded - start), place),
                        (run_id, query_id, "retrieve", 1, 1000 * (done - embedded), place)]  # fmt: skip
            ranked = zip(hits.passages.tolist(), hits.scores.tolist(), strict=True)
            rows["rankings"] += [
                (run_id, query_id, "final", rank, ids[found], score)
                for rank, (found, score) in enumerate(ranked, 1)
            ]
    run = Run(
        run_id=run_id,
        collection_id=COLLECTION_ID,
        stack=Stack(
            {
                "mode": "dense",
                "embedder": _EMBEDDER,
                "dim": _DIM,
                "index": "flat",
                "reranker": "none",
                "candidates": DEPTH,
                "log": "as it was asked",
            }
        ),
        label=f"{_EMBEDDER} {_DIM} d, as it was asked",
        origin=Origin.RUN,
        pool=f"dense@{DEPTH}",
        environment=describe(),
    )
    frames = {name: pl.DataFrame(of, schema=dict(TABLES[name]), orient="row") for name, of in rows.items()}
    return Batch(runs=(run,), frames=frames)
