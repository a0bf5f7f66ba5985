"""Forms of names, and names found in questions and put into other forms."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics.robust import PERTURBATIONS
from core.pipeline.query.entities import (
    OFF,
    gibberish,
    initials,
    inverted,
    known_names,
    named,
    names_hash,
    names_in,
    near_miss,
    recased,
    renamed,
)
from core.pipeline.query.perturb import perturbed

CASES = json.loads((Path(__file__).parents[2] / "cases" / "names.json").read_text(encoding="utf-8"))[
    "queries"
]
FORMS = next(each.choices for each in PERTURBATIONS if each.name == "names")


@pytest.mark.parametrize(
    ("name", "short", "last_first"),
    [
        ("John Smith", "J. Smith", "Smith, John"),
        ("Voltaire", "Voltaire", "Voltaire"),
        ("", "", ""),
        ("J.-K. Huysmans", "J.-K. Huysmans", "Huysmans, J.-K."),
        ("Hendrik Willem van Loon", "H. W. van Loon", "van Loon, Hendrik Willem"),
        ("W. E. B. Du Bois", "W. E. B. Du Bois", "Du Bois, W. E. B."),
        ("Jean de La Fontaine", "J. de La Fontaine", "de La Fontaine, Jean"),
    ],
)
def test_forms_of_names(name: str, short: str, last_first: str):
    assert (initials(name), inverted(name)) == (short, last_first)


def test_names_without_letters_have_no_near_miss():
    assert near_miss("1-2-3", 2, "seed") == "1-2-3"
    assert recased("d’Alembert", 3) == "D'ALEMBERT"


@pytest.mark.parametrize(
    ("at", "form"), [(at, form) for at, case in enumerate(CASES) for form in case["expected"]]
)
def test_names_in_a_question_by_hand(at: int, form: str):
    case = CASES[at]
    assert renamed(case["text"], case["names"], form, case["language"]) == case["expected"][form]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["names"][0])
def test_forms_that_are_drawn_by_their_rules(case: dict):
    text, names = case["text"], case["names"]
    for many in (1, 2, 3):
        near = renamed(text, names, str(many))
        letters = [sum(char.isalpha() for char in name) for name in names]
        assert len(near) == len(text)
        assert sum(a != b for a, b in zip(text, near, strict=True)) == sum(
            min(many, each) for each in letters
        )
        assert near == renamed(text, list(reversed(names)), str(many)), "drawn from the question's own text"
    tokens = renamed(text, names, "gibberish")
    assert all(gibberish(name) in tokens and name not in tokens for name in names)
    cased = renamed(text, names, "case")
    assert cased.lower() == renamed(text, names, "0").lower().replace("jean-jacques", "jean jacques").replace(
        "mg-200", "mg 200"
    )
    assert len({renamed(f"{text} {n}", names, "case") for n in range(9)}) > 1


def test_a_mask_makes_questions_equal_that_differ_in_names_alone():
    texts = [f"Which works by {name} on liberty?" for name in ("Émile Zola", "J. S. Mill", "MG-200")]
    assert len({perturbed(text, {"names": "mask"}, names_in(text)) for text in texts}) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_question_that_names_nothing_stays_as_it_is(form: str):
    text = "how do i reverse the order : quickly ?"
    assert names_in(text) == ()
    assert perturbed(text, {"names": form}, names_in(text)) == text


@pytest.mark.slow
@given(st.text(st.characters(max_codepoint=127)), st.lists(st.from_regex(r"\A[A-Z][a-z]{2,8}\Z"), min_size=1))
def test_ascii_names_have_no_accents_to_lose(text: str, names: list[str]):
    asked = " ".join([text, *names])
    assert renamed(asked, names, "accents") == renamed(asked, names, OFF) == asked


def test_other_ways_work_on_the_renamed_question():
    text, told = "Which novels did Émile Zola write?", {"names": "mask", "noise": 2, "typo": 2, "accents": 1}
    typed = perturbed(text, told, ("Émile Zola",))
    assert "AUTHOR_001" in perturbed(text, {"names": "mask", "noise": 2}, ("Émile Zola",))
    assert typed.isascii()
    assert typed.split()[:2] == perturbed(text, {"noise": 2}).split()[:2], "small talk is drawn as before"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("Qui est le grand-père de Jakob", ("Jakob",)),
        ("Jakob Böhme est né où ?", ("Jakob Böhme",)),
        ("Où est mort Louis XIV et Charles de Gaulle ?", ("Louis XIV", "Charles de Gaulle")),
        ("Can I use numpy.clip with MG-200?", ("numpy.clip", "MG-200")),
        ("what of J. K. Rowling and the NASA of 1942", ("J. K. Rowling", "NASA")),
        ("WHO IS IT", ()),
        ("how do i use group_by in numpy", ("group_by", "numpy")),
        ("What is a top-10, e.g. in the 1980s? Nothing.", ()),
        ("En quelle année Marie de la Tour a-t-elle quitté l’Oregon", ("Marie de la Tour", "Oregon")),
        ("CSV or csv, Émile and Émile", ("CSV", "Émile")),
    ],
)
def test_names_are_found(text: str, names: tuple[str, ...]):
    assert names_in(text, {"Jakob Böhme", "numpy", "Émile"}) == names


def test_names_of_tags_and_of_passages():
    passages = pl.DataFrame(
        {
            "title": ["Paris (Texas)", "a heading", "numpy.clip(a, b)", None],
            "source": ["numpy", None, "x", "AB"],
        }
    )
    assert known_names(passages) == {"Paris", "numpy.clip", "numpy"}
    texts = ["is paris in Texas", "Paris or Rome", "what of the pump 7", "nothing"]
    tags = [[], ["entity=Rome", "lang=en"], ["entity=pump 7"], ["entity=a; pump 7"]]
    queries = pl.DataFrame({"text": texts, "tags": tags})
    found = named(queries, passages)
    assert found == {texts[0]: ("Texas",), texts[1]: ("Rome",), texts[2]: ("pump 7",)}
    assert names_hash(found) == names_hash(dict(reversed(found.items()))) != names_hash({})
    assert named(queries.select("text")) == {texts[0]: ("Texas",), texts[1]: ("Rome",)}
