import re
from pathlib import Path

import pytest

import core.importers
from core.errors import ClqError
from core.importers import Import, Options
from core.store import Store
from core.tables import frame
from core.work.imports import imports, words
from core.work.imports.imports import ImportPlan
from tests.stores import Lab

RUN = "q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\nq2 Q0 p2 1 2.0 mine\n"
QRELS = "q1 0 p1 5\nq1 0 p2 1\nq2 0 p2 4\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    run, qrels = tmp_path / "mine.trec", tmp_path / "gold.qrels"
    run.write_text(RUN)
    qrels.write_text(QRELS)
    return [run, qrels]


def planned(files: list[Path]) -> ImportPlan:
    return imports.plan(files, Options(collection_id="corpus"), Store(files[0].parent / "none").read())


def test_a_plan_shows_what_it_would_take_and_writes_nothing(files: list[Path], tmp_path: Path):
    plan = planned(files)
    assert plan.problem is None
    assert plan.made is not None
    taken = dict(words.taken(plan.made).iter_rows())
    assert taken["ranked passages"] == 3
    assert taken["judgements"] == 3
    assert words.makes(plan.made).select("kind", "collection").rows() == [
        ("stack", "corpus"),
        ("golden set", "corpus"),
    ]
    assert words.left_out(plan.made).is_empty()
    assert imports.collection_of(plan.made) == "corpus"
    assert words.things(plan.made) == "1 stack, 1 golden set"
    assert words.adds(plan.made) == "Adds 1 stack, 1 golden set with 3 judgements, 3 ranked passages."


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"q1 Q0 p1 1 two mine\n"])
def test_a_problem_is_part_of_the_plan(tmp_path: Path, content: bytes):
    file = tmp_path / "bad.run"
    file.write_bytes(content)
    plan = planned([file])
    assert plan.made is None
    assert isinstance(plan.problem, ClqError)
    assert "bad.run" in str(plan.problem)


@pytest.mark.parametrize("collections", [(), ("docs",), ("docs", "shops")])
def test_a_judging_sheet_of_an_unknown_collection_is_named(tmp_path: Path, collections: tuple[str, ...]):
    sheet = tmp_path / "anne.csv"
    sheet.write_text("collection,queue,judge,query_id,passage_id,grade,note\nshop,1,Anne,q1,p1,5,\n")
    for name in collections:
        Lab(name).ask({name: "text"}).write(tmp_path / "store")
    problem = imports.plan([sheet], Options(), Store(tmp_path / "store").read()).problem
    assert str(problem).startswith("anne.csv: No collection 'shop'. ")
    assert all(name in str(problem) for name in collections)


@pytest.mark.slow
def test_bringing_writes_once(files: list[Path], tmp_path: Path):
    store = Store(tmp_path / "store")
    made = planned(files).made
    assert made is not None
    done = imports.store_import(store, made, "mine.trec")
    assert done.fresh
    assert done.said.startswith("Added as revision 1: ")
    assert "3 ranked passages" in done.said
    again = imports.store_import(store, made, "mine.trec")
    assert not again.fresh
    assert "in the store already" in again.said
    assert store.revision() == 1
    assert store.read().revisions()["note"].to_list() == ["mine.trec"]


def test_what_is_still_missing_is_named(files: list[Path], tmp_path: Path):
    store = Store(tmp_path / "store")
    alone = planned(files[:1]).made
    both = planned(files).made
    assert alone is not None
    assert both is not None
    named = ["judgements", "latencies", "usage"]

    def missing(made: Import) -> list[str]:
        return [each.partition(" (")[0] for each in words.missing_parts(store.read(), made, "corpus")]

    assert missing(alone) == named
    assert missing(both) == named[1:]
    imports.store_import(store, both, "")
    assert missing(alone) == named[1:]


def test_latencies_that_were_reported_are_not_missing(tmp_path: Path):
    store = Store.open(tmp_path / "store")
    figures = [{"run_id": "r", "measure": "latency_p50", "stage": "total", "value": 5.0}]
    ranked = [{"run_id": "r", "query_id": "q", "stage": "final", "rank": 1, "passage_id": "p"}]
    made = Import(frames={"rankings": frame("rankings", ranked), "aggregates": frame("aggregates", figures)})
    assert [each.partition(" (")[0] for each in words.missing_parts(store.read(), made, "x")] == [
        "judgements"
    ]


@pytest.mark.parametrize(
    ("table", "warned"),
    [
        ("stack,latency_ms,usd_per_1k\na,12,1\nb,30,2\n", True),
        ("stack,nDCG@10,latency_ms\na,,12\nb,N/A,30\n", True),
        ("stack,nDCG@10,latency_ms\na,0.4,12\nb,0.5,30\n", False),
        ("query_id,stack,nDCG@10\nq1,a,0.4\nq2,a,0.5\n", False),
    ],
)
def test_stacks_without_a_quality_are_warned_of(tmp_path: Path, table: str, warned: bool):
    file = tmp_path / "x.csv"
    file.write_text(table)
    made = planned([file]).made
    assert made is not None
    assert words.unranked(made).startswith("No quality column: Decision cannot rank") is warned


def test_every_option_that_a_message_names_has_its_place_on_the_page():
    """A message of an importer names options of the command; the page says where to do the same."""
    sources = [file.read_text() for file in Path(core.importers.__path__[0]).rglob("*.py")]
    named = {option for text in sources for option in re.findall(r"\(--([a-z-]+)", text)}
    assert {"without", "numbers", "column"} <= named
    assert not [option for option in named if "command line" in words.on_page(f"Say so (--{option} x).")]
    assert words.on_page("Leave it out (--without 'x').") == "Leave it out (choose “left out” above it)."


@pytest.mark.slow
def test_where_to_look_depends_on_what_is_there(files: list[Path], tmp_path: Path):
    store = Store(tmp_path / "store")
    run, both = planned(files[:1]).made, planned(files).made
    judged = planned(files[1:]).made
    for made, pages in (
        (judged, ("add", "golden", "library")),
        (run, ("decision", "headroom", "queries", "library")),
        (both, ("decision", "headroom", "queries", "library")),
    ):
        assert made is not None
        imports.store_import(store, made, "", choice="new")
        assert words.next_steps(store.read(), "corpus")[0] == pages
    assert "rankings" in words.next_steps(store.read(), "another")[1]
    assert "3 workspaces" in words.next_steps(store.read(), "corpus", 3)[1]


def test_of_several_workspaces_the_one_with_most_to_see_is_opened(tmp_path: Path):
    made = Import(runs=tuple(Lab(each).run(f"r{place}").runs[0] for place, each in enumerate("abb")))
    assert imports.collection_of(made) == "b"
    assert imports.came(made) == 2


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Choose one (--split), or all.", "Choose one (Split above), or all."),
        ("Say which (--as trec-run).", "Say which (Format under Options)."),
        ("column `a b`: unknown meaning", "column “a b”: unknown meaning"),
        ("a (b) --column c", "a (b) --column c"),
    ],
)
def test_options_of_the_command_are_called_as_on_the_page(message: str, shown: str):
    assert words.on_page(message) == shown
