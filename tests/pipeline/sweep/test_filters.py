"""Filters from columns of the questions, and permissions, in a specification over documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.analysis.export import StoreShelf
from core.errors import ClqError
from core.importers import Options, load
from core.pipeline.evaluate import Job
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.store import Store
from tests.stores import add

SPEC = """
collection = "docs/"
queries = "asked.csv"
{filters}
[axes]
mode = "sparse"
candidates = 2
"""
ASKED = "query_id,text,folder,year\nq1,how long,sales,2024\nq2,what cost,legal,2025\n"
COLUMN = 'filters = {column = "folder", permission = "folder"}'


def read(folder: Path, filters: str, asked: str = ASKED) -> tuple[Job, list[str]]:
    for name, year in (("sales", 2024), ("legal", 2025)):
        (folder / "docs" / name).mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name / "a.md").write_text(f"---\nyear: {year}\n---\nhow long, what cost\n")
    (folder / "asked.csv").write_text(asked)
    job, said = read_job(parse(SPEC.format(filters=filters), "toml", folder=folder))
    return job, [str(problem) for problem in said]


def texts(job: Job) -> list[str | None]:
    return [None if each is None else each.text for each in job.filters]


def frame_of(job: Job, table: str) -> list[Any]:
    rows = job.setup.frames[table].lazy().collect()
    return rows.drop("collection_id").rows()


def test_a_column_is_a_filter_and_a_field_a_permission(tmp_path: Path):
    job, said = read(tmp_path, COLUMN)
    assert texts(job) == ['{"folder":"sales"}', '{"folder":"legal"}']
    assert frame_of(job, "fields") == [("folder", None, True)]
    assert [row[0] for row in frame_of(job, "passage_metadata")] == ["legal/a.md", "sales/a.md"]
    (corpus,) = job.corpora.values()
    assert corpus.fields is not None
    assert corpus.fields["folder"].to_list() == ["legal", "sales"], "chunks are known by their document"
    assert "collection: Fields of documents: folder (text), folders (list of texts), year (number)." in said


def test_several_columns_and_a_filter_hold_together(tmp_path: Path):
    asked = 'query_id,text,folder,year,filter\nq1,how,sales,2024,"{""folders"": {""any"": [""sales""]}}"\n'
    job, _ = read(tmp_path, 'filters = {column = ["folder", "year"]}', asked)
    assert texts(job) == ['{"folder":"sales","folders":{"any":["sales"]},"year":2024}']
    assert "fields" not in job.setup.frames


def test_of_several_values_any_will_do(tmp_path: Path):
    asked = 'query_id,text,folder\nq1,how,"[""sales"", ""legal""]"\n'
    job, _ = read(tmp_path, 'filters = {column = "folder"}', asked)
    assert texts(job) == ['{"folder":["legal","sales"]}']


@pytest.mark.parametrize(
    ("filters", "asked", "said"),
    [
        ('filters = {column = "tenant"}', ASKED, "No column of the questions 'tenant'"),
        ('filters = {permission = "tenant"}', ASKED, "No field of passages 'tenant'"),
        (COLUMN, "query_id,text,folder\nq1,how,sales\nq2,what,\n", "asked.csv:3: The question has no folder"),
        ('filters = {column = "text"}', ASKED, "'text'"),
        (
            COLUMN,
            'query_id,text,folder,filter\nq1,how,sales,"{""folder"": ""legal""}"\n',
            "Both the filter and the column ask for folder.",
        ),
        ('filters = {columns = "folder"}', ASKED, "columns"),
    ],
)
def test_what_cannot_work_is_refused_by_name(tmp_path: Path, filters: str, asked: str, said: str):
    with pytest.raises(ClqError) as refused:
        read(tmp_path, filters, asked)
    assert said in str(refused.value)


def test_a_filter_that_matches_nothing_is_said_by_name(tmp_path: Path):
    _, said = read(tmp_path, 'filters = {column = "folder"}', "query_id,text,folder\nq1,how,hr\n")
    assert any(each.startswith("filter of q1: No passage matches the filter.") for each in said)


def test_without_filters_folders_change_nothing(tmp_path: Path):
    job, said = read(tmp_path, "")
    assert job.filters == ()
    assert not said
    assert not any("filtering" in stack.spec for stack in job.stacks)
    assert isinstance(job.queries, pl.DataFrame)


def test_columns_ask_about_the_metadata_of_a_stored_collection(tmp_path: Path):
    (tmp_path / "shop").mkdir()
    lines = [
        {"_id": f"p-{name}", "text": "how long", "metadata": {"folder": name}} for name in ("sales", "legal")
    ]
    (tmp_path / "shop" / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "shop" / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": query, "text": "how long"}) for query in ("q1", "q2"))
    )
    store = Store.open(tmp_path / "store")
    add(store.path, load([tmp_path / "shop"], Options(format="beir", collection_id="shop")).batch, "import")
    (tmp_path / "asked.csv").write_text(ASKED)
    text = SPEC.format(filters=COLUMN).replace('"docs/"', '{stored = "shop"}')
    job, _ = read_job(parse(text, "toml", folder=tmp_path), shelf=StoreShelf(store.read()))
    assert texts(job) == ['{"folder":"sales"}', '{"folder":"legal"}']
    add(store.path, job.setup, "run")
    kept = store.read()
    assert kept.query_filters("shop")["filter"].to_list() == ['{"folder":"sales"}', '{"folder":"legal"}']
    assert kept.fields("shop").select("field", "permission").rows() == [("folder", True)]
    assert kept.passage_metadata("shop").height == 2
    (tmp_path / "asked.csv").write_text("query_id,text,folder,year\nq2,what cost,legal,2025\n")
    few, _ = read_job(parse(text, "toml", folder=tmp_path), shelf=StoreShelf(kept))
    assert texts(few) == ['{"folder":"legal"}']
    add(store.path, few.setup, "run")  # some of the stored questions, with their stored filters
    assert store.read().query_filters("shop").height == 2
    (tmp_path / "asked.csv").write_text(f"{ASKED}q3,another,legal,2025\n")
    with pytest.raises(ClqError, match="1 of 3 questions, such as q3, have a filter here, but not in the"):
        read_job(parse(text, "toml", folder=tmp_path), shelf=StoreShelf(kept))
    (tmp_path / "asked.csv").write_text(ASKED.replace("sales", "hr"))
    with pytest.raises(
        ClqError, match=r'q1 has the filter {"folder":"sales"} in the store, not {"folder":"hr"}'
    ):
        read_job(parse(text, "toml", folder=tmp_path), shelf=StoreShelf(kept))
