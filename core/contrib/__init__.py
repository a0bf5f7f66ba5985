"""Rarely needed parts: loaded like the plug-ins of other packages, by the entry points listed here."""

from collections.abc import Mapping

ENTRY_POINTS: Mapping[str, Mapping[str, str]] = {
    "clq.importers": {
        "context-grid": "core.contrib.importers.context_grid:ContextGrid",
        "enterprise-rag": "core.contrib.importers.enterprise_rag:EnterpriseRag",
        "open-rag-eval": "core.contrib.importers.open_rag_eval:OpenRagEval",
        "open-rag-report": "core.contrib.importers.open_rag_report:OpenRagReport",
        "nuggetizer": "core.contrib.importers.nuggetizer:Nuggetizer",
        "nugget-rows": "core.contrib.importers.nugget_rows:NuggetRows",
        "rag-gs": "core.contrib.importers.rag_gs:RagGs",
        "ragged": "core.contrib.importers.ragged:Ragged",
        "regressions": "core.contrib.importers.regressions:Regressions",
        "retrieval-response": "core.contrib.importers.retrieval_response:RetrievalResponse",
    },
    "clq.indexes": {
        "pgvector": "core.contrib.indexes.pgvector:PgVector",
        "lancedb": "core.contrib.indexes.lancedb:LanceDb",
        "qdrant": "core.contrib.indexes.qdrant:Qdrant",
        "qdrant-edge": "core.contrib.indexes.qdrant_edge:QdrantEdge",
        "milvus": "core.contrib.indexes.milvus:Milvus",
        "redis": "core.contrib.indexes.redis:Redis",
        "elasticsearch": "core.contrib.indexes.elastic:Elasticsearch",
        "opensearch": "core.contrib.indexes.elastic:OpenSearch",
    },
    "clq.sections": {
        "golden.unseen": "core.contrib.unseen:is_unseen",
        "what_if.router": "core.contrib.router.section:router",
        "what_if.weights": "core.contrib.weights.section:criteria_weights",
    },
}
"""Group of entry points to name and place, as `[project.entry-points]` of a package has them."""
