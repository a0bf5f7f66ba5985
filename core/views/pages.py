"""The pages: the one list for the navigation, the old addresses, the documents and the browser tests.

It doesn't import Streamlit: the command line draws the same pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from core.analysis.cache import cached
from core.errors import ClqError

if TYPE_CHECKING:
    from core.analysis.workspace.choices import Has
    from core.store import Snapshot
    from core.views.blocks import Section

_FIRST = "decision"  # The page that lists what the limits exclude
SECTION = "sec"  # URL setting that opens a section of a page


@dataclass(frozen=True)
class Page:
    """A page of the dashboard."""

    name: str  # its path, and its file in pages/
    title: str  # its name on screen
    icon: str  # shown beside its name
    tells: str  # one sentence: what it shows, or does
    # Its last sections, which its file draws by hand, each with the question that it answers
    own: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    seldom: tuple[str, ...] = ()  # sections behind "More"
    home: str = ""  # the module with its SECTIONS, which any front end draws; "" if it has none
    # Addresses that redirect here, with the section each opens: those of the last release, and the name of
    # the first page, which Streamlit serves only at the root
    moved: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # Sections whose content moved elsewhere, with the page and section that have it now
    gone: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    compares: bool = False  # whether it compares stacks, and so states their differences
    # Its settings that shape the record of the decision; empty if it offers none
    records: tuple[str, ...] = ()
    needs: Has | None = None  # what a workspace must have to fill it; None if nothing
    free: tuple[str, ...] = ()  # its sections that need no workspace nonetheless

    @property
    def sections(self) -> tuple[str, ...]:
        """Its sections by the URL word that opens them; the first is the default."""
        return (*(section.name for section in self.drawn() if section.name), *self.own)

    def question(self, section: str) -> str:
        """Return the question that one of its sections answers, or "" if there is none."""
        drawn = {one.name: one.question for one in self.drawn()}
        return {**drawn, **self.own}.get(section, "")

    def declared(self) -> tuple[Section, ...]:
        """Return the sections of its module, which is imported on first use."""
        sections: tuple[Section, ...] = import_module(self.home).SECTIONS if self.home else ()
        return sections

    def drawn(self) -> tuple[Section, ...]:
        """Return its sections that any front end draws, those of plug-ins last.

        If the page has limits, its answers name the stacks that these exclude.
        """
        if not self.home:
            return ()
        from core.views.added import added  # noqa: PLC0415 - loads packages of others

        sections = (*self.declared(), *added(self.name))
        if not sections or not self.limits or self.name == _FIRST:
            return sections
        from core.views.within import limited  # noqa: PLC0415 - the charts' library takes long to load

        return tuple(replace(section, draw=limited(section.draw)) for section in sections)

    def behind(self, snapshot: Snapshot | None, collection_id: str = "") -> tuple[str, ...]:
        """Return its sections behind "More" in a workspace; never the first, which it opens with.

        Args:
            snapshot: The data; None = no data, and so nothing to show.
        """
        if snapshot is not None:
            return _behind(self.name, snapshot, collection_id)
        return (*(each.name for each in self.drawn()[1:] if each.tells), *self.seldom)

    @property
    def group(self) -> str:
        """The group that it belongs to."""
        return next(group for group, pages in GROUPS.items() if self in pages)

    @property
    def limits(self) -> bool:
        """Whether it shows the limits."""
        return self.group in ("Decide", "Explain")

    @property
    def settings(self) -> bool:
        """Whether it reads results, and so has settings."""
        return self.group != "Data"

    @property
    def places(self) -> tuple[str, ...]:
        """Itself and each of its further sections, as "name" and "name/section"."""
        return (self.name, *(f"{self.name}/{section}" for section in self.sections[1:]))


GROUPS: Mapping[str, tuple[Page, ...]] = {
    "Decide": (
        Page(
            "decision",
            "Decision",
            ":material/flag:",
            "Which stack your limits select, what holds it back, and what else they leave.",
            home="core.views.decision.sections",
            moved={"decision": "", "overview": "", "pareto": ""},
            compares=True,
            records=("form",),
            needs="results",
        ),
        Page(
            "cost",
            "Cost",
            ":material/payments:",
            "What a stack costs per query and per month, and which stage the money goes to.",
            home="core.views.cost.sections",
        ),
        Page(
            "confidence",
            "Confidence",
            ":material/percent:",
            "How often the choice would hold, and what it takes to turn it.",
            home="core.views.confidence.sections",
            moved={"certainty": "", "sensitivity": "other weights", "next": "worth measuring more"},
            gone={"kinds of question": ("confidence", "kinds of query")},
            compares=True,
            records=("rule",),
            needs="results",
        ),
        Page(
            "what_if",
            "What if",
            ":material/alt_route:",
            "Which stack other limits or latency targets give, and K query by query.",
            home="core.views.what_if.sections",
            moved={"scenarios": "", "routing": "routing"},
            gone={
                "larger K": ("curves", "by candidate depth"),
                "questions that change": ("what_if", "queries that change"),
            },
            needs="results",
        ),
    ),
    "Explain": (
        Page(
            "headroom",
            "Headroom",
            ":material/vertical_align_top:",
            "Whether better retrieval or better ordering would raise the quality.",
            home="core.views.headroom",
            compares=True,
            needs="results",
        ),
        Page(
            "curves",
            "K curves",
            ":material/show_chart:",
            "How quality grows with the number of passages you send, and where it stops.",
            home="core.views.curves.sections",
            gone={
                "cut-off methods": ("curves", "cutoff methods"),
                "cut-off table": ("curves", "cutoff table"),
            },
            compares=True,
            needs="results",
        ),
        Page(
            "readers",
            "Readers",
            ":material/chat:",
            "What the passages are worth to the answer: how good answers are by reader and by passages sent.",
            home="core.views.readers.sections",
            needs="answers",
        ),
        Page(
            "latency",
            "Latency",
            ":material/timer:",
            "How long queries take, how sure that is, and which stage and K cost the time.",
            home="core.views.latency.sections",
            gone={"every stack": (_FIRST, "")},
            needs="results",
        ),
        Page(
            "compare",
            "Compare",
            ":material/compare_arrows:",
            "Whether one stack is really better than another, by how much, on which queries.",
            home="core.views.compare.sections",
            compares=True,
            needs="results",
        ),
        Page(
            "queries",
            "Queries",
            ":material/manage_search:",
            "On which queries a stack is weak, against what it could reach or another stack.",
            home="core.views.queries.sections",
            needs="rankings",
        ),
    ),
    "Evidence": (
        Page(
            "golden",
            "Golden sets",
            ":material/fact_check:",
            "How many judgements carry the scores, and whether judging more passages could change them.",
            {
                "questions": "How do I get questions from documents alone?",
                "build": "How do I get judgements from a model?",
                "judge": "How do I judge passages by hand?",
            },
            home="core.views.golden.sections",
            moved={"evidence": ""},
            needs="judgements",
            free=("questions",),
        ),
        Page(
            "measures",
            "Measures",
            ":material/straighten:",
            "What a measure means, how to work it out by hand, and which one predicts good answers.",
            home="core.views.measures.sections",
            moved={"outcome": "predicting answers"},
        ),
        Page(
            "diagnostics",
            "Diagnostics",
            ":material/labs:",
            "How much an embedder leans on names, and what typing as people chat costs.",
            home="core.views.diagnostics.sections",
        ),
    ),
    "Data": (
        Page(
            "add",
            "Add results",
            ":material/upload:",
            "Brings results you already have into the store; nothing is written before you say so.",
            {
                "files": "How do I bring results that I already have?",
                "formats": "Which formats can be read?",
            },
            seldom=("formats",),
            moved={"import": "", "formats": "formats"},
        ),
        Page(
            "run",
            "Run",
            ":material/play_circle:",
            "Measures the stacks that you describe on your corpus, within a budget, and stores them; lists "
            "what was run for every store in its folder.",
            {
                "stacks": "Which stacks do I measure, and what will that cost?",
                "your own": "How good is the pipeline that I have?",
                "readers": "How good do answers get from these passages?",
            },
        ),
        Page(
            "library",
            "Library",
            ":material/database:",
            "What the store holds, where it came from, and what happened to it.",
            home="core.views.library.sections",
            moved={"data": ""},
        ),
    ),
}
"""The pages of each group; the first one is opened by default."""

PAGES: Mapping[str, Page] = {page.name: page for group in GROUPS.values() for page in group}
"""Every page by its name, in the order of the navigation."""
ADD, RUN = PAGES["add"], PAGES["run"]
"""The pages that add results: existing ones, and new ones."""
MOVED: Mapping[str, tuple[Page, str]] = {
    address: (page, section) for page in PAGES.values() for address, section in page.moved.items()
}
"""The current page and section of an old address; the section is "" for the first."""


def now_at(address: str, section: str) -> tuple[Page, str] | None:
    """Return the current page and section for an old address, or None if it is still valid."""
    if address in MOVED:
        page, opened = MOVED[address]
        return page, opened or section
    if address not in PAGES or section not in PAGES[address].gone:
        return None
    name, there = PAGES[address].gone[section]
    return PAGES[name], there


@cached(entries=256)
def _behind(page: str, snapshot: Snapshot, collection_id: str) -> tuple[str, ...]:
    tells = {each.name: each.tells for each in PAGES[page].drawn() if each.tells}
    forward: set[str] = set()
    for name, told in tells.items():
        with suppress(ClqError):  # an unreadable one is reported where it is opened
            forward |= {name} if told(snapshot, collection_id) else set()
    return tuple(name for name in PAGES[page].behind(None) if name not in forward)
