"""Readers on stored runs: their inputs from the store, and adding their answers to existing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from core.analysis.workspace.scope import Scope, audits, resolve_runs
from core.analysis.workspace.unanswerable import classes
from core.answers import KEY
from core.errors import InputError, UnknownNameError
from core.readers.dose import HARMFUL
from core.records import Batch
from core.store import Snapshot, Store
from core.work.readers.distractors import MADE

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Job
    from core.pipeline.evaluate.run import After
    from core.pipeline.sweep.fields import Reader
    from core.pipeline.sweep.problems import Problem
    from core.prices import PriceBook
    from core.work.readers.job import Material, ReaderJob
    from core.work.readers.run import Left, ReaderSpec


_SCORE = (*KEY, "scorer", "judge")
_SAME = 1e-9  # scores that differ by less count as equal


def read(
    snapshot: Snapshot, spec: ReaderSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[ReaderJob, list[Problem]]:
    """Read a specification, and return the job with remarks for its owner.

    Raises:
        SpecError: With everything that is wrong with its models.
        UnknownNameError: If the store has no such collection, run, golden set or price book.
        InputError: If there is nothing to read.
    """
    from core.work.readers.job import ReaderJob, require_models  # noqa: PLC0415 - with the engines, a second

    problems = require_models(spec.reader, spec.models, to_run=to_run)
    if spec.prices not in books:
        raise UnknownNameError("price book", spec.prices, books, where="prices")
    collection = str(spec.collection.stored)
    job = ReaderJob(
        name=spec.name,
        reader=spec.reader,
        material=material(snapshot, collection, spec.reader, spec.reader.runs),
        models=spec.models,
        book=books[spec.prices],
        budget_usd=spec.budget_usd,
        spec=spec.plain(),
    )
    return job, problems


def after(store: Store, job: Job) -> After | None:
    """Return the reader job to run after an evaluation's runs are stored; None if it has none."""
    from core.pipeline.evaluate.run import After  # noqa: PLC0415 - with the engines, a second
    from core.pipeline.evaluate.session import Session  # noqa: PLC0415
    from core.work.readers.job import Material, ReaderJob, require_material, require_models  # noqa: PLC0415
    from core.work.readers.plan import reader_of  # noqa: PLC0415
    from core.work.readers.run import answer  # noqa: PLC0415

    reader = reader_of(job)
    if reader is None:
        return None
    require_models(reader, job.models, to_run=True)
    golden = next(
        (golden_set.golden_set_id for golden_set in job.setup.golden_sets if golden_set.part_of is None), None
    )
    reader = reader if reader.golden_set else reader.model_copy(update={"golden_set": golden})

    def do(session: Session, run_ids: Sequence[str]) -> None:
        snapshot = store.read()
        there = set(snapshot.runs(job.collection_id)["run_id"])
        asked = set(job.queries["query_id"])
        read = material(snapshot, job.collection_id, reader, [name for name in run_ids if name in there])
        replays = tuple(
            replace(replay, ranked={query: ids for query, ids in replay.ranked.items() if query in asked})
            for replay in read.replays
        )
        readers = ReaderJob(
            name=job.name, reader=reader, material=replace(read, replays=replays), models=job.models,
            book=job.book, budget_usd=job.budget_usd,
        )  # fmt: skip
        require_material(readers)
        answer(readers, lambda batch: store_results(store, batch), session)

    questions = dict(job.queries.select("query_id", "text").iter_rows())
    empty = Material(job.collection_id, questions, {}, ())  # its questions, before it has run
    return After(do, ReaderJob(name=job.name, reader=reader, material=empty, models=job.models).billed())


def material(snapshot: Snapshot, collection_id: str, reader: Reader, names: Sequence[str]) -> Material:
    """Read from the store the data for the runs to read."""
    from core.pipeline.evaluate import corpus_of  # noqa: PLC0415 - with the engines, a second
    from core.pipeline.sweep.fields import WORKSPACE  # noqa: PLC0415
    from core.work.readers.job import DOSED, Material, ReaderReplay  # noqa: PLC0415

    collections = snapshot.collections()["collection_id"]
    if collection_id not in set(collections):
        raise UnknownNameError("collection", collection_id, collections)
    runs = snapshot.runs(collection_id).filter("has_rankings")
    ids = runs["run_id"].to_list() if WORKSPACE in names else resolve_runs(runs, names)
    questions = dict(snapshot.queries(collection_id).select("query_id", "text").iter_rows())
    gold = _gold(snapshot, collection_id, reader, ids)
    searched = snapshot.searched(ids)
    deep, dosed = max(1, reader.depth), bool(DOSED & set(reader.modes))
    whole = dosed or bool(({"gold"} | MADE.keys()) & set(reader.modes))  # Whether gold passages are sent
    replays = tuple(
        ReaderReplay(
            name,
            searched[name],
            _ranked(snapshot, name, deep, questions),
            gold.get(name, {}),
            _harmful(snapshot, collection_id, reader, name) if dosed else {},
        )
        for name in ids
    )
    wanted: dict[str, set[str]] = {}
    for replay in replays:
        names_of = wanted.setdefault(replay.searched, set())
        for query, ranked in replay.ranked.items():
            names_of.update(ranked, replay.gold.get(query, ()) if whole else ())
            names_of.update(replay.harmful.get(query, ())[:deep])
    texts = {}
    for name, passages in wanted.items():
        corpus = corpus_of(snapshot.passages(name, sorted(passages)))
        texts[name] = dict(zip(corpus.passage_ids, corpus.texts, strict=True))
    held = frozenset(snapshot.answers(ids).select(KEY).iter_rows())
    golds, graded = snapshot.gold_answers(collection_id), _golden_set(snapshot, collection_id, reader)
    known = classes(snapshot, Scope(collection_id, graded)).select("query_id", "answerable")
    return Material(collection_id, questions, texts, replays, golds, dict(known.iter_rows()), held)


def _ranked(
    snapshot: Snapshot, run_id: str, depth: int, questions: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """List the first passages of each question with a text; none if the run found none."""
    asked = {
        query for table in ("rankings", "timings") for query in snapshot.existing(table, [run_id], "query_id")
    }
    rows = snapshot.rankings([run_id], stage="final").filter(pl.col("rank") <= depth)
    listed = rows.sort("query_id", "rank").group_by("query_id", maintain_order=True).agg("passage_id")
    passages_of = {query: tuple(passages) for query, passages in listed.iter_rows()}
    return {query: passages_of.get(query, ()) for query in sorted(asked & set(questions))}


def _gold(
    snapshot: Snapshot, collection_id: str, reader: Reader, run_ids: Sequence[str]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by run and question its gold passages, the best first."""
    name = _golden_set(snapshot, collection_id, reader)
    if name is None:
        return {}
    sets: dict[str, dict[str, tuple[str, ...]]] = {}
    judging = snapshot.judging(run_ids, name)
    for part in set(judging.values()):
        rows = snapshot.within(part).filter(pl.col("grade") >= reader.gold_from)
        rows = rows.sort("query_id", "grade", "passage_id", descending=[False, True, False])
        listed = rows.group_by("query_id", maintain_order=True).agg("passage_id")
        sets[part] = {query: tuple(passages) for query, passages in listed.iter_rows()}
    return {run_id: sets[part] for run_id, part in judging.items()}


def _harmful(
    snapshot: Snapshot, collection_id: str, reader: Reader, run_id: str
) -> dict[str, tuple[str, ...]]:
    """Return by question the candidates of grade 1 or 2, in the order of the pool."""
    name = _golden_set(snapshot, collection_id, reader)
    if name is None:
        return {}
    pool = snapshot.rankings([run_id], stage="pool")
    pool = snapshot.rankings([run_id], stage="final") if pool.is_empty() else pool
    judged = snapshot.within(snapshot.judging([run_id], name)[run_id]).filter(pl.col("grade") <= HARMFUL)
    keys = ["query_id", "passage_id"]
    rows = pool.join(judged.select(keys).unique(), on=keys).sort("query_id", "rank")
    listed = rows.group_by("query_id", maintain_order=True).agg("passage_id")
    return {query: tuple(passages) for query, passages in listed.iter_rows()}


def _golden_set(snapshot: Snapshot, collection_id: str, reader: Reader) -> str | None:
    """Return the golden set that defines gold passages: the named one, or the collection's only one."""
    from core.work.readers.job import OF_GOLD  # noqa: PLC0415

    name = reader.golden_set
    if name is None:
        known = snapshot.golden_sets(collection_id)["golden_set_id"].to_list()
        left = [name for name in known if name not in audits(snapshot, collection_id)]
        if len(left) > 1 and OF_GOLD & set(reader.modes):
            raise InputError(
                f"{collection_id} has {len(left)} golden sets: {', '.join(left)}.",
                where="reader.golden_set",
                do="Name the one whose passages are gold.",
            )
        name = left[0] if len(left) == 1 else None
    return name


def store_results(store: Store, batch: Batch) -> Left:
    """Add answers and their scores to the existing ones of their runs.

    An existing answer stays, with its scores; scores by other scorers are added if its text is the same.

    Returns:
        The number of answers and scores that differ from existing ones, and so were left out.
    """
    from core.work.readers.run import Left  # noqa: PLC0415 - with the engines, a second

    answers, scores = (batch.frames[name].lazy().collect() for name in ("answers", "answer_scores"))
    if answers.is_empty():
        return Left()
    ids = answers["run_id"].unique().sort().to_list()
    count = f"{answers.height:,} answers of {', '.join(answers['reader'].unique().sort())}"
    with store.write("readers", f"{count} on {len(ids)} runs"[:500]) as writer:
        snapshot = store.read()
        there = snapshot.answers(ids).select(*KEY, text_there="text")
        both = answers.join(there, on=KEY, nulls_equal=True)
        other = both.filter(pl.col("text").ne_missing(pl.col("text_there")))
        scores = scores.join(other, on=KEY, how="anti", nulls_equal=True)
        scored = snapshot.answer_scores(ids).select(*_SCORE, value_there="value")
        again = scores.join(scored, on=_SCORE, nulls_equal=True)
        changed = again.filter((pl.col("value") - pl.col("value_there")).abs() > _SAME)
        frames = {
            "answers": answers.join(there, on=KEY, how="anti", nulls_equal=True),
            "answer_scores": scores.join(scored, on=_SCORE, how="anti", nulls_equal=True),
        }
        filled = {table: rows for table, rows in frames.items() if rows.height}
        writer.add(Batch(frames=filled))
    return Left(other.height, changed.height)


def with_scores(snapshot: Snapshot, collection_id: str, batch: Batch) -> Batch:
    """Return a batch of runs with the scores of answers that custom pipelines returned."""
    if "answers" not in batch.frames:
        return batch
    from core.readers.scoring import SCORERS, scored  # noqa: PLC0415 - with the engines, a second

    answers = batch.frames["answers"].lazy().collect()
    scores = scored(answers, snapshot.gold_answers(collection_id), list(SCORERS))
    if scores.is_empty():
        return batch
    return replace(batch, frames={**batch.frames, "answer_scores": scores})
