"""A requested set of questions, read and checked: nothing has run and nothing has been spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from core.analysis.spread import MEASURED, Spread
from core.arrays import Ints
from core.errors import InputError
from core.pipeline.documents import documents_frame, read_documents
from core.pipeline.documents.formats import Content
from core.pipeline.evaluate.identity import model_identity
from core.pipeline.sweep.check import chat_problems, require
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.sources import Shelf, collection_id, on_shelf
from core.prices import PriceBook
from core.providers.calls import Keys
from core.providers.chat import Chat, chat_config, make_chat
from core.providers.embed import make_embedder
from core.records import short_hash
from core.work.questions.drafts import DraftMaterial, language_of
from core.work.questions.known import HEADINGS, headings
from core.work.questions.logs import LoggedQuestions, read_log
from core.work.questions.prompts import prompt_hashes
from core.work.questions.spec import QuestionsSpec

NO_HEADINGS = (
    'File names ask nothing. Name another method: "known-item" draws words from the texts (it favours BM25), '
    '"log" takes what people asked, a chat model writes questions.'
)
MODEL_TOKENS = 350  # Maximum tokens of a stretch shown to a model (ours)
_TOPICS, _DIM = 20, 64  # Maximum number of topics, and the dimension of the vectors clustered into them


@dataclass(frozen=True, kw_only=True)
class QuestionsJob:
    """The job of making one set of questions."""

    spec: QuestionsSpec  # The request
    material: DraftMaterial
    asked: LoggedQuestions | None = None  # People's questions from a log
    book: PriceBook
    spread: Spread = MEASURED  # Spread of the stacks that the questions should tell apart

    @property
    def collection_id(self) -> str:
        """The collection that the questions are about."""
        return collection_id(self.spec.collection)

    @property
    def job_id(self) -> str:
        """The identity: the same set resumes in the same folder."""
        spec = self.spec.model_dump_json(exclude={"budget_usd", "prices", "out"})
        return short_hash("questions", spec, self.material.digest)

    def chat(self) -> Chat:
        """Return a model for planning, which needs no key."""
        return make_chat(self.spec.model, models=self.spec.models, ready=False)

    @cached_property
    def most(self) -> int | None:
        """The maximum number of questions by rule; None = a model writes as many as requested."""
        if self.asked is not None:
            return len(self.asked.questions)
        if self.spec.model:
            return None
        rule = self.spec.method == HEADINGS
        return sum(1 for _ in headings(self.material, self.spec.seed)) if rule else len(self.material.items)

    @cached_property
    def topics(self) -> Ints:
        """The topic of each stretch: clusters of vectors of static embeddings, int64 [stretches]."""
        return clustered([item.text for item in self.material.items])

    def manifest(self) -> dict[str, Any]:
        """Return the data needed to repeat it, as JSON."""
        config = chat_config(self.spec.model, self.spec.models) if self.spec.model else None
        return {
            "questions": {"id": self.job_id, "name": self.spec.name, "collection": self.collection_id},
            "spec": self.spec.plain(),
            "texts": self.material.digest,
            "language": self.material.language,
            "prompts": prompt_hashes(self.material.language) if config else {},
            "models": {} if config is None else {self.spec.model: dict(model_identity(config))},
        }


def clustered(texts: Sequence[str]) -> Ints:
    """Return the topic of each text: clusters of vectors of static embeddings, int64 [texts]."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - a second to load, which no plan by rules needs

    groups = min(_TOPICS, round(len(texts) ** 0.5))
    if groups < 2:
        return np.zeros(len(texts), dtype=np.int64)
    vectors = make_embedder("wordllama", _DIM).embed(list(texts))
    found = KMeans(groups, n_init=1, random_state=0).fit_predict(vectors)
    return np.asarray(found, dtype=np.int64)


def read_job(
    spec: QuestionsSpec,
    books: Mapping[str, PriceBook],
    shelf: Shelf | None = None,
    *,
    to_run: bool = True,
    keys: Keys | None = None,
) -> tuple[QuestionsJob, list[Problem]]:
    """Read everything that a specification names.

    Raises:
        SpecError: If the model is unknown, or cannot run here.
        InputError: If something that it names cannot be read.
    """
    if spec.prices not in books:
        raise InputError(f"No price book {spec.prices!r}.", do=f"There are: {', '.join(sorted(books))}.")
    named = [("method", spec.model)] if spec.model else []
    problems = require(list(chat_problems(named, spec.models, keys)), to_run=to_run)
    documents = _documents(spec, shelf)
    language = spec.language or language_of(documents["text"].to_list())
    material = (
        DraftMaterial(documents, language, MODEL_TOKENS) if spec.model else DraftMaterial(documents, language)
    )
    asked = None if spec.log is None else read_log(spec.log, shelf, material.analyzer)
    job = QuestionsJob(spec=spec, material=material, asked=asked, book=books[spec.prices])
    if job.most == 0:
        raise InputError("The texts have no headings or titles.", where="method", do=NO_HEADINGS)
    return job, problems


def _documents(spec: QuestionsSpec, shelf: Shelf | None) -> pl.DataFrame:
    source = spec.collection
    if source.stored is None:
        assert source.path is not None  # noqa: S101 - the model sees to it
        return read_documents(source.path, form=source.format, columns=source.columns).frame
    frames = on_shelf(shelf, source.stored).collection(source.stored).frames
    rows = frames["passages"].lazy().collect()
    known = rows.filter(pl.col("text").fill_null("") != "").select("passage_id", "title", "text")
    names, titles, texts = (known[name].to_list() for name in known.columns)
    return documents_frame(
        names, [Content(text, title or "") for title, text in zip(titles, texts, strict=True)]
    )


def documents_named(spec: QuestionsSpec) -> dict[str, Any]:
    """Return the documents in an evaluation's form: absolute paths."""
    plain = spec.collection.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    if spec.collection.path is not None:
        plain["path"] = str(spec.collection.path.absolute())
    return plain
