"""Every page on what every importer makes of its sample, whole and without each field that may be absent."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import ClqError
from core.importers import Import
from core.store import Store
from core.work.imports.imports import store_import
from tests.importers.absent import imported, shape, without_each
from tests.importers.samples import SAMPLES
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES, PAGES_OF, TITLES, answer, assert_sound
from tests.shared import EVERY_PAGE
from tests.stores import Lab

ANSWERS = ["query_id,answer,k,grade", *(f"q{n},words,{k},{k % 2}" for n in range(1, 9) for k in (1, 2))]
"""A table of answers as the README has it: no reader, no prompt, no temperature, no mode, no judge."""
_EVERY = 20
LACKS = ("There is nothing to run.", "No passage has text")
"""What Run says, as an error, of a collection without queries or without texts."""


def _retrieval_response() -> bytes:
    """Answers by nobody named, over four pools, as the files of the data set are."""
    ranked = [
        {"id": f"A-{n}", "E": embedder, "Nc": 4, "Np": 2, "K": k, "rank": [n % 4, (n + 1) % 4],
         "answer_topK": "words", "answer_ideal": "more words", "grade": 1 + (n + k) % 5}
        for n in range(8) for embedder in ("AM", "QM") for k in (1, 2)
    ]  # fmt: skip
    return "".join(f"{json.dumps(row)}\n" for row in ranked).encode()


SETTING = [page for page in PAGES if PAGES_OF[page.partition("/")[0]].group != "Data"]
"""Pages with settings, which name readers."""


def _open_every_page(
    open_page: OpenPage, path: Path, made: Import, what: str, pages: Sequence[str] = PAGES
) -> None:
    if not made.collections:  # grades of what the store has already
        Lab().ask({"q1": "words"}).hold({"p1": "words"}).write(path)
    try:
        store_import(Store.open(path), made, "files")
    except ClqError:  # it names what no file brings
        return
    for page in pages:
        app = open_page(path, page)
        try:
            if page == "run" and any(lack in each.value for lack in LACKS for each in app.error):
                assert not app.exception
                assert len(app.error) == 1
            else:
                assert_sound(app, TITLES[page])
        except AssertionError as error:
            raise AssertionError(f"{what}, {page}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "data"),
    [("table", "\n".join(ANSWERS).encode()), ("retrieval-response", _retrieval_response())],
)
def test_answers_by_nobody_named_open_every_page(
    open_page: OpenPage, tmp_path: Path, format_: str, data: bytes
):
    made = imported("answers", format_, data)
    assert made is not None
    _open_every_page(open_page, tmp_path / "store", made, format_, SETTING)


@pytest.mark.slow
def test_grades_of_answers_over_pools_are_predicted(open_page: OpenPage, tmp_path: Path):
    made = imported("graded.jsonl", "retrieval-response", _retrieval_response())
    assert made is not None
    store_import(Store.open(tmp_path / "store"), made, "files")
    assert "n = 32" in answer(open_page(tmp_path / "store", "measures/predicting answers"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_without_each_field_opens_every_page(open_page: OpenPage, tmp_path: Path, name: str):
    """One store for each set of columns that are filled never, sometimes or always."""
    format_, data = SAMPLES[name]
    shapes = set()
    first = list(SAMPLES).index(name)
    for field, without in [("nothing", data), *without_each(data)]:
        batch = imported("file", format_, without)
        if batch is not None and (own := shape(batch)) and own not in shapes:
            shapes.add(own)
            some = PAGES if EVERY_PAGE else PAGES[(first + len(shapes)) % _EVERY :: _EVERY]
            _open_every_page(open_page, tmp_path / str(len(shapes)), batch, f"{name} without {field}", some)
