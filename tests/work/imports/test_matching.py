"""Ids of imports against those of the collections that they go into."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ClqError
from core.importers import Import, Options, ReadLimits, Upload, load
from core.importers.rewriting import all_rewritten
from core.importers.runs import stripped
from core.store import Store
from core.tables import Pieces, frame
from core.work.imports import shelf
from core.work.imports.background import ChangedError
from core.work.imports.imports import plan, read_into, store_import
from core.work.imports.matching import UnmatchedError, fits, matches, refused, suggested
from tests.importers.helpers import rows

CORPUS = "".join(json.dumps({"_id": f"{place}", "text": f"text {place}"}) + "\n" for place in range(1, 41))
QUERIES = "".join(json.dumps({"_id": f"q{place}", "text": f"text {place}"}) + "\n" for place in range(1, 11))


def trec(passage: str = "{}", query: str = "q{}", queries: int = 10, first: int = 1) -> str:
    return "".join(
        f"{query.format(q)} Q0 {passage.format(first + q + depth)} {depth + 1} {9 - depth} tag\n"
        for q in range(1, queries + 1)
        for depth in range(3)
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A collection with queries and passages, one with judgements only, one with a run only."""
    store = Store(tmp_path_factory.mktemp("matching") / "store")
    for name, files in {
        "whole": {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES},
        "judged": {
            "gold.qrels": "".join(f"j{place} 0 p{place} 1\n" for place in range(1, 9)) + "j1 0 p9 0\n"
        },
        "ranked": {"old.trec": trec("r{}", "k{}")},
    }.items():
        store_import(store, read(store, files, collection_id=name), name)
    return store


def read(store: Store, files: Mapping[str, str], **options: object) -> Import:
    known = frozenset(store.read().collections()["collection_id"])
    uploads = [Upload(name, text.encode()) for name, text in files.items()]
    return load(uploads, Options(known_collections=known, **options))  # type: ignore[arg-type]


def run(store: Store, text: str, collection: str = "whole") -> Import:
    return read(store, {"new.trec": text}, collection_id=collection)


CASES = {
    "right": (trec(), "whole", [("queries", 10, 10), ("passages", 12, 12)], []),
    "some": (trec(first=34), "whole", [("queries", 10, 10), ("passages", 6, 12)], []),
    "other passages": (trec("x{}y"), "whole", [("queries", 10, 10), ("passages", 0, 12)], ["passages"]),
    "other queries": (trec(query="z{}"), "whole", [("queries", 0, 10), ("passages", 12, 12)], ["queries"]),
    "neither": (trec("d-{}", "z{}"), "whole", [("queries", 0, 10), ("passages", 0, 12)],
                ["queries", "passages"]),
    "judged": (trec("p{}", "j{}"), "judged", [("queries", 8, 10), ("passages", 8, 12)], []),
    "judged, other passages": (trec("x{}", "j{}"), "judged", [("queries", 8, 10), ("passages", 0, 12)], []),
    "not judged": (trec(), "judged", [("queries", 0, 10), ("passages", 0, 12)], ["queries", "passages"]),
    "ranked": (trec("r{}", "k{}", 4), "ranked", [("queries", 4, 4), ("passages", 6, 6)], []),
    "not ranked": (trec(), "ranked", [("queries", 0, 10), ("passages", 0, 12)], ["queries", "passages"]),
    "new": (trec(), "new", [], []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "collection", "known", "strange"), CASES.values(), ids=CASES.keys())
def test_a_run_is_counted_against_what_the_collection_has(
    store: Store, text: str, collection: str, known: list[tuple[str, int, int]], strange: list[str]
) -> None:
    made = run(store, text, collection)
    found = matches(store.read(), made)
    assert [(each.what, each.known, each.offered) for each in found] == known
    assert [each.what for each in refused(found)] == strange
    before = store.revision()
    if not strange:
        return
    with pytest.raises(UnmatchedError) as caught:
        store_import(store, made, "")
    assert store.revision() == before
    said = str(caught.value)
    for each in refused(found):
        assert all(example in said for example in (*each.foreign, *each.held))
        assert each.foreign
        assert each.held


TABLES = {
    "judgements": {"g.qrels": "z1 0 1 1\nz1 0 2 0\n"},
    "answers": {"a.csv": "query_id,answer,grade\nz1,yes,5\nz2,no,1\n"},
    "timings": {"t.csv": "query_id,latency_ms\nz1,5\nz2,7\n"},
}


@pytest.mark.parametrize("files", TABLES.values(), ids=TABLES.keys())
def test_judgements_answers_and_timings_are_matched_too(store: Store, files: Mapping[str, str]) -> None:
    assert [
        each.what for each in refused(matches(store.read(), read(store, files, collection_id="whole")))
    ] == ["queries"]
    (name, text), *_ = files.items()
    right = read(store, {name: text.replace("z", "q")}, collection_id="whole")
    found = matches(store.read(), right)
    assert found
    assert not refused(found)


def test_one_foreign_run_among_others_is_named(store: Store) -> None:
    made = read(store, {"good.trec": trec(), "bad.trec": trec(query="z{}").replace("tag", "odd")},
                collection_id="whole")  # fmt: skip
    (strange,) = refused(matches(store.read(), made))
    assert strange.strangers == ("odd",)
    assert (strange.known, strange.offered) == (10, 20)


def test_what_an_import_brings_itself_counts(store: Store) -> None:
    files = {"corpus.jsonl": CORPUS.replace('"_id": "', '"_id": "n'), "queries.jsonl": QUERIES}
    made = read(store, {**files, "new.trec": trec("n{}")}, collection_id="fresh")
    assert [(each.known, each.offered) for each in matches(store.read(), made)] == [(10, 10), (12, 12)]
    made = read(store, {**files, "new.trec": trec("x{}")}, collection_id="fresh")
    assert [each.what for each in refused(matches(store.read(), made))] == ["passages"]
    judged = read(store, {"new.trec": trec(), "g.qrels": "q1 0 1 1\n"}, collection_id="fresh")
    assert [each.among for each in matches(store.read(), judged)] == ["judgements"] * 2


AFFIXES = {
    "prefix": ("doc-{}", "q{}", {"passages": "doc-*"}),
    "suffix": ("{}.txt", "q{}", {"passages": "*.txt"}),
    "both, and queries": ("doc_{}.txt", "Xq{}", {"queries": "X*", "passages": "doc_*.txt"}),
    "case": ("{}", "Q{}", {"queries": "lower"}),
    "zeros before": ("00{}", "q{}", {"passages": "unpadded"}),
    "a number behind": ("{0}_{0}", "q{}", {"passages": "stem"}),
    "a beginning that they lack": ("{}", "{}", {"queries": "add:q*"}),
    "a star": ("*{}", "q{}", {}),
    "no pattern": ("x{0}y{0}", "q{}", {}),
}


@pytest.mark.parametrize(("passage", "query", "strip"), AFFIXES.values(), ids=AFFIXES.keys())
def test_a_beginning_or_end_to_take_off_is_found_and_taken_off(
    store: Store, passage: str, query: str, strip: dict[str, str]
) -> None:
    text = trec(passage, query)
    found = matches(store.read(), run(store, text))
    assert {each.what: each.strip for each in refused(found) if each.strip} == strip
    if strip:
        made = read(store, {"new.trec": text}, collection_id="whole", strip=strip)
        assert all(each.known == each.offered for each in matches(store.read(), made))
        assert (
            rows(made, "rankings").drop("run_id").equals(rows(run(store, trec()), "rankings").drop("run_id"))
        )
        assert made.runs[0].run_id != run(store, text).runs[0].run_id


WRITTEN = {
    "lower": (["Doc A", "B"], ["doc a", "b"]),
    "upper": (["a", "b1"], ["A", "B1"]),
    "number": (["1.0", "2", "1E+05", "1.5e3", "1.5", "v1.0"], ["1", "2", "100000", "1500", "1.5", "v1.0"]),
    "unpadded": (["007", "0", "10"], ["7", "0", "10"]),
    "stem": (["d_1", "e.2", "f#3"], ["d", "e", "f"]),
    "pad4": (["7", "0012"], ["0007", "0012"]),
    "add:doc-*": (["1", "2"], ["doc-1", "doc-2"]),
}


@pytest.mark.parametrize(("rule", "case"), WRITTEN.items(), ids=WRITTEN.keys())
def test_ids_are_written_by_rules(rule: str, case: tuple[list[str], list[str]]) -> None:
    before, after = case
    assert all_rewritten(before, rule) == after


@pytest.mark.parametrize(
    ("rule", "ids"), [("stem", ["d_1", "d_2"]), ("lower", ["a", "A"]), ("number", ["1", "1.0"])]
)
def test_a_rule_that_makes_one_id_of_two_is_refused_and_never_offered(
    store: Store, rule: str, ids: list[str]
) -> None:
    text = "".join(f"q1 Q0 {name} {rank} {9 - rank} t\n" for rank, name in enumerate(ids, 1))
    with pytest.raises(ClqError, match="ids become the same"):
        read(store, {"new.trec": text}, collection_id="whole", strip={"passages": rule})
    assert not [each.strip for each in matches(store.read(), run(store, text)) if each.strip == rule]


@pytest.mark.parametrize(("said", "strip"), [("text", "lower"), ("another question", None)])
def test_no_rule_is_offered_where_the_texts_say_that_ids_are_alike_by_chance(
    store: Store, said: str, strip: str | None
) -> None:
    asked = QUERIES.replace('"q', '"Q').replace('"text ', f'"{said} ')
    made = read(store, {"corpus.jsonl": CORPUS, "queries.jsonl": asked, "new.trec": trec(query="Q{}")},
                collection_id="fresh")  # fmt: skip
    (found,) = (each for each in matches(store.read(), made, "whole") if each.what == "queries")
    assert (found.strip, found.fit) == (strip, 10 if strip else 0)


def test_what_is_refused_says_how_the_ids_differ(store: Store) -> None:
    (strange,) = refused(matches(store.read(), run(store, trec(query="Q{}"))))
    assert strange.examples.endswith(f" Written lower case, {strange.offered} of {strange.offered} match.")
    assert "--strip 'queries=lower'" in str(UnmatchedError([strange]))


@pytest.mark.slow
@given(st.text(max_size=4), st.text(max_size=4), st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_what_was_put_around_ids_is_taken_off_again(begin: str, end: str, ids: list[str]) -> None:
    if "*" in begin + end:
        return
    ranked = [
        {"run_id": "r", "query_id": "q", "stage": "final", "rank": place, "passage_id": f"{begin}{name}{end}"}
        for place, name in enumerate(ids, 1)
    ]
    made = Import(frames={"rankings": frame("rankings", ranked)})
    pieces = replace(made, frames={"rankings": Pieces((frame("rankings", ranked).lazy(),))})
    for each in (made, pieces):
        assert rows(stripped(each, {"passages": f"{begin}*{end}"}), "rankings")["passage_id"].to_list() == ids


@pytest.mark.parametrize(
    ("strip", "says"),
    [
        ({"passages": "doc"}, "not a pattern"),
        ({"passages": "a*b*"}, "not a pattern"),
        ({"passages": "doc-*"}, "'2' does not fit 'doc-*'"),
        ({"docs": "doc-*"}, "Found: passages, queries"),
    ],
)
def test_patterns_that_do_not_fit_are_refused(store: Store, strip: dict[str, str], says: str) -> None:
    with pytest.raises(ClqError, match=re.escape(says)):
        read(store, {"new.trec": trec()}, collection_id="whole", strip=strip)


@pytest.mark.slow
def test_files_go_into_the_open_workspace_where_their_ids_are_its_ids(store: Store) -> None:
    snapshot = store.read()
    options = Options(known_collections=frozenset(snapshot.collections()["collection_id"]))
    cases = {
        (trec(), "whole"): "whole", (trec("x{}"), "whole"): "new", (trec(), "judged"): "new",
        (trec("p{}", "j{}"), "judged"): "judged", (trec(), None): "whole", (trec("x{}"), None): "new",
        (trec("p{}", "j{}"), None): "judged", (trec("p{}", "z{}"), None): "new",
    }  # fmt: skip
    for (text, workspace), expected in cases.items():
        made = read_into([Upload("new.trec", text.encode())], options, snapshot, workspace=workspace)
        assert made.runs[0].collection_id == expected
    corpus = read_into([Upload("mine.jsonl", CORPUS.encode())], options, snapshot, workspace="whole")
    assert [each.collection_id for each in corpus.collections] == ["mine"], "a corpus is not moved"
    seen = plan([Upload("new.trec", trec("x{}").encode())], options, snapshot, workspace="whole")
    assert [(each.collection_id, each.known) for each in seen.apart] == [("whole", 10), ("whole", 0)]


@pytest.mark.slow
def test_the_stored_collection_that_fits_best_is_suggested(store: Store) -> None:
    snapshot = store.read()
    for text, expected in (
        (trec(), {"whole"}),
        (trec("p{}", "j{}"), {"judged"}),
        (trec("x{}", "y{}"), set()),
    ):
        found = suggested(snapshot, run(store, text, "new"))
        assert {each.collection_id for each in found} == expected
        assert fits(found) is bool(expected)
    assert not suggested(snapshot, run(store, trec("x{}"), "whole")), "it was named"


@pytest.mark.slow
def test_without_an_open_workspace_ids_decide_and_a_new_one_is_said(tmp_path: Path) -> None:
    own = Store(tmp_path / "own")
    said = store_import(
        own, read(own, {"gold.qrels": "".join(f"q{n} 0 p{n} 1\n" for n in range(8))}), ""
    ).said
    assert said.endswith("New workspace: gold.")

    def follow(**files: str) -> tuple[set[str], str]:
        uploads = [Upload(name.replace("_", "."), text.encode()) for name, text in files.items()]
        made = read_into(uploads, Options(known_collections=frozenset({"gold", "copy"})), own.read())
        return {one.collection_id for one in made.runs}, store_import(own, made, "").said

    both = {"one_trec": trec("p{}", "q{}", queries=7), "two_trec": trec("p{}", "q{}", queries=6)}
    for files in ({"one_trec": both["one_trec"]}, both):
        where, said = follow(**files)
        assert (where, "New workspace" in said) == ({"gold"}, False)
    assert follow(strange_trec=trec("x{}", "y{}"))[1].endswith("New workspace: strange.")
    copied = {"gold.qrels": "".join(f"q{n} 0 p{n} 1\n" for n in range(8))}
    store_import(own, read(own, copied, collection_id="copy"), "")
    where, said = follow(third_trec=trec("p{}", "q{}", queries=5))
    assert (where, said.endswith("New workspace: third.")) == ({"third"}, True), "two have the ids alike"


def test_judgements_that_come_along_say_nothing_of_a_collection_that_knows_no_ids(tmp_path: Path) -> None:
    """A workspace of averages took runs with their qrels for its own, whatever they name."""
    own = Store(tmp_path / "own")
    store_import(
        own, read(own, {"mine.csv": "stack,nDCG@10\nBM25,0.4\nhybrid,0.5\n"}, collection_id="averages"), ""
    )
    files = {"new.trec": trec(query="{}", queries=2), "gold.qrels": "1 0 2 1\n2 0 3 1\n"}
    imported = read(own, files)
    assert not fits(matches(own.read(), imported, "averages"))
    assert suggested(own.read(), imported) == ()
    options = Options(known_collections=frozenset({"averages"}))
    uploads = [Upload(name, text.encode()) for name, text in files.items()]
    placed = read_into(uploads, options, own.read(), workspace="averages")
    assert {run.collection_id for run in placed.runs} != {"averages"}


@pytest.mark.slow
def test_a_collection_of_its_own_has_a_free_name(tmp_path: Path, store: Store) -> None:
    own = Store(tmp_path / "own")
    store_import(
        own, read(own, {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES}, collection_id="whole"), ""
    )
    names = []
    for text in (trec("x{}"), trec("y{}")):
        snapshot = own.read()
        known = frozenset(snapshot.collections()["collection_id"])
        options = Options(collection_id="whole", known_collections=known)
        made = read_into([Upload("new.trec", text.encode())], options, snapshot, unmatched="own")
        store_import(own, made, "")
        names += [run.collection_id for run in made.runs]
    assert names == ["whole tag", "whole tag 2"]
    assert own.read().runs("whole").is_empty()


@pytest.mark.slow
def test_of_what_is_larger_than_memory_a_sample_is_looked_at_and_said_to_be_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ReadLimits(rows_in_memory=5, block_bytes=64, table_bytes=64)
    for text, known in ((trec(), 10), (trec(query="z{}"), 0)):
        made = read(store, {"new.trec": text}, collection_id="whole", limits=limits)
        assert isinstance(made.frames["rankings"], Pieces)
        (found, _) = matches(store.read(), made)
        assert (found.known, found.offered, found.sampled) == (known, 10, None)
    monkeypatch.setattr(shelf, "_SAMPLE", 12)
    (found, _) = matches(store.read(), made)
    assert found.sampled is not None
    assert 0 < found.sampled <= 30
    assert refused([found])
    assert "in a sample of" in str(found)
    with pytest.raises(UnmatchedError):
        store_import(store, made, "")


def test_existing_reads_what_is_asked(store: Store) -> None:
    snapshot = store.read()
    assert snapshot.existing("passages", ["whole"], "passage_id", ["1", "2", "x"]) in (["1", "2"], ["2", "1"])
    assert snapshot.existing("passages", ["judged"], "passage_id") == []
    assert len(snapshot.existing("passages", ["whole"], "passage_id", most=3)) == 3
    assert len(snapshot.existing("passages", ["whole"], "passage_id")) == 40
    for table, owner, column in (("passages", "none", "passage_id"), ("passages", "whole", "query_id")):
        with pytest.raises(ClqError):
            snapshot.existing(table, [owner], column)


@pytest.mark.slow
def test_taken_all_the_same_where_that_is_said(tmp_path: Path) -> None:
    own = Store(tmp_path / "own")
    store_import(
        own, read(own, {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES}, collection_id="whole"), ""
    )
    made = run(own, trec("x{}", "y{}"))
    fresh = store_import(own, made, "", unmatched="take").fresh
    assert fresh
    assert own.read().runs("whole").height == 1
    assert own.read().rankings(own.read().runs()["run_id"].to_list()).filter(
        pl.col("passage_id").str.starts_with("x")
    ).height == 30  # fmt: skip


def test_no_strip_is_offered_that_makes_other_numbers_or_leaves_all_passages_foreign(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES.replace('"q', '"')}
    store_import(store, read(store, files, collection_id="plain"), "")
    for passage, query in (("{}", "30{}"), ("{}", "7{}"), ("d-x{0}-{0}", "q{}")):
        found = matches(store.read(), run(store, trec(passage, query, queries=3), "plain"))
        assert not [each.strip for each in found if each.strip], (passage, query)
    found = matches(store.read(), run(store, trec("d-{}", "q{}", queries=3), "plain"))
    assert {each.what: each.strip for each in found} == {"queries": "q*", "passages": "d-*"}


def test_what_is_compared_with_the_same_import_says_so(store: Store) -> None:
    files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "new.trec": trec()}
    assert all(each.own for each in matches(store.read(), read(store, files, collection_id="fresh")))
    assert not any(each.own for each in matches(store.read(), run(store, trec())))


def export(query: str = "q{}", queries: int = 10) -> str:
    """A row per stack and query, as notebooks write them."""
    rows_ = [f"mine,{query.format(place)},0.5" for place in range(1, queries + 1)]
    return "\n".join(["stack,query_id,mrr@5", *rows_])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "workspace", "expected"),
    [
        (export(), None, "whole"),
        (export("j{}", 8), None, "judged"),
        (export("j{}", 8), "whole", "judged"),
        (export("k{}"), None, "ranked"),
        (export("s{}"), None, "scored"),
        (export("x{}"), "whole", "new"),
        (export("q{}", 20), None, "new"),
        (export("q{}", 20), "whole", "whole"),
        ("stack,mrr@5\nmine,0.5\n", "whole", "new"),
    ],
)
def test_a_table_of_queries_goes_where_its_ids_are(
    tmp_path: Path, text: str, workspace: str | None, expected: str
):
    own = Store(tmp_path / "own")
    for name in ("whole", "judged", "ranked"):
        files = {
            "whole": {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES},
            "judged": {"gold.qrels": "".join(f"j{place} 0 p{place} 1\n" for place in range(1, 9))},
            "ranked": {"old.trec": trec("r{}", "k{}")},
        }[name]
        store_import(own, read(own, files, collection_id=name), name)
    store_import(own, read(own, {"s.csv": export("s{}")}, collection_id="scored"), "scored")
    snapshot = own.read()
    options = Options(known_collections=frozenset(snapshot.collections()["collection_id"]))
    made = read_into([Upload("new.csv", text.encode())], options, snapshot, workspace=workspace)
    assert {run.collection_id for run in made.runs} == {expected}
    told = [note for note in made.notes if "--collection" in note]
    assert bool(told) is (expected not in (workspace, "new"))


@pytest.mark.slow
def test_texts_of_what_the_open_workspace_uses_go_there(tmp_path: Path):
    own = Store(tmp_path / "own")
    store_import(own, read(own, {"s.csv": export()}, collection_id="scored"), "scored")
    snapshot = own.read()
    options = Options(known_collections=frozenset({"scored"}))
    for text, workspace, expected in (
        (QUERIES, "scored", "scored"),
        (QUERIES, None, "scored"),
        (QUERIES.replace('"q', '"x'), None, "queries"),
        (QUERIES.replace('"q', '"x'), "scored", "queries"),
    ):
        uploads = [Upload("queries.jsonl", text.encode())]
        made = read_into(uploads, options, snapshot, workspace=workspace)
        assert set(rows(made, "queries")["collection_id"]) == {expected}
    again = read_into([Upload("queries.jsonl", QUERIES.encode())], options, snapshot, workspace="scored")
    store_import(own, again, "queries")
    assert own.read().queries("scored").height == 10


def table(question: str, passage: str = "", queries: int = 10) -> str:
    """Rankings of one stack with the texts of what they name."""
    names = ["query_id", "question", "passage_id", "rank", *(["passage"] if passage else [])]
    rows_ = [
        [f"q{q}", question.format(q), f"{q + depth}", f"{depth + 1}", passage.format(q + depth)]
        for q in range(1, queries + 1)
        for depth in range(3)
    ]
    return "\n".join([",".join(names), *(",".join(row[: len(names)]) for row in rows_)])


def some(first: str, rest: str, alike: int) -> str:
    lines = [line.split(",") for line in table("{}").splitlines()[1:]]
    told = [(first if int(line[1]) <= alike else rest).format(line[1]) for line in lines]
    rows_ = [",".join([line[0], text, *line[2:]]) for line, text in zip(lines, told, strict=True)]
    return "\n".join(["query_id,question,passage_id,rank", *rows_])


TEXTS = {
    "the same": (table("text {}"), 10, 0, "whole"),
    "the same but for case, blanks and marks": (table(" TEXT   {}?"), 10, 0, "whole"),
    "others": (table("my own question {}"), 0, 10, "new"),
    "some others": (some("text {}", "my own question {}", 6), 6, 4, "whole"),
    "most are others": (some("text {}", "my own question {}", 4), 4, 6, "new"),
    "names, no texts": (table("name-{}"), 10, 0, "whole"),
    "a few more": (table("my own question {}", queries=14), 0, 10, "new"),
}


@pytest.mark.parametrize(("text", "known", "differ", "into"), TEXTS.values(), ids=TEXTS.keys())
def test_an_id_with_another_text_is_another_query(
    store: Store, text: str, known: int, differ: int, into: str
) -> None:
    found = {each.what: each for each in matches(store.read(), read(store, {"new.csv": text}), "whole")}
    assert (found["queries"].known, found["queries"].differ) == (known, differ)
    options = Options(known_collections=frozenset(store.read().collections()["collection_id"]))
    placed = read_into([Upload("new.csv", text.encode())], options, store.read(), workspace="whole")
    assert placed.runs[0].collection_id == into
    assert bool(suggested(store.read(), read(store, {"new.csv": text}))) is (into == "whole")
    if not differ:
        return
    offered = found["queries"].offered
    share = f"10 of {offered} query ids ({1000 // offered} %) exist in whole, {known} with the same text"
    assert str(found["queries"]) == share
    assert found["queries"].examples.endswith(" in whole.")
    assert "“my own question " in found["queries"].examples
    made = read(store, {"new.csv": text}, collection_id="whole")
    assert bool(refused(matches(store.read(), made))) is (known == 0)
    if known:
        return
    before = store.revision()
    with pytest.raises(UnmatchedError, match="0 with the same text"):
        store_import(store, made, "")
    assert store.revision() == before
    own = read_into(
        [Upload("new.csv", text.encode())], replace(options, collection_id="whole"), store.read(),
        unmatched="own",
    )  # fmt: skip
    assert own.runs[0].collection_id not in options.known_collections


def test_passages_with_other_texts_are_others(tmp_path: Path) -> None:
    own = Store(tmp_path / "own")
    long = "Parcels can be returned within thirty days of their delivery; number {}."
    corpus = "".join(json.dumps({"_id": f"{at}", "text": long.format(at)}) + "\n" for at in range(1, 41))
    store_import(
        own, read(own, {"corpus.jsonl": corpus, "queries.jsonl": QUERIES}, collection_id="whole"), ""
    )
    for passage, known in (
        (long, 12),
        ("Returns. " + long, 12),
        ("Parcels can be returned within thirty days", 12),
        ("Quite another passage about something else; number {}.", 0),
        ("Parcels", 0),
    ):
        made = read(own, {"new.csv": table("text {}", passage)}, collection_id="whole")
        (found,) = [each for each in matches(own.read(), made) if each.what == "passages"]
        expected = known if passage != "Parcels" else 12  # one word is no text, but a name
        assert (found.known, found.differ) == (expected, 12 - expected), passage


def test_texts_that_come_as_such_are_compared_too(store: Store) -> None:
    other = QUERIES.replace("text ", "another question ")
    made = read(store, {"queries.jsonl": other, "new.trec": trec()}, collection_id="whole")
    found = {each.what: each for each in matches(store.read(), made)}
    assert (found["queries"].known, found["queries"].differ) == (0, 10)
    assert found["passages"].differ == 0
    assert not refused([*found.values()]), "it is of another version of the collection, which comes with it"
    with pytest.raises(ChangedError):
        store_import(store, made, "")
    made = read(store, {"queries.jsonl": QUERIES, "new.trec": trec()}, collection_id="whole")
    assert not any(each.differ for each in matches(store.read(), made))


def test_of_many_texts_a_sample_is_compared_and_said_to_be_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "_COMPARED", 4)
    for text, known in ((table("text {}"), 10), (table("my own question {}"), 0)):
        (found, _) = matches(store.read(), read(store, {"new.csv": text}, collection_id="whole"))
        assert found.known == known
        assert ("by 4 that were compared" in str(found)) is (known == 0)


def test_what_is_taken_off_ids_is_taken_off_those_with_texts(store: Store) -> None:
    text = table("my own question {}").replace("\nq", "\nXq")
    made = read(store, {"new.csv": text}, collection_id="whole", strip={"queries": "X*"})
    (found, _) = matches(store.read(), made)
    assert (found.known, found.differ) == (0, 10)


NEAR = {
    "upper case": ("doc-{}", "DOC-{}", "upper"),
    "a beginning to take off": ("doc-{}", "{}", "doc-*"),
    "a beginning that they lack": ("{}", "doc-{}", "add:doc-*"),
    "zeros before": ("{:03d}", "{}", "unpadded"),
}


@pytest.mark.parametrize(("ranked", "judged", "rule"), NEAR.values(), ids=NEAR.keys())
def test_runs_of_which_nothing_is_judged_are_asked_about_where_ids_are_written_otherwise(
    tmp_path: Path, ranked: str, judged: str, rule: str
) -> None:
    """Most of what is ranked is unjudged: few that fit are enough to tell."""
    store = Store(tmp_path / "store")
    files = {
        "a.qrels": "".join(f"q{place % 3} 0 {judged.format(place)} 1\n" for place in range(10, 16)),
        "b.run": "".join(
            f"q{query} Q0 {ranked.format(place)} {place - 9} {99 - place} tag\n"
            for query in range(3)
            for place in range(10, 60)
        ),
    }
    (strange,) = refused(matches(store.read(), read(store, files, collection_id="x")))
    assert (strange.strip, strange.fit, strange.known, strange.offered) == (rule, 6, 0, 50)
    assert f"--strip 'passages={rule}'" in str(UnmatchedError([strange]))
    made = read(store, files, collection_id="x", strip={"passages": rule})
    assert [(each.what, each.known) for each in matches(store.read(), made)] == [
        ("queries", 3),
        ("passages", 6),
    ]


def test_runs_of_which_nothing_is_judged_and_nothing_is_alike_are_taken(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run_ = "".join(f"q1 Q0 other-{place * 7} {place} {99 - place} tag\n" for place in range(1, 60))
    made = read(store, {"a.qrels": "q1 0 doc_x 1\nq1 0 doc_y 1\n", "b.run": run_}, collection_id="x")
    assert not refused(matches(store.read(), made))
