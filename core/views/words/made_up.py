"""What pages show if no real answer is scored: what to do, and the made-up answers in a fold."""

from __future__ import annotations

from core.analysis.readers import NO_SCORES
from core.analysis.workspace.view import View
from core.importers.formats.published.readers import RAGGED
from core.views.blocks import Answer, Block, Blocks, Fold, Text, Way

TO_SCORE = "Have a reader answer from stored runs (`readers run SPEC`), or import answers with scores."


def folded(view: View, why: str, *blocks: Block) -> Blocks:
    """Yield that all answers are made up, links to real ones, and what the made-up ones give in a fold."""
    yield from nothing(view, why)
    yield Fold("Sample answers, made up", blocks)


def nothing(view: View, why: str = NO_SCORES) -> Blocks:
    """Yield that no answer is scored, and links to what fills the section; the published curves first."""
    yield Answer(why)
    yield Text(TO_SCORE, "guide")
    if view.scope.collection_id != RAGGED and RAGGED in view.snapshot.collections()["collection_id"]:
        yield Way("readers", "RAGGED's published curves", settings={"ws": RAGGED})
    yield Way("run", "Run")
    yield Way("add", "Add results")
