"""Questions by a model behind a local server of the vendor's wire format: paid, kept, resumed, thrown out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import BudgetError
from core.jobs import State
from core.pipeline.evaluate.session import Result, Site
from core.providers.chat.ask import find_marked
from core.work.questions.drafts import KINDS
from core.work.questions.folder import QUERIES, QUOTES, QuestionSet, read
from core.work.questions.job import read_job
from core.work.questions.plan import plan
from core.work.questions.rules import CLOSED_BOOK, NOT_IN_TEXT, REFERS, UNUSABLE
from core.work.questions.run import SET, run_job
from core.work.questions.spec import QuestionsSpec
from tests.vendors import Vendors, keys_for, serve
from tests.work.golden import built
from tests.work.questions import texts
from tests.work.questions.writers import answer, writer

CHAT = "openai/chat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return texts.folder_of(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def vendors() -> Iterator[Vendors]:
    with serve(chat=writer) as server:
        yield server


def spec_of(folder: Path, url: str, **given: Any) -> QuestionsSpec:
    model = {
        "provider": "openai", "base_url": f"{url}/openai/v1", "key_env": "KEY", "tokenizer": "o200k_base",
        "limits": {"concurrency": 2, "attempts": 2}, "chat": {"json_mode": "schema"},
    }  # fmt: skip
    told = {
        "name": "asked",
        "collection": str(folder),
        "method": "judge",
        "count": 4,
        "prices": "fake",
        **given,
    }
    return QuestionsSpec.model_validate({**told, "models": {"judge": model}})


def make(spec: QuestionsSpec, work: Path, url: str) -> tuple[Result, QuestionSet]:
    job, _ = read_job(spec, {"fake": built.book()}, to_run=False)
    result = run_job(job, site=Site(work=work, keys=keys_for(url, KEY="key")))
    return result, read(Path(result.stored))


@pytest.mark.slow
def test_every_kind_is_written_with_its_quotes_model_prompt_and_dollars(
    folder: Path, tmp_path: Path, vendors: Vendors
):
    spec = spec_of(folder, vendors.url, count=5, kinds=list(KINDS))
    job, _ = read_job(spec, {"fake": built.book()}, to_run=False)
    foreseen = plan(job)
    result, made = make(spec, tmp_path, vendors.url)
    assert result.status.state is State.FINISHED
    assert {entry.draft.kind for entry in made.asked} == set(KINDS)
    documents = {path.name: path.read_text() for path in folder.iterdir()}
    for entry in made.asked:
        draft = entry.draft
        assert (draft.model, len(draft.prompt) > 8) == ("judge", True)
        assert draft.usd is not None
        assert draft.usd > 0
        assert bool(draft.quotes) == (draft.kind != "unanswerable")
        assert all(documents[quote.source][quote.start : quote.end] == quote.text for quote in draft.quotes)
        assert len(draft.quotes) >= (2 if draft.kind in ("several passages", "comparison") else 0)
    written = sum(line.calls for line in foreseen.lines if line.stage == "write questions")
    asked = vendors.state.calls[CHAT]
    assert written <= asked <= foreseen.calls
    assert result.status.usd == pytest.approx(sum(entry.draft.usd or 0 for entry in made.entries), rel=0.5)
    home = Path(result.stored)
    assert home.name == SET
    rows = [json.loads(line) for line in (home / QUERIES).read_text().splitlines()]
    assert [row["metadata"]["type"] for row in rows] == [entry.draft.kind for entry in made.asked]
    assert len((home / QUOTES).read_text().splitlines()) > len(made.asked) - 1


@pytest.mark.slow
def test_again_nothing_is_paid_and_the_set_is_the_same(folder: Path, tmp_path: Path, vendors: Vendors):
    spec = spec_of(folder, vendors.url, twins=True)
    _, made = make(spec, tmp_path, vendors.url)
    before = vendors.state.calls[CHAT]
    result, again = make(spec, tmp_path, vendors.url)
    assert vendors.state.calls[CHAT] == before
    assert [entry.draft.text for entry in again.entries] == [entry.draft.text for entry in made.entries]
    twin = read(Path(result.stored).with_name(f"{SET}-twin"))
    assert {entry.query_id for entry in twin.asked} == {entry.query_id for entry in made.asked}
    quotes = {entry.query_id: entry.draft.quotes for entry in made.asked}
    assert all(entry.draft.quotes == quotes[entry.query_id] for entry in twin.asked)


@pytest.mark.slow
def test_a_stop_by_the_budget_goes_on_and_pays_for_no_answer_twice(
    folder: Path, tmp_path: Path, vendors: Vendors
):
    whole, made = make(spec_of(folder, vendors.url), tmp_path / "whole", vendors.url)
    calls = vendors.state.calls[CHAT]
    small = spec_of(folder, vendors.url, budget_usd=whole.status.usd * 0.75)
    with pytest.raises(BudgetError):
        make(small, tmp_path / "small", vendors.url)
    assert not list((tmp_path / "small").glob(f"*/{SET}"))
    result, again = make(spec_of(folder, vendors.url), tmp_path / "small", vendors.url)
    assert vendors.state.calls[CHAT] == 2 * calls
    assert result.status.usd == pytest.approx(whole.status.usd)
    assert [entry.draft for entry in again.entries] == [entry.draft for entry in made.entries]


def forged(_: list[str]) -> str:
    return answer("Who keeps the parcels?", [(1, "The parcels are kept by Ada forever")], "Ada")


def turned(passages: list[str]) -> str:
    return answer("Who keeps the parcels?", [(1, "\u202e" + passages[0][:30])], "Ada")


def elsewhere(passages: list[str]) -> str:
    return answer("Who keeps the parcels?", [(7, passages[0][:30])], "Ada")


def telling(passages: list[str]) -> str:
    return answer("According to the text, who keeps parcels?", [(1, passages[0][:30].strip())], "Ada")


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (forged, NOT_IN_TEXT),
        (turned, NOT_IN_TEXT),
        (elsewhere, UNUSABLE),
        (telling, REFERS),
        (lambda _: "Sure! Here is a question.", UNUSABLE),
        (lambda _: '{"asked": {"question": "", "quotes": [], "answer": ""}}', UNUSABLE),
        (lambda _: '{"asked": "x"}', UNUSABLE),
    ],
)
def test_what_a_model_makes_up_is_thrown_out_and_counted(
    folder: Path, tmp_path: Path, says: Callable[[list[str]], str], reason: str
):
    def told(body: Mapping[str, Any]) -> str:
        shown = find_marked(str(body["messages"][1]["content"]))
        return says([text for label, text in shown if label.startswith("passage")])

    with serve(chat=told) as server:
        result, made = make(spec_of(folder, server.url, count=2), tmp_path, server.url)
    assert made.asked == ()
    assert made.counts() == {reason: 3}
    assert result.status.facts["thrown_out"] == {reason: 3}


@pytest.mark.slow
def test_what_the_model_knows_without_the_text_is_thrown_out(folder: Path, tmp_path: Path):
    def knows(body: Mapping[str, Any]) -> str:
        system = str(body["messages"][0]["content"])
        return json.dumps({"known": "Of course so it is"}) if '{"known"' in system else writer(body)

    with serve(chat=knows) as server:
        _, made = make(spec_of(folder, server.url, count=2), tmp_path / "asked", server.url)
        _, open_book = make(
            spec_of(folder, server.url, count=2, closed_book=False), tmp_path / "not", server.url
        )
    assert set(made.counts()) == {CLOSED_BOOK}
    assert len(open_book.asked) == 2


def test_orders_in_documents_stand_between_marks_and_change_nothing(
    folder: Path, tmp_path: Path, vendors: Vendors
):
    make(spec_of(folder, vendors.url, count=6), tmp_path, vendors.url)
    prompts = [request["messages"] for request in vendors.state.requests if request.get("messages")]
    systems = Counter(str(messages[0]["content"]) for messages in prompts)
    assert not any("password of the administrator" in text for text in systems)
    hostile = [m for m in prompts if "Ignore all previous instructions" in str(m[1]["content"])]
    for messages in hostile:
        inside = " ".join(text for _, text in find_marked(str(messages[1]["content"])))
        assert "Ignore all previous instructions" in inside
