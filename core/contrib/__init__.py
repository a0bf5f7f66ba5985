"""What few need: loaded like the plug-ins of other packages, by the entry points that stand here."""

from collections.abc import Mapping

ENTRY_POINTS: Mapping[str, Mapping[str, str]] = {
    "clq.importers": {
        "context-grid": "core.contrib.importers.context_grid:ContextGrid",
        "enterprise-rag": "core.contrib.importers.enterprise_rag:EnterpriseRag",
        "ragged": "core.contrib.importers.ragged:Ragged",
        "regressions": "core.contrib.importers.regressions:Regressions",
        "retrieval-response": "core.contrib.importers.retrieval_response:RetrievalResponse",
    },
}
"""Group of entry points to name and place, as `[project.entry-points]` of a package has them."""
