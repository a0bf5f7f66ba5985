"""Do questions made from documents alone put stacks in the order of real ones? Tables of docs/questions.md.

    python -m bench.questions FOLDER_OF_COLLECTIONS [WORK] [--set COLLECTION=FOLDER …]

Stacks that run here are run on Cranfield and PIAF, with the questions of the collections, known-item
queries, headings, and sets that `golden questions` made before (with a model, or their twins). Printed are
mean RR@10 of each stack, Kendall's tau of their order with that of real questions with a bootstrap over
questions, what is lost on real questions by the stack that a set finds best, overlap, and the spread that the
plan of a set assumes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index.terms import Analyzer
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job as read_sweep
from core.prices import load_books
from core.records import Batch
from core.work.questions.folder import QUERIES, QUOTES, QuestionSet, numbered, read, write
from core.work.questions.job import read_job
from core.work.questions.known import HEADINGS, KNOWN_ITEM
from core.work.questions.overlap import mean_overlap
from core.work.questions.run import drawn
from core.work.questions.spec import QuestionsSpec

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


@dataclass(frozen=True)
class Place:
    """A collection that is asked about, and where its runs are kept."""

    name: str
    language: str
    home: Path
    work: Path

    @property
    def corpus(self) -> Path:
        return self.home / "corpus.jsonl"

    @cached_property
    def judged(self) -> pl.DataFrame:
        """What people found of its own questions, as grades 1 to 5."""
        qrels = pl.read_csv(self.home / "qrels" / "test.tsv", separator="\t", infer_schema=False)
        grade = pl.col("score").cast(pl.Int8)
        grade = grade if qrels.select(grade.max()).item() > 1 else grade * 5
        return qrels.select(query_id="query-id", passage_id="corpus-id", grade=grade)

    def ran(self, name: str, queries: Path, golden: str, judged: pl.DataFrame | None) -> pl.DataFrame:
        """RR@10 of every stack; see `scores`."""
        spec = SPEC.format(queries=queries, golden=golden, corpus=self.corpus, language=self.language)
        return scores(spec, self.work / f"run-{name}", judged)

    def overlap(self) -> float:
        """Mean share of a real question's terms that a good passage holds."""
        words, texts = (
            {row["_id"]: row["text"] for row in pl.read_ndjson(path).to_dicts()}
            for path in (self.home / "queries.jsonl", self.corpus)
        )
        analyzer = Analyzer(self.language)
        good = self.judged.filter(pl.col("grade") >= GOOD)
        pairs = ((words.get(query, ""), texts.get(passage, "")) for query, passage, _ in good.iter_rows())
        shares = [
            len(set(said) & set(analyzer.terms(text))) / len(set(said))
            for question, text in pairs
            if text and (said := analyzer.terms(question))
        ]
        return float(np.mean(shares))


def by_rule(place: Place, method: str) -> Path:
    """Make a set without a model; returns its folder."""
    told = {"name": method, "collection": str(place.corpus), "method": method, "count": COUNT}
    asked = QuestionsSpec.model_validate({**told, "language": place.language})
    job, _ = read_job(asked, load_books())
    kept, dropped = drawn(job)
    about = {"name": method, "method": method, "language": place.language}
    made = QuestionSet(about=about, entries=numbered(kept, dropped))
    write(place.work / method, made, job.material, {"path": str(place.corpus)})
    return place.work / method


def spread(table: np.ndarray) -> float:
    """Median standard deviation of the difference of two stacks."""
    return float(np.median([np.std(a - b, ddof=1) for a, b in combinations(table, 2)]))


def compare(place: Place, made: list[Path]) -> None:
    """Print what sets say of the stacks beside real questions."""
    real = place.ran("real", place.home / "queries.jsonl", "", place.judged)
    names, tables = real["name"].to_list(), {"real": matrix(real)}
    print(place.name, "real", tables["real"].shape, "sd", round(spread(tables["real"]), 3),
          "overlap", round(place.overlap(), 2))  # fmt: skip
    for folder in [*(by_rule(place, method) for method in (KNOWN_ITEM, HEADINGS)), *made]:
        found = place.ran(folder.name, folder / QUERIES, f'golden_set = "{folder / QUOTES}"', None)
        found = pl.DataFrame({"name": names}).join(found, on="name", maintain_order="left")
        table = tables[folder.name] = found.select(pl.exclude("name", "run_id")).to_numpy()
        low_high = [round(float(value), 2) for value in tau(tables["real"], table)]
        means = tables["real"].mean(axis=1)
        lost = float(means.max() - means[table.mean(axis=1).argmax()])
        shared = mean_overlap([entry.draft for entry in read(folder).asked], Analyzer(place.language))
        print(place.name, folder.name, table.shape, "tau", low_high, "lost", round(lost, 3),
              "overlap", round(shared or 0, 2), "sd", round(spread(table), 3), "thrown out",
              read(folder).counts())  # fmt: skip
    for one, other in combinations(tables, 2):
        both = kendalltau(tables[one].mean(axis=1), tables[other].mean(axis=1))[0]
        print(f"  tau of {one} and {other}: {both:.2f}")
    for at, stack in enumerate(names):
        print(f"  {stack:50}", *(f"{part[at].mean():.3f}" for part in tables.values()))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("work", type=Path, nargs="?", default=Path("build/questions"))
    parser.add_argument("--set", action="append", default=[], help="COLLECTION=FOLDER of a set")
    told = parser.parse_args()
    made = [given.partition("=") for given in told.set]
    for name, language in (("cranfield", "english"), ("piaf_fr", "french")):
        place = Place(name, language, told.folder / name, told.work / name)
        compare(place, [Path(path).absolute() for of, _, path in made if of == name])


if __name__ == "__main__":
    main()
