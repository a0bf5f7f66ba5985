"""Measures that are better the lower, and the harm cap, from the command line to the record."""

import json

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from tests.stores import Lab

QUERIES = [f"q{n}" for n in range(6)]
RANKED = {  # of two passages: how many are harmful, how many unjudged
    "worst": ["bad", "poor"],
    "holes": ["good", "who"],
    "half": ["good", "bad"],
    "best": ["good", "fine"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    grades = {"good": 5, "fine": 4, "bad": 1, "poor": 2}
    made = Lab().judge(dict.fromkeys(QUERIES, grades))
    for place, (name, passages) in enumerate(RANKED.items()):
        ms = {"embed": [10.0 + 100 * place] * len(QUERIES)}  # far apart: no ties
        made.run(name, final=dict.fromkeys(QUERIES, passages), ms=ms)
    return made.write(tmp_path_factory.mktemp("direction") / "s").path


def call(store, command, *words, code=0):
    result = CliRunner().invoke(app, ["--store", str(store), command, *words])
    assert result.exit_code == code, result.output
    return result.stdout


def decided(store, *words):
    return json.loads(call(store, "decide", "--format", "json", *words))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "words", "chosen", "excluded"),
    [
        ("RA-nWG@2", [], "best", set()),
        ("Harm@2", [], "holes", set()),  # as harmless as the best, and faster
        ("HarmUpper@2", [], "best", set()),
        ("Hole@2", [], "worst", set()),
        ("Harm@2", ["--min-quality", "0.5"], "holes", {"worst"}),
        ("HarmUpper@2", ["--min-quality", "0.4"], "best", {"worst", "holes", "half"}),
        ("HarmUpper@2", ["--sla-ms", "250"], "holes", {"best"}),
        ("RA-nWG@2", ["--max-harm", "0.2"], "best", {"worst", "holes", "half"}),
        ("RA-nWG@2", ["--max-harm", "0.5", "--sla-ms", "250"], "holes", {"worst", "best"}),
        ("RA-nWG@2", ["--rule", "latency", "--max-harm", "0.5"], "holes", {"worst"}),
        ("Harm@2", ["--rule", "latency"], "worst", set()),
    ],
)
def test_what_is_chosen(store, measure, words, chosen, excluded):
    found = decided(store, "--measure", measure, *words)
    assert found["chosen"]["run_id"] == chosen
    assert {row["run_id"] for row in found["excluded"]} == excluded
    values = [row["quality"] for row in found["frontier"]]
    assert values == sorted(values, reverse=found["asked"]["better"] == "higher")
    assert (found["asked"]["better"] == "lower") == measure.startswith(("Har", "Hol"))


@pytest.mark.slow
def test_the_cap_is_in_json_record_and_command(store, tmp_path):
    words = ("--measure", "RA-nWG@2", "--max-harm", "0.2")
    found = decided(store, *words)
    assert (found["asked"]["max_harm"], found["asked"]["harm"]) == (0.2, "HarmUpper@2")
    assert {row["constraint"] for row in found["excluded"]} == {"max_harm"}
    assert found["chosen"]["harm"] == 0.0
    assert {turn["of"] for turn in found["would_turn"]} <= {"cost", "latency", "quality", "harm"}
    out = tmp_path / "record.json"
    call(store, "record", str(out), *words, "--dashboard", "https://clq.example/")
    record = json.loads(out.read_text())
    assert record["question"]["max_harm"] == 0.2
    assert "--max-harm 0.2" in record["command"]
    assert "max_harm=0.2" in record["link"]
    assert call(store, "decide", "--gate", str(out))
    for ending in ("md", "html"):
        call(store, "record", str(tmp_path / f"record.{ending}"), *words)
    assert "HarmUpper@2" in (tmp_path / "record.md").read_text()
    call(store, "snapshot", str(tmp_path / "s.html"), *words)


@pytest.mark.slow
def test_the_record_of_a_measure_that_is_better_the_lower(store, tmp_path):
    out = tmp_path / "record.json"
    call(
        store, "record", str(out), "--measure", "Harm@2", "--min-quality", "0.5", "--dashboard", "http://clq/"
    )
    record = json.loads(out.read_text())
    assert record["chosen"]["run_id"] == "holes"
    assert [row["run_id"] for row in record["stacks"]][-1] == "worst"
    assert "min_quality=0.5" in record["link"]
    assert "cap=" not in record["link"]
    call(store, "decide", "--gate", str(out))


@pytest.mark.slow
def test_published_stacks_of_unknown_harm(published_store):
    refused = CliRunner().invoke(
        app, ["--store", str(published_store), "decide", "--collection", "clq-paper", "--max-harm", "0.2"]
    )
    assert refused.exit_code == 7
    assert "No stack here has a known harm." in refused.stderr
    free = decided(published_store, "--collection", "clq-paper")
    assert (free["chosen"]["latency_ms"], free["chosen"]["cost"]) == (None, None), "nothing asks for them"
    assert free["promising"] == []
    limited = decided(published_store, "--collection", "clq-paper", "--sla-ms", "600", "--budget", "2.5")
    assert None not in (limited["chosen"]["latency_ms"], limited["chosen"]["cost"])
    assert limited["promising"][0]["quality"] == free["chosen"]["quality"]
    assert limited["promising"][0]["gain"] > 0
