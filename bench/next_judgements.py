"""How many judgements until the choice is that of all: at random, stratified, holes of stacks, or by value.

    python -m bench.next_judgements [REPEATS] [HIDDEN]

Cranfield's texts and grades; nine stacks (BM25, wordllama and their fusions). All that the stacks show in
their Top-10 and all that is graded counts as judged (what Cranfield leaves out has grade 1). HIDDEN of it
(0.5) is hidden at random and judged again by twenties, 1,000 at most. Prints, per sampling, after how many
judgements the best stack is the best of all grades from there on, and how often it is so on the way.
"""

from __future__ import annotations

import itertools
import sys

import bm25s
import numpy as np
import polars as pl
import Stemmer

from core.golden.value import contest, overlaid, worth
from core.metrics import Measure, score_at
from core.providers.embed import make_embedder
from tests.pipeline.cranfield import judged, table

K, STEP = 10, 20
MEASURE = Measure.parse(f"RA-nWG@{K}")
SAMPLINGS = ("at random", "stratified", "holes of stacks", "by value")
SHOWN = (0, 100, 200, 300, 400, 600, 800, 1000)
MOST = 1000
_PAIR = ["query_id", "passage_id"]


def scoring(grades, counts):
    return score_at(MEASURE, grades, counts)


def rankings() -> pl.DataFrame:
    """run_id, query_id, passage_id, rank of nine stacks."""
    corpus, asked = table("passages"), table("queries")
    texts, questions = (
        (corpus["title"].fill_null("") + " " + corpus["text"]).to_list(),
        asked["text"].to_list(),
    )
    stem = Stemmer.Stemmer("english")
    cut = [
        bm25s.tokenize(each, stopwords="en", stemmer=stem, show_progress=False) for each in (texts, questions)
    ]
    scores = {}
    for name, k1, b in (("bm25", 1.2, 0.75), ("bm25 0.9", 0.9, 0.75), ("bm25 1.6", 1.6, 0.75)):
        index = bm25s.BM25(k1=k1, b=b)
        index.index(cut[0], show_progress=False)
        ids = [[word for word, at in cut[1].vocab.items() if at in set(row)] for row in cut[1].ids]
        scores[name] = np.stack([index.get_scores(row) for row in ids])
    for dim in (128, 256):
        with make_embedder("wordllama", dim) as model:
            one, other = model.embed(questions), model.embed(texts)
        scores[f"wordllama {dim}"] = one @ other.T
    ranks = {
        name: np.argsort(np.argsort(-of, axis=1, kind="stable"), axis=1) + 1 for name, of in scores.items()
    }
    for one, other in itertools.product(("bm25", "bm25 0.9"), ("wordllama 128", "wordllama 256")):
        fused = -(1 / (60 + ranks[one]) + 1 / (60 + ranks[other]))
        ranks[f"{one} + {other}"] = np.argsort(np.argsort(fused, axis=1, kind="stable"), axis=1) + 1
    rows = []
    for name, of in ranks.items():
        query, passage = np.nonzero(of <= K)
        rows.append(
            pl.DataFrame(
                {
                    "run_id": [name] * len(query),
                    "query_id": asked["query_id"].gather(query),
                    "passage_id": corpus["passage_id"].gather(passage),
                    "rank": of[query, passage],
                }
            )
        )
    return pl.concat(rows)


def everything(ranked: pl.DataFrame) -> pl.DataFrame:
    """query_id, passage_id, grade of all that is graded or shown."""
    graded = pl.DataFrame(
        [(query, passage, grade) for query, of in judged().items() for passage, grade in of.items()],
        schema=[*_PAIR, "grade"],
        orient="row",
    )
    shown = ranked.select(_PAIR).unique().with_columns(grade=pl.lit(1, pl.Int64))
    return overlaid(
        shown.filter(pl.col("query_id").is_in(graded["query_id"].unique().to_list())), graded
    ).sort(_PAIR)


def order(
    sampling: str, hidden: pl.DataFrame, ranked: pl.DataFrame, random: np.random.Generator
) -> pl.DataFrame:
    """The hidden passages in the order in which a sampling that looks at no grades judges them."""
    stacks = ranked.group_by(_PAIR).agg(stacks=pl.len(), rank=pl.col("rank").min())
    rows = hidden.join(stacks, on=_PAIR, how="left").with_columns(
        pl.col("stacks").fill_null(0), chance=pl.Series(random.random(hidden.height))
    )
    if sampling == "stratified":
        return rows.sort(pl.col("chance").rank().over("stacks"), "chance")
    if sampling == "holes of stacks":
        return rows.sort(pl.col("stacks"), "chance", descending=[True, False])
    return rows.sort("chance")


def follow(
    sampling: str, known: pl.DataFrame, hidden: pl.DataFrame, ranked: pl.DataFrame, seed: int
) -> list[str]:
    """The best stack after every step of judgements."""
    stacks = tuple(ranked["run_id"].unique(maintain_order=True))
    queue = order(sampling, hidden, ranked, np.random.default_rng(seed))
    chosen = []
    while True:
        field = contest(ranked, known, stacks, K)
        chosen.append(stacks[int(np.nanargmax(field.means(scoring)))])
        if queue.is_empty() or len(chosen) > MOST // STEP:
            return chosen
        if sampling == "by value":
            rows = worth(field, scoring, seed=seed, worlds=100).rows.head(STEP)
            first = hidden.join(rows.select(_PAIR), on=_PAIR, how="semi")
            rest = queue.join(first, on=_PAIR, how="anti")
            batch = first if first.height else rest.head(STEP).select(first.columns)
            queue = queue.join(batch, on=_PAIR, how="anti")
        else:
            batch, queue = queue.head(STEP), queue[STEP:]
        known = overlaid(known, batch)


def main(repeats: int = 10, share: float = 0.5) -> None:
    ranked = rankings()
    full = everything(ranked)
    stacks = tuple(ranked["run_id"].unique(maintain_order=True))
    means = contest(ranked, full, stacks, K).means(scoring)
    best = stacks[int(means.argmax())]
    print({name: round(float(mean), 4) for name, mean in zip(stacks, means, strict=True)})
    print(f"{full.height:,} judgements, {share:.0%} hidden; the choice of all: {best}; {repeats} repeats")
    for sampling in SAMPLINGS:
        needed, curve = [], []
        for seed in range(repeats):
            hide = np.random.default_rng(seed).random(full.height) < share
            chosen = follow(
                sampling, full.filter(~pl.Series(hide)), full.filter(pl.Series(hide)), ranked, seed
            )
            right = np.array([name == best for name in chosen])
            wrong = np.flatnonzero(~right)
            needed.append(0 if not len(wrong) else (int(wrong[-1]) + 1) * STEP)
            curve.append([right[min(n // STEP, len(right) - 1)] for n in SHOWN])
        shares = ", ".join(f"{n}: {of:.0%}" for n, of in zip(SHOWN, np.mean(curve, axis=0), strict=True))
        low, middle, high = np.quantile(needed, (0.25, 0.5, 0.75))
        print(
            f"{sampling:16} settled after {middle:.0f} (quartiles {low:.0f}, {high:.0f}); right at {shares}"
        )


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:], strict=False)))
