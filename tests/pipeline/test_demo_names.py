"""Questions that name something, made of the documentation's own links; traffic with real times."""

from __future__ import annotations

import time

import polars as pl
import pytest

from core.importers.samples import ASKED_AT
from core.pipeline import demo, demo_names
from core.pipeline.query.entities import named
from core.tables import TABLES

SOURCE = """Say where.

See Also
--------
unravel_index : Convert a flat index into an index tuple.
numpy.argmax : Indices of the largest values along an axis.
ndarray.argmin : Smallest of an array, by its own method.
any : Test whether any element evaluates to True.
absent_one : Something that no docstring here is about.
masked_one : Its sentence goes on in the next line, as

Notes
-----
argsort_ : Not a link any more, for the section is over.
"""
TEXTS = {
    "numpy.where": SOURCE,
    "numpy.unravel_index": "Converts flat indices into tuples of coordinates.",
    "numpy.argmax": "Indices of the largest values along an axis.",
    "numpy.ndarray.argmin": "See numpy.argmin.",
    "numpy.any": "Any.",
    "numpy.masked_one": "Masked.",
    "numpy.argsort_": "Sort.",
    "polars.where": SOURCE,
}


def test_a_link_names_a_function_in_words_that_its_own_text_lacks():
    found = demo_names.links(pl.DataFrame({"passage_id": list(TEXTS), "text": list(TEXTS.values())}))
    assert sorted(found.rows()) == [
        ("ndarray.argmin: Smallest of an array, by its own method.", "ndarray.argmin",
         "numpy.ndarray.argmin", "numpy.where"),
        ("unravel_index: Convert a flat index into an index tuple.", "unravel_index", "numpy.unravel_index",
         "numpy.where"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def frames() -> dict[str, pl.DataFrame]:
    return {name: rows.lazy().collect() for name, rows in demo_names.workspace().frames.items()}


@pytest.mark.slow
def test_every_question_is_judged_and_the_named_ones_name_something(frames: dict[str, pl.DataFrame]):
    queries, judgements = frames["queries"], frames["judgements"]
    assert all(rows.schema == TABLES[name] for name, rows in frames.items())
    without = queries.filter(pl.col("tags").list.contains(demo_names.UNANSWERABLE))
    assert without.height == demo_names.without_answer()["text"].n_unique() == 24
    assert set(queries["query_id"]) - set(without["query_id"]) == set(judgements["query_id"])
    of = queries.filter(pl.col("tags").list.contains("kind=named"))
    assert of.height == demo_names.QUESTIONS == queries.height - demo.queries().height - without.height
    linked = judgements.join(of, on="query_id", how="semi")
    assert (linked.height, set(linked["grade"])) == (of.height, {5})
    assert set(linked["passage_id"]) <= set(frames["passages"]["passage_id"])
    names = named(of, frames["passages"])
    assert all(len(names[text]) == 1 and text.startswith(names[text][0]) for text in of["text"])


@pytest.mark.slow
def test_traffic_is_logged_when_it_is_asked(frames: dict[str, pl.DataFrame]):
    queries = frames["queries"].head(5)
    began = time.time()
    batch = demo_names.traffic(frames["passages"].head(60), queries)
    rows = {name: table.lazy().collect() for name, table in batch.frames.items()}
    at = rows["signals"]["value"].to_list()
    assert began <= at[0]
    assert at == sorted(at)
    assert at[-1] <= time.time()
    assert rows["signals"]["signal"].unique().to_list() == [ASKED_AT]
    assert rows["rankings"].group_by("query_id").len()["len"].to_list() == [demo_names.DEPTH] * 5
    assert set(rows["timings"]["stage"]) == {"embed", "retrieve"}


def test_stacks_are_asked_with_names_as_they_are_and_two_ways_wrong():
    perturbed = [stack.spec.get("perturb", {}).get("names") for stack in demo_names.stacks()]
    assert [perturbed.count(form) for form in (None, "1", "gibberish")] == [5, 5, 5]
