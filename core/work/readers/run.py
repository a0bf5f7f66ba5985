"""Has readers answer from stored runs and hands over complete answers, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple, Self

import polars as pl
from pydantic import Field, model_validator

from core.answers import KEY
from core.errors import BudgetError, ProviderError
from core.jobs import Stopped
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, work_through
from core.pipeline.sweep.fields import JudgeScorer, Named, Reader, Table, Under
from core.pipeline.sweep.model import CollectionSource, OwnModels
from core.readers.scoring import CITING, scored
from core.records import Batch
from core.tables import TABLES, frame
from core.work.readers.answering import ANSWER, JUDGE, SCALES, AnsweringStage
from core.work.readers.job import ReaderJob, WantedScores, require_material


class ReaderSpec(Table):
    """A whole specification; an evaluation's has the same table under [reader]."""

    name: Named = "readers"  # Display name
    # The stored collection whose runs are read
    collection: Annotated[CollectionSource, Under("path")]
    reader: Reader  # The readers, their passages, and the scoring of answers
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models missing from the catalogue, by name

    @model_validator(mode="after")
    def _is_stored(self) -> Self:
        if self.collection.stored is None:
            raise ValueError("Readers answer from stored runs: name a collection of the store.")
        if not self.reader.runs:
            raise ValueError('Name the runs that are read (reader.runs), or "workspace".')
        return self


class Left(NamedTuple):
    """Counts of data left out because they differ from the store's under the same key, which stay."""

    answers: int = 0
    scores: int = 0


def run_job(job: ReaderJob, *, store_results: Callable[[Batch], Left], site: Site) -> Result:
    """Have readers answer, or resume it; result and errors as in `session.work_through`.

    Args:
        store_results: Adds answers and scores to the runs' existing ones; returns what was left out.
    """
    require_material(job)
    order = WorkOrder(
        work_id=job.job_id,
        name=job.name,
        collection_id=job.collection_id,
        spec=job.spec,
        manifest=job.manifest(),
        models=job.models,
        book=job.book,
        budget_usd=job.budget_usd,
        billed=job.billed(),
    )
    return work_through(order, partial(answer, job, store_results), site)


def answer(job: ReaderJob, store_results: Callable[[Batch], Left], session: Session) -> str:
    """Answer and score in a session; complete parts are handed over even if it is stopped.

    Returns:
        The number of answers, in words.

    Raises:
        BudgetError: If continuing could cost more than allowed; existing answers are kept.
        ProviderError: If a provider fails, or somebody stopped it.
        Stopped: If somebody stopped it.
    """
    session.tracker.expect({ANSWER: len(job.reader.models), JUDGE: len(job.reader.judges)})
    answering = AnsweringStage(job, session)
    try:
        answering.read()
        answering.judge()
    except (BudgetError, ProviderError, Stopped):
        store_results(batch_of(job, answering))
        raise
    batch = batch_of(job, answering)
    left = store_results(batch)
    answers = batch.frames["answers"].lazy().collect().height - left.answers
    facts = {"answers": answers, "other_answers": left.answers, "other_scores": left.scores}
    session.tracker.tell(facts={**session.tracker.status.facts, **facts})
    session.log.write("answered", **facts, calls=len(answering.answers))
    return f"{answers} answers"


def batch_of(job: ReaderJob, answering: AnsweringStage) -> Batch:
    """Return the answers of blocks with every question answered, and their scores."""
    lacking = {wanted.block for wanted in job.wanted if wanted.call not in answering.answers}
    whole = [wanted for wanted in job.wanted if wanted.block not in lacking]
    rows = frame(
        "answers",
        [{**_key(wanted), **answering.answers[wanted.call]._asdict()} for wanted in whole],
    )
    computed = scored(
        rows, job.material.golds, job.reader.scorers,
        sent=_relevant(job, whole, answering), answerable=job.material.answerable,
    )  # fmt: skip
    judged = frame("answer_scores", list(_judged(job, whole, answering)))
    return Batch(
        frames={
            "answers": rows,
            "answer_scores": pl.concat([computed.select(TABLES["answer_scores"].names()), judged]),
        }
    )


def _relevant(job: ReaderJob, whole: Sequence[WantedScores], answering: AnsweringStage) -> pl.DataFrame:
    """Return whether each sent passage is gold, for questions with gold passages."""
    key = {name: TABLES["answers"][name] for name in KEY}
    schema = pl.Schema({**key, "relevant": pl.List(pl.Boolean)})
    replays = {replay_of_run.run_id: replay_of_run for replay_of_run in job.material.replays}
    rows = []
    for wanted in whole if set(CITING) & set(job.reader.scorers) else ():
        replay = replays[wanted.block.run_id]
        gold = set(replay.gold.get(wanted.query_id, ()))
        if gold:
            names = job.sent(replay, wanted.query_id, wanted.block.mode, wanted.block.k) or ()
            relevant = [name in gold for name in names if name in job.material.texts[replay.searched]]
            rows.append({**_key(wanted), "relevant": relevant[: answering.answers[wanted.call].sent]})
    return pl.DataFrame(rows, schema=schema, orient="row")


def _key(wanted: WantedScores) -> dict[str, Any]:
    return dict(zip(KEY, wanted.key, strict=True))


def _judged(job: ReaderJob, whole: list[WantedScores], answering: AnsweringStage) -> Iterator[dict[str, Any]]:
    for wanted, judge in product(whole, job.reader.judges):
        by_scorer: dict[JudgeScorer, list[int | None]] = {}
        for one in answering.judgements(wanted, judge):
            by_scorer.setdefault(one.scorer, []).append(answering.scores.get(one))
        for scorer, said in by_scorer.items():
            values = [value for value in said if value is not None]
            if values and len(values) == len(said):
                among = SCALES[scorer]
                yield {
                    **_key(wanted), "scorer": scorer, "judge": judge,
                    "value": sum(values) / len(values), "scale": f"{among[0]}-{among[-1]}",
                }  # fmt: skip
