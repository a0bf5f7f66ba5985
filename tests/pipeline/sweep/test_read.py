"""From a specification to an evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from core.analysis.export import StoreShelf
from core.errors import InputError, UnknownNameError
from core.pipeline.evaluate import Job
from core.pipeline.sweep import parse
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.problems import Problem, SpecError
from core.pipeline.sweep.read import protocol, read_job
from core.pipeline.sweep.sources import chosen, read_queries
from core.providers.calls import Keys
from core.records import Batch, Collection, GoldenSet
from core.store import Store
from core.tables import frame
from tests.pipeline.corpora import passages, queries
from tests.stores import add

CAT = "The cat sat on the mat."
DOCUMENTS = {
    "a.txt": f"Once there was a farm. {CAT} It was happy there.\n\nDogs bark at night. They are loud.\n",
    "sub/b.md": "# Zebras\n\nZebras run fast. They have stripes.\n\n## Lions\n\nLions sleep all day.\n",
}
ASKED = "query_id,text\nq1,where did the cat sit\nq2,which animal runs fast\n"
SPANS = f"query_id,source,quote,grade\nq1,a.txt,{CAT},5\nq2,sub/b.md,Zebras run fast.,4\n"
CHUNKERS = 'chunker = [{ method = "sentence", size = 24, overlap = 0 }, "paragraph", "none"]\n'
SPARSE = '[axes]\nmode = "sparse"\ncandidates = 2\n'


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """Three passages, four questions, two splits of judgements."""
    folder = tmp_path / "barn"
    (folder / "qrels").mkdir(parents=True)
    texts = ["cats purr", "dogs bark", "cows moo"]
    rows = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(["cats", "dogs", "cows", "pigs"])]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(f"{head}q0\td0\t1\nq1\td1\t1\nq2\td2\t0\n")
    (folder / "qrels" / "dev.tsv").write_text(f"{head}q2\td2\t1\n")
    return folder


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of documents, questions and spans beside it."""
    for name, text in DOCUMENTS.items():
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "asked.csv").write_text(ASKED)
    (tmp_path / "spans.csv").write_text(SPANS)
    return tmp_path


def read(text: str, folder: Path, **options: object) -> tuple[Job, list[Problem]]:
    return read_job(parse(text, folder=folder), **options)  # type: ignore[arg-type]


def ids(rows: object, column: str) -> list[str]:
    assert isinstance(rows, pl.DataFrame)
    return rows[column].to_list()


def test_a_beir_collection_brings_its_questions_and_one_split(beir: Path):
    job, problems = read(f'collection = "barn"\ngolden_set = {{ split = "test" }}\n{SPARSE}', beir.parent)
    assert (job.collection_id, len(job.corpora[None]), job.queries.height) == ("barn", 3, 4)
    assert [each.golden_set_id for each in job.setup.golden_sets] == ["barn-test"]
    assert job.setup.golden_sets[0].mapping == "binary: 0→1, 1→5"
    assert sorted(job.setup.frames) == ["judgements", "passages", "queries"]
    assert problems == []
    assert set(job.hashes) == {"golden_set"}
    assert job.spec["collection"]["path"] == str(beir)


def test_several_splits_are_a_question(beir: Path):
    with pytest.raises(InputError, match="several splits: dev, test"):
        read(f'collection = "barn"\n{SPARSE}', beir.parent)


def test_a_golden_set_of_its_own_takes_the_place_of_the_collections(beir: Path):
    (beir.parent / "mine.tsv").write_text("q0 0 d0 5\nq1 0 d1 3\n")
    text = 'collection = { path = "barn", id = "f" }\ngolden_set = { path = "mine.tsv", id = "own" }\n'
    job, _ = read(text + SPARSE, beir.parent)
    (golden,) = job.setup.golden_sets
    assert (golden.golden_set_id, golden.collection_id, golden.mapping) == ("own", "f", "1-5")
    assert ids(job.setup.frames["judgements"], "grade") == [5, 3]


def test_a_draw_of_questions_is_seeded_and_among_judged_ones(beir: Path):
    text = (
        'collection = "barn"\ngolden_set = { split = "test" }\nqueries = { limit = 2, seed = 3 }\n' + SPARSE
    )
    job, again = (read(text, beir.parent)[0] for _ in range(2))
    assert job.queries.equals(again.queries)
    assert job.queries.height == 2
    assert set(ids(job.queries, "query_id")) <= {"q0", "q1", "q2"}
    assert len(ids(job.setup.frames["queries"], "query_id")) == 4
    # What was not asked must not count as not found.
    (golden,) = job.setup.golden_sets
    assert golden.golden_set_id.startswith("barn-test-2q-")
    assert ids(job.setup.frames["judgements"], "query_id") == ids(job.queries, "query_id")
    assert set(ids(job.setup.frames["judgements"], "golden_set_id")) == {golden.golden_set_id}


def test_draws():
    asked = queries([f"question {number}" for number in range(20)])
    judged = asked.filter(pl.col("query_id") > "q1")
    assert chosen(asked, judged, None, 0).equals(asked)
    assert chosen(asked, None, 99, 0).equals(asked)
    assert chosen(asked, judged.clear(), 5, 0).height == 5
    drawn = [ids(chosen(asked, None, 5, seed), "query_id") for seed in range(4)]
    assert all(each == sorted(each, key=ids(asked, "query_id").index) for each in drawn)
    assert len({tuple(each) for each in drawn}) > 1


def test_documents_are_cut_by_every_chunker_and_spans_judge_all(docs: Path):
    text = 'collection = "docs"\nqueries = "asked.csv"\ngolden_set = "spans.csv"\n'
    job, problems = read(text + SPARSE + CHUNKERS, docs)
    cut = [each.collection_id for each in job.setup.collections if each.part_of]
    names = [name for name in job.corpora if name]
    assert sorted(cut) == sorted(f"docs@{name}" for name in names)
    assert {name.partition("-")[0] for name in names} == {"sentence", "paragraph"}
    assert len(job.corpora[None]) == 2
    assert sorted(job.chunkings.values()) == sorted(names)
    parts = {each.golden_set_id for each in job.setup.golden_sets}
    assert parts == {"docs-spans", *(f"docs-spans@{name}" for name in names)}
    judged = job.setup.frames["judgements"]
    assert isinstance(judged, pl.DataFrame)
    for golden in parts:
        assert set(judged.filter(pl.col("golden_set_id") == golden)["query_id"]) == {"q1", "q2"}
    known = set(ids(job.setup.frames["passages"], "passage_id"))
    assert set(judged["passage_id"]) <= known
    assert all(each.found.startswith("K = 2 is beyond") for each in problems)


def test_documents_are_cut_into_sentences_where_nothing_is_said(docs: Path):
    job, _ = read('collection = "docs"\nqueries = "asked.csv"\n' + SPARSE, docs)
    assert [stack.spec["chunker"]["method"] for stack in job.stacks] == ["sentence"]
    french = 'collection = { path = "docs", language = "french" }\nqueries = "asked.csv"\n'
    job, _ = read(french + SPARSE, docs)
    assert job.stacks[0].spec["chunker"]["language"] == "french"
    assert job.stacks[0].spec["bm25"] == {"language": "french"}


def test_files_that_are_no_documents_are_told(docs: Path):
    (docs / "docs" / "sub" / "c.docx").write_bytes(b"PK")
    _, problems = read('collection = "docs"\nqueries = "asked.csv"\n' + SPARSE, docs)
    found = "1 files that are not documents left out, the first docs/sub/c.docx."
    assert [str(each) for each in problems] == [f"collection: {found}"]


def test_evidence_that_a_chunker_tears_apart_is_told(docs: Path):
    # A quote over two paragraphs is in no paragraph as a whole, nor any paragraph in it.
    torn = "query_id,source,quote,grade\nq1,a.txt,It was happy there. Dogs bark,5\n"
    (docs / "spans.csv").write_text(torn)
    text = 'collection = "docs"\nqueries = "asked.csv"\ngolden_set = { path = "spans.csv", coverage = 0.9 }\n'
    _, problems = read(text + SPARSE + 'chunker = "paragraph"\n', docs)
    told = [str(each) for each in problems if "spans" in each.found]
    assert told == [
        f"golden set {told[0].split()[2].rstrip(':')}: 1 spans lie in no chunk that covers enough of them. "
        "1 questions lose all of theirs and drop out (q1). Lower golden_set.coverage, or use larger chunks."
    ]


def test_grades_of_whole_documents_hold_for_every_chunker(beir: Path):
    text = f'collection = "barn"\ngolden_set = {{ split = "test" }}\n{SPARSE}{CHUNKERS}'
    job, _ = read(text, beir.parent)
    judged = job.setup.frames["judgements"]
    assert isinstance(judged, pl.DataFrame)
    counts = judged.group_by("golden_set_id").len()["len"].to_list()
    assert counts == [3, 3, 3]


def test_grades_of_chunks_judge_their_own_chunker_and_no_other(docs: Path):
    one = 'chunker = { method = "paragraph" }\n'
    text = 'collection = "docs"\nqueries = "asked.csv"\ngolden_set = "chunks.qrels"\n'
    (docs / "chunks.qrels").write_text("q1 0 x 5\n")
    job, _ = read(text + SPARSE + one, docs)
    (name,) = job.chunkings.values()
    passage = ids(job.corpora[name].passage_ids.to_frame(), "passage_id")[0]
    (docs / "chunks.qrels").write_text(f"q1 0 {passage} 5\n")
    job, _ = read(text + SPARSE + one, docs)
    assert ids(job.setup.frames["judgements"], "golden_set_id") == [f"docs-chunks@{name}"]
    with pytest.raises(InputError, match=r"differently cut passages .* tied to passages"):
        read(text + SPARSE + CHUNKERS, docs)
    with pytest.raises(InputError, match=r"differently cut passages .* tied to passages"):
        read(text + SPARSE + 'chunker = ["paragraph", "none"]\n', docs)


def test_tables_of_passages(tmp_path: Path):
    (tmp_path / "t.csv").write_text("nr,absatz\n1,cats purr\n2,dogs bark\n")
    (tmp_path / "asked.jsonl").write_text('{"qid": "a", "question": "cats"}\n')
    text = 'collection = { path = "t.csv", columns = { source = "nr", text = "absatz" } }\n'
    job, _ = read(text + 'queries = "asked.jsonl"\n' + SPARSE, tmp_path)
    assert job.corpora[None].passage_ids.to_list() == ["1", "2"]
    assert job.queries.select("query_id", "text").rows() == [("a", "cats")]


QUESTIONS = {
    "no id": ("query_id,text\n,cats\n", "asked.csv:2: The question has no id or no text."),
    "twice": ("query_id,text\na,cats\na,dogs\n", "asked.csv:3: The id 'a' occurs twice."),
    "no column": ("query_id,what\na,cats\n", "Name the column with the text."),
    "nothing": ("hello\n", ""),
}


@pytest.mark.parametrize(("text", "says"), QUESTIONS.values(), ids=QUESTIONS.keys())
def test_questions_that_cannot_be_read(tmp_path: Path, text: str, says: str):
    path = tmp_path / "asked.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_queries(path, "c")
    assert says in str(refused.value)


def test_plain_text_has_a_question_on_each_line(tmp_path: Path):
    path = tmp_path / "asked.txt"
    path.write_bytes(b"\xef\xbb\xbfWhy, in 1.67, is it slow?\r\n\r\n  Who reads; and who writes? \r\n")
    asked = read_queries(path, "c")
    assert asked["query_id"].to_list() == ["line-1", "line-3"]
    assert asked["text"].to_list() == ["Why, in 1.67, is it slow?", "Who reads; and who writes?"]
    path.write_text("cats\ndogs\ncats\n")
    with pytest.raises(InputError, match="The question of line 1 occurs again") as refused:
        read_queries(path, "c")
    assert "asked.txt:3" in str(refused.value)
    path.write_text("query_id\ttext\na\tcats\n")
    assert read_queries(path, "c")["query_id"].to_list() == ["a"], "a table, whatever its ending"


def test_a_table_of_questions_alone_is_a_list(tmp_path: Path):
    path = tmp_path / "asked.csv"
    path.write_text('question\nWho reads?\n"Who, then, ""writes""?"\n')
    asked = read_queries(path, "c")
    assert asked["query_id"].to_list() == ["line-2", "line-3"]
    assert asked["text"].to_list() == ["Who reads?", 'Who, then, "writes"?']


def test_what_questions_name_stands_in_a_column_and_is_asked_with_other_names(docs: Path):
    path = docs / "mine.csv"
    path.write_text("query_id,text,entity\na,what of the pump 7 and MG-200,pump 7; MG-200\nb,cats,\n")
    assert read_queries(path, "c")["tags"].to_list() == [["entity=pump 7", "entity=MG-200"], []]
    text = f'[collection]\npath = "{docs / "docs"}"\n[queries]\npath = "{path}"\n[axes]\nmode = "sparse"\n'
    job, _ = read_job(parse(text + 'names = [0, "mask"]'))
    assert job.names == {"what of the pump 7 and MG-200": ("pump 7", "MG-200")}
    job, _ = read_job(parse(text))
    assert job.names == {}, "nobody looks for names unless they are changed"


def test_a_role_that_does_not_exist(tmp_path: Path):
    path = tmp_path / "asked.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UnknownNameError):
        read_queries(path, "c", {"query": "a"})
    assert read_queries(path, "c", {"query_id": "a", "text": "b"})["text"].to_list() == ["2"]


def test_no_questions_at_all(docs: Path):
    with pytest.raises(InputError, match="There are no questions"):
        read('collection = "docs"\n' + SPARSE, docs)


class Shelf:
    """Stands for a store with one collection."""

    def collection(self, collection_id: str) -> Batch:
        made = Collection(collection_id=collection_id, name="Stored")
        frames = {"passages": passages(["cats purr", "dogs bark"]), "queries": queries(["cats", "dogs"])}
        return Batch(collections=(made,), frames=frames)

    def part(self, collection_id: str, chunking: str) -> Batch:
        return Batch(frames={"passages": frame("passages", []), "chunks": frame("chunks", [])})

    def golden_set(self, golden_set_id: str) -> Batch:
        golden = GoldenSet(golden_set_id=golden_set_id, collection_id="c", name="G")
        rows = {
            "golden_set_id": [golden_set_id],
            "query_id": ["q0"],
            "passage_id": ["p000"],
            "grade": [5],
            "raw": [5],
        }
        return Batch(golden_sets=(golden,), frames={"judgements": frame("judgements", rows)})


def test_what_is_stored_already_is_not_stored_again(tmp_path: Path):
    job, _ = read(f'collection = "c"\ngolden_set = "g"\n{SPARSE}', tmp_path, shelf=Shelf())
    assert (job.collection_id, len(job.corpora[None]), job.queries.height) == ("c", 2, 2)
    assert job.setup.collections == ()
    assert "queries" not in job.setup.frames
    assert "passages" not in job.setup.frames
    with pytest.raises(InputError, match="'c' is not a path"):
        read(f'collection = "c"\n{SPARSE}', tmp_path)


@pytest.mark.parametrize("chunker", ["", 'chunker = "paragraph"\n'], ids=["as usual", "another"])
def test_stored_documents_are_cut_as_their_folder_is(docs: Path, chunker: str):
    store = Store.open(docs / "store")
    page = "<h1>Zebras</h1><p>They run fast.</p><h2>Lions</h2><p>They sleep all day.</p>"
    (docs / "docs" / "c.html").write_text(page)
    text = f'collection = "docs/"\nqueries = "asked.csv"\n{SPARSE}{chunker}'
    job, _ = read(text, docs)
    add(store.path, job.setup, "run")
    again, _ = read(text.replace('"docs/"', '"docs"'), docs, shelf=StoreShelf(store.read()))
    assert [stack.stack_id for stack in again.stacks] == [stack.stack_id for stack in job.stacks]
    assert again.chunkings == job.chunkings
    assert None not in job.corpora
    (chunking,) = job.corpora
    assert again.corpora[chunking].hash == job.corpora[chunking].hash
    add(store.path, again.setup, "run")  # refused if a passage were another


def test_stored_markdown_is_cut_by_its_headings_in_a_new_way_too(docs: Path):
    store = Store.open(docs / "store")
    text = f'collection = "docs/"\nqueries = "asked.csv"\n{SPARSE}'
    job, _ = read(text, docs)
    add(store.path, job.setup, "run")
    by_paragraph = text + 'chunker = "paragraph"\n'
    again, _ = read(by_paragraph.replace('"docs/"', '"docs"'), docs, shelf=StoreShelf(store.read()))
    folder, _ = read(by_paragraph, docs)
    (chunking,) = folder.corpora
    assert again.corpora[chunking].hash == folder.corpora[chunking].hash
    as_they_are, _ = read(
        text.replace('"docs/"', '"docs"') + 'chunker = "none"\n', docs, shelf=StoreShelf(store.read())
    )
    assert len(as_they_are.corpora[None]) == 2, "whole documents where that is asked for"


def test_what_cannot_work_is_refused_before_anything_is_read(tmp_path: Path):
    with pytest.raises(SpecError) as refused:
        read('collection = "nowhere/"\n[axes]\nembedder = "wordlama"\nmode = "dense"\ndim = 64\n', tmp_path)
    assert len(refused.value.problems) == 2
    text = 'collection = "."\n[axes]\nmode = "dense"\nembedder = "voyage-3.5"\n'
    spec = parse(text, folder=tmp_path)
    with pytest.raises(SpecError, match="VOYAGE_API_KEY is not set"):
        read_job(spec, known=KnownNames(spec.models, Keys({}, ())))


def test_how_time_is_measured_reaches_the_runner():
    text = """
        collection = "c/"
        [latency]
        warm_up = 2
        repeats = 4
        rounds = 3
        pause_minutes = 1.5
        order = "shuffled"
        seed = 9
        rerank = "deepest"
        concurrency = 2
    """
    made = protocol(parse(text).latency)
    assert (made.warm_up, made.repeats, made.rounds, made.pause_s) == (2, 4, 3, 90)
    assert (made.shuffled, made.seed, made.deepest, made.concurrency) == (True, 9, True, 2)
