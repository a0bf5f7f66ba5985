"""Published scores of readers as workspaces: RAGGED's curves over k, and the generators of a thesis.

Every score is a mean that was printed, or that a tool's authors published. Only intervals are computed: each
mean is the share of questions (or cases) answered correctly, so it has a binomial interval.
"""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from core.answers import CLOSED_BOOK, GOLD, GOLD_ONLY, TOP_K
from core.paths import PUBLISHED
from core.records import Batch, Collection, JsonMap, Origin, Run, Stack
from core.stats.means import share_interval
from core.tables import frame

RAGGED, RAGGED_FOUND, THESIS = "ragged", "ragged-gold-found", "thesis-generators"
"""The workspaces: Natural Questions, its questions with a gold passage in Top(k), and the thesis."""
GENERATORS = PUBLISHED / "thesis_generators.csv"
_BY_K, _TABLES = PUBLISHED / "ragged_reader_by_k.csv", PUBLISHED / "ragged_tables.csv"
_TOOL = "RAGGED, results published with the tool (github.com/neulab/ragged)"
_PAPER = "Hsia, Shaikh, Wang, Neubig, RAGGED: Towards Informed Design of Scalable and Stable RAG Systems"
_THESIS = "Palmieri, A Comprehensive Study on RAG Methods for More Robust LLMs, Milano-Bicocca, Table 7.8"
_QUESTIONS = 2837  # Size of Natural Questions (RAGGED, Table 3)
_CASES = 39  # the thesis's values are multiples of 1/39
_BASELINE: JsonMap = {"reader": "GPT-4 Omni", "prompt": "P1", "temperature": 0.2}  # §7.4.1: 370.52 points
_MODES = {
    "top_k": TOP_K,
    "top_positive": GOLD_ONLY,
    "gold": GOLD,
    "no_context": CLOSED_BOOK,
    "no context": CLOSED_BOOK,
}
_SCORERS = {"exact_match": "exact_match", "substring_match_pct": "substring"}
_SCALES = {"exact_match": "0-1", "substring_match_pct": "0-100"}
_RETRIEVERS: dict[str, JsonMap] = {
    "colbert": {"mode": "dense", "embedder": "ColBERT"},
    "bm25": {"mode": "sparse", "sparse": "bm25"},
    "contriever": {"mode": "dense", "embedder": "Contriever"},
}


def published_readers() -> Batch:
    """Read the published scores of readers into runs of origin "published".

    Returns:
        Three collections, their runs, and the frames "answer_scores" and "aggregates".
    """
    whole = f"{_TOOL}; recall: {_PAPER}, Table 9"
    thesis = _run(
        THESIS, "retrieval", {"name": "the thesis's retrieval"}, _THESIS, {"baseline_generator": _BASELINE}
    )
    return Batch(
        collections=(
            Collection(
                collection_id=RAGGED,
                name="RAGGED, Natural Questions (published figures)",
                source=_TOOL,
                notes=f"{_QUESTIONS} questions (development set, KILT), paragraphs of Wikipedia; means only.",
            ),
            Collection(
                collection_id=RAGGED_FOUND,
                name="RAGGED, questions with a gold passage in Top(k) (published figures)",
                source=_TOOL,
                notes="Natural Questions, ColBERT: at each k the questions with a gold paragraph in Top(k).",
            ),
            Collection(
                collection_id=THESIS,
                name="Generators of a thesis (published figures)",
                source=_THESIS,
                notes=f"{_CASES} cases, two judges, five criteria of DeepEval; percent; means only.",
            ),
        ),
        runs=(
            *(_run(RAGGED, name, spec, whole) for name, spec in _RETRIEVERS.items()),
            _run(RAGGED_FOUND, "colbert", _RETRIEVERS["colbert"], _TOOL),
            thesis,
        ),
        frames={
            "answer_scores": pl.concat([_ragged_scores(), _thesis_scores(thesis.run_id)]),
            "aggregates": _recall(),
        },
    )


def _run(collection: str, name: str, spec: JsonMap, source: str, more: JsonMap | None = None) -> Run:
    stack = Stack(spec)
    return Run(
        run_id=f"{collection}-{name}",
        collection_id=collection,
        stack=stack,
        label=stack.label,
        origin=Origin.PUBLISHED,
        manifest={"source": source, **(more or {})},
        created_at=datetime(2025, 1, 1, tzinfo=UTC),
    )


def _ragged_scores() -> pl.DataFrame:
    rows = pl.read_csv(_BY_K)
    sliced = pl.col("dataset").str.contains("slice=")
    run = pl.format(
        "{}-{}", pl.when(sliced).then(pl.lit(RAGGED_FOUND)).otherwise(pl.lit(RAGGED)), "retriever"
    )
    mode = pl.col("mode").replace_strict(_MODES, return_dtype=pl.String)
    # Scores without a retriever hold for every retriever that has curves
    every = (
        rows.filter(pl.col("retriever") == "-")
        .drop("retriever")
        .join(pl.DataFrame({"retriever": ["bm25", "colbert"]}), how="cross")
    )
    rows = pl.concat([rows.filter(pl.col("retriever") != "-"), every.select(rows.columns)])
    # The closed-book score of a slice varies with the slice, which belongs to one k
    k = pl.when(mode == GOLD).then(None).otherwise(pl.col("k"))
    return _means(
        rows.select(
            "reader",
            "value",
            run_id=run,
            prompt=pl.lit("short"),
            temperature=pl.lit(0.0),
            mode=mode,
            k=k,
            scorer=pl.col("metric").replace_strict(_SCORERS, return_dtype=pl.String),
            scale=pl.col("metric").replace_strict(_SCALES, return_dtype=pl.String),
            judge=pl.lit(None, pl.String),
            n=pl.when(sliced).then(None).otherwise(pl.lit(_QUESTIONS)),
            source=pl.lit(_TOOL),
        ),
        _QUESTIONS,
    )


def _thesis_scores(run_id: str) -> pl.DataFrame:
    rows = pl.read_csv(GENERATORS, infer_schema_length=None).filter(pl.col("judge").is_not_null())
    several = pl.col("row").max().over("model", "prompt", "temperature") > 1
    name = pl.when(several).then(pl.format("{} (row {})", "model", "row")).otherwise(pl.col("model"))
    return _means(
        rows.select(
            "prompt",
            "judge",
            "value",
            pl.col("temperature").cast(pl.Float64),
            run_id=pl.lit(run_id),
            reader=name,
            mode=pl.lit(TOP_K),
            k=pl.lit(None, pl.Int32),
            scorer="criterion",
            scale=pl.lit("0-100"),
            n=pl.lit(_CASES),
            source=pl.lit(_THESIS),
        ),
        _CASES,
    )


def _means(rows: pl.DataFrame, n: int) -> pl.DataFrame:
    """Return rows of the table, with Wilson's interval if a mean is a share of n questions."""
    whole = pl.when(pl.col("scale") == "0-100").then(100.0).otherwise(1.0)
    ends = share_interval(rows.select(pl.col("value") / whole).to_series().to_numpy(), n)
    counted = rows.with_columns(pl.Series(name, end) for name, end in zip(("low", "high"), ends, strict=True))
    known = pl.when(pl.col("n").is_not_null())
    spans = (known.then(pl.col(end) * whole).alias(end) for end in ("low", "high"))
    return frame("answer_scores", counted.with_columns(spans).to_dict())


def _recall() -> pl.DataFrame:
    """Return RAGGED's Table 9 for Natural Questions: recall of paragraphs, in percent."""
    rows = pl.read_csv(_TABLES, infer_schema=False).filter(
        pl.col("table") == "9",
        pl.col("dataset") == "nq",
        pl.col("measure").str.starts_with("recall_passage@"),
    )
    return frame(
        "aggregates",
        rows.select(
            pl.format("{}-{}", pl.lit(RAGGED), "retriever").alias("run_id"),
            pl.lit("R").alias("measure"),
            pl.col("measure").str.split("@").list.last().cast(pl.Int32).alias("k"),
            pl.col("value").cast(pl.Float64) / 100,
            pl.lit(_QUESTIONS).alias("n"),
            pl.lit("RAGGED, Table 9").alias("source"),
        ).to_dict(),
    )
