"""Every format that can be imported. A new one is its file, its tests and one line here; or a plug-in."""

from __future__ import annotations

from core.errors import InputError
from core.importers.base import Format
from core.importers.formats.annbench import AnnBenchmarks
from core.importers.formats.autorag import AutoRag
from core.importers.formats.beir import Beir
from core.importers.formats.deepeval import DeepEval
from core.importers.formats.evaluated import Evaluated
from core.importers.formats.excel import Excel
from core.importers.formats.filters import Filters
from core.importers.formats.judging_sheet import JudgingSheet
from core.importers.formats.lists.answers import MtRag, RagChecker, TruLens
from core.importers.formats.lists.quepid import Quepid
from core.importers.formats.lists.query_rows import QueryRows
from core.importers.formats.lists.search import RankEval, SearchRelevance
from core.importers.formats.mteb import Mteb
from core.importers.formats.optuna import OptunaCsv
from core.importers.formats.optuna.storage import OptunaStorage
from core.importers.formats.own import Own
from core.importers.formats.published import PublishedTables
from core.importers.formats.ragas import Ragas
from core.importers.formats.rankllm import RankLlm, RankLlmResults
from core.importers.formats.ranx import RanxQrels, RanxRun
from core.importers.formats.spans import JudgedSpans
from core.importers.formats.stack_rows import AnnRows, SentenceTransformers
from core.importers.formats.table import TableFormat
from core.importers.formats.traces.phoenix import Phoenix
from core.importers.formats.traces.tools import Langfuse, LangSmith, OpenInference
from core.importers.formats.trec import MsMarcoRun, Topics, TrecQrels, TrecRun
from core.importers.formats.vectordbbench import VectorDbBench
from core.plugins import loaded
from core.tables import TABLES

_OWN: tuple[Format, ...] = (
    Own(),
    PublishedTables(),
    Beir(),
    DeepEval(),
    Ragas(),
    AutoRag(),
    Mteb(),
    VectorDbBench(),
    AnnBenchmarks(),
    AnnRows(),
    SentenceTransformers(),
    OptunaStorage(),
    OptunaCsv(),
    RankLlm(),
    RankLlmResults(),
    Evaluated(),
    LangSmith(),
    OpenInference(),
    Phoenix(),
    Langfuse(),
    RanxRun(),
    RanxQrels(),
    TrecRun(),
    TrecQrels(),
    MsMarcoRun(),
    Topics(),
    JudgedSpans(),
    JudgingSheet(),
    Filters(),
    Quepid(),
    QueryRows(),
    RagChecker(),
    MtRag(),
    TruLens(),
    RankEval(),
    SearchRelevance(),
    TableFormat(),
    Excel(),
)


def _plugged(name: str, value: object) -> Format:
    """Return the format of a plug-in, given as a subclass of `Format` or an instance."""
    form = value() if isinstance(value, type) else value
    if not isinstance(form, Format):
        raise InputError(f"{name} is not a subclass of Format.")
    lacking = [part for part in ("name", "title", "takes", "recognised") if not getattr(form, part, None)]
    if lacking or (unknown := set(form.takes) - set(TABLES)):
        raise InputError(f"{name} lacks {', '.join(lacking)}." if lacking else f"No table {min(unknown)!r}.")
    if any(form.name == own.name for own in _OWN):
        raise InputError(f"Format {form.name} is there already.", do="Give it another name.")
    return form


PLUGGED = tuple(loaded("clq.importers", _plugged).values())
"""The formats that plug-ins provide."""
FORMATS = (*PLUGGED, *_OWN)
"""Every format; plug-ins' formats are asked first, because tables of any tool look alike."""
