"""Section Sources: what answers rest on by similarity, beside what they cite."""

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Scope
from core.readers.attribution import attribute
from core.store import Snapshot
from core.views.readers import sources
from tests.readers.test_attribution import embed
from tests.stores import Lab

SCOPE = Scope("lab", "gold")
TEXTS = {"s": "sort rows", "m": "mean", "c": "chart", "u": "sort sort rows"}
SAID = {
    "q1": "Sort rows. [1] A chart. [2]",
    "q2": "The mean [1].",
    "q3": "I do not know the answer.",
    "q4": "chart [1]",
}
SENT = {"q1": ["s", "m", "c"], "q2": ["c", "m", "s"], "q3": ["s", "m", "c"], "q4": ["c", "m", "s"]}
GRADES = {"q1": {"s": 5, "c": 4, "m": 1}, "q2": {"m": 5}, "q3": {"s": 5}, "q4": {"m": 2}}


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    lab = Lab().ask(dict.fromkeys(SAID, "?")).hold(TEXTS).judge(GRADES).run("run", final=SENT)
    for query, said in SAID.items():
        lab.answer("run", {query: 1.0}, k=3, text=said, prompt="p", temperature=0.0)
    lab.answer("run", {"q1": 1.0}, k=2, text="cut", truncated=True, prompt="p", temperature=0.0)
    lab.answer("run", {"q1": 1.0}, k=0, mode="none", text="mean", prompt="p", temperature=0.0)
    return lab.write(tmp_path / "store").read()


def test_answers_are_scored_by_what_they_rest_on_and_cite(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sources, "_embed", embed)
    answers = sources.answers_of(snapshot, SCOPE, "run")
    assert answers["query_id"].to_list() == ["q1", "q2", "q3", "q4"], "whole passages, and some"
    row = sources.source_table(answers, sources.attributed(answers)).row(0, named=True)
    # q1 rests on s and c, both gold, and cites s and m; q2 rests on m, gold, and cites c; q3 refuses; of q4
    # no passage is gold, so it tells only that it cites what it rests on
    assert (row["k"], row["n"], row["refused"], row["cites"]) == (3, 3, 1, 1.0)
    assert (row["precision"], row["recall"]) == (1.0, 1.0)
    assert (row["cited_precision"], row["cited_recall"]) == (
        pytest.approx((0.5 + 0) / 2),
        pytest.approx(0.25),
    )
    assert row["agree"] == pytest.approx((0.5 + 0 + 1) / 3)
    assert row["base"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert row["agree_low"] < row["agree"] < row["agree_high"]
    said, more = sources.answer(pl.DataFrame([row]), "run")
    assert said == "100.0 % of the passages behind the answers are relevant, 50.0 % of those sent."
    assert "agree on 50.0 % of the sentences that cite; 25.0 % of those cited are gold" in more


def test_every_sentence_names_its_passage(snapshot: Snapshot):
    answers = sources.answers_of(snapshot, SCOPE, "run")
    sentences = attribute(answers["text"].to_list(), answers["texts"].to_list(), embed)
    rows = sources.sentence_table(answers, sentences).filter(query_id="q1")
    assert rows.select("text", "passage_id", "gold", "cites").rows() == [
        ("Sort rows.", "s", "gold", "1"), ("A chart.", "c", "gold", "2"),
    ]  # fmt: skip


def test_without_judgements_agreement_is_still_known(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "_embed", embed)
    answers = sources.answers_of(snapshot, Scope("lab"), "run")
    row = sources.source_table(answers, sources.attributed(answers)).row(0, named=True)
    assert (row["precision"], row["cited_precision"], row["base"]) == (None, None, None)
    assert row["agree"] == pytest.approx(0.5)
    assert sources.answer(pl.DataFrame([row]), "run")[0] == "Which passages are gold is not known."


@pytest.mark.parametrize(
    ("held", "sent"),
    [({}, []), ({"a": ""}, []), ({"a": "only a"}, [["only a\nonly a"]]), ({"b": "b"}, [["b\nb"]])],
)
def test_only_passages_with_text_were_sent(tmp_path: Path, held: dict[str, str], sent: list[list[str]]):
    lab = Lab().ask({"q1": "?"}).judge({"q1": {"a": 5}})
    lab = (lab.hold(held) if held else lab).run("r", final={"q1": ["a", "b"]})
    snapshot = lab.answer("r", {"q1": 1.0}, k=2, text="Only a.").write(tmp_path / "store").read()
    answers = sources.answers_of(snapshot, SCOPE, "r")
    assert answers["texts"].to_list() == sent
