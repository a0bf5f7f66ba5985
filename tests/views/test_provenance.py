"""What the grades behind an answer are, in one line."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.workspace.scope import Scope
from core.pipeline.demo_docs import golden_sets
from core.records import Batch, Collection
from core.store import Store
from core.views.words.judging import graded, provenance, searched
from tests.stores import Lab, add, published


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (
            golden_sets()[0].judge,
            "150 queries; graded by language models, which wrote the queries too, checked by nobody.",
        ),
        ("Ann.", "150 queries; graded by Ann."),
        ("", "150 queries; who graded is not on record."),
        ("w " * 40, "150 queries; graded by w w w w w w w w w w…."),
        ("w" * 400, f"150 queries; graded by {'w' * 89}…."),
    ],
)
def test_the_line_says_what_the_store_knows_and_stays_short(judge: str, said: str) -> None:
    words = graded({"queries": 150, "judge": judge})
    assert words == said
    assert len(words.split()) <= 14


@pytest.mark.parametrize(
    ("name", "passages", "said"),
    [("Docs", 3423, "Docs; 3,423 passages; "), ("Docs", 0, "Docs; "), ("", 1, "1 passage; "), (None, 0, "")],
)
def test_the_line_begins_with_what_is_searched(name: str | None, passages: int, said: str) -> None:
    assert searched({"name": name, "passages": passages}) == said


@pytest.mark.parametrize(
    ("chunkings", "held"), [(("s",), "2 documents"), (("s", None), "2 passages"), ((None,), "2 passages")]
)
def test_what_every_stack_cuts_are_documents(tmp_path: Path, chunkings: tuple[str | None, ...], held: str):
    path = tmp_path / "store"
    lab = Lab().hold({"a": "one", "b": "two"}).judge({"q": {"a": 5}}, by="Ann")
    lab.write(path)
    for number in range(len(chunkings)):
        lab.run(f"r{number}")
    runs = (replace(run, chunking=cut) for run, cut in zip(lab.runs, chunkings, strict=True))
    part = Collection(collection_id="lab@s", name="A lab", part_of="lab")
    add(path, Batch(collections=(part,), runs=tuple(runs)), "test")
    said = provenance(Store.open(path).read(), Scope("lab", "gold"))
    assert said == f"A lab; {held}; 1 query; graded by Ann."


def test_of_published_figures_the_texts_and_the_paper_are_named(tmp_path: Path):
    published(tmp_path)
    assert provenance(Store.open(tmp_path).read(), Scope("clq-paper")) == (
        "Paragraphs of scientific papers, 50 real questions (mostly French). Published figures: Dallaire, "
        "Practical RAG Evaluation, arXiv:2511.09545v1, 12 November 2025."
    )
