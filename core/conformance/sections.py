"""A section must answer on any workspace, in blocks that every front end draws, and the same each time."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import place_of, resolve
from core.analysis.workspace.view import Place
from core.paths import PRICES
from core.prices import load_books
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.report.page import Said, as_json, flat, kept
from core.store import Snapshot, Store
from core.tables import frame
from core.views.ask import Given
from core.views.blocks import Answer, Block, Chart, Lack, Section, Table
from core.views.pages import Page

_MEASURED, _PUBLISHED = "with every query", "with means alone"
_BOOK = "list"


def section_faults(page: Page, section: Section) -> Iterator[str]:
    """Draw a section of a page on a measured workspace, and on one that knows means and nothing else."""
    snapshot = _small()[1]
    for collection in (_MEASURED, _PUBLISHED):
        asked = Question(collection=collection)
        place = (
            resolve(asked, snapshot, load_books(PRICES)[_BOOK])
            if page.settings
            else place_of(asked, snapshot)
        )

        try:
            first, second = (_said(page, section, place) for _ in range(2))
            odd = [f"On a workspace {collection} {fault}" for fault in _odd(first.blocks)]
            yield from odd
            if not odd and as_json(first) != as_json(second):
                yield f"On a workspace {collection} it says something else when drawn again."
        except Exception as error:
            yield f"On a workspace {collection} it raises {type(error).__name__}: {error}"


def _said(page: Page, section: Section, place: Place) -> Said:
    ask = Given()
    return Said(page, section.name, place, tuple(kept(section.draw(place, ask))), ask.asked)


def _odd(drawn: tuple[Block, ...]) -> Iterator[str]:
    blocks = list(flat(drawn))
    strange = {type(block).__name__ for block in blocks if not isinstance(block, get_args(Block))}
    if strange:
        yield f"it yields {', '.join(sorted(strange))}, which is no block."
    if not any(isinstance(block, Answer | Lack) for block in blocks):
        yield "it has no answer."
    names = Counter(block.name for block in blocks if isinstance(block, Table))
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        yield f"several tables are called {', '.join(twice)}."
    if any(isinstance(block, Chart) and not block.alt for block in blocks):
        yield "a chart does not say in words what it shows."


@cache
def _small() -> tuple[tempfile.TemporaryDirectory[str], Snapshot]:
    """Return a store of two workspaces, and the folder that it stands in until the process ends."""
    folder = tempfile.TemporaryDirectory()
    store = Store.open(Path(folder.name))
    with store.write("conformance") as writer:
        writer.add(_batch())
    return folder, store.read()


def _batch() -> Batch:
    queries = [f"q{number}" for number in range(1, 13)]
    stacks = {"sparse": 1, "dense": 2, "hybrid": 3}
    rankings, timings = [], []
    for stack, shift in stacks.items():
        for at, query in enumerate(queries):
            for rank in range(1, 11):
                row = {"run_id": stack, "query_id": query, "stage": "final", "rank": rank}
                rankings.append({**row, "passage_id": f"p{(at + shift * rank) % 30}"})
            timings.append(
                {"run_id": stack, "query_id": query, "stage": "total", "repeat": 1, "ms": 10.0 * shift + at}
            )
    judged = [
        {
            "golden_set_id": "gold",
            "query_id": query,
            "passage_id": f"p{(at + step) % 30}",
            "grade": grade,
            "raw": grade,
        }
        for at, query in enumerate(queries)
        for step, grade in ((1, 5), (2, 4), (3, 3), (6, 1))
    ]
    means = [
        {"run_id": f"published {stack}", "measure": "nDCG", "k": 10, "value": shift / 10, "n": 12}
        for stack, shift in stacks.items()
    ]
    return Batch(
        collections=tuple(Collection(collection_id=name, name=name) for name in (_MEASURED, _PUBLISHED)),
        golden_sets=(GoldenSet(golden_set_id="gold", collection_id=_MEASURED, name="Gold"),),
        runs=tuple(
            Run(
                run_id=start + stack,
                collection_id=collection,
                stack=Stack({"name": stack}),
                label=stack,
                origin=Origin.IMPORT,
            )
            for collection, start in ((_MEASURED, ""), (_PUBLISHED, "published "))
            for stack in stacks
        ),
        frames={
            "rankings": frame("rankings", rankings),
            "timings": frame("timings", timings),
            "judgements": frame("judgements", judged),
            "aggregates": frame("aggregates", means),
            "queries": frame(
                "queries",
                [
                    {"collection_id": _MEASURED, "query_id": query, "text": f"What is {query}?"}
                    for query in queries
                ],
            ),
            "passages": frame(
                "passages",
                [
                    {"collection_id": _MEASURED, "passage_id": f"p{at}", "text": f"Passage {at}."}
                    for at in range(30)
                ],
            ),
        },
    )
