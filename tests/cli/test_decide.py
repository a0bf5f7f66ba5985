import csv
import io
import json

import pytest
from typer.testing import CliRunner

from core import extras
from core.analysis.workspace.resolve import quality_of
from core.analysis.workspace.scope import Quality
from core.cli.app import app
from core.errors import InputError, UnknownNameError
from tests.stores import Lab


@pytest.fixture
def cli(published_store):
    def call(*words, store=published_store, code=0):
        result = CliRunner().invoke(app, ["--store", str(store), "decide", *words])
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.mark.slow
def test_the_paper_within_an_sla_and_a_budget(cli):
    limits = ["--sla-ms", "520", "--budget", "2.5", "--min-quality", "0.5"]
    found = json.loads(cli("--measure", "RA-nWG@10", *limits, "--format", "json").stdout)
    assert found["chosen"]["stack"] == "voyage-3.5 512 d + rerank-2.5, K = 50"
    assert found["chosen"]["cost"] == pytest.approx(1.25 + 0.0012)  # the query's embedding is modelled
    assert (found["chosen"]["cost_basis"], found["chosen"]["cost_least"]) == ("modelled", None)
    assert found["runner_up"]["stack"] == "voyage-3.5 1024 d + rerank-2.5, K = 50"
    assert found["chosen"]["stack"] in [row["stack"] for row in found["frontier"]]
    assert {"run_id", "stack", "constraint", "by"} <= set(found["excluded"][0])
    assert {row["constraint"] for row in found["excluded"]} > {"unknown latency"}
    untimed = [row["run_id"] for row in found["excluded"] if row["constraint"] == "unknown latency"]
    assert sorted(row["run_id"] for row in found["promising"]) == sorted(untimed)
    assert all("not timed" in row["missing"] for row in found["promising"])
    assert found["promising"][0]["quality"] == max(row["quality"] for row in found["promising"])
    assert (found["collection"], found["seed"], found["prices"]) == ("clq-paper", 20251112, "list")


@pytest.mark.slow
def test_table_and_csv(cli):
    shown = cli("--sla-ms", "520", "--prices", "clq-paper", "--origin", "published")
    assert shown.stdout.startswith(
        "Best so far within 520 ms (p50): voyage-3.5 512 d + rerank-2.5, K = 50; confidence unknown. "
    )
    assert "no results per query" in shown.stdout
    assert "warning: " in shown.stderr
    rows = list(csv.DictReader(io.StringIO(cli("--sla-ms", "520", "--format", "csv").stdout)))
    assert rows[0]["status"] == "chosen"
    assert len(rows) == 54


QUESTIONS = [f"q{number:02}" for number in range(20)]


@pytest.fixture(scope="module")
def priced(tmp_path_factory):
    """Four stacks: the best by far, an equal one that is cheaper, a cheap one that is worse, one unpriced."""
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in QUESTIONS})
    stacks = {
        "best": (16, 90.0, 2.0),
        "equal": (16, 95.0, 1.0),
        "cheap": (10, 20.0, 0.1),
        "unpriced": (4, 95.0, None),
    }
    for name, (found, ms, cost) in stacks.items():
        lab.run(
            name,
            final={q: ["p", "x"] if at < found else ["x", "p"] for at, q in enumerate(QUESTIONS)},
            ms={"retrieve": [ms] * len(QUESTIONS)},
            figures=[{"measure": "usd_per_1k", "k": 10, "value": cost}] if cost else [],
        )
    return lab.write(tmp_path_factory.mktemp("priced") / "s").path


@pytest.mark.slow
def test_the_whole_answer_is_one_object(cli, priced):
    def decided(*words):
        asked = ("--measure", "RR@10", "--jitter-ms", "10", *words, "--format", "json")
        return json.loads(cli(*asked, store=priced).stdout)

    found = decided()
    assert (found["chosen"]["stack"], found["decided_by"], found["delta"]) == ("equal", 2, 0.01)
    assert [row["stack"] for row in found["ties"]] == ["best"]
    assert found["note"] == "2 stacks tie: surely within 0.01 of the highest estimate. Chosen by lower cost."
    assert 0.9 < found["chosen"]["pgs"] <= 1
    assert found["chosen"]["pgs_unknown"] is None
    assert 0.75 < found["chosen"]["expected_quality"] <= 0.91
    assert not found["chosen"]["ahead"], "of the equal one it is not ahead"
    (other,) = found["alternatives"]
    assert (other["stack"], other["difference"]) == ("cheap", pytest.approx(-0.15))
    assert other["low"] < -0.15 < other["high"] < 0
    assert (other["saves_usd_per_1k"], other["saves_ms"]) == (pytest.approx(0.9), pytest.approx(75.0))
    assert 0 <= other["p_within_delta"] < 0.05
    (step,) = found["price_of_quality"]["cost"]
    assert (step["from"], step["stack"], step["gain"]) == ("cheap", "equal", pytest.approx(0.15))
    assert step["per_0.01"] == pytest.approx(0.9 / 15)
    assert (found["taken"], found["dropped"]) == (None, None)

    taken = decided("--take", "cheap")
    assert taken["chosen"]["stack"] == "cheap"
    assert (taken["taken"]["instead_of"], taken["taken"]["given_up"]) == ("equal", pytest.approx(0.15))
    assert taken["chosen"]["pgs"] < 0.05
    dropped = decided("--take", "equal", "--sla-ms", "92")
    assert (dropped["chosen"]["stack"], dropped["dropped"], dropped["taken"]) == ("best", "equal", None)
    limited = decided("--budget", "5")
    assert [row["stack"] for row in limited["promising"]] == ["unpriced"]
    assert decided("--indifference", "0.2")["chosen"]["stack"] == "equal", "not surely that near"
    assert decided("--indifference", "0.3")["chosen"]["stack"] == "cheap"


@pytest.mark.slow
def test_what_no_stack_is_known_on_cannot_be_limited(cli, tmp_path):
    lab = Lab().judge({query: {"p": 5} for query in QUESTIONS})
    for name, order in {"one": ["p"], "two": ["x", "p"]}.items():
        lab.run(name, final=dict.fromkeys(QUESTIONS, order))
    path = lab.write(tmp_path / "s").path
    for words, said in (
        (["--budget", "1"], "No stack here has a known cost."),
        (["--rule", "cost"], "No stack here has a known cost."),
        (["--sla-ms", "100"], "No stack here has a known latency."),
    ):
        refused = cli("--measure", "RR@10", *words, store=path, code=7)
        assert said in refused.stderr
        assert refused.stdout == ""
    assert "Best so far: one; latency and cost unknown" in cli("--measure", "RR@10", store=path).stdout


@pytest.mark.slow
def test_seed_and_shares_are_shown(cli, tmp_path):
    made = Lab().judge({"q1": {"a": 5}, "q2": {"a": 5}})
    made.run("one", final={"q1": ["a"], "q2": ["b"]}, ms={"embed": [10.0, 20.0]})
    made.run("two", final={"q1": ["a"], "q2": ["a"]}, ms={"embed": [90.0, 95.0]})
    made.write(tmp_path / "s")
    shown = cli("--measure", "RA-nWG@1", "--seed", "7", store=tmp_path / "s").stdout
    assert "seed 7" in shown
    assert "P(frontier)" not in shown
    wide = cli("--measure", "RA-nWG@1", "--seed", "7", "--wide", store=tmp_path / "s").stdout
    assert "P(frontier)" in wide
    found = json.loads(cli("--measure", "RA-nWG@1", "--format", "json", store=tmp_path / "s").stdout)
    assert found["chosen"]["p_sla"] is None
    assert found["golden_set"] == "gold"


@pytest.mark.slow
def test_no_decision_lists_no_chances(cli, tmp_path):
    queries = [f"q{number}" for number in range(12)]
    made = Lab().judge({query: {"a": 5} for query in queries}, by="fake")
    for name, passage, ms in (("one", "a", 10.0), ("two", "b", 90.0)):
        made.run(name, final={query: [passage] for query in queries}, ms={"embed": [ms] * 12})
    made.write(tmp_path / "s")
    shown = cli("--measure", "RR@1", store=tmp_path / "s").stdout
    assert "No decision yet" in shown
    assert "P(" not in shown
    found = json.loads(cli("--measure", "RR@1", "--format", "json", store=tmp_path / "s").stdout)
    assert (found["chosen"], found["frontier"]) == (None, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prices", "nowhere"], "No price book 'nowhere'"),
        (["--collection", "nowhere"], "No collection 'nowhere'"),
        (["--origin", "run"], "No such run. Import results first."),
        (["--golden-set", "nowhere"], "No golden set 'nowhere'"),
        (["--measure", "RA-nWG"], "has no cutoff"),
        (["--measure", "GMAPP@10"], "No measure 'GMAPP'"),
    ],
)
def test_refusals(cli, words, said):
    assert said in cli(*words, code=1).stderr


def test_measures():
    assert quality_of("RA-nWG@10") == Quality("RA-nWG", 10)
    assert quality_of("GMAP@20") == Quality("GMAP", 20)
    with pytest.raises(UnknownNameError):
        quality_of("GMAP")
    with pytest.raises(InputError):
        quality_of("RA-nWG")


@pytest.mark.slow
def test_what_does_not_compare_is_left_out_and_said(tmp_path):
    queries = [f"q{number}" for number in range(1, 16)]
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in queries})
    lab.run("whole", final={query: ["x", "p"] for query in queries})
    lab.run("part", final={query: ["p"] for query in queries[:3]})
    lab.write(tmp_path / "store")
    command = ["--store", str(tmp_path / "store"), "decide", "--measure", "RR@10", "--format", "json"]
    found = CliRunner().invoke(app, command)
    assert json.loads(found.stdout)["chosen"]["run_id"] == "whole"
    assert "warning: Not every stack was asked the same queries (3 to 15 of 15 judged)" in found.stderr
    assert "sidebar" not in found.stderr
    together = CliRunner().invoke(app, [*command, "--together"])
    assert "counts as 0 here" in together.stderr
    assert len(json.loads(together.stdout)["frontier"]) == 1


@pytest.mark.slow
def test_only_well_judged_queries_where_asked(tmp_path):
    queries = [f"q{number:02}" for number in range(1, 16)]
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in queries})
    lab.run("known", final={query: ["x", "p"] for query in queries})
    lab.run("new", final={q: ["p", "x" if q < "q12" else "hole"] for q in queries})
    lab.write(tmp_path / "store")
    command = ["--store", str(tmp_path / "store"), "decide", "--measure", "P@2", "--format", "json"]
    whole = CliRunner().invoke(app, command)
    assert json.loads(whole.stdout)["chosen"]["n"] == 15
    assert whole.stderr == ""
    found = CliRunner().invoke(app, [*command, "--judged", "all"])
    assert json.loads(found.stdout)["chosen"]["n"] == 11
    assert "warning: Only queries count of whose Top-2 everything is judged" in found.stderr
    refused = CliRunner().invoke(app, [*command, "--judged", "all", "--together"])
    assert refused.exit_code == 1
    assert "do the opposite" in refused.stderr


@pytest.mark.slow
def test_a_measure_that_counts_can_be_quality(cli, demo_store):
    found = json.loads(
        cli(
            "--collection", "python-docs", "--measure", "T@10", "--min-quality", "-0.4", "--format", "json",
            store=demo_store,
        ).stdout
    )  # fmt: skip
    qualities = [found["chosen"]["quality"], *(row["quality"] for row in found["frontier"])]
    assert found["asked"]["measure"] == "T@10"
    assert max(qualities) <= 5
    assert "between 0 and 1" in cli("--collection", "clq-paper", "--min-quality", "2", code=1).stderr


def test_stacks_to_evaluate_next(published_store, monkeypatch):
    monkeypatch.setattr(extras, "installed", lambda _: False)
    words = ["--store", str(published_store), "next", "--sla-ms", "600", "--format", "json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert {row["said_by"] for row in rows} == {"effects"}
    assert rows[0]["chance"] == max(row["chance"] for row in rows)
    assert "pip install -r requirements-search.txt" in result.stderr
