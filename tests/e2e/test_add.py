"""Bringing files: a TREC run with its qrels, results of other tools, broken and hostile files."""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from core.importers import Options, load
from core.store import Store
from core.ui.add.files import LARGE
from tests.e2e.watch import PATIENCE_MS, Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

QUERIES = [f"t{number}" for number in range(1, 7)]
RUN = "".join(
    f"{query} Q0 d{(7 * rank + place) % 25} {rank} {20 - rank} tagged\n"
    for place, query in enumerate(QUERIES)
    for rank in range(1, 11)
)
QRELS = "".join(
    f"{query} 0 d{number} {(number + place) % 4}\n"
    for place, query in enumerate(QUERIES)
    for number in range(0, 25, 2)
)
BROKEN = "t1 Q0 d1 1 9.5 tagged\nt1 Q0 d2 2 8.5 tagged\nt1 Q0 d3 3 high tagged\n"


def offer(page: Visit, *paths: Path) -> None:
    """Drop files on page Add results."""
    page.page.set_input_files("input[type=file]", [str(path) for path in paths])
    page.settle()


def the_button(page: Visit) -> Locator:
    """The one that adds what was offered."""
    return page.page.locator(".st-key-add_now button")


def test_a_run_and_its_qrels_arrive_in_the_decision_and_in_queries(
    own_server: Server, own_store: Path, tmp_path: Path, visit: Open
) -> None:
    (tmp_path / "system.trec").write_text(RUN)
    (tmp_path / "travel.qrels").write_text(QRELS)
    page = visit(f"{own_server.url}/add", height=1600)
    before = Store.open(own_store).revision()
    offer(page, tmp_path / "system.trec", tmp_path / "travel.qrels")
    expect(the_button(page)).to_have_text("Add 1 stack, 1 golden set")
    assert Store.open(own_store).revision() == before, "nothing is written before it is asked for"

    the_button(page).click()
    expect(page.page.get_by_text("Added as revision")).to_be_visible()
    assert Store.open(own_store).revision() == before + 1

    page.page.get_by_role("button", name="See the decision").click()
    page.page.wait_for_url("**/?*")
    page.settle()
    assert "tagged" in page.answer
    assert "n = 6" in page.answer
    assert page.page.locator(".js-plotly-plot .points path.point").count() >= 1

    page.page.get_by_role("link", name="Queries").first.click()
    page.page.wait_for_url("**/queries*")
    page.settle()
    assert "6 queries" in page.answer


def test_a_broken_file_is_refused_and_nothing_is_written(
    own_server: Server, own_store: Path, tmp_path: Path, visit: Open
) -> None:
    (tmp_path / "broken.trec").write_text(BROKEN)
    page = visit(f"{own_server.url}/add")
    before = Store.open(own_store).revision()
    offer(page, tmp_path / "broken.trec")
    alert = page.page.locator("[data-testid=stAlert]").filter(has_text="broken.trec")
    expect(alert).to_contain_text(re.compile("broken\\.trec:\\W?3.*high.? is not a finite number"))
    expect(page.page.get_by_text("Nothing was written.")).to_be_visible()
    expect(the_button(page)).to_have_count(0)
    assert Store.open(own_store).revision() == before


ASKED = [("how long is a wing", ["wings are long", "lift"]), ("what is drag", ["drag is a force", "lift"])]


def _ragas() -> bytes:
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerow(["user_input", "retrieved_contexts", "response", "reference", "context_recall"])
    rows.writerows([query, str(texts), texts[0], texts[0], 0.5] for query, texts in ASKED)
    return file.getvalue().encode()


def _deepeval() -> bytes:
    metrics = [{"name": "Faithfulness", "score": 0.75, "success": True, "threshold": 0.5}]
    cases = [
        {"input": query, "actualOutput": texts[0], "retrievalContext": texts, "metricsData": metrics}
        for query, texts in ASKED
    ]
    return json.dumps({"testCases": cases}).encode()


def _beir() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("corpus.jsonl", '{"_id": "p1", "title": "", "text": "wings are long"}\n')
        archive.writestr("queries.jsonl", '{"_id": "w1", "text": "how long is a wing"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\nw1\tp1\t1\n")
    return packed.getvalue()


FROM_TOOLS = {
    "table.csv": b"query_id,passage_id,score,latency_ms\nc1,a,0.9,12\nc1,b,0.5,12\nc2,b,0.7,15\n",
    "ranx.json": json.dumps({"x1": {"a": 1.5, "b": 0.5}, "x2": {"b": 2.5}}).encode(),
    "ragas.csv": _ragas(),
    "deepeval.json": _deepeval(),
    "wings.zip": _beir(),
}


def test_results_of_other_tools_arrive(
    own_server: Server, own_store: Path, tmp_path: Path, visit: Open
) -> None:
    page = visit(f"{own_server.url}/add", height=1600)
    revision = Store.open(own_store).revision()
    for name, content in FROM_TOOLS.items():
        (tmp_path / name).write_bytes(content)
        offer(page, tmp_path / name)
        the_button(page).click()
        expect(page.page.get_by_text("Added as revision")).to_be_visible(timeout=PATIENCE_MS)
        revision += 1
        assert Store.open(own_store).revision() == revision, name
        page.page.get_by_role("button", name=re.compile("Add (more|rankings)")).click()
        page.settle()


def _outside() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../run.trec", RUN)
    return packed.getvalue()


HOSTILE = {
    "outside.zip": (_outside(), "names a file outside itself"),
    "pickled.bin": (pickle.dumps({"x1": {"a": 1.5}}), "pickled.bin"),
    "wide.csv": (",".join(f"c{number}" for number in range(20_000)).encode() + b"\n", "wide.csv"),
}


def test_hostile_files_are_refused(own_server: Server, own_store: Path, tmp_path: Path, visit: Open) -> None:
    page = visit(f"{own_server.url}/add")
    before = Store.open(own_store).revision()
    for name, (content, told) in HOSTILE.items():
        (tmp_path / name).write_bytes(content)
        offer(page, tmp_path / name)
        alert = page.page.locator("[data-testid=stAlert]").filter(has_text=told)
        expect(alert.first).to_be_visible(timeout=PATIENCE_MS)
        expect(the_button(page)).to_have_count(0)
        page.page.get_by_role("button", name=f"Remove {name}").click()
        page.settle()
    assert Store.open(own_store).revision() == before


def test_a_changed_file_asks_before_it_is_taken(
    own_server: Server, own_store: Path, tmp_path: Path, visit: Open
) -> None:
    """Kept beside what is there; offered once more it is nothing new."""
    (tmp_path / "system.trec").write_text(RUN)
    with Store.open(own_store).write("import") as writer:
        writer.add(load([tmp_path / "system.trec"], Options(collection_id="travel")).batch)
    before = Store.open(own_store).revision()
    (tmp_path / "system.trec").write_text(RUN.replace(" 1 19 ", " 1 99 "))
    page = visit(f"{own_server.url}/add", height=1600)
    button = the_button(page)
    for said in (f"Added as revision {before + 1}", "nothing was written"):
        offer(page, tmp_path / "system.trec")
        collection = page.page.get_by_role("combobox", name="Import into")
        collection.fill("travel")
        collection.press("Enter")
        page.settle()
        asked = page.page.get_by_text("In the store already with other content: run 'tagged'")
        if said.startswith("Added"):
            expect(asked).to_be_visible()
            expect(button).to_be_disabled()
            page.page.get_by_text("Keep both").click()
            page.settle()
        else:
            expect(asked).to_have_count(0)
        button.click()
        expect(page.page.get_by_text(said)).to_be_visible(timeout=PATIENCE_MS)
        page.page.get_by_role("button", name=re.compile("Add (more|rankings)")).click()
        page.settle()
    runs = Store.open(own_store).read().runs().filter(collection_id="travel")
    assert sorted(runs["label"]) == ["tagged", "tagged (2)"]


def test_a_large_folder_is_imported_in_the_background(
    own_server: Server, own_store: Path, tmp_path: Path, visit: Open
) -> None:
    """The page may be left meanwhile; whoever comes back sees how it ended."""
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "system.trec").write_text(RUN)
    (folder / "travel.qrels").write_text(QRELS)
    with (folder / "index.bin").open("wb") as index:
        index.truncate(LARGE)  # holes only: it takes no room on disk
    before = Store.open(own_store).revision()
    page = visit(f"{own_server.url}/add", height=1600)
    page.page.get_by_text("A path on this machine").click()
    paths = page.page.get_by_role("textbox", name="Path", exact=True)
    paths.fill(str(folder))
    paths.press("Enter")
    the_button(page).click()
    expect(page.page.get_by_text("You may leave this page")).to_be_visible(timeout=PATIENCE_MS)
    page.page.reload()
    page.page.get_by_role("button", name="Show it").click()
    expect(page.page.get_by_text(f"Added as revision {before + 1}")).to_be_visible(timeout=PATIENCE_MS)
    page.page.get_by_text("What was read, left out and decided").click()
    expect(page.page.get_by_text("of no format known here")).to_be_visible()
    assert Store.open(own_store).revision() == before + 1
