"""Forms of names, and names found in questions and put into other forms."""

import pytest

from core.pipeline.query.names import initials, inverted, near_miss, recased


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
