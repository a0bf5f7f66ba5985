"""One answer: page, confidence, scenarios, record, snapshot, gate, command, API and agents say the same.

What each says of the stack that ships, of the number of ties and of the probability of good selection is read
as a visitor would get it, and compared, on made-up workspaces and on those of the demo.
"""

import json
import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import core as clq
from core.agents.answers import Answers
from core.api.decision import Decision
from core.api.pages import Page
from core.cli.app import app
from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.store import Store
from core.views import text
from core.views.blocks import Answer, Cards, Comparison
from core.views.decision.words import resampled
from core.views.what_if.scenarios import YOURS
from core.views.words.advice import ROLES, first_step
from core.views.words.bills import SAME_BILL
from core.views.words.judging import IF_THEY_HOLD, UNPROVEN
from tests.oracle.worlds import World, world
from tests.pipeline import cranfield
from tests.shared import once

WORLDS, QUICK = 50, 6
KINDS = ("Keyword search", "Vector search", "Keyword and vector search")
LEVEL = "is expected to do as well"


def named(made: World) -> dict[str, object]:
    """What is asked, as keywords."""
    asked = made.asked
    limits = {
        "measure": made.measure,
        "rule": asked.rule,
        "jitter_ms": asked.band,
        "sla_ms": asked.sla,
        "budget": asked.budget,
        "min_quality": asked.floor,
        "indifference": asked.delta,
    }
    return {name: value for name, value in limits.items() if value is not None}


HEADS = {"ship": "Ship ", "best so far": "Best so far: ", "taken by hand": "Taken by hand: "}
Told = tuple[str, object, object, object]


def surfaces(store: Path, collection: str, asked: dict[str, object], folder: Path) -> Iterator[Told]:
    """Yield what each surface says: stack, number of ties, PGS as a percentage (None: it does not say)."""
    results = clq.open(store)
    decision: Decision = results.workspace(collection).decide(**asked)
    view, chosen = decision.view, decision.chosen
    stack = chosen and chosen.name
    sure = decision.confidence
    yield "api", stack, len(view.decision.tied), percent(sure and sure.pgs)

    options = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    printed = call("--store", str(store), "decide", "--collection", collection, "--format", "json", *options)
    yield "command", *of_json(json.loads(printed))

    paths = [folder / f"{collection}{ending}" for ending in (".json", ".html", ".md")]
    files = decision.record(*paths, replace=True)
    yield "record", *of_json(json.loads(files[0].read_text()))
    if stack is None:
        return
    html, md = (read.read_text() for read in files[1:])
    assert percent(sure and sure.pgs) is None or str(percent(sure and sure.pgs)) in html

    page = decision.page("decision")
    slow = json.loads(files[0].read_text())["slow_in_words"]
    assert not slow or (slow in str(page.blocks) and escape(slow) in html)
    said = HEADS.get(str(decision.data["verdict"]), "")
    if decision.data["no_clear_winner"]:
        said = "No clear winner: "
    assert page.sentence.startswith((said, "Too few queries to decide on ", "Nothing to compare "))
    assert bool(decision.data["doubt"]) == (decision.data["verdict"] != "ship")
    record = json.loads(files[0].read_text())
    graded(decision, page, record, html)
    beside(decision, page, record, {"html": html, "md": prose(md), "command": json.loads(printed)})
    heading = page.sentence.removeprefix(said)
    same = heading == page.sentence or heading.startswith(str(stack))
    if rather := first_step(view).rather:
        same = heading.removesuffix(f"; {UNPROVEN}") == rather.title
    yield "decision", stack if same else heading, None, cards(page)["Confidence"]

    hold = decision.page("confidence", choices=rule_of(view.rule))
    ties = hold.tables.get("ties")
    count = len(view.decision.tied) if ties is None else ties.height - 1
    said = stack if stack in hold.sentence else hold.sentence
    yield "confidence", said, count, cards(hold).get("Confidence")
    shares = hold.tables["chances"].select("p_best", "p_feasible", "p_frontier").unpivot()["value"]
    assert shares.drop_nulls().is_between(0, 1).all()

    scenarios = decision.page("what_if", "scenarios")
    if decision.data["no_clear_winner"]:
        traded = decision.data["trade"]
        other, second = traded["other"]["stack"], percent(traded["other"]["pgs"])
        assert hold.sentence.endswith(f", {other} in {second}.")
        roles = dict(hold.tables["chances"].select("name", "status").rows())
        assert (roles[stack], roles[other]) == ROLES
        assert traded["sentence"] in str(scenarios.blocks)
        assert traded["settles"] in page.sentence + str(page.blocks)
        assert escape(traded["settles"]) in html
    yours = scenarios.tables["scenarios"].filter(scenario=YOURS)
    yield "what if", yours["name"][0], None, None

    said = Answers(results, folder).decide(collection, asked)
    assert said["ship"] is not None
    assert said["check_grades"] == decision.data["check_grades"]
    pgs = said["sure"] and said["sure"]["pgs"]
    assert (pgs is None) == (sure is None or sure.pgs is None)
    yield (
        "agents",
        said["ship"]["stack"],
        len(said["ties"]),
        None if pgs is None else percent(pgs and sure.pgs),
    )

    gate = results.workspace(collection).gate(files[0])
    assert gate.holds, gate.findings
    today = next(block for block in gate.blocks if getattr(block, "name", "") == "before_and_after").rows
    yield "gate", today.filter(when="chosen today")["stack"][0], None, None


def graded(decision: Decision, page: Page, record: dict, html: str) -> None:
    """Whether nobody checked the grades is said by heading, record and command alike."""
    check, title = decision.data["check_grades"], record["answer"]["title"]
    assert title == page.sentence
    assert escape(title) in html
    assert record["check_grades"] == check
    shipped = decision.data["verdict"] == "ship" and title.startswith("Ship ")
    assert (IF_THEY_HOLD in title) == bool(check and shipped)
    named = shipped or decision.data["no_clear_winner"]
    assert title.endswith((IF_THEY_HOLD, UNPROVEN)) == bool(check and named)
    assert title in record["summary"][0]
    advice = decision.data["advice"] if shipped else None
    for told in (str(page.blocks), html, advice or check or "", record["answer"]["reason"]):
        assert check is None or not named or check in told
    first, *_, last = record["summary"]
    if (sure := decision.confidence) is not None and sure.pgs is not None:
        firm = resampled(decision.data["resamples"], sure.pgs)
        assert all(firm in told for told in (str(page.blocks), last, record["answer"]["reason"]))
    if decision.data["no_clear_winner"]:
        assert all(record["trade"]["now"] in told for told in (str(page.blocks), first, html))


def beside(decision: Decision, page: Page, record: dict, told: dict) -> None:
    """Pass mark, kind of search, either of two and what one machine saves are the same everywhere."""
    mark = decision.data["pass_mark"]
    assert bool(mark) == bool(decision.data["check_grades"])
    assert mark == record["pass_mark"] == told["command"]["pass_mark"]
    files = unescape(told["html"]), told["md"]
    assert mark is None or all(mark in words for words in (str(page.blocks), *files))
    kind, either = record["answer"]["kind"], record["answer"]["either"]
    lead, firm = record["summary"][0], record["summary"][-1]
    below = str(next(block.details for block in page.blocks if isinstance(block, Answer)))
    alone = not decision.data["no_clear_winner"]
    assert (f" It is {kind[:1].lower()}{kind[1:]}." in lead) == bool(kind and alone)
    if below.startswith(KINDS):
        assert below.startswith(f"{kind}. ")
        assert (LEVEL in below) == bool(either)
        assert either in below
    known = decision.confidence is not None and decision.confidence.pgs is not None
    assert (LEVEL in firm) == bool(either and alone and known and not decision.data["objection"])
    assert LEVEL not in firm or either in firm
    saved = record["savings_in_words"] if decision.data["alternatives"] else None
    assert saved is None or all(saved in words for words in files)
    same = {one["run_id"] for one in decision.data["alternatives"] if one["same_bill"]}
    offers = page.tables.get("alternatives")
    if offers is not None:
        assert all((SAME_BILL in row["saves"]) == (row["run_id"] in same) for row in offers.to_dicts())


def prose(md: str) -> str:
    """The text of Markdown as it is read."""
    return BeautifulSoup(MarkdownIt().enable("table").render(md), "html.parser").get_text(" ")


def cards(page: Page) -> dict[str, str | None]:
    """The numbers of a page by their labels, of two stacks the first; None where it is no number."""
    every = [card for block in page.blocks if isinstance(block, Cards) for card in block.cards]
    sides = [number for block in page.blocks if isinstance(block, Comparison) for number in block.numbers]
    first = {label.partition(" · ")[0]: shown(own[0][1]) for label, own, _ in sides}
    return {card[0]: shown(card[1]) for card in every} | first


def rule_of(rule: str) -> dict[str, object]:
    words = {"quality": "highest quality", "cost": "lowest cost", "latency": "lowest latency"}
    return {"rule": words[rule]}


def of_json(data: dict) -> tuple[object, int, object]:
    chosen = data["chosen"]
    return chosen and chosen["stack"], len(data["ties"]), percent(chosen and chosen["pgs"])


def percent(share: float | None) -> str | None:
    return None if share is None else text.percent(share)


def shown(number: str) -> str | None:
    return number if re.match(r"[\d.<>]", number) else None


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def compare(store: Path, collection: str, asked: dict[str, object], folder: Path) -> None:
    (_, stack, ties, pgs), *others = surfaces(store, collection, asked, folder)
    for where, other, count, chance in others:
        assert other == stack, where
        assert count in (None, ties), where
        if where not in ("what if", "gate"):
            assert chance == pgs, where


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("worlds")


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, WORLDS)]


@pytest.mark.parametrize("seed", [*range(QUICK), *SLOW])
def test_every_surface_says_the_same_of_a_made_up_workspace(folder, seed):
    made = world(1000 + seed)
    call("--store", str(folder / "store"), "import", str(made.write(folder)), "--collection", made.name)
    compare(folder / "store", made.name, named(made), folder)


DEMO = [
    ("docs-search", {}),
    ("docs-search", {"sla_ms": 20.0}),
    ("docs-search", {"sla_ms": 5.0, "min_quality": 0.4}),
    ("docs-search", {"sla_ms": 20.0, "rule": "cost"}),
    ("docs-search", {"sla_ms": 1000.0, "indifference": 0.05, "judge_noise": "off"}),
    ("clq-paper", {"sla_ms": 500.0, "budget": 2.5}),
    ("clq-paper", {"budget": 2.5, "rule": "latency"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("collection", "asked"), DEMO)
def test_every_surface_says_the_same_of_the_demo(shipped_store, tmp_path, collection, asked):
    compare(shipped_store, collection, dict(asked), tmp_path)


SWEEP = f"""
name = "cranfield"
collection = "{cranfield.FOLDER}"
golden_set = {{ split = "{cranfield.SPLIT}" }}
[axes]
mode = ["sparse", "dense", "hybrid"]
embedder = "wordllama"
dim = [64, 256]
candidates = [20, 100]
[latency]
repeats = 2
"""


def swept(store: Path) -> None:
    job, _ = read_job(parse(SWEEP, "toml"))
    with Store.open(store).write("evaluate") as writer:
        run_job(job, writer.add, site=Site(work=store.parent / "evaluations"))


@pytest.mark.slow
@pytest.mark.skipif(not cranfield.FOLDER.is_dir(), reason=f"no Cranfield collection at {cranfield.FOLDER}")
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"measure": "nDCG@10", "sla_ms": 50.0},
        {"measure": "R@20", "sla_ms": 200.0, "rule": "latency", "min_quality": 0.3},
        {"measure": "RA-nWG@20", "indifference": 0.03},
    ],
)
def test_every_surface_says_the_same_of_a_classic_collection(tmp_path_factory, tmp_path, asked):
    store = once(tmp_path_factory, "cranfield-swept", swept)
    (name,) = Store.open(store).read().collections()["collection_id"].to_list()
    compare(store, name, dict(asked), tmp_path)


@pytest.mark.slow
def test_every_surface_says_the_same_leaks(shipped_store: Path, tmp_path: Path):
    """What leaks of the chosen stack, and why leaking stacks are out, is the same everywhere."""
    results = clq.open(shipped_store)
    decision: Decision = results.workspace("docs-tenants").decide()
    printed = call(
        "--store", str(shipped_store), "decide", "--collection", "docs-tenants", "--format", "json"
    )
    files = decision.record(tmp_path / "kept.json")
    whole = [decision.data, json.loads(printed), json.loads(files[0].read_text())]
    names = ("leak", "leak_low", "leak_high", "leak_n")
    assert len({tuple(data["chosen"][name] for name in names) for data in whole}) == 1
    out = [{row["stack"]: row["reason"] for row in data["excluded"]} for data in whole]
    assert out[0] == out[1] == out[2]
    assert all("over the leak limit (query " in reason for reason in out[0].values())
    chosen, measured = decision.data["chosen"], decision.data["chosen"]["leak"]

    agents = Answers(results, tmp_path).decide("docs-tenants", {})["ship"]["leaks"]
    assert (agents["measure"], agents["value"]) == ("Leak@10", measured)
    stacks = decision.page("decision").tables["stacks"]
    assert stacks.filter(name=chosen["stack"])["leak"].to_list() == [measured]
    rows = decision.page("latency", "filters").tables["filters"]
    last = rows.filter(name=chosen["stack"]).row(-1, named=True)
    assert (last["leak"], last["leak_n"]) == (measured, chosen["leak_n"])
    for name, reason in out[0].items():
        leaking = stacks.filter(name=name)["leak"].item()
        assert reason.startswith(f"{text.score(leaking)} over "), "the limit is 0"
