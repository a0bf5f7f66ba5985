"""Every rule by which a question is thrown out, with real examples in English and French."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.pipeline.index.terms import Analyzer
from core.pipeline.sweep import parse_as
from core.work.questions.drafts import Draft, Quote
from core.work.questions.form import QuestionsForm, specification
from core.work.questions.rules import (
    NEAR_COPY,
    NOT_IN_TEXT,
    REFERS,
    SEVERAL,
    TOO_SHORT,
    asks_several,
    located,
    near_copies,
    refers_to_text,
    screen,
)
from core.work.questions.spec import QuestionsSpec
from core.work.questions.writing import holds
from tests.work.questions import texts

SHOWN = Quote(
    "returns.md", 100, 190, "The refund is paid within five\nworking days after the parcel has arrived."
)


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("When is the refund paid? And who pays for the parcel?", True),
        ("When is the refund paid, and how do I get it?", True),
        ("Quand le remboursement est-il versé ? Qui paie le colis ?", True),
        ("Quand le remboursement est-il versé et comment l'obtenir ?", True),
        ("Which islands and coastal towns cost a surcharge?", False),
        ("Quelles îles et villes côtières coûtent un supplément ?", False),
        ("How do search and retrieval differ?", False),
        ("refund when", False),
    ],
)
def test_several_questions_in_one(question: str, several: bool):
    assert asks_several(question) is several


@pytest.mark.parametrize(
    ("question", "refers"),
    [
        ("According to the text, when is the refund paid?", True),
        ("What does this document say about refunds?", True),
        ("Which fees are mentioned above?", True),
        ("What does the author think of refunds?", True),
        ("Selon le texte, quand le remboursement est-il versé ?", True),
        ("D'après ce document, combien coûte un colis ?", True),
        ("Que dit l'auteur des remboursements ?", True),
        ("Quels frais sont mentionnés ci-dessus ?", True),
        ("Where was the author of this article born?", True),
        ("Que pense l'auteur du remboursement ?", True),
        ("Où est né l'auteur de l'article ?", True),
        ("Which illness did the author of Emma have?", False),
        ("De quoi souffrait l'auteur du pari ?", False),
        ("Où est né l'auteur d'Ubu roi ?", False),
        ("When is the refund paid?", False),
        ("What does article 12 of the statute forbid?", False),
        ("Que prévoit l'article 12 du code civil ?", False),
        ("How many documents does a claim need?", False),
        ("Combien de documents faut-il pour une demande ?", False),
    ],
)
def test_refers_to_the_document(question: str, refers: bool):
    assert refers_to_text(question) is refers


def test_a_model_of_ones_own_stands_in_the_specification_with_its_address():
    form = QuestionsForm(
        name="a", documents="/texts", method="qwen 3:4b", address="http://localhost:11434/v1"
    )
    asked = parse_as(QuestionsSpec, specification(form), "toml")
    assert asked.models[asked.model].base_url == "http://localhost:11434/v1"
    assert parse_as(QuestionsSpec, specification(replace(form, method="headings")), "toml").models == {}


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("The refund is paid within five working days", True),
        ("refund  is paid\nwithin", True),
        ("The refund is paid within six working days", False),
        ("The refund is pаid", False),  # a Cyrillic letter
        ("\u202eThe refund is paid", False),
        ("The refund\u200b is paid", False),
        (" \n ", False),
        ("", False),
    ],
)
def test_a_quote_is_in_the_text_or_is_none(quote: str, there: bool):
    place = located(quote, SHOWN)
    assert (place is not None) is there
    if place is not None:
        assert SHOWN.text[place.start - 100 : place.end - 100] == place.text


@pytest.mark.parametrize(
    ("language", "said", "copies"),
    [
        (
            "english",
            ["How is a parcel returned?", "How are parcels returned?", "Who pays the refund?"],
            {1: 0},
        ),
        ("french", ["Comment renvoyer un colis ?", "Comment renvoyer des colis ?", "Qui paie ?"], {1: 0}),
    ],
)
def test_near_copies(language: str, said: list[str], copies: dict[int, int]):
    assert near_copies(said, Analyzer(language)) == copies


def test_near_copies_across_blocks_name_the_first():
    said = [f"word{at} thing{at}" for at in range(600)] + ["word3 thing3"]
    found = near_copies(said, Analyzer("english"))
    assert found[600] == 3


@pytest.mark.parametrize(
    ("given", "right", "known"),
    [
        ("Paris.", "Paris", True),
        ("It takes 30 days", "30 days", True),
        ("unknown", "unknown", False),
        ("C'est Lyon", "Lyon", True),
        ("quatre jours", "cinq jours ouvrés", False),
        ("", "Lyon", False),
    ],
)
def test_answerable_without_the_text(given: str, right: str, known: bool):
    assert holds(given, right) is known


def test_drafts_are_parted_and_counted_by_reason(tmp_path: Path):
    material = texts.material(tmp_path)
    item = next(item for item in material.items if "refund" in item.text)
    forged = Quote(item.source, item.start, item.end, item.text.replace("five", "six"))

    def draft(text: str, quote: Quote = item) -> Draft:
        return Draft(text=text, kind="fact", quotes=(quote,))

    screened = screen(
        [
            draft("When is the \u202erefund\u202c paid?"),
            draft("When are the refunds paid?"),
            draft("How fast is the money back?", forged),
            draft("Is it for that?"),
            draft("When is it paid and how is the warehouse reached?"),
            draft("What does this passage say about Lyon?"),
            Draft(text="What is refunded to companies?", kind="unanswerable"),
            Draft(text="Where is Lyon?", kind="fact"),
        ],
        material,
    )
    assert [one.text for one in screened.kept] == [
        "When is the refund paid?",
        "What is refunded to companies?",
    ]
    assert screened.counts == {NOT_IN_TEXT: 2, TOO_SHORT: 1, SEVERAL: 1, REFERS: 1, NEAR_COPY: 1}
