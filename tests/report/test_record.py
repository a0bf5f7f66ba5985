"""The three files of a record say what `decide` says, and nothing that a name could have smuggled in."""

import csv
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from core.analysis.workspace.comparable import Comparability
from core.analysis.workspace.question import Question
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.api.workspace import Workspace
from core.choices import declared
from core.cli.app import app
from core.decide.rules import Constraints
from core.report.data import FORMAT, VERSION, record_data, verdict
from core.report.files import ENDINGS, command, file_name, pinned_link, record_file
from core.report.recorded import Again
from core.report.summary import GRADES, changes
from core.store import Store
from core.views import text
from core.views.blocks import Comparison
from core.views.decision.charts import pareto_of
from core.views.text import cost_unit
from core.views.words.advice import ROLES, first_step
from tests.views.made import AT_10, BOOK, DEMO, LAB, PAPER

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
LIMITS = {
    "paper": (PAPER, Constraints(sla_ms=520, budget=2.5, min_quality=0.5)),
    "demo": (DEMO, Constraints(jitter_ms=0)),
    "nothing left": (PAPER, Constraints(sla_ms=1)),
}
OPTIONS = {
    "paper": "--collection clq-paper --sla-ms 520 --budget 2.5 --min-quality 0.5",
    "demo": "--collection python-docs --jitter-ms 0",
    "nothing left": "--collection clq-paper --sla-ms 1",
}


def case_of(store: Path, scope: Scope, limits: Constraints, quality: Quality = AT_10) -> View:
    snapshot = Store.open(store).read()
    view = View(snapshot, scope, quality=quality, latency=Latency(), book=BOOK, constraints=limits)
    return view.replace(constraints=replace(limits, costs_said=cost_unit(view.table)), given=None)


def call(store: Path, *words: str, code: int = 0):
    result = CliRunner().invoke(app, ["--store", str(store), *words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module", params=LIMITS)
def written(request: pytest.FixtureRequest, demo_store: Path, tmp_path_factory: pytest.TempPathFactory):
    """What `decide` prints, and the record's files by ending."""
    folder, options = tmp_path_factory.mktemp("record"), OPTIONS[request.param].split()
    decided = json.loads(call(demo_store, "decide", *options, "--format", "json").stdout)
    paths = [folder / f"r{ending}" for ending in ENDINGS]
    listed = call(demo_store, "record", *map(str, paths), *options, "--format", "json")
    assert [row["bytes"] for row in json.loads(listed.stdout)] == [path.stat().st_size for path in paths]
    assert sorted(folder.iterdir()) == sorted(paths)
    return decided, {path.suffix: path.read_text(encoding="utf-8") for path in paths}


def test_the_three_files_agree_with_decide(written):
    decided, files = written
    data = json.loads(files[".json"])
    assert (data["format"], data["version"]) == (FORMAT, VERSION)
    assert {name: data[name] for name in decided} == decided
    page = BeautifulSoup(files[".html"], "html.parser").find("main").get_text(" ")
    prose = BeautifulSoup(MarkdownIt().enable("table").render(files[".md"]), "html.parser").get_text(" ")
    for words in (spaced(page), spaced(prose).replace("\u2060", "")):
        assert all(spaced(said) in words for said in data["summary"])
        assert spaced(data["note_in_words"] or "") in words
        for warning in decided["warnings"]:
            assert spaced(warning) in words
        for stack in decided["frontier"]:
            assert spaced(stack["stack"]) in words
            assert f"{stack['quality']:.3f}" in words
        for row in decided["excluded"]:
            assert spaced(row["stack"]) in words
        for entry in data["price_entries"]:
            assert entry["looked_up"] in words
        assert f"from revision {decided['revision']} of the store" in words


def test_a_record_asks_all_that_a_decision_rests_on(written):
    kept = {"run", "generation", *declared(Question)} - {"runs", "origin", "revision"}
    again = {*Again.model_fields, *Constraints().beside} - {"beside"}  # one field for all of these
    assert kept == again == json.loads(written[1][".json"])["question"].keys()


@pytest.mark.slow
def test_where_none_clearly_wins_page_and_record_hold_both_stacks_alike(shipped_store: Path):
    decided = Workspace(Store.open(shipped_store), "docs-search").decide(sla_ms=500.0)
    view, page = decided.view, decided.page("decision")
    rather = first_step(view).rather
    assert rather is not None
    names = [str(row["name"]) for row in rather.sides]
    (both,) = (block for block in page.blocks if isinstance(block, Comparison))
    assert all([name for name, *_ in own] == names for _, own, _ in both.numbers)
    (listed,) = (block for block in page.blocks if getattr(block, "name", "") == "stacks")
    status = dict(listed.rows.select("name", "outcome").iter_rows())
    assert [status[name] for name in names] == list(ROLES)
    assert sum(trace.name in ("chosen", "second") for trace in pareto_of(view).figure.data) == 2
    files = {ending: record_file(ending, view, verdict(view), address="", made_at=NOW) for ending in ENDINGS}
    read = BeautifulSoup(files[".html"], "html.parser")
    tiles = {
        spaced(tile.find(class_="label").get_text()): [
            one.get_text() for one in tile.find_all(class_="value")
        ]
        for tile in read.find_all(class_="tile")
    }
    told = {label.partition(" · ")[0]: [number for _, number, _ in own] for label, own, _ in both.numbers}
    assert tiles["RA-nWG@10"] == told["RA-nWG@10"]
    assert tiles["Cost per million queries"] == told["Cost per million queries"]
    assert tiles["Confidence (PGS)"] == told["Confidence"] == [text.percent(one) for one in rather.pgs]
    data = json.loads(files[".json"])
    for ending in (".html", ".md"):
        assert all(words in files[ending] for words in ROLES)
        assert all(data[place]["command"] in files[ending] for place in ("ship", "ship_second"))
    assert rather.called == ("with late interaction", "without late interaction")
    assert tuple(data["trade"]["called"]) == rather.called
    read = BeautifulSoup(files[".html"], "html.parser").get_text(" ")
    prose = BeautifulSoup(MarkdownIt().enable("table").render(files[".md"]), "html.parser").get_text(" ")
    for said in (spaced(read), spaced(prose)):
        for words, end in zip(rather.called, ("", "_second"), strict=True):
            assert spaced(f"What limits the stack {words}. {data[f'limiting{end}']}") in said
            assert f"What the stack {words} is made of" in said
            assert data[f"stack{end}"]["run_id"] in said
            assert f"{text.capital(words)}: latency is measured" in said
        assert not re.search(r"\b[Tt]he (first|second)('s|[:.]| is | takes )", said)
        assert said.count("nearest rival, ") == 0, "their difference stands at the top"
    assert data["summary"][0] == f"{data['answer']['title']}. {rather.now}"
    assert tiles["Latency p95 (one in 20 takes longer)"] == ["297 ms", "6.00 ms"]
    assert data["soundness"] != data["soundness_second"]
    assert changes(data)[:3] == [
        GRADES,
        f"Proof that going with late interaction is 0.01 better. {rather.settles}",
        "More than 4,700,000 queries a month: going without late interaction then also saves a machine.",
    ]


def test_what_ships_it_stands_in_every_file(written):
    _, files = written
    how = json.loads(files[".json"])["ship"]
    for ending in (".html", ".md"):
        assert ("Ship it" in files[ending]) == (how is not None)
        if how and how["command"]:
            assert how["command"] in files[ending]


def spaced(words: str) -> str:
    return " ".join(words.split())


@pytest.mark.slow
def test_numbers_carry_n_interval_and_how_they_were_obtained(demo_store: Path):
    case = case_of(demo_store, *LIMITS["demo"])
    found = verdict(case)
    page = BeautifulSoup(record_file(".html", case, found, address="", made_at=NOW), "html.parser")
    tiles = page.find_all(class_="tile")
    (quality, expected, latency, slow, cost, sure) = [spaced(tile.get_text(" ")) for tile in tiles]
    assert re.fullmatch(
        r"RA-nWG@10 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\], n = 64, "
        r"share of the best possible evidence in ten passages measured",
        quality,
    )
    assert re.fullmatch(r"RA-nWG@10 expected on new queries 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", expected)
    # A machine under load slows queries that follow one another: they count as fewer, or as too few.
    fewer = r"neighbouring timings resemble one another: 64 count as \d+ for the p\d\d"
    assert re.fullmatch(
        rf"Retrieval latency p50 \(ms\) .* ms (.* to .*, )?n = 64(, {fewer}.*)? measured", latency
    )
    assert re.fullmatch(
        rf"Latency p95 \(one in 20 takes longer\) .* ms (.* to .*, n = 64|{fewer}, too few for .*)", slow
    )
    assert cost.endswith("idle time excluded; a machine costs $36.06 monthly assumed price")
    assert re.fullmatch(r"Confidence \(PGS\) \d+\.\d % [\d,]+ resamples", sure)
    assert (
        page.find("figure").find("svg")["aria-label"]
        == f"RA-nWG@10 and latency of {found.table.height} stacks."
    )
    assert "2026-01-31 09:30 UTC" in page.find("footer").get_text()


@pytest.mark.slow
def test_a_record_is_the_same_but_for_its_time(published_store: Path):
    case = case_of(published_store, *LIMITS["paper"])
    found, again = verdict(case), verdict(case)
    for ending in ENDINGS:
        one = record_file(ending, case, found, address="http://h/?rev=2", made_at=NOW)
        assert record_file(ending, case, again, address="http://h/?rev=2", made_at=NOW) == one
        other = record_file(ending, case, found, address="http://h/?rev=2", made_at=NOW.replace(year=2027))
        assert one.count("2026-01-31") == 1
        assert one.replace("2026-01-31", "2027-01-31") == other


def test_files_of_other_limits_or_workspaces_have_other_names(published_store: Path):
    scope, limits = LIMITS["paper"]
    case = case_of(published_store, scope, limits)
    asked = [case, *(case.replace(constraints=replace(limits, sla_ms=ms)) for ms in (None, 20.0))]
    asked.append(case.replace(scope=replace(scope, collection_id="../<b>Ürlaub")))
    names = [file_name("decision-record", each, ".html") for each in asked]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"decision-record-[\w.-]+-revision-\d+\.html", name) for name in names)


@pytest.mark.slow
def test_hostile_names_stay_text_in_every_file(hostile_store: Path):
    case = case_of(hostile_store, LAB, Constraints(sla_ms=3.5))
    found = verdict(case)
    files = {each: record_file(each, case, found, address="", made_at=NOW) for each in ENDINGS}
    names = set(found.table["name"])
    page = BeautifulSoup(files[".html"], "html.parser")
    assert not page.find_all(["img", "b", "iframe"])
    assert names <= {cell.get_text() for cell in page.find_all("td")}
    assert page.find("figure")
    assert not page.find("script")
    rendered = MarkdownIt().enable("table").render(files[".md"])
    shown = BeautifulSoup(rendered, "html.parser")
    assert not shown.find_all(["img", "a", "b"])
    cells = {cell.get_text().replace("\u2060", "") for cell in shown.find_all("td")}
    assert {spaced(name) for name in names} <= cells
    assert {row["stack"] for row in json.loads(files[".json"])["stacks"]} == names
    assert found.table["name"][found.decision.chosen] in page.find("h1").get_text()


def test_the_link_pins_the_data_and_every_limit(demo_store: Path):
    limits = Constraints(sla_ms=520, budget=2.5, min_quality=0.5, jitter_ms=80)
    case = case_of(demo_store, PAPER, limits, Quality("RA-nWG(alpha=0.5)", 10))
    assert pinned_link(case, "http://h:1/pareto?old=1") == (
        "http://h:1/pareto?ws=clq-paper&m=RA-nWG&k=10&alpha=0.5&on=p50&lat=path&sla_ms=520&budget=2.5per1k"
        f"&min_quality=0.5&jitter=80&delta=0&book=list&rev={case.snapshot.revision}"
    )


@pytest.mark.slow
def test_what_does_not_compare_is_said_first(published_store: Path):
    case = replace(
        case_of(published_store, *LIMITS["paper"]), compared=Comparability(("Not <all> of it compares.",))
    )
    found = verdict(case)
    page = BeautifulSoup(record_file(".html", case, found, address="", made_at=NOW), "html.parser")
    assert "Not <all> of it compares." in page.find(class_="notes").get_text()
    written = record_file(".md", case, found, address="", made_at=NOW)
    assert "- ⚠ Not \\<all\\> of it compares." in written.partition("\n## ")[0]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_record_has_the_link_only_where_others_can_open_it(published_store: Path, ending: str):
    case = case_of(published_store, *LIMITS["paper"])
    found = verdict(case)
    here, there = (
        record_file(ending, case, found, address=pinned_link(case, dashboard), made_at=NOW)
        for dashboard in ("http://localhost:8501/", "https://clq.example/")
    )
    assert "localhost" not in here
    assert f"revision {case.snapshot.revision}" in here or '"link": null' in here
    assert "https://clq.example/?ws=clq-paper" in there


def test_a_link_with_a_rule_opens_the_page_that_has_rules(demo_store: Path):
    case = case_of(demo_store, PAPER, Constraints())
    cheapest = replace(case, rule="cost")
    assert pinned_link(cheapest, "http://h:1/").startswith("http://h:1/confidence?ws=clq-paper&")
    assert "&rule=lowest+cost&" in pinned_link(cheapest, "http://h:1/")
    assert "rule" not in pinned_link(case, "http://h:1/")


@pytest.mark.slow
def test_the_command_decides_the_same(demo_store: Path):
    ids = tuple(Store.open(demo_store).read().runs("python-docs")["run_id"])[:3]
    case = case_of(demo_store, Scope(DEMO.collection_id, DEMO.golden_set_id, ids), Constraints(sla_ms=9))
    words = command(case).split()
    assert words[:4] == ["python", "-m", "core", "decide"]
    said = json.loads(call(demo_store, *words[3:], "--format", "json").stdout)
    made = record_data(case, verdict(case), link="", made_at=NOW)
    assert {name: made[name] for name in said} == said
    assert len(made["stacks"]) == 3
    assert made["runs"]["chosen"] == sorted(ids)


@pytest.mark.slow
def test_changed_prices_stand_in_record_link_and_command(demo_store: Path):
    scope, limits = PAPER, Constraints(sla_ms=600, budget=1.0)
    book = BOOK.derived(["voyage/rerank-2.5:0.025"])
    dear, cheap = (replace(case_of(demo_store, scope, limits), book=each) for each in (BOOK, book))
    before, after = (verdict(case) for case in (dear, cheap))
    assert before.decision.chosen != after.decision.chosen, "half the price brings it into the budget"
    made = record_data(cheap, after, link="", made_at=NOW)
    assert made["price_book"]["changes"] == ["voyage/rerank-2.5:0.025"]
    assert (made["prices"], made["question"]["price"]) == (
        "list, 1 price changed",
        ["voyage/rerank-2.5:0.025"],
    )
    assert "&book=list&price=voyage%2Frerank-2.5%3A0.025&" in pinned_link(cheap, "http://h/")
    assert "price=" not in pinned_link(dear, "http://h/")
    words = command(cheap).split()
    assert words[words.index("--price") + 1] == "voyage/rerank-2.5:0.025"
    said = json.loads(call(demo_store, *words[3:], "--format", "json").stdout)
    assert {name: made[name] for name in said} == said
    assert "1 price changed" in record_file(".html", cheap, after, address="", made_at=NOW)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("r.pdf", "A file ending in .pdf is not written. Choose .html, .md, .json."),
        ("r", "A file ending in nothing is not written."),
        ("no/r.md", "The folder does not exist."),
        ("there.md", "The path exists already. Choose another, or add --replace."),
    ],
)
def test_where_a_record_is_not_written(published_store: Path, tmp_path: Path, name: str, said: str):
    (tmp_path / "there.md").write_text("mine")
    assert said in call(published_store, "record", str(tmp_path / name), code=1).stderr
    assert (tmp_path / "there.md").read_text() == "mine"


@pytest.mark.slow
def test_a_record_may_replace_a_file(published_store: Path, tmp_path: Path):
    path = tmp_path / "there.md"
    path.write_text("mine")
    call(published_store, "record", str(path), "--replace")
    assert path.read_text().startswith("# Decision record\n\n**Best so far: ")


@pytest.mark.slow
def test_the_stacks_of_the_json_are_those_that_decide_lists(published_store: Path, tmp_path: Path):
    call(published_store, "record", str(tmp_path / "r.json"), "--sla-ms", "520")
    data = json.loads((tmp_path / "r.json").read_text())
    listed = call(published_store, "decide", "--sla-ms", "520", "--format", "csv").stdout
    assert [row["run_id"] for row in csv.DictReader(listed.splitlines())] == [
        row["run_id"] for row in data["stacks"]
    ]
