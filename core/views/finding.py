"""What the search finds: places, measures, settings, documents, stacks, workspaces, by their usual terms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.question import Question
from core.choices import declared
from core.decide.axes import LIMITS
from core.metrics import REGISTRY
from core.paths import DOCS
from core.store import Snapshot
from core.tables import remembered
from core.views.pages import PAGES, SECTION

_PLACES = ("page", "section")
MOST_STACKS = 1000
"""Maximum stacks offered, from the top of the table: a browser searches them at every keystroke."""
WORDS: Mapping[str, str] = {
    "decision": "ship Pareto frontier trade-off near miss limits",
    "cost": "price dollars bill spend monthly budget",
    "confidence": "interval bootstrap significance ties chance how sure certain",
    "confidence/kinds of query": "tags slices segments",
    "confidence/other weights": "alpha sensitivity RA-nWG",
    "confidence/worth measuring more": "sample size power",
    "what_if/routing": "adaptive K difficulty hard queries",
    "what_if/criteria weights": "REBEL reranker",
    "headroom": "PROC reranker ceiling oracle recall ordering",
    "curves": "cutoff Top-K recall precision nDCG",
    "curves/by candidate depth": "pool reranker K",
    "curves/cutoff methods": "dynamic Top-K threshold adaptive",
    "readers": "RAG generation answers LLM accuracy",
    "readers/judges": "LLM as a judge correction people",
    "readers/refusing": "abstain unanswerable",
    "readers/sources": "citations attribution grounding faithfulness",
    "latency": "tail p50 p95 p99 percentiles SLA stages ms",
    "latency/index loss": "ANN HNSW IVF flat int8 quantisation recall",
    "latency/indexes": "ANN HNSW IVF recall queries per second",
    "compare": "A/B paired test significance difference",
    "queries": "failures per query passages tags slices",
    "golden": "qrels judgements labels relevance unjudged holes pool bias",
    "golden/build": "LLM judge qrels generate",
    "golden/judge": "annotate label by hand grades",
    "golden/judges": "kappa agreement Krippendorff LLM judge",
    "golden/questions": "synthetic queries generate",
    "golden/unseen": "Chapman recall estimate pool",
    "measures": "metrics recall precision MRR MAP nDCG",
    "measures/predicting answers": "correlation downstream",
    "diagnostics": "names entities embedder",
    "diagnostics/drift": "monitoring production traffic traces",
    "diagnostics/noise": "typos robustness perturbed",
    "add": "import upload TREC BEIR csv",
    "run": "evaluate sweep experiment reranker embedder",
    "library": "store delete export history revisions",
}
"""Further terms of the field by which a place is found; the first counts as much as its name."""
_OF_SETTINGS = {"on": "p50 p95 tail"}
_OF_MEASURES = {
    "RR": "MRR", "AP": "MAP", "P": "precision", "R": "recall", "Success": "hit rate", "Hole": "unjudged",
}  # fmt: skip
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_REMARK = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:)[^)]*\)")


Titled = tuple[tuple[str, str], ...]
"""Workspaces, each with what it is."""


@dataclass(frozen=True, slots=True)
class Found:
    """A search result, and the place that opens with it."""

    kind: str
    title: str  # may come from users, as may the settings that select a stack
    about: str = ""  # small text beside it
    words: str = ""  # further search words for it
    page: str = "decision"
    asked: Mapping[str, str] = field(default_factory=dict)  # the page's URL settings
    # Key of the setting whose field is looked for on the page, or name of the document shown
    name: str = ""


def places() -> Iterator[Found]:
    """Yield every page and section."""
    for page in PAGES.values():
        yield Found("page", page.title, page.tells, WORDS.get(page.name, ""), page.name)
    for page in PAGES.values():
        for at, section in enumerate(page.sections):
            about, words = page.question(section), WORDS.get(f"{page.name}/{section}", "")
            asked = {SECTION: section} if at else {}
            yield Found("section", f"{page.title} → {section}", about, words, page.name, asked)


def measures() -> Iterator[Found]:
    """Yield every measure that has a separate name."""
    for name, info in REGISTRY.items():
        if "[" not in name:
            yield Found("measure", name, info.text, _OF_MEASURES.get(name, ""), "measures", {"ref": name})


def settings() -> Iterator[Found]:
    """Yield the limits, and the settings behind the button "Settings"."""
    for each in declared(Question).values():
        choice = each.choice
        if choice.rare or (choice.key and choice.key in LIMITS):
            longer = choice.word.startswith(choice.label.lower())
            title = choice.label[:1] + choice.word[1:] if longer else choice.label
            words = f"{_OF_SETTINGS.get(choice.key or '', '')} {choice.word}".strip()
            yield Found("setting", title, choice.about.partition(". ")[0], words, name=choice.key)


def documents() -> Iterator[Found]:
    """Yield the shipped documents, by their headings."""
    for file in sorted(DOCS.glob("*.md")):
        title, *parts = _HEADING.findall(file.read_text(encoding="utf-8")) or [file.stem]
        yield Found("document", title, " · ".join(parts), name=file.stem)


def document(name: str) -> str:
    """Return a document's on-screen text below its title: without comments and links to other files."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8").partition("\n")[2]
    return _LINK.sub(r"\1", _REMARK.sub("", text))


@cache
def everywhere() -> tuple[Found, ...]:
    """Return the results available in any workspace."""
    return (*places(), *measures(), *settings(), *documents())


@remembered
def found_in(table: pl.DataFrame, workspaces: Titled = ()) -> tuple[Found, ...]:
    """Return the results of a store and of one workspace, from its stack table."""
    rooms = [Found("workspace", name, about, asked={"ws": name}) for name, about in workspaces]
    if "name" not in table.columns:
        return (*everywhere(), *rooms)
    parts = [name for name in ("name", "reranker") if name in table.columns]
    stacks = table.head(MOST_STACKS).select(parts).iter_rows()
    return (*everywhere(), *(_stack(*row) for row in stacks), *rooms)


def _stack(name: str, reranker: str | None = None) -> Found:
    """Return a stack's search result, which the name of its reranker also finds."""
    words = f"reranker {reranker}" if reranker and reranker != "none" else ""
    return Found("stack", name, words=words, asked={"stack": name})


@cached(entries=64)
def silent(snapshot: Snapshot, collection_id: str) -> frozenset[str]:
    """Return the sections that a workspace's data don't bring forward, as ``page/section``."""
    return frozenset(
        f"{page.name}/{section}"
        for page in PAGES.values()
        for section in page.behind(snapshot, collection_id)
    )


@remembered
def sent(table: pl.DataFrame, below: frozenset[str] = frozenset(), workspaces: Titled = ()) -> bytes:
    """Serialise results for the browser's search: kind, title, about, words and setting of each.

    Args:
        below: Pages, and sections from `silent`, with nothing to say; their results come after all others.
    """
    rows = [
        (each.kind, each.title, each.about, each.words, each.name,
         each.kind in _PLACES and not below.isdisjoint((each.page, f"{each.page}/{each.asked.get(SECTION)}")))
        for each in found_in(table, workspaces)
    ]  # fmt: skip
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
