"""What the documents say is so: commands run, specifications are such, links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command
from typer.testing import CliRunner

from core.cli.app import app
from core.importers import FORMATS
from core.importers.formats.published import published_batch
from core.importers.formats.published.readers import published_readers
from core.paths import ROOT
from core.pipeline.sweep import parse, parse_as
from core.pipeline.sweep.check import check
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.problems import Severity
from core.providers.calls import Keys
from core.views.pages import PAGES as PAGES_OF_THE_DASHBOARD
from core.work.golden.spec import GoldenSpec
from core.work.names.job import NamesSpec
from core.work.readers.run import ReaderSpec
from tests.documents import GUIDE, PAGES, Block, anchors, blocks, commands, links, mentioned, name, of_core
from tests.test_adding import CHOICES
from tools.reference.pages import DECLARING, PAGES_OF, PICTURED, page, pictured, stale

README = ROOT / "README.md"
MAKE = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
SPECS = [each for page in GUIDE for each in blocks(page) if each.kind == "toml" and not each.noted("shown")]
FOLLOWED = [
    page for page in GUIDE if any(each.runs and any(map(of_core, commands(each))) for each in blocks(page))
]


def test_the_first_page_is_short():
    assert len(README.read_bytes()) <= 15_000


@pytest.mark.parametrize("written", [name for name in PAGES_OF if name != "json"])
def test_the_reference_is_what_the_code_says(written: str):
    assert stale({f"{written}.md": page(written)}) == [], "run `make docs`"


@pytest.mark.slow
def test_the_shapes_of_json_are_what_the_code_says():
    assert stale({"json.md": page("json")}) == [], "run `make docs`"


def test_the_reference_knows_who_declares_choices():
    assert DECLARING == CHOICES


def test_the_picture_of_the_house_is_that_of_the_contracts():
    assert stale({PICTURED: pictured()}) == [], "run `make docs`"


def test_the_reference_has_these_pages_alone():
    there = {path.name for path in (ROOT / "docs" / "reference").iterdir()}
    assert there == {"README.md", *(f"{name}.md" for name in PAGES_OF)}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path):
    for file, anchor in links(page):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name(page)}: {file}"
        assert not anchor or anchor in anchors(target), f"{name(page)}: {file}#{anchor}"


def test_the_guide_to_imports_names_every_format():
    guide = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    assert [known.name for known in FORMATS if f"`{known.name}`" not in guide] == []


def test_every_page_is_in_the_index():
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / file).resolve() for file, _ in links(index)}
    own = {page for page in GUIDE if page.parent == index.parent and page != index}
    assert own <= listed


COMMANDS = get_command(app)


def resolves(words: list[str]) -> None:
    """Fail where a command of the product, or one of its options, is none."""
    command, rest = COMMANDS, list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    assert not getattr(command, "commands", {}) or command.invoke_without_command or rest == ["--help"], words
    command.make_context(words[0], [each for each in rest if each != "--help"], resilient_parsing=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDE, ids=name)
def test_every_command_is_one(page: Path):
    inner = [words for each in blocks(page) if each.kind == "sh" for words in commands(each)]
    for words in [*inner, *mentioned(page)]:
        match words:
            case ["python", "-m", "core", *rest]:
                resolves(rest)
            case ["make", *targets]:
                assert {each for each in targets if "=" not in each} <= set(MAKE), words
            case ["pip", "install", "-r", file]:
                assert (ROOT / file).is_file(), words
            case ["python", "-m", module, *_]:
                path = ROOT.joinpath(*module.split("."))
                assert path.is_dir() or path.with_suffix(".py").is_file() or module in ("venv", "pytest"), (
                    words
                )
            case [program, *_]:
                assert program in (
                    ".ci/run",
                    "source",
                    "mkdir",
                    "git",
                    "pre-commit",
                    "uv",
                    "pip",
                    "optuna-dashboard",
                ), words


def spec_of(block: Block) -> str:
    """The text of a specification, with what it is added to."""
    base = block.noted("adds to")
    if not base and block.note != "adds to a specification":
        return block.text
    files = {each.noted("file"): each.text for each in blocks(block.page)}
    whole = tomllib.loads(files[base] if base else 'collection = "corpus"\n[axes]\nmode = "sparse"\n')
    return json_of(joined(whole, tomllib.loads(block.text)))


def joined(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Tables merged key by key."""
    both = {
        key: joined(whole[key], part[key])
        for key in whole.keys() & part.keys()
        if isinstance(part[key], dict)
    }
    return {**whole, **part, **both}


def json_of(data: dict[str, Any]) -> str:
    """A specification as JSON."""
    return json.dumps(data, indent=1)


@pytest.mark.parametrize("block", SPECS, ids=lambda each: f"{name(each.page)}-{each.note or 'plain'}")
def test_every_specification_is_one(block: Block, tmp_path: Path):
    text = spec_of(block)
    data = parse_toml_or_json(text)
    if "golden" in data:
        parse_as(GoldenSpec, text, folder=tmp_path)
    elif "reader" in data and "axes" not in data:
        parse_as(ReaderSpec, text, folder=tmp_path)
    elif "embedder" in data:
        parse_as(NamesSpec, text, folder=tmp_path)
    else:
        assert expand(parse(text, folder=tmp_path))


def parse_toml_or_json(text: str) -> dict[str, Any]:
    """The keys of a specification."""
    return json.loads(text) if text.startswith("{") else tomllib.loads(text)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=pytest.mark.extras
            if any(each.note == "extras" for each in blocks(page))
            else pytest.mark.slow,
        )
        for page in FOLLOWED
    ],
    ids=name,
)
def test_a_page_can_be_followed(
    page: Path, demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Files are saved and commands run in the order of the page, on a copy of the demo."""
    shutil.copytree(demo_store, tmp_path / "data" / "store")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLQ_STORE", str(tmp_path / "data" / "store"))
    for block in blocks(page):
        if file := block.noted("file"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(block.text, encoding="utf-8")
        for words in commands(block) if block.runs else ():
            if words[0] == "mkdir":
                (tmp_path / words[-1]).mkdir(parents=True, exist_ok=True)
            elif (rest := of_core(words)) is not None:
                done = CliRunner().invoke(app, rest)
                assert done.exit_code == 0, f"{' '.join(words)}\n{done.output}"


@pytest.mark.parametrize("page", GUIDE, ids=name)
def test_a_file_to_save_is_named_in_the_text(page: Path):
    prose = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"))
    for block in blocks(page):
        assert f"`{block.noted('file')}`" in prose or not block.noted("file"), block.note


def the_spec(which: str) -> str:
    """One of the two specifications that are checked whole."""
    (block,) = [each for page in GUIDE for each in blocks(page) if each.noted("spec") == which]
    return block.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.jsonl").touch()
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "a.md").touch()
    for file in ("golden.tsv", "questions.csv", "quotes.csv"):
        (tmp_path / file).touch()
    return tmp_path


def test_the_papers_sweep_takes_three_lines_and_a_key(folder: Path):
    assert len(the_spec("paper").strip().splitlines()) == 3
    spec = parse(the_spec("paper"), folder=folder)
    assert len(expand(spec)) == 648  # 2 modes · 3 models · 3 dimensions · 3 indexes · 3 rerankers · 4 depths
    assert "648\nstacks" in README.read_text() or "648 stacks" in README.read_text()
    without = check(spec, known=KnownNames(spec.models, Keys({}, ())))
    assert [each.found for each in without if each.severity is not Severity.WARNING] == [
        "The key VOYAGE_API_KEY is not set."
    ]
    known = KnownNames(spec.models, Keys({"VOYAGE_API_KEY": "key"}, ()))
    assert {each.severity for each in check(spec, known=known)} == {Severity.WARNING}


def test_the_local_sweep_takes_no_key(folder: Path):
    spec = parse(the_spec("local"), folder=folder)
    assert check(spec, known=KnownNames(spec.models, Keys({}, ()))) == []
    stacks = expand(spec)
    assert {stack.spec["chunker"]["method"] for stack in stacks} == {"paragraph", "sentence"}
    assert {stack.spec["chunker"]["language"] for stack in stacks if "language" in stack.spec["chunker"]} == {
        "french"
    }


WORDS = {3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}


@pytest.mark.slow
def test_the_tour_names_what_is_there(published_store: Path):
    text = " ".join(README.read_text(encoding="utf-8").split())
    published = [*published_batch().collections, *published_readers().collections]
    assert f"opens with {WORDS[len(published) + 3]} workspaces" in text  # and those of the demo
    limits = ["--collection", "clq-paper", "--sla-ms", "500", "--budget", "2.5"]
    decided = CliRunner().invoke(app, ["--store", str(published_store), "decide", *limits])
    let_in = re.search(r"Let in by: (SLA \d+ ms)", decided.output)
    assert let_in is not None
    assert f"*Set {let_in[1]}*" in text
    assert all(f"**{page.title}**" in text for page in PAGES_OF_THE_DASHBOARD.values())


ADDING = ROOT / "docs" / "adding.md"
NAMED = re.findall(
    r"^(New, )?`([^`]+)`:\n\n```(?:diff|python)\n(.*?)^```$",
    ADDING.read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize(("new", "file", "text"), NAMED, ids=[file for _, file, _ in NAMED])
def test_a_change_that_is_shown_has_its_place(new: str, file: str, text: str):
    """Each part stands in the file as it is now, and with its change that is Python still."""
    path = ROOT / file
    assert path.exists() != bool(new)
    changed = text
    if not new:
        changed = path.read_text(encoding="utf-8")
        for part in text.split("@@\n"):
            lines = [line or " " for line in part.splitlines()]
            before, after = (
                "".join(f"{line[1:]}\n" for line in lines if line[0] in f" {sign}") for sign in "-+"
            )
            assert before in changed, before
            changed = changed.replace(before, after, 1)
    if path.suffix == ".py":
        compile(changed, file, "exec")


def test_the_lock_holds_what_is_required_and_names_no_index():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert "--index" not in lock
    pinned: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock, re.MULTILINE):
        pinned.setdefault(canonicalize_name(package), set()).add(version)
    for path in ROOT.glob("requirements*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r")):
                wanted = Requirement(line)
                versions = pinned.get(canonicalize_name(wanted.name), set())
                assert versions, f"{line}: make lock"
                assert all(version in wanted.specifier for version in versions), f"{line}: make lock"


def test_make_lists_its_targets():
    listed = re.findall(r"^([a-z0-9]+):.* ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == set(MAKE)


def test_the_hooks_are_the_checks_of_make():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0][
        "hooks"
    ]
    entries = {hook["entry"].removeprefix(".venv/bin/") for hook in hooks}
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ncheck:")[2].partition("\n\n")[0]
    checks = {re.sub(r" \.", "", line) for line in re.findall(r"\$\(BIN\)/(.+)", recipe)}
    assert checks <= entries
