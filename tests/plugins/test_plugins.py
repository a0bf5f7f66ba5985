"""Plug-ins: what a package adds is used like the product's own; what is broken is named and left out."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from core.paths import ROOT
from tests.documents import blocks
from tests.plugins.packages import clq, installed

MEASURE = '''
def median_rank(grades, *, at_least=3):
    """Return how early the first useful passage stands.

    0 where there is none.
    """
    hit = grades >= at_least
    return hit.any(1) * (1 - hit.argmax(1) / grades.shape[1])
'''
GOOD = '''
import polars as pl

from core.importers.base import Format, Import, counted, frames_of
from core.records import Origin, Run, Stack
from core.views.blocks import Answer, section


class Acme(Format):
    """Rankings of a tool: a line per query, with the passages behind a tab."""

    name, title, takes = "acme", "Acme", {"rankings": ""}
    recognised = "Its first line is %acme."

    def kind(self, member):
        return "run" if member.head.startswith(b"%acme") else None

    def read(self, archives, options):
        rows = [
            {"run_id": "acme", "stage": "final", "query_id": query, "rank": rank, "passage_id": name}
            for archive in archives
            for line in archive.members[0].head.decode().splitlines()[1:]
            for query, *names in [line.split("\\t")]
            for rank, name in enumerate(names, 1)
        ]
        run = Run(
            run_id="acme", collection_id=options.collection_id, label="Acme",
            stack=Stack({}), origin=Origin.IMPORT,
        )
        return Import(runs=(run,), frames=frames_of(rankings=rows))


@section("stacks", "How many stacks are there?")
def stacks(view, ask):
    yield Answer(f"There are {view.table.height} stacks.")
'''
ENTRIES = {
    "clq.measures": {"Median-rank": "measured:median_rank"},
    "clq.importers": {"acme": "good:Acme"},
    "clq.sections": {"headroom.stacks": "good:stacks"},
}
BROKEN = """
from core.views.blocks import section


def words(grades, *, way="best"):
    return grades[:, 0]


@section("x")
def unasked(view, ask):
    yield


class Nothing:
    pass
"""
PROBLEMS = {
    ("clq.measures", "RR"): "there already",
    ("clq.measures", "two words"): "not a name of a measure",
    ("clq.measures", "words"): "no number as its default",
    ("clq.measures", "number"): "not a measure",
    ("clq.measures", "gone"): "has no attribute",
    ("clq.measures", "away"): "No module named",
    ("clq.importers", "nothing"): "not a subclass of Format",
    ("clq.providers", "embed.nothing"): "not a subclass of Embedder",
    ("clq.indexes", "nothing"): "not a subclass of DatabaseIndex",
    ("clq.sections", "nowhere.x"): "begins with no page",
    ("clq.sections", "headroom.x"): "not a section with a name and a question",
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    installed(folder, "good", GOOD, ENTRIES)
    (folder / "measured.py").write_text(MEASURE, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_what_a_package_adds_is_used_like_the_products_own(good: Path, tmp_path: Path):
    listed = json.loads(clq(good, "plugins", "--format", "json"))
    assert {
        (row["group"], row["name"], row["package"], row["problem"])
        for row in listed
        if row["package"] != "built in"
    } == {(group, name, "good 1.0", "") for group, names in ENTRIES.items() for name in names}
    (tmp_path / "a.acme").write_text("%acme\nq1\tp1\tp2\nq2\tp3\tp1\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 p2 3\nq1 0 p1 0\nq2 0 p3 3\n", encoding="utf-8")
    store = ("--store", str(tmp_path / "store"))
    clq(good, *store, "import", str(tmp_path / "a.acme"), str(tmp_path / "qrels.txt"), "--collection", "c")
    scores = json.loads(
        clq(good, *store, "score", "--measures", "Median-rank(at_least=2)@2", "--format", "json")
    )
    assert [row["value"] for row in scores] == [0.75]
    said = json.loads(clq(good, *store, "page", "headroom", "--section", "stacks", "--format", "json"))
    assert "There are 1 stacks." in json.dumps(said)


@pytest.mark.slow
def test_what_is_broken_is_left_out_with_the_reason(tmp_path: Path):
    places = {"gone": "broken:gone", "away": "gone:x", "number": "math:pi", "nothing": "broken:Nothing"}
    entries: dict[str, dict[str, str]] = {}
    for group, name in PROBLEMS:
        word = name.rpartition(".")[2]
        usual = "broken:unasked" if group == "clq.sections" else "broken:words"
        entries.setdefault(group, {})[name] = places.get(word, usual)
    installed(tmp_path / "packages", "broken", BROKEN, entries)
    listed = json.loads(clq(tmp_path / "packages", "plugins", "--format", "json"))
    found = {(row["group"], row["name"]): row["problem"] for row in listed if row["package"] != "built in"}
    assert found.keys() == PROBLEMS.keys()
    assert not {key: found[key] for key, words in PROBLEMS.items() if words not in found[key]}
    without = json.loads(clq(tmp_path / "packages", "plugins", "--format", "json", CLQ_PLUGINS="off"))
    assert {row["package"] for row in without} == {"built in"}


@pytest.mark.slow
def test_the_packages_of_the_documents_work_as_they_stand_there(demo_store: Path, tmp_path: Path):
    """Measure, format and section of docs/plugins.md, with the format's class from docs/adding.md."""
    (about,) = [block.text for block in blocks(ROOT / "docs" / "plugins.md") if block.kind == "ini"]
    told = tomllib.loads(about)
    written = [block.text for name in ("plugins", "adding") for block in blocks(ROOT / "docs" / f"{name}.md")]
    for module in told["tool"]["setuptools"]["py-modules"]:
        made = rf"^(def {module}\b|class {module.title().replace('_', '')}\b)"
        (code,) = [text for text in written if re.search(made, text, re.MULTILINE)]
        installed(tmp_path, module, code, told["project"]["entry-points"] if module == "median_rank" else {})
    listed = json.loads(clq(tmp_path, "plugins", "--check", "--format", "json"))
    assert sorted(row["name"] for row in listed if row["package"] != "built in") == [
        "Median-rank", "latency.slowest", "search-log",
    ]  # fmt: skip
    assert not [row for row in listed if row["problem"]]
    asked = ("page", "latency", "--section", "slowest", "--collection", "python-docs")
    for least, said in (("0", "is the slowest (n = 64)"), ("9e9", "No stack takes 9e+09 ms or more.")):
        assert said in clq(tmp_path, "--store", str(demo_store), *asked, "--set", f"slowest_ms={least}")
