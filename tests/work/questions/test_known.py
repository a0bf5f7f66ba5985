"""Questions without any model."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.spread import MEASURED
from core.errors import InputError
from core.pipeline.documents import read_documents
from core.work.questions.drafts import Draft, DraftMaterial, language_of, sampled
from core.work.questions.job import read_job
from core.work.questions.known import headings, known_items
from core.work.questions.overlap import favours, mean_overlap, overlap
from core.work.questions.plan import plan
from core.work.questions.spec import QuestionsSpec
from core.work.questions.words import size_of
from tests.work.golden import built
from tests.work.questions import texts


def test_known_items_are_words_of_a_place_and_repeat(tmp_path: Path):
    material = texts.material(tmp_path)
    drafts = list(known_items(material, "seed"))
    assert drafts == list(known_items(material, "seed"))
    assert [draft.text for draft in drafts] != [draft.text for draft in known_items(material, "other")]
    assert len(drafts) == len(material.items)
    assert len({draft.quotes[0].source for draft in drafts[:3]}) == 3, "every source in turn"
    for draft in drafts:
        (quote,) = draft.quotes
        assert material.texts[quote.source][quote.start : quote.end] == quote.text
        assert 2 <= len(draft.text.split()) <= 12
        assert "\u202e" not in draft.text
    shares = [share for draft in drafts if (share := overlap(draft, material.analyzer)) is not None]
    assert sum(shares) / len(shares) > 0.5


def test_headings_ask_for_what_stands_below(tmp_path: Path):
    drafts = {draft.text: draft.quotes[0] for draft in headings(texts.material(tmp_path), "seed")}
    assert "six euros" in drafts["Islands"].text
    assert drafts["Opened software"].text.startswith("Opened software, gift cards")
    assert not drafts["Returns"].text.startswith("#")


def test_a_heading_of_several_documents_stands_behind_its_title(tmp_path: Path):
    for name in ("bread", "soup"):
        (tmp_path / f"{name}.md").write_text(
            f"# {name.title()}\n\nAll about it in many useful words and lines.\n\n## Method\n\n"
            f"Cook the {name} slowly with water, salt, flour and patience for one hour.\n"
        )
    material = DraftMaterial(read_documents(tmp_path).frame, "english")
    asked = {draft.text for draft in headings(material, "seed")}
    assert {"Bread: Method", "Soup: Method"} <= asked


def test_texts_without_headings_are_refused_with_what_to_do(tmp_path: Path):
    (tmp_path / "texts.csv").write_text("id,text\n1,Parcels are returned within thirty days in their box.\n")
    spec = QuestionsSpec.model_validate({"collection": str(tmp_path / "texts.csv")})
    with pytest.raises(InputError, match=r'no headings or titles\..*"known-item"'):
        read_job(spec, {"list": built.book()})
    job, _ = read_job(spec.model_copy(update={"method": "known-item"}), {"list": built.book()})
    assert (plan(job).count, plan(job).wanted) == (1, 64)


def test_the_name_of_a_file_is_no_heading(tmp_path: Path):
    folder = tmp_path / "shop"
    (folder / "bikes").mkdir(parents=True)
    said = "A full check of a bike costs 59 euros and takes two days in March and April."
    (folder / "bikes" / "spring_service.txt").write_text(said)
    spec = QuestionsSpec.model_validate({"collection": str(folder)})
    with pytest.raises(InputError, match=r"no headings or titles\. File names ask nothing\. .*known-item"):
        read_job(spec, {"list": built.book()})
    (folder / "pads.md").write_text("# Brake pads\n\nPads wear down after two thousand kilometres in rain.\n")
    job, _ = read_job(spec, {"list": built.book()})
    assert [draft.text for draft in headings(job.material, "seed")] == ["Brake pads"]
    assert plan(job).count == 1


def test_the_plan_counts_no_more_than_there_are(tmp_path: Path):
    spec = QuestionsSpec.model_validate({"collection": str(texts.folder_of(tmp_path))})
    job, _ = read_job(spec, {"list": built.book()})
    foreseen = plan(job)
    assert (foreseen.count, foreseen.wanted) == (5, 64)
    assert "5 questions, as many as there are, from" in size_of(foreseen)
    assert foreseen.shows == pytest.approx(MEASURED.sd * 2.8016 / 5**0.5, rel=1e-3)  # z of .975 and .8


@pytest.mark.parametrize(
    ("said", "language"),
    [
        ("The refund is paid within five working days after the parcel has arrived", "english"),
        ("Le remboursement est versé dans les cinq jours après la réception du colis", "french"),
        ("Die Erstattung wird innerhalb von fünf Tagen nach der Ankunft des Pakets gezahlt", "german"),
        ("1234 5678", "english"),
    ],
)
def test_the_language_is_that_of_the_stop_words(said: str, language: str):
    assert language_of([said]) == language


def test_samples_take_topics_and_sources_in_turn(tmp_path: Path):
    import numpy as np

    items = texts.material(tmp_path).items
    topics = np.array([at % 2 for at in range(len(items))], dtype=np.int64)
    order = [at for at, _ in sampled(items, "s", topics)]
    assert sorted(order) == list(range(len(items)))
    assert {int(topics[at]) for at in order[:2]} == {0, 1}


def test_overlap_says_whom_a_set_favours(tmp_path: Path):
    material = texts.material(tmp_path)
    item = next(item for item in material.items if "refund" in item.text)
    copied, own = (
        Draft(text="refund paid", kind="fact", quotes=(item,)),
        Draft(text="money back soon", kind="fact", quotes=(item,)),
    )
    assert overlap(copied, material.analyzer) == 1
    assert overlap(own, material.analyzer) == 0
    assert overlap(Draft(text="money", kind="unanswerable"), material.analyzer) is None
    assert mean_overlap([copied, own], material.analyzer) == pytest.approx(0.5)
    assert "strongly" in favours(0.9)
    assert "little" in favours(0.2)
    assert "not known" in favours(None)
