"""The README says what is so."""

from core.paths import ROOT
from core.views.add.imports import formats_markdown
from core.views.measures.words import measures_markdown
from core.views.pages import pages_markdown

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_measures_is_the_registrys() -> None:
    table = README.partition("<!-- measures -->")[2].partition("<!-- /measures -->")[0].strip()
    assert table == measures_markdown()


def test_the_table_of_formats_is_that_of_the_importers() -> None:
    table = README.partition("<!-- formats -->")[2].partition("<!-- /formats -->")[0].strip()
    assert table == formats_markdown(), "print(core.views.add.imports.formats_markdown()) prints the table"


def test_the_table_of_pages_is_that_of_the_navigation() -> None:
    table = README.partition("<!-- pages -->")[2].partition("<!-- /pages -->")[0].strip()
    assert table == pages_markdown(), "print(core.views.pages.pages_markdown()) prints the table"


def test_every_picture_is_there() -> None:
    for part in README.split("](")[1:]:
        target = part.partition(")")[0]
        if target.endswith(".png"):
            assert (ROOT / target).is_file(), target
