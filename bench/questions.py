"""Do questions made from documents alone put stacks in the order of real ones? Tables of docs/questions.md.

    python -m bench.questions FOLDER_OF_COLLECTIONS

Stacks that run here are run on Cranfield and PIAF, with the questions of the collections, known-item
queries and headings. Printed are mean RR@10 of each stack, Kendall's tau of their order with that of real
questions with a bootstrap over questions, overlap, and the spread that the plan of a set assumes.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from core.golden.questions.folder import QUERIES, QUOTES, QuestionSet, numbered, read, write
from core.golden.questions.job import read_job
from core.golden.questions.overlap import mean_overlap
from core.golden.questions.run import drawn
from core.golden.questions.spec import QuestionsSpec
from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index.terms import Analyzer
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job as read_sweep
from core.prices import load_books
from core.records import Batch

COUNT, K, GOOD, DRAWN = 300, 10, 4, 1000
SPEC = """
name = "tau"
collection = {{ path = "{corpus}", format = "jsonl", id = "c", language = "{language}" }}
queries = {{ path = "{queries}", limit = 500 }}
latency.repeats = 0
{golden}
[axes]
mode = ["sparse", "dense", "hybrid"]
embedder = "wordllama"
dim = [64, 128, 256]
index = "flat"
fusion = [{{ method = "rrf", constant = 60, depth = 100 }}]
candidates = 100
reranker = ["none", "tf-idf"]
"""


def scores(spec: str, work: Path, judged: pl.DataFrame | None) -> pl.DataFrame:
    """RR@10 of every stack (rows) and question (columns)."""
    job, _ = read_sweep(parse(spec), judged=judged is None)
    batches: list[Batch] = []
    run_job(job, batches.append, site=Site(work=work))
    runs = {run.run_id: run.stack.label for batch in batches for run in batch.runs}
    frames = [frame for batch in batches if (frame := batch.frames.get("rankings")) is not None]
    rankings = pl.concat([frame.lazy().collect() for frame in frames]).filter(
        pl.col("rank") <= K, stage="final"
    )
    if judged is None:
        judged = next(b.frames["judgements"].lazy().collect() for b in batches if "judgements" in b.frames)
    good = judged.filter(pl.col("grade") >= GOOD).select("query_id", "passage_id")
    asked = (
        good.filter(pl.col("query_id").is_in(job.queries["query_id"].to_list()))["query_id"].unique().sort()
    )
    first = (
        rankings.join(good, on=("query_id", "passage_id"))
        .group_by("run_id", "query_id")
        .agg(pl.col("rank").min())
    )
    whole = pl.DataFrame({"run_id": list(runs)}).join(asked.to_frame(), how="cross")
    values = whole.join(first, on=("run_id", "query_id"), how="left").with_columns(
        rr=(1 / pl.col("rank")).fill_null(0.0)
    )
    table = values.sort("run_id", "query_id").pivot("query_id", index="run_id", values="rr")
    return table.with_columns(name=pl.col("run_id").replace(runs))


def matrix(table: pl.DataFrame) -> np.ndarray:
    return table.drop("run_id", "name").to_numpy()


def tau(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Kendall's tau-b of the means, with its 95 % interval by resampling the questions of both."""
    chance = np.random.default_rng(0)
    found = [
        kendalltau(
            *(
                part[:, chance.integers(part.shape[1], size=part.shape[1])].mean(axis=1)
                for part in (one, other)
            )
        )[0]
        for _ in range(DRAWN)
    ]
    return (kendalltau(one.mean(axis=1), other.mean(axis=1))[0], *np.quantile(found, (0.025, 0.975)))


def main(folder: Path, work: Path) -> None:
    for name, language, split in (("cranfield", "english", "test"), ("piaf_fr", "french", "test")):
        corpus, out = folder / name / "corpus.jsonl", work / name
        qrels = pl.read_csv(folder / name / "qrels" / f"{split}.tsv", separator="\t", infer_schema=False)
        grade = pl.col("score").cast(pl.Int8)
        top = qrels.select(grade.max()).item()
        judged = qrels.select(
            query_id="query-id", passage_id="corpus-id", grade=grade if top > 1 else grade * 5
        )
        common = {"corpus": corpus, "language": language}
        real = scores(
            SPEC.format(queries=folder / name / "queries.jsonl", golden="", **common), out / "real", judged
        )
        tables = {"real": matrix(real)}
        spread = [np.std(a - b, ddof=1) for a, b in combinations(tables["real"], 2)]
        print(
            name, "real", tables["real"].shape, "median sd of differences", round(float(np.median(spread)), 3)
        )
        names = real["name"].to_list()
        for method in ("known-item", "headings"):
            asked = QuestionsSpec.model_validate(
                {
                    "name": method,
                    "collection": str(corpus),
                    "method": method,
                    "count": COUNT,
                    "language": language,
                }
            )
            job, _ = read_job(asked, load_books())
            kept, dropped = drawn(job)
            about = {"name": method, "method": method, "language": language}
            made = QuestionSet(about=about, entries=numbered(kept, dropped))
            write(out / method, made, job.material, {"path": str(corpus)})
            golden = f'golden_set = "{out / method / QUOTES}"'
            spec = SPEC.format(queries=out / method / QUERIES, golden=golden, **common)
            table = scores(spec, out / f"run-{method}", None)
            assert table["name"].to_list() == names or set(table["name"]) == set(names)
            table = pl.DataFrame({"name": names}).join(table, on="name", maintain_order="left")
            tables[method] = table.select(pl.exclude("name", "run_id")).to_numpy()
            low_high = tau(tables["real"], tables[method])
            spread = [np.std(a - b, ddof=1) for a, b in combinations(tables[method], 2)]
            overlap = mean_overlap([entry.draft for entry in read(out / method).asked], Analyzer(language))
            print(name, method, tables[method].shape, "tau", [round(float(v), 2) for v in low_high],
                  "overlap", round(overlap or 0, 2), "sd", round(float(np.median(spread)), 3))  # fmt: skip
        for at, stack in enumerate(names):
            print(f"  {stack:50}", *(f"{part[at].mean():.3f}" for part in tables.values()))
        words = {
            row["_id"]: row["text"] for row in pl.read_ndjson(folder / name / "queries.jsonl").to_dicts()
        }
        texts = {row["_id"]: row["text"] for row in pl.read_ndjson(corpus).to_dicts()}
        analyzer = Analyzer(language)
        shares = [
            len(set(said) & set(analyzer.terms(texts[passage]))) / len(set(said))
            for query, passage, value in judged.iter_rows()
            if value >= GOOD
            and query in words
            and passage in texts
            and (said := analyzer.terms(words[query]))
        ]
        print(name, "overlap of real questions and good passages", round(float(np.mean(shares)), 2))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "build/questions"))
