"""Whether a recorded decision still holds: exit codes, reasons, refusals, and the recipe of the guide."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import core as clq
from core.cli.app import app
from core.errors import InputError
from core.paths import ROOT
from tests.stores import Lab

QUERIES = [f"q{number}" for number in range(1, 21)]
LIMITS = ["--measure", "RR@10", "--sla-ms", "200", "--budget", "2"]


def ranking(found):
    """A passage of every query: the first `found` queries are answered at rank 1, the others at rank 2."""
    return {query: ["p", "x"] if place < found else ["x", "p"] for place, query in enumerate(QUERIES)}


def store(path, **stacks):
    """A store of stacks: queries answered at rank 1, ms, $ per 1,000 queries (None = unknown)."""
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in QUERIES})
    for name, (found, ms, cost) in stacks.items():
        lab.run(
            name,
            final=ranking(found),
            ms={"retrieve": [ms] * len(QUERIES)},
            figures=[] if cost is None else [{"measure": "usd_per_1k", "k": 10, "value": cost}],
        )
    lab.write(path)
    return path


def call(path, *words):
    return CliRunner().invoke(app, ["--store", str(path), *map(str, words)])


BEFORE = {"good": (14, 150.0, 1.0), "cheap": (4, 20.0, 0.1)}


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The store of `BEFORE` and the record of its decision; to be read only."""
    folder = tmp_path_factory.mktemp("before")
    made = call(store(folder / "store", **BEFORE), "record", folder / "record.json", *LIMITS)
    assert made.exit_code == 0, made.output
    return folder


@pytest.fixture
def record(tmp_path, before):
    return Path(shutil.copy(before / "record.json", tmp_path))


BETTER = {**BEFORE, "better": (20, 190.0, 1.9)}
SAME = {**BEFORE, "same": (14, 149.0, 1.0)}


def checked(path, record, *options):
    """The checks that fail today, said in both forms."""
    said = call(path, "decide", "--gate", record, *options, "--format", "json")
    found = json.loads(said.stdout)
    checks = [row["check"] for row in found["findings"]]
    assert (found["holds"], found["stack"]) == (not checks, json.loads(record.read_text())["chosen"]["stack"])
    assert said.exit_code == (4 if checks else 0), said.output
    shown = call(path, "decide", "--gate", record, *options)
    assert shown.exit_code == said.exit_code
    name = found["stack"]
    assert shown.stdout.startswith(f"No longer holds: {name}." if checks else f"Holds: {name}: ")
    assert len(shown.stdout.splitlines()) == 1 or checks
    return checks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("today", "options", "checks"),
    [
        (BEFORE, [], []),
        ({**BEFORE, "poor": (2, 30.0, 0.2)}, [], []),
        ({**BEFORE, "good": (14, 250.0, 1.0)}, [], ["limit"]),
        ({**BEFORE, "good": (14, 150.0, 2.5)}, [], ["limit"]),
        ({**BEFORE, "good": (14, 150.0, None)}, [], ["unknown"]),
        (BEFORE, ["--sla-ms", "100"], ["limit"]),
        (SAME, [], []),  # as good and faster makes it no worse
        (
            {**BEFORE, "better": (15, 190.0, 1.9)},
            [],
            [],
        ),  # better, but not surely by more than does not matter
        (BETTER, [], ["worse"]),
        (BETTER, ["--indifference", "0.2"], []),
        (BETTER, ["--budget", "1.5"], []),
        (BETTER, ["--run", "good", "--run", "cheap"], []),
        ({"cheap": (4, 20.0, 0.1)}, [], ["gone"]),
    ],
)
def test_what_no_longer_holds(tmp_path, record, today, options, checks):
    assert checked(store(tmp_path / "today", **today), record, *options) == checks


UNPRICED = {**BEFORE, "good": (14, 150.0, None)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("today", "waive", "outcome"),
    [
        (UNPRICED, [], (7, [])),
        (UNPRICED, ["sla"], (7, [])),
        (UNPRICED, ["budget"], (0, ["budget"])),
        ({name: (found, ms, None) for name, (found, ms, _) in BEFORE.items()}, ["budget"], (0, ["budget"])),
        ({**BEFORE, "good": (14, 150.0, 2.5)}, ["budget"], (5, [])),  # what is known still holds
        (BEFORE, ["budgett"], (1, None)),
    ],
)
def test_a_limit_without_data_fails_unless_it_is_waived(tmp_path, record, today, waive, outcome):
    code, dropped = outcome
    words = [word for name in waive for word in ("--waive", name)]
    said = call(store(tmp_path / "today", **today), "gate", record, *words, "--format", "json")
    assert said.exit_code == code, said.output
    if dropped is not None:
        found = json.loads(said.stdout)
        assert (found["waived"], found["exit_code"], found["holds"]) == (dropped, code, code == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("today", "options", "checks"),
    [
        (BEFORE, [], []),
        ({**BEFORE, "poor": (2, 30.0, 0.2)}, [], []),
        ({**BEFORE, "good": (14, 250.0, 1.0)}, [], ["limit", "another"]),
        ({**BEFORE, "good": (14, 150.0, 2.5)}, [], ["limit", "another"]),
        ({**BEFORE, "good": (14, 150.0, None)}, [], ["unknown", "another"]),
        (BEFORE, ["--sla-ms", "100"], ["limit", "another"]),
        (BEFORE, ["--sla-ms", "100", "--gate-share", "1"], ["limit"]),
        (SAME, [], ["dominated"]),
        (SAME, ["--run", "good", "--run", "cheap"], []),
        (BETTER, [], ["another"]),
        (BETTER, ["--gate-share", "1"], []),
        (BETTER, ["--budget", "1.5"], []),
        ({"cheap": (4, 20.0, 0.1)}, [], ["gone"]),
    ],
)
def test_a_record_of_the_rule_until_0_2_is_judged_by_that_rule(tmp_path, record, today, options, checks):
    data = json.loads(record.read_text())
    without(data, "decided_by")
    record.write_text(json.dumps(data))
    path = store(tmp_path / "today", **today)
    assert checked(path, record, *options) == checks
    if not checks:
        said = call(path, "decide", "--gate", record, *options).stdout
        assert "by the rule until 0.2: ties by significance" in said


@pytest.mark.slow
def test_a_stack_that_a_person_took_holds_while_it_loses_no_more_than_was_accepted(tmp_path):
    path, file = store(tmp_path / "then", **BEFORE), tmp_path / "r.json"
    assert call(path, "record", file, *LIMITS, "--take", "cheap").exit_code == 0
    taken = json.loads(file.read_text())["taken"]
    assert (taken["stack"], taken["instead_of"]) == ("cheap", "good")
    assert taken["given_up"] == pytest.approx(0.25)
    assert checked(path, file) == []
    assert "Today the rule chooses good." in call(path, "decide", "--gate", file).stdout
    for found, checks in ((16, []), (20, ["worse"])):  # surely at least .20 and .32 better
        today = store(tmp_path / f"today {found}", **BEFORE, better=(found, 190.0, 1.9))
        assert checked(today, file) == checks
    assert checked(path, file, "--sla-ms", "10") == ["limit"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("found", "options", "checks"),
    [(20, [], []), (14, [], []), (2, [], ["worse"]), (20, ["--sla-ms", "100"], ["limit"])],
)
def test_the_newest_version_of_a_pipeline_of_ones_own_stands_for_it(tmp_path, found, options, checks):
    def versions(path, **found_of):
        lab = Lab().judge({query: {"p": 5, "x": 1} for query in QUERIES})
        for day, (version, queries) in enumerate(found_of.items(), 1):
            spec = {"mode": "own", "name": "shop", "call": "shop:find", "version": version, "candidates": 2}
            cost = [{"measure": "usd_per_1k", "k": 10, "value": 1.0}]
            times = {"pipeline": [50.0 + 100 * (day > 1)] * len(QUERIES)}
            lab.run(version, spec=spec, final=ranking(queries), ms=times, figures=cost)
            lab.runs[-1] = replace(lab.runs[-1], created_at=datetime(2026, 1, day, tzinfo=UTC))
        lab.write(path)
        return path

    made = call(versions(tmp_path / "then", old=14), "record", tmp_path / "r.json", *LIMITS)
    assert made.exit_code == 0, made.output
    path = versions(tmp_path / "now", old=14, new=found)
    said = call(path, "decide", "--gate", tmp_path / "r.json", *options, "--format", "json")
    assert [row["check"] for row in json.loads(said.stdout)["findings"]] == checks
    assert said.exit_code == (4 if checks else 0)


@pytest.mark.slow
def test_figures_without_results_per_query(published_store, tmp_path):
    file = tmp_path / "record.json"
    question = ["--collection", "clq-paper", "--sla-ms", "520", "--budget", "2.5"]
    assert call(published_store, "record", file, *question).exit_code == 0
    assert call(published_store, "decide", "--gate", file).exit_code == 0
    said = call(published_store, "decide", "--gate", file, "--sla-ms", "500", "--format", "json")
    assert said.exit_code == 4
    (limit,) = json.loads(said.stdout)["findings"]
    assert limit["reason"] == "6.6 ms over the SLA"
    data = json.loads(file.read_text())
    without(data, "decided_by")
    file.write_text(json.dumps(data))
    said = call(published_store, "decide", "--gate", file, "--sla-ms", "500", "--format", "json")
    limit, another = json.loads(said.stdout)["findings"]
    assert limit["reason"] == "6.6 ms over the SLA"
    assert another["now"] == "voyage-3.5 2048 d"


def without(data, *keys):
    for key in keys[:-1]:
        data = data[key]
    del data[keys[-1]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: without(data, "format"), "This is not a decision record."),
        (lambda data: data.update(chosen=None), "chose no stack"),
        (lambda data: data.update(version=99), "version"),
        (lambda data: without(data, "question"), "question"),
        (lambda data: data["question"].update(sla_ms="soon"), "question.sla_ms"),
        (lambda data: data["question"].update(rule="beauty"), "question.rule"),
        (lambda data: data["question"].update(collection="nowhere"), "nowhere"),
    ],
)
def test_records_that_cannot_be_compared(before, record, change, said):
    data = json.loads(record.read_text())
    change(data)
    record.write_text(json.dumps(data))
    refused = call(before / "store", "decide", "--gate", record)
    assert refused.exit_code == 1
    assert said in refused.stderr
    assert "Traceback" not in refused.output


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 5000])
def test_files_that_are_no_record(tmp_path, before, text):
    (tmp_path / "r.json").write_text(text)
    for file in (tmp_path / "r.json", tmp_path / "absent.json", tmp_path):
        refused = call(before / "store", "decide", "--gate", file)
        assert refused.exit_code == 1
        assert refused.stderr.startswith("error: ")


def test_the_recipe_of_the_guide_gives_the_action_what_it_takes():
    guide = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    recipe = yaml.safe_load(guide.partition("<!-- gate -->\n```yaml\n")[2].partition("```")[0])
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    (job,) = recipe["jobs"].values()
    given = job["steps"][-1]["with"]
    assert given.keys() <= inputs.keys()
    assert {name for name, about in inputs.items() if about.get("required")} <= given.keys()
    assert recipe["permissions"]["pull-requests"] == "write"


RESULTS = "run,query_id,passage_id,rank,latency_ms\n"


def results(path, **stacks):
    """A table of results: queries answered at rank 1, ms."""
    rows = [
        f"{name},{query},{passage},{rank},{ms}\n"
        for name, (found, ms) in stacks.items()
        for query, order in ranking(found).items()
        for rank, passage in enumerate(order, 1)
    ]
    path.write_text(RESULTS + "".join(rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [[], ["--run", "good", "--run", "cheap"]])
@pytest.mark.parametrize(
    ("choice", "now", "code"),
    [
        ("new", {"good": (14, 450)}, 5),  # its newest version stands for it
        ("new", {"good": (14, 140)}, 0),
        ("replace", {"good": (14, 450)}, 5),
        ("new", {"good (1)": (14, 450)}, 0),  # no version of it
    ],
)
def test_the_newest_version_of_an_imported_stack_stands_for_it(tmp_path, chosen, choice, now, code):
    path = store(tmp_path / "store", **{name: (*numbers[:2], None) for name, numbers in BEFORE.items()})
    made = call(path, "record", tmp_path / "r.json", *LIMITS[:4], *chosen)
    assert made.exit_code == 0, made.output
    file = results(tmp_path / "new.csv", **now)
    done = call(path, "import", file, "--collection", "lab", "--if-changed", choice)
    assert done.exit_code == 0, done.output
    assert call(path, "gate", tmp_path / "r.json").exit_code == code


@pytest.mark.slow
def test_results_that_are_given_again_unchanged_count(tmp_path):
    path = store(tmp_path / "store", **{name: (*numbers[:2], None) for name, numbers in BEFORE.items()})
    assert call(path, "record", tmp_path / "r.json", *LIMITS[:4]).exit_code == 0
    file = results(tmp_path / "new.csv", good=(14, 140))
    for said in ("Added as revision", "in the store already"):
        done = call(path, "gate", tmp_path / "r.json", "--results", file, "--into", "lab")
        assert done.exit_code == 0, done.output
        assert said in done.stdout
    stale = results(tmp_path / "other.csv", other=(2, 10))
    done = call(path, "gate", tmp_path / "r.json", "--results", stale, "--into", "lab")
    assert "The results bring nothing of good: its numbers are of" in done.stdout
    back = results(tmp_path / "slow.csv", good=(14, 450))
    assert call(path, "gate", tmp_path / "r.json", "--results", back, "--into", "lab").exit_code == 5
    assert call(path, "gate", tmp_path / "r.json", "--results", file, "--into", "lab").exit_code == 0


@pytest.mark.slow
def test_results_bring_no_deleted_workspace_back(tmp_path):
    path = store(tmp_path / "store", **{name: (*numbers[:2], None) for name, numbers in BEFORE.items()})
    assert call(path, "record", tmp_path / "r.json", *LIMITS[:4]).exit_code == 0
    assert call(path, "delete", "--collection", "lab").exit_code == 0
    file = results(tmp_path / "new.csv", other=(2, 10))
    done = call(path, "gate", tmp_path / "r.json", "--results", file, "--into", "lab")
    assert done.exit_code == 1
    assert "The workspace lab was deleted" in done.stderr


@pytest.mark.slow
def test_results_of_the_recorded_stack_that_are_set_apart_never_hold(demo_store, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(demo_store, path)
    assert call(path, "record", tmp_path / "r.json", "--collection", "python-docs").exit_code == 0
    stack = json.loads((tmp_path / "r.json").read_text())["chosen"]["stack"]
    averages = tmp_path / "averages.csv"
    averages.write_text(f'stack,RA-nWG@10,latency_ms\n"{stack}",0.1,900\n', encoding="utf-8")
    done = call(path, "gate", tmp_path / "r.json", "--results", averages, "--into", "python-docs")
    assert done.exit_code == 8, done.output
    assert "they do not compare with the rest" in " ".join(done.stdout.split())
    other = next(name for name in clq.open(path).workspaces if name != "python-docs")
    words = f"The record is of workspace python-docs, not of {other}"
    space = clq.open(path).workspace(other)
    with pytest.raises(InputError, match=words):
        space.gate(tmp_path / "r.json")
    with pytest.raises(InputError, match=words):
        space.decide().gate(tmp_path / "r.json")
    refused = call(path, "gate", tmp_path / "r.json", "--collection", other)
    assert refused.exit_code == 1
    assert words in " ".join(refused.stderr.split())


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The store of `BEFORE` without costs, and the record of its decision; to be copied."""
    folder = tmp_path_factory.mktemp("imported")
    store(folder / "store", **{name: (*numbers[:2], None) for name, numbers in BEFORE.items()})
    assert call(folder / "store", "record", folder / "r.json", *LIMITS[:4]).exit_code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([{"Good": (14, 140)}], "results of Good came, which is written otherwise"),
        ([{"good": (14, 140)}, {"good": (2, 140)}], "several results of this stack came: good · new-0"),
        ([{"good-v2": (14, 140)}], None),  # another stack
    ],
)
def test_results_that_may_mean_the_recorded_stack_never_hold_by_old_ones(tmp_path, imported, files, words):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    given = [results(tmp_path / f"new-{place}.csv", **stacks) for place, stacks in enumerate(files)]
    named = [word for file in given for word in ("--results", file)]
    done = call(tmp_path / "store", "gate", tmp_path / "r.json", *named, "--into", "lab")
    assert done.exit_code == (8 if words else 0), done.output
    assert (words or "The results bring nothing of good") in " ".join(done.stdout.split())


@pytest.mark.slow
def test_newer_averages_of_the_stack_never_leave_a_gate_to_old_rankings(tmp_path, imported):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    (tmp_path / "averages.csv").write_text("stack,RR@10,latency_ms\ngood,0.1,900\n", encoding="utf-8")
    added = clq.open(tmp_path / "store").add(tmp_path / "averages.csv", collection="lab", if_changed="new")
    assert added.runs
    gate = clq.open(tmp_path / "store").gate(tmp_path / "r.json")
    assert gate.findings["check"].to_list() == ["elsewhere"]
    assert gate.findings["now"][0] == "good (2)"


@pytest.mark.slow
@pytest.mark.parametrize("made", [{"revision": 40}, {"revision_made": None, "revision": 40}, {"revision": 2}])
def test_in_a_store_that_was_made_anew_the_newest_version_is_judged(tmp_path, imported, made):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    record = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps(record | made))
    file = results(tmp_path / "new.csv", good=(14, 450))
    assert clq.open(tmp_path / "store").add(file, collection="lab", if_changed="new").runs
    gate = clq.open(tmp_path / "store").gate(tmp_path / "r.json")
    assert gate.findings["check"].to_list() == ["limit"]


@pytest.mark.slow
def test_judgements_that_become_another_version_are_not_passed_over(tmp_path):
    space, file = clq.open(tmp_path / "store"), tmp_path / "shop.qrels"

    def judged(grade):
        file.write_text("".join(f"{query} 0 p {grade}\n{query} 0 x 0\n" for query in QUERIES))
        return file

    first = results(tmp_path / "first.csv", good=(14, 150), cheap=(4, 20))
    space.add(first, judged(3), collection="shop")
    assert call(space.path, "record", tmp_path / "r.json", *LIMITS[:4]).exit_code == 0
    space.add(judged(2), collection="shop", if_changed="new")
    given = ["gate", tmp_path / "r.json", "--into", "shop", "--results"]
    done = call(space.path, *given, judged(1))
    assert done.exit_code == 8, done.output
    assert space.store.read().golden_sets("shop").height == 2
    done = call(space.path, *given, first, "--results", judged(2))
    assert done.exit_code == 8, done.output
    assert "came, but they are another version of it" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_to_stay_holds_only_within_the_limits(tmp_path, imported):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "store"
    words = ["record", tmp_path / "stay.json", "--incumbent", "good"]
    assert call(path, *words, *LIMITS[:4]).exit_code == 0
    assert json.loads((tmp_path / "stay.json").read_text())["stay_or_switch"]["answer"] == "stay"
    assert call(path, "gate", tmp_path / "stay.json").exit_code == 0
    assert call(path, "gate", tmp_path / "stay.json", "--sla-ms", "10").exit_code == 5
    given = ["gate", tmp_path / "stay.json", "--into", "lab", "--results"]
    assert call(path, *given, results(tmp_path / "a.csv", good=(14, 140))).exit_code == 0
    assert call(path, *given, results(tmp_path / "b.csv", good=(14, 450))).exit_code == 5
    slow = results(tmp_path / "c.csv", good=(14, 460))
    assert call(path, "import", slow, "--collection", "lab", "--if-changed", "new").exit_code == 0
    assert call(path, "gate", tmp_path / "stay.json").exit_code == 5


@pytest.mark.slow
def test_a_misspelt_workspace_for_results_leaves_nothing_behind(tmp_path, imported):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    file = results(tmp_path / "new.csv", good=(14, 140))
    done = call(tmp_path / "store", "gate", tmp_path / "r.json", "--results", file, "--into", "labb")
    assert done.exit_code == 8
    assert "the record is of workspace lab, not of labb" in " ".join(done.stdout.split())
    assert clq.open(tmp_path / "store").workspaces == ("lab",)


def test_the_store_in_python_gates_with_the_options_of_the_command(before):
    gate = clq.open(before / "store").gate(before / "record.json", least_pgs=1.0, waive=["min_robust"])
    assert (gate.held.least_pgs, gate.held.waived) == (1.0, ())
