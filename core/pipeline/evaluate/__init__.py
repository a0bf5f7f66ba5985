"""Evaluations: stacks executed, measured, within a budget, resumable."""

from core.pipeline.evaluate.corpus import Corpus, corpus_of
from core.pipeline.evaluate.job import Job, Protocol
from core.pipeline.evaluate.outbox import merged
from core.pipeline.evaluate.run import Outcome, run_job
from core.pipeline.evaluate.status import State, Status

__all__ = ["Corpus", "Job", "Outcome", "Protocol", "State", "Status", "corpus_of", "merged", "run_job"]
