"""Retrieval-response files (Schwartz et al., How important is recall…, A.1): answers graded at many K.

Three kinds of file, told apart by their keys, each JSON lines or one JSON list: texts {id, q, p, n}, ranked
{id, E, Nc, Np, K, rank} and graded, which adds {answer_topK, answer_ideal, grade} to that. One query is asked
over pools of several sizes, so the query here is (id, Nc, Np). A candidate with index i < Np is relevant
(p[i]), the others aren't (n[i − Np]). `grade` is the grade of the answer, not of a passage.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, LeftOut, Options, counted, frames_of
from core.importers.read.member import Archive, Member, digest_of, head_lines, members_of
from core.importers.read.rows import again, refuse
from core.importers.read.tabular import READ_ERRORS, objects_of
from core.importers.read.text import shown, whole
from core.importers.report import TAKEN
from core.importers.runs import chosen_id, collection_frames, collection_of, imported_run, run_labels
from core.records import GoldenSet, Run

_Fields = dict[str, pl.DataType]
_TEXTS: _Fields = {"id": pl.String(), "q": pl.String(), "p": pl.List(pl.String), "n": pl.List(pl.String)}
_POOL: _Fields = {"id": pl.String(), "E": pl.String(), "Nc": pl.Int64(), "Np": pl.Int64()}
_RANKED: _Fields = {**_POOL, "rank": pl.List(pl.Int64)}
_GRADED: _Fields = {**_RANKED, "K": pl.Int64(), **dict.fromkeys(("answer_topK", "answer_ideal"), pl.String())}
_GRADED["grade"] = pl.Float64()
_SCHEMAS = {"texts": _TEXTS, "ranked": _RANKED, "graded": _GRADED}
_KEYS = {
    "graded": ("E", "Nc", "Np", "rank", "grade"),
    "ranked": ("E", "Nc", "Np", "rank"),
    "texts": ("q", "p", "n"),
}
_FOLLOWS = dict.fromkeys(("P", "R", "inK"), "follows from the ranking and Np")
_RELEVANT, _NOT = 5, 1
_VARIANT = pl.format("{}|Nc{}|Np{}", "id", "Nc", "Np")
_MOST = 10_000  # Maximum candidates per query; a larger pool means a damaged file


class RetrievalResponse(Format):
    """Query texts, rankings and graded answers of the retrieval-response data set."""

    name, title = "retrieval-response", "retrieval-response (graded answers)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "binary: candidates before Np are relevant",
        "rankings": "the deepest ranking of every pool, a run per embedder",
        "answers": "answers at every K with their grade, 1 to 5",
        "answer_scores": "",
        "gold_answers": "ideal answers",
    }
    recognised = "JSON with id, q, p, n, or with E, Nc, Np, rank, and a grade where answers are"
    traps = (
        "The grade is the answer's, not a passage's.",
        "A query is asked over pools of several sizes: (id, Nc, Np) is the query here.",
    )
    names_collection = 1
    known = {
        "": "of none of the three kinds",
        "texts": {**_FOLLOWS, **dict.fromkeys(_TEXTS, TAKEN)},
        "ranked": {**_FOLLOWS, **dict.fromkeys(_RANKED, TAKEN), "K": "every K is computed"},
        "graded": {**_FOLLOWS, **dict.fromkeys(_GRADED, TAKEN)},
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        lines = [line for line in head_lines(member, 40) if line.strip()]
        if not lines or lines[0].lstrip()[0] not in "[{":
            return None
        names = set(re.findall(r'"(\w+)"\s*:', "\n".join(lines)[:60_000]))
        return next((kind for kind, keys in _KEYS.items() if {"id", *keys} <= names), None)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        members = members_of(archives)
        tables = {
            kind: pl.concat(
                [
                    pl.DataFrame(schema=schema),
                    *(_rows(member, schema) for member in members if self.kind(member) == kind),
                ]
            )
            for kind, schema in _SCHEMAS.items()
        }
        ranked = _deepest(tables["ranked"], tables["graded"], members[0].name)
        if ranked.is_empty() and tables["texts"].is_empty():
            raise InputError("The files hold no sample.", where=members[0].name)
        pools = ranked.unique(["id", "Nc", "Np"], maintain_order=True).with_columns(query_id=_VARIANT)
        runs, by_name = _runs(members, ranked, options)
        graded = tables["graded"].with_columns(query_id=_VARIANT)
        queries, passages = _queries(pools, tables["texts"]), _passages(tables["texts"])
        wanted = options.golden_set_id
        golden = GoldenSet(
            golden_set_id=chosen_id(wanted) if wanted else f"{options.collection_id}-relevance",
            collection_id=options.collection_id or "imported",
            name="Relevance as built",
            mapping="binary: 0→1, 1→5",
            judge="the data set's construction",
        )
        return Import(
            collections=collection_of(options, "retrieval-response files"),
            golden_sets=(golden,) if pools.height else (),
            runs=runs,
            frames=collection_frames(options, queries, passages)
            | frames_of(
                judgements=_judgements(pools, golden.golden_set_id),
                rankings=_rankings(ranked, by_name),
                answers=_answers(graded, by_name, members[0].name),
                gold_answers=_ideal(graded, options),
            ),
            left_out=_left_out(graded, pools, tables["texts"]),
            notes=("Relevance is binary: candidates 0 to Np − 1 count as grade 5, the others as grade 1.",),
        )


def _rows(member: Member, schema: _Fields) -> pl.DataFrame:
    try:
        if head_lines(member, 1)[0].lstrip().startswith("["):
            rows = pl.read_json(io.BytesIO(whole(member)), schema=schema)
        else:
            rows = objects_of(member, schema)
    except READ_ERRORS as error:
        raise InputError(
            f"The file cannot be read as JSON: {shown(error, 200)}", where=member.name
        ) from error
    needed = [name for name in schema if name not in ("answer_topK", "answer_ideal", "grade")]
    numbered = rows.select(list(schema)).with_columns(sample=pl.int_range(1, pl.len() + 1))
    broken = numbered.filter(pl.any_horizontal(pl.col(needed).is_null()))
    absent = next((name for name in needed if broken[:1][name].null_count()), "")
    refuse(broken, f"Sample {{sample}} has no {absent!r}, or not of its type.", member.name)
    return numbered.drop("sample")


def _deepest(ranked: pl.DataFrame, graded: pl.DataFrame, where: str) -> pl.DataFrame:
    keys = list(_POOL)
    together = pl.concat([ranked, graded.select(list(_RANKED))])
    deepest = (
        together.with_columns(pl.col("rank").list.len().alias("depth"))
        .sort(*keys, "depth", descending=[False] * len(keys) + [True])
        .unique(keys, keep="first", maintain_order=True)
    )
    index = pl.col("rank").list
    wrong = deepest.filter(
        (pl.col("Nc") < pl.col("Np"))
        | (pl.col("Np") < 0)
        | (pl.col("Nc") > _MOST)
        | (index.max() >= pl.col("Nc"))
        | (index.min() < 0)
        | (index.n_unique() < index.len())
        | index.eval(pl.element().is_null()).list.any()
    )
    said = "The ranking of sample {id} ({E}, Nc {Nc}, Np {Np}) names candidates that its pool does not have"
    refuse(wrong, f"{said}, or one twice.", where)
    return deepest.drop("depth")


def _runs(
    members: Sequence[Member], ranked: pl.DataFrame, options: Options
) -> tuple[tuple[Run, ...], pl.DataFrame]:
    """Return one run per embedder, and E → run_id."""
    embedders = ranked["E"].unique().sort().to_list()
    labels = run_labels([(name, "") for name in embedders], options)
    digest = digest_of(members)
    runs = tuple(
        imported_run(
            options,
            label,
            digest,
            importer=RetrievalResponse.name,
            decided={"E": name},
            spec={"mode": "dense", "embedder": name, "name": label},
        )
        for name, label in zip(embedders, labels, strict=True)
    )
    names = {"E": embedders, "run_id": [run.run_id for run in runs]}
    return runs, pl.DataFrame(names, schema={"E": pl.String, "run_id": pl.String})


def _queries(pools: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    subset = pl.col("id").str.replace(r"-\d+$", "")
    return pools.join(texts.select("id", "q").unique("id"), on="id").select(
        "query_id",
        pl.col("q").alias("text"),
        pl.concat_list(pl.format("subset={}", subset), pl.format("Np={}", "Np")).alias("tags"),
    )


def _passages(texts: pl.DataFrame) -> pl.DataFrame:
    parts = [
        texts.select("id", pl.col(side).alias("text"))
        .explode("text", empty_as_null=True)
        .drop_nulls("text")
        .with_columns(place=pl.int_range(pl.len()).over("id"))
        .select(pl.format(f"{{}}/{side}{{}}", "id", "place").alias("passage_id"), "text")
        for side in ("p", "n")
    ]
    return pl.concat(parts)


def _passage_id(index: pl.Expr) -> pl.Expr:
    positive, negative = pl.format("{}/p{}", "id", index), pl.format("{}/n{}", "id", index - pl.col("Np"))
    return pl.when(index < pl.col("Np")).then(positive).otherwise(negative)


def _judgements(pools: pl.DataFrame, golden_set_id: str) -> pl.DataFrame:
    relevant = pl.col("index") < pl.col("Np")
    return (
        pools.select("id", "Np", "query_id", index=pl.int_ranges(0, "Nc"))
        .explode("index", empty_as_null=True)
        .drop_nulls("index")
        .select(
            "query_id",
            golden_set_id=pl.lit(golden_set_id),
            passage_id=_passage_id(pl.col("index")),
            grade=pl.when(relevant).then(_RELEVANT).otherwise(_NOT).cast(pl.Int8),
            raw=relevant.cast(pl.Int16),
        )
    )


def _rankings(ranked: pl.DataFrame, by_name: pl.DataFrame) -> pl.DataFrame:
    return (
        ranked.join(by_name, on="E")
        .with_columns(query_id=_VARIANT, place=pl.int_ranges(1, pl.col("rank").list.len() + 1))
        .explode("rank", "place", empty_as_null=True)
        .drop_nulls("rank")
        .select(
            "run_id",
            "query_id",
            pl.lit("final").alias("stage"),
            pl.col("place").alias("rank"),
            _passage_id(pl.col("rank")).alias("passage_id"),
        )
    )


def _answers(graded: pl.DataFrame, by_name: pl.DataFrame, where: str) -> pl.DataFrame:
    problem = "The answer of {E} to {query_id} at K = {K} stands twice."
    refuse(again(graded, "query_id", "E", "K"), problem, where)
    return graded.join(by_name, on="E").select(
        "run_id",
        "query_id",
        pl.col("K").alias("k"),
        pl.col("answer_topK").alias("text"),
        "grade",
        pl.lit("1-5").alias("scale"),
        pl.lit("retrieval-response").alias("judge"),
    )


def _ideal(graded: pl.DataFrame, options: Options) -> pl.DataFrame:
    known = graded.filter(pl.col("answer_ideal").fill_null("") != "")
    gold = known.select("query_id", answer="answer_ideal").unique(maintain_order=True)
    return gold.with_columns(collection_id=pl.lit(options.collection_id))


def _left_out(graded: pl.DataFrame, pools: pl.DataFrame, texts: pl.DataFrame) -> tuple[LeftOut, ...]:
    return counted(
        {
            "answers without a grade (kept, but not correlated)": graded["grade"].null_count(),
            "queries without a text, because no texts file has their id": pools.join(
                texts, on="id", how="anti"
            ).height,
            "query texts without a ranking": texts.join(pools, on="id", how="anti").height,
        }
    )
