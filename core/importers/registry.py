"""Every format that can be imported. A new one is its file, its tests and one line here."""

from __future__ import annotations

from core.importers.annbench import AnnBenchmarks
from core.importers.autorag import AutoRag
from core.importers.base import Format
from core.importers.beir import Beir
from core.importers.context_grid import ContextGrid
from core.importers.deepeval import DeepEval
from core.importers.excel import Excel
from core.importers.judged_spans import JudgedSpans
from core.importers.langfuse import Langfuse
from core.importers.langsmith import LangSmith
from core.importers.mteb import Mteb
from core.importers.open_rag_eval import OpenRagEval
from core.importers.openinference import OpenInference
from core.importers.optuna_csv import OptunaCsv
from core.importers.optuna_storage import OptunaStorage
from core.importers.own import Own
from core.importers.published_tables import PublishedTables
from core.importers.rag_gs import RagGs
from core.importers.ragas import Ragas
from core.importers.ragged import Ragged
from core.importers.rankllm import RankLlm
from core.importers.rankllm_eval import RankLlmResults
from core.importers.ranx import RanxQrels, RanxRun
from core.importers.regressions import Regressions
from core.importers.retrieval_response import RetrievalResponse
from core.importers.table import TableFormat
from core.importers.trec import TrecQrels, TrecRun
from core.importers.vectordbbench import VectorDbBench

FORMATS: tuple[Format, ...] = (
    Own(),
    PublishedTables(),
    Beir(),
    RetrievalResponse(),
    Ragged(),
    RagGs(),
    OpenRagEval(),
    ContextGrid(),
    DeepEval(),
    Ragas(),
    AutoRag(),
    Mteb(),
    VectorDbBench(),
    AnnBenchmarks(),
    OptunaStorage(),
    OptunaCsv(),
    RankLlm(),
    RankLlmResults(),
    Regressions(),
    LangSmith(),
    OpenInference(),
    Langfuse(),
    RanxRun(),
    RanxQrels(),
    TrecRun(),
    TrecQrels(),
    JudgedSpans(),
    TableFormat(),
    Excel(),
)


def matrix() -> list[dict[str, str]]:
    """The formats as rows of text for a help page: name, title and what each can bring."""
    return [{"name": each.name, "title": each.title, "brings": ", ".join(each.brings)} for each in FORMATS]
