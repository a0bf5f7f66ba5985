"""Evaluations: stacks are run and measured within a budget, and can be resumed."""

from core.pipeline.evaluate.folder import State, Status
from core.pipeline.evaluate.job import Corpus, Job, Protocol, corpus_of
from core.pipeline.evaluate.results import merged
from core.pipeline.evaluate.run import Outcome, run_job

__all__ = ["Corpus", "Job", "Outcome", "Protocol", "State", "Status", "corpus_of", "merged", "run_job"]
