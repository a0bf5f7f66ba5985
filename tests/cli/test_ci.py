"""The gate in CI: exit codes by cause, files by schema, and the steps of the action and the template, run."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest
import yaml
from referencing import Registry, Resource

from core import report
from core.paths import ROOT
from tests.cli.test_gate import BEFORE, LIMITS, call, store
from tests.stores import HOSTILE, Lab

WORSE = {**BEFORE, "better": (20, 190.0, 1.9)}
FOLDER = Path(report.__file__).parent
PAGES = json.loads((FOLDER / "page.schema.json").read_text())
SCHEMA = json.loads((FOLDER / "gate.schema.json").read_text())
REGISTRY = Registry().with_resource("page.schema.json", Resource.from_contents(PAGES))


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    done = call(store(folder / "store", **BEFORE), "record", folder / "record.json", *LIMITS)
    assert done.exit_code == 0, done.output
    return folder / "record.json"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("today", "options", "code", "cause", "changed"),
    [
        (BEFORE, [], 0, None, set()),
        ({**BEFORE, "poor": (2, 30.0, 0.2)}, [], 0, None, {("data", "stacks that came")}),
        (WORSE, [], 4, "worse", {("data", "stacks that came")}),
        ({**BEFORE, "same": (14, 149.0, 1.0)}, [], 0, None, {("data", "stacks that came")}),
        (BEFORE, ["--least-pgs", "0.9"], 0, None, set()),
        (
            {**BEFORE, "rival": (15, 190.0, 1.9)},
            ["--least-pgs", "0.9"],
            4,
            "pgs",
            {("data", "stacks that came")},
        ),
        ({**BEFORE, "good": (14, 250.0, 1.0)}, [], 5, "limit", {("data", "chosen stack, latency ms")}),
        (BEFORE, ["--sla-ms", "100"], 5, "limit", {("limit", "sla ms")}),
        ({"cheap": (4, 20.0, 0.1)}, [], 6, "gone", {("data", "stacks that went")}),
    ],
)
def test_the_exit_code_is_the_cause_and_files_say_why(  # noqa: PLR0917 - a column each
    tmp_path: Path, record: Path, today: Any, options: list[str], code: int, cause: str | None, changed: Any
):
    path = store(tmp_path / "today", **today)
    files = ["--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md", "--json", tmp_path / "g.json"]
    done = call(path, "gate", record, *options, *files, "--dashboard", "https://clq.example/")
    assert done.exit_code == code, done.output
    said = json.loads((tmp_path / "g.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA, registry=REGISTRY).validate(said)
    assert (said["holds"], said["cause"], said["exit_code"]) == (code == 0, cause, code)
    assert {(row["kind"], row["what"]) for row in said["changes"]} == changed
    suite = Xml.parse(tmp_path / "j.xml").getroot()[0]  # noqa: S314 - just written
    failed = [case[0].get("type") for case in suite.iter("testcase") if len(case)]
    assert failed == [row["check"] for row in said["findings"]]
    assert (suite.get("tests"), suite.get("failures")) == ("6", str(len(failed)))
    written = (tmp_path / "m.md").read_text()
    assert ("What flipped it" in written) == bool(code)
    assert "recorded" in written
    assert "https://clq.example/?ws=lab" in written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("today", "causes"), [(WORSE, ["another"]), ({**BEFORE, "same": (14, 149.0, 1.0)}, ["dominated"])]
)
def test_the_files_of_a_record_until_0_2_name_its_own_checks(
    tmp_path: Path, record: Path, today: Any, causes: list[str]
):
    data = json.loads(record.read_text())
    del data["decided_by"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    files = ["--junit", tmp_path / "j.xml", "--json", tmp_path / "g.json"]
    done = call(store(tmp_path / "today", **today), "gate", tmp_path / "old.json", *files)
    assert done.exit_code == 4, done.output
    said = json.loads((tmp_path / "g.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA, registry=REGISTRY).validate(said)
    assert [row["check"] for row in said["findings"]] == causes
    suite = Xml.parse(tmp_path / "j.xml").getroot()[0]  # noqa: S314 - just written
    assert [case[0].get("type") for case in suite.iter("testcase") if len(case)] == causes
    assert suite.get("tests") == "6"


def test_a_link_that_only_this_machine_can_open_stands_in_no_comment(tmp_path: Path, record: Path):
    path = store(tmp_path / "today", **BEFORE)
    assert call(path, "gate", record, "--markdown", tmp_path / "m.md").exit_code == 0
    assert "localhost" not in (tmp_path / "m.md").read_text()


@pytest.mark.slow
def test_names_of_others_are_no_markup_in_any_of_the_files(tmp_path: Path):
    queries = [f"q{number}" for number in range(20)]
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in queries})
    for place, name in enumerate([*HOSTILE, "bell\a\u202e"]):
        order = ["p", "x"] if place == 0 else ["x", "p"]
        lab.run(f"r{place}", label=name, final=dict.fromkeys(queries, order), ms={"retrieve": [9.0] * 20})
    lab.write(tmp_path / "store")
    file = tmp_path / "record.json"
    assert call(tmp_path / "store", "record", file, "--measure", "RR@10", "--run", "r0").exit_code == 0
    files = ["--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md"]
    done = call(tmp_path / "store", "gate", file, "--sla-ms", "1", *files)
    assert done.exit_code == 5
    assert "<img" not in (tmp_path / "m.md").read_text().replace("\\<", "")
    Xml.parse(tmp_path / "j.xml")  # noqa: S314 - just written


class Runner:
    """A clean folder with the programs that a runner has, in place of which scripts stand."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        (folder / "work").mkdir()
        for name in ("bash", "sh", "cat", "mkdir", "rm", "tr", "head"):
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.program("clq", f'export PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m core "$@"')
        self.program("python", f'echo "$@" >> "{folder}/pip"')
        self.program("gh", f'exec "{sys.executable}" "{folder}/gh.py" "$@"')
        (folder / "gh.py").write_text(GH.format(kept=folder / "comments.json"))
        self.environ = {"PATH": str(self.bin), "HOME": str(folder), "LANG": "C.UTF-8"}

    def program(self, name: str, text: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IEXEC)

    def run(self, text: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=self.folder / "work", env={**self.environ, **environ}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    @property
    def comments(self) -> list[str]:
        file = self.folder / "comments.json"
        return json.loads(file.read_text()) if file.exists() else []


GH = """
import json, os, pathlib, sys
assert os.environ["GH_HOST"] == "git.example" and os.environ["GH_ENTERPRISE_TOKEN"] == "token"
kept = pathlib.Path("{kept}")
comments = json.loads(kept.read_text()) if kept.exists() else []
words = sys.argv[1:]
if "--method" not in words:
    mark = words[words.index("--jq") + 1].split('startswith("')[1].split('")')[0]
    print(*(place for place, body in enumerate(comments) if body.startswith(mark)), sep="\\n")
else:
    body = pathlib.Path(words[-1].removeprefix("body=@")).read_text()
    address = words[words.index("--method") + 2]
    if words[words.index("--method") + 1] == "POST":
        comments.append(body)
    else:
        comments[int(address.rpartition("/")[2])] = body
    kept.write_text(json.dumps(comments))
"""


@pytest.fixture
def runner(tmp_path: Path, record: Path) -> Runner:
    made = Runner(tmp_path)
    (tmp_path / "work" / "decisions").mkdir()
    shutil.copy(record, tmp_path / "work" / "decisions" / "search.json")
    return made


def acted(runner: Runner, given: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """Run the steps as GitHub does, after a failure those of always() alone: code, outputs, summary."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: str(about.get("default", "")) for name, about in action["inputs"].items()} | given
    files = {name: runner.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    code = 0
    for step in action["runs"]["steps"]:
        when = step.get("if", "")
        if (code and "always()" not in when) or ("inputs.comment" in when and inputs["comment"] != "true"):
            continue
        own = {key: value.replace("${{ github.event.pull_request.number }}", "7") for key, value in
               step.get("env", {}).items()}  # fmt: skip
        for name, value in inputs.items():
            own = {key: text.replace(f"${{{{ inputs.{name} }}}}", value) for key, text in own.items()}
        done = runner.run(
            step["run"], GITHUB_ACTION_PATH="/action", GITHUB_REPOSITORY="o/r",
            GITHUB_SERVER_URL="https://git.example",
            RUNNER_TEMP=str(runner.folder), **{name: str(file) for name, file in files.items()}, **own,
        )  # fmt: skip
        code = code or done.returncode
    outputs = dict(line.partition("=")[::2] for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return code, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.mark.slow
def test_the_steps_of_the_action(runner: Runner):
    backup = runner.folder / "backup"
    assert call(store(runner.folder / "old", **BEFORE), "store", "backup", backup).exit_code == 0
    given = {"record": "decisions/search.json", "backup": str(backup), "comment": "true", "token": "token"}
    code, outputs, summary = acted(runner, given)
    assert (code, outputs["holds"], outputs["cause"]) == (0, "true", "")
    assert summary.startswith("# Decision gate: holds")
    assert (runner.folder / "pip").read_text().split() == ["-m", "pip", "install", "--quiet", "/action"]
    shutil.rmtree(runner.folder / "work" / "clq-store")
    store(runner.folder / "work" / "clq-store", **WORSE)
    code, outputs, summary = acted(runner, {**given, "backup": ""})
    assert (code, outputs["holds"], outputs["cause"]) == (4, "false", "worse")
    assert "What flipped it" in summary
    (comment,) = runner.comments
    assert comment.startswith("<!-- clq-gate decisions/search.json -->\n# Decision gate: no longer holds")
    Xml.parse(outputs["junit"])  # noqa: S314 - just written


NEW = "run,query_id,passage_id,rank,latency_ms\n" + "".join(
    f"{stack},q{query},{passage},{rank},{ms}\n"
    for stack, found, ms in (("good", 14, 150), ("cheap", 4, 20))
    for query in range(1, 21)
    for rank, passage in enumerate(("p", "x") if query <= found else ("x", "p"), 1)
)
SLOW = NEW.replace(",150\n", ",450\n")
WHERE = {"collection": "lab"}
CASES = {
    "no results": ({}, {}, 0, "", "holds"),
    "as before": ({"good.csv": NEW}, WHERE, 0, "", "holds"),
    "slower now": ({"good.csv": SLOW}, WHERE, 5, "limit", "no longer holds"),
    "another workspace": ({"good.csv": NEW}, {"collection": "labs"}, 8, "elsewhere", "no longer holds"),
    "no collection": ({"good.csv": NEW}, {}, 1, "refused", "refused"),
    "a collection, no results": ({}, WHERE, 1, "refused", "refused"),
    "an empty file": ({"good.csv": ""}, WHERE, 1, "refused", "refused"),
    "no such record": ({}, {"record": "decisions/none.json"}, 1, "refused", "refused"),
    "no record": ({}, {"record": "decisions/broken.json"}, 1, "refused", "refused"),
    "wrong usage": ({}, {"options": "--slaa-ms 4"}, 2, "refused", "refused"),
    "no backup": ({}, {"backup": "nowhere"}, 1, "refused", "refused"),
    "not installed": ({}, {"install": "FAIL"}, 1, "refused", "refused"),
}
"""What a job is given: files, inputs; the exit code, the cause and what the files say."""


def prepared(runner: Runner, files: dict[str, str], priced: Path) -> list[str]:
    """Put a store, whose decision has no budget, and results into the folder of a job; name the results."""
    store(runner.folder / "work" / "clq-store", **BEFORE)
    shutil.copy(priced, runner.folder / "work" / "decisions" / "search.json")
    (runner.folder / "work" / "decisions" / "broken.json").write_text('{"format": 1}')
    for name, text in files.items():
        (runner.folder / "work" / name).write_text(text)
    pip = f'echo "$@" >> "{runner.folder}/pip"\ncase "$*" in *FAIL*) exit 1 ;; esac'
    runner.program("python", pip)
    return list(files)


@pytest.fixture(scope="module")
def unbudgeted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbudgeted")
    asked = ["--measure", "RR@10", "--sla-ms", "200", "--run", "good", "--run", "cheap"]
    done = call(store(folder / "store", **BEFORE), "record", folder / "record.json", *asked)
    assert done.exit_code == 0, done.output
    return folder / "record.json"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_whatever_happens_the_files_say_it_and_an_old_comment_is_replaced(
    runner: Runner, unbudgeted: Path, case: str
):
    files, given, code, cause, said = CASES[case]
    names = prepared(runner, files, unbudgeted)
    inputs = {"record": "decisions/search.json", "comment": "true", "token": "token"} | given
    mark = f"<!-- clq-gate {inputs['record']} -->"
    (runner.folder / "comments.json").write_text(json.dumps([f"{mark}\n# Decision gate: holds of old"]))
    done, outputs, summary = acted(runner, {**inputs, "results": "\n".join(names)})
    assert (done != 0, outputs["cause"], outputs["holds"]) == (code != 0, cause, str(not code).lower())
    (comment,) = runner.comments
    assert comment.startswith(f"{mark}\n# Decision gate: {said}\n")
    assert summary.startswith(f"# Decision gate: {said}\n")
    found = json.loads(Path(outputs["json"]).read_text())
    jsonschema.Draft202012Validator(SCHEMA, registry=REGISTRY).validate(found)
    assert (found["holds"], found["cause"]) == (not code, cause or None)
    (suite,) = Xml.parse(outputs["junit"]).getroot()  # noqa: S314 - just written
    assert (int(suite.get("failures")) + int(suite.get("errors")) > 0) == (code != 0)
    assert (
        int((runner.folder / "clq-gate" / "code").read_text()) == (1 if code in {1, 2} else code) or code == 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case != "not installed"])
def test_the_job_of_gitlab_says_the_same(runner: Runner, unbudgeted: Path, case: str):
    files, given, code, cause, said = CASES[case]
    names = prepared(runner, files, unbudgeted)
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["clq-gate"]
    own = {f"CLQ_{name.upper()}": value for name, value in given.items()} | {"CLQ_RESULTS": " ".join(names)}
    environ = job["variables"] | own
    done = runner.run("\n".join([*job["before_script"], *job["script"]]), **environ)
    assert done.returncode == code, done.stderr
    assert runner.run("\n".join(job["after_script"]), **environ).returncode == 0
    work = runner.folder / "work"
    found = json.loads((work / "gate.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA, registry=REGISTRY).validate(found)
    assert (found["holds"], found["cause"]) == (not code, cause or None)
    assert (work / "gate.md").read_text().startswith(f"# Decision gate: {said}\n")
    Xml.parse(work / "gate.xml")  # noqa: S314 - just written


@pytest.mark.slow
def test_the_job_of_the_template(runner: Runner):
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["clq-gate"]
    store(runner.folder / "work" / "clq-store", **WORSE)
    script = "\n".join([*job["before_script"], *job["script"]])
    done = runner.run(script, **job["variables"])
    assert done.returncode == 4, done.stderr
    assert "What flipped it" in (runner.folder / "work" / "gate.md").read_text()
    assert runner.run("\n".join(job["after_script"]), **job["variables"]).returncode == 0
