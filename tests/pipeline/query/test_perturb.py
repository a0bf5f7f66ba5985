"""Queries as people might have typed them, in English and French."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.pipeline.query.perturb import LANGUAGES, check_perturb, perturb_table, perturbed, shown
from core.pipeline.query.rewrite import REWRITES

ASKED = {
    "english": "Can forests really regulate the climate?",
    "french": "Qui a créé la ligue des états évoqués ici ?",
}
NOISE = st.integers(0, 4)


@given(st.text(), st.sampled_from(list(LANGUAGES)))
def test_without_a_level_a_query_is_as_it_is(text: str, language: str):
    assert perturb_table({"noise": 0, "typo": 0}, language) == {}
    assert perturbed(text, {}) == perturbed(text, {"noise": 0, "language": language}) == text


@given(st.text(), st.sampled_from(list(LANGUAGES)))
def test_a_level_holds_what_the_level_below_added(text: str, language: str):
    levels = [perturbed(text, perturb_table({"noise": level}, language)) for level in range(5)]
    for level, (below, above) in enumerate(pairwise(levels), 1):
        assert text in above
        assert len(above) > len(below), level
        head, tail = below[: below.index(text)], below[below.rindex(text) + len(text) :]
        rest = iter(above)
        assert all(char in rest for char in head + text + tail), "in the same order, with more in between"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_query_always_gets_the_same(language: str):
    told = perturb_table({"noise": 4, "typo": 2}, language)
    assert perturbed(ASKED[language], told) == perturbed(ASKED[language], told)
    assert len({perturbed(f"{ASKED[language]} {n}", told)[:20] for n in range(30)}) > 3, "others get others"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_slip_changes_one_more_word_and_no_first_letter(language: str, level: int):
    words = ASKED[language].split()
    typed = perturbed(ASKED[language], perturb_table({"typo": level}, language)).split()
    below = perturbed(ASKED[language], perturb_table({"typo": level - 1}, language)).split()
    assert len(typed) == len(words)
    assert [word[0] for word in typed] == [word[0] for word in words]
    long = sum(len([c for c in word if c.isalpha()]) >= 4 for word in words)
    assert sum(one != other for one, other in zip(typed, words, strict=True)) == min(level, long)
    assert sum(one != other for one, other in zip(typed, below, strict=True)) == (1 if level <= long else 0)


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ({"accents": 1}, "Qui a cree la ligue des etats evoques ici ?"),
        ({"case": 1}, "qui a créé la ligue des états évoqués ici ?"),
        ({"case": 2}, "QUI A CRÉÉ LA LIGUE DES ÉTATS ÉVOQUÉS ICI ?"),
        ({"accents": 1, "case": 1}, "qui a cree la ligue des etats evoques ici ?"),
    ],
)
def test_accents_and_case(told: dict[str, int], typed: str):
    assert perturbed(ASKED["french"], told) == typed


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rewrite", REWRITES)
def test_rewriting_a_clean_query_changes_nothing(rewrite: str, language: str):
    assert REWRITES[rewrite](ASKED[language]) == ASKED[language]


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        ({"noise": 5}, InputError, "noise=5 is not allowed"),
        ({"typo": -1}, InputError, "typo=-1"),
        ({"case": 3}, InputError, "0 to 2"),
        ({"noise": 1, "language": "german"}, InputError, "no small talk in german"),
        ({"shouting": 1}, UnknownNameError, "shouting"),
        ({"names": "4"}, InputError, "names=4 is not allowed"),
    ],
)
def test_what_there_is_not_is_said(told: dict[str, int], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        check_perturb(told)


def test_a_table_has_what_is_not_the_usual():
    assert perturb_table({"noise": 2, "typo": 0}, "english") == {"noise": 2}
    assert perturb_table({"typo": 1}, "french") == {"typo": 1, "language": "french"}
    assert perturb_table({"names": "0", "case": 1}, "english") == {"case": 1}
    assert (
        shown({"names": "mask", "typo": 1, "noise": 2, "language": "french"}) == "noise 2 typo 1 names mask"
    )
    check_perturb({"typo": 1, "language": "german"})
