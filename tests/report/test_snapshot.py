"""A workspace as a file: everything is in it, on every kind of store, and names stay text."""

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from typer.testing import CliRunner

from core.cli.app import app
from core.decide.rules import Constraints
from core.report.data import verdict
from core.report.files import snapshot_file
from tests.report.test_record import NOW, case_of, spaced
from tests.stores import HOSTILE, Lab
from tests.views.made import DEMO, LAB, PAPER

STORES = {
    "demo": (DEMO, Constraints(jitter_ms=0), ["pareto", "headroom", "curves", "measures", "bounds"]),
    "paper": (PAPER, Constraints(sla_ms=520), ["pareto", "headroom", "curves", "measures"]),
    "nothing left": (PAPER, Constraints(sla_ms=1), ["pareto", "headroom", "curves", "measures"]),
}


def read(store: Path, scope, limits: Constraints) -> tuple[BeautifulSoup, list[str]]:
    case = case_of(store, scope, limits)
    found = verdict(case)
    page = BeautifulSoup(snapshot_file(case, found, address="http://h/?rev=1", made_at=NOW), "html.parser")
    return page, found.table["name"].to_list()


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_every_part_is_there(demo_store: Path, kind: str):
    scope, limits, drawn = STORES[kind]
    page, names = read(demo_store, scope, limits)
    assert [each["data-name"] for each in page.find_all(class_="chart")] == drawn
    tables = page.find_all("table", class_="sortable")
    assert {row.find_all("td")[1].get_text() for row in tables[-1].find("tbody").find_all("tr")} == set(names)
    heads = [each.get_text() for each in tables[-1].find_all("th")]
    assert heads[:3] == ["status", "stack", f"RA-nWG@10, {'measured' if kind == 'demo' else 'published'}"]
    assert ("95 % interval" in heads) is (kind == "demo")
    assert "2026-01-31 09:30 UTC" in page.find("footer").get_text()
    for figure in page.find_all("script", type="application/json"):
        assert "template" not in json.loads(figure.string).get("layout", {})


@pytest.mark.slow
def test_names_stay_text(hostile_store: Path):
    page, names = read(hostile_store, LAB, Constraints())
    assert not page.find_all(["img", "b", "iframe"])
    assert [each["href"] for each in page.find_all("a")] == ["http://h/?rev=1"]
    assert {cell.get_text() for cell in page.find_all("td")} >= set(names) == set(HOSTILE)
    for figure in page.find_all("script", type="application/json"):
        assert "<img" not in json.dumps(json.loads(figure.string))


@pytest.mark.slow
def test_a_workspace_without_scores(tmp_path: Path):
    Lab().ask({"q1": "one"}).run("a", final={"q1": ["p1"]}).run("b", final={"q1": ["p2"]}).write(
        tmp_path / "s"
    )
    page, _ = read(tmp_path / "s", LAB.__class__("lab"), Constraints())
    assert page.find("h1").get_text() == "No decision yet."
    assert "There are no judgements here" in spaced(page.get_text(" "))


@pytest.mark.slow
def test_from_the_command_line(published_store: Path, tmp_path: Path):
    path = tmp_path / "s.html"
    words = ["--store", str(published_store), "snapshot", str(path), "--sla-ms", "520", "--format", "json"]
    result = CliRunner().invoke(app, words)
    assert json.loads(result.stdout) == [{"written": str(path), "bytes": path.stat().st_size}]
    assert "Best so far within 520 ms (p50): voyage-3.5 512 d" in path.read_text(encoding="utf-8")[:20_000]
    assert CliRunner().invoke(app, words).exit_code == 1
    assert CliRunner().invoke(app, [*words[:3], str(tmp_path / "s.md")]).exit_code == 1
