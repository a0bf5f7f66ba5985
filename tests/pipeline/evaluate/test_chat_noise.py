"""A chat model rewrites noisy questions at a failing vendor: killed, resumed, paid once, decided on."""

from __future__ import annotations

import json
import os
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.paths import ROOT
from core.providers.calls.keys import ALLOW
from tests import warm
from tests.vendors import Step, Vendors, serve

ENDPOINT = "openai/chat"
LEVELS = (0, 2, 4)
ASKED = ["cats at night", "dogs that bark", "what do bees do", "cows in a field", "how pigs grunt"]
TEXTS = ["cats purr at night", "dogs bark loudly", "bees hum at noon", "cows moo in the field", "pigs grunt"]
SPEC = """
name = "barn"
collection = "barn"
[axes]
mode = "sparse"
candidates = 2
noise = [0, 2, 4]
rewrite = ["none", "chat:writer"]
[latency]
repeats = 1
warm_up = 0
[budget]
usd = 1.0
[models.writer]
provider = "openai"
model = "gpt-4o-mini"
base_url = "{url}"
key_env = "KEY"
limits = {{ concurrency = 1, attempts = 6 }}
"""


def clean(body: dict[str, object]) -> str:
    """What a good rewriter answers: the question without what stands around it."""
    said = str(body["messages"][-1]["content"])  # type: ignore[index]
    return json.dumps({"query": next(each for each in ASKED if each in said)})


@pytest.fixture
def vendors() -> Iterator[Vendors]:
    with serve(chat=clean) as server:
        yield server


@pytest.mark.slow
def test_rewrites_of_noisy_questions_are_paid_once_and_decided_on(tmp_path: Path, vendors: Vendors):
    barn = tmp_path / "barn"
    (barn / "qrels").mkdir(parents=True)
    talk = tomllib.loads((ROOT / "core/pipeline/query/small_talk/en.toml").read_text("utf-8"))
    texts = [*TEXTS, *talk["greeting"], *talk["filler"], *talk["digression"]]
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(ASKED)]
    (barn / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (barn / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    grades = "".join(f"q{at}\td{at}\t1\n" for at in range(len(ASKED)))
    (barn / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    (tmp_path / "spec.toml").write_text(SPEC.format(url=vendors.openai))
    allowed = {**os.environ, "KEY": "key", ALLOW: f"KEY={vendors.url}"}
    store = tmp_path / "store"

    def begin(*words: str) -> warm.Child:
        return warm.command(["--store", str(store), *words], allowed, tmp_path)

    def said(*words: str) -> Any:
        done = CliRunner().invoke(app, ["--store", str(store), *words, "--format", "json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    faults = [Step.error(429, retry_after="0"), Step.error(500), Step("malformed"), Step("drop")]
    vendors.script(ENDPOINT, *(step for fault in faults for step in (Step(), fault)))
    vendors.always(ENDPOINT, Step("slow", seconds=0.02))
    process = begin("run", "spec.toml", "--yes")
    while vendors.state.answered[ENDPOINT] < 10 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    _, complaints = process.communicate()
    assert process.returncode == -9, complaints
    process = begin("resume", "barn")
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints

    counts = vendors.state.texts[ENDPOINT]
    questions = len(LEVELS) * len(ASKED)
    assert len(counts) == questions
    under_way, malformed = 1, 1
    assert sum(counts.values()) - questions <= under_way + malformed
    paid = dict(counts)
    decided = said("decide", "--measure", "RR@2")
    stacks = {(row["rewrite"], row["perturb"]): row for row in said("diagnose", "noise", "--measure", "RR@2")}
    assert vendors.state.texts[ENDPOINT] == paid, "deciding asks nobody"
    plain, rewritten = (stacks[name, "noise 4"] for name in ("none", "chat:writer"))
    assert plain["change"] < 0
    assert (rewritten["change"], rewritten["won"]) == (0, pytest.approx(-plain["change"]))
    rows = {row["stack"]: row for row in (decided["chosen"], decided["runner_up"])}
    asked_chat, asked_none = rows["BM25 · chat:writer"], rows["BM25"]
    assert asked_chat["cost"] > asked_none["cost"]
    assert asked_chat["latency_ms"] >= stacks["chat:writer", ""]["rewrite_ms"] > asked_none["latency_ms"]
    print(
        f"{questions} prompts, {sum(counts.values())} billed; at noise 4 {plain['change']:+.3f}, won "
        f"back {rewritten['won']:+.3f}; ${asked_chat['cost']:.4f} / 1k, {asked_chat['latency_ms']:.0f} ms"
    )
