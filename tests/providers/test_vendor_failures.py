"""Vendors that fail, and what becomes of keys, budgets and batches then; through the real clients."""

from __future__ import annotations

import logging
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

from core.errors import InputError, ProviderError
from core.providers.base import Purpose
from core.providers.calls import Caller, Journal, Keys, Limits
from core.providers.chat import make_chat
from core.providers.config import ModelConfig
from core.providers.embed import EMBEDDERS, make_embedder
from tests.providers.calls.made import Ledger
from tests.providers.connected import KEY, MODELS, TEXTS, connected, every_vendor, expected
from tests.vendors import Step, Vendors, answers, keys_for


@every_vendor
@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([Step.error(429, "7")], [7.7]),
        ([Step.error(500)], [1.0]),
        ([Step.error(503), Step.error(502)], [1.0, 2.0]),
        ([Step("malformed")], [1.0]),
        ([Step("drop")], [1.0]),
    ],
    ids=["429", "500", "503 502", "malformed", "drop"],
)
def test_what_passes_is_tried_again(vendors: Vendors, name: str, steps: list[Step], waits: list[float]):
    endpoint = MODELS[name][0]
    vendors.script(endpoint, *steps)
    slept: list[float] = []
    with connected(vendors, name, slept=slept) as embedder:
        reply = embedder.embed_query(TEXTS[0])
    np.testing.assert_allclose(reply.value, answers.vector(TEXTS[0], 256), atol=1e-6)
    assert reply.attempts == len(steps) + 1 == vendors.state.calls[endpoint]
    assert slept == pytest.approx(waits)


@every_vendor
def test_a_timeout_is_tried_again_and_counted_as_spent(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    ledger, slept = Ledger(), []
    with connected(vendors, name, slept=slept, meter=ledger) as warm:
        warm.embed_query("the client is loaded before the clock runs")
    before = ledger.spent
    vendors.script(endpoint, Step("timeout", seconds=1.0))
    limits = Limits(timeout_s=0.25)
    with connected(vendors, name, slept=slept, meter=ledger, limits=limits) as embedder:
        reply = embedder.embed_query(TEXTS[0])
    assert reply.attempts >= 2
    used = reply.usage[0].amount
    assert used is not None
    assert ledger.spent - before > used  # the attempt without an answer may have been billed
    assert ledger.reserved == 0


@every_vendor
@pytest.mark.parametrize(
    ("step", "kind", "says"),
    [
        (Step.error(401), "auth", "Check the key in {env}"),
        (Step.error(403), "auth", "Check the key in {env}"),
        (Step.error(400, message="no such model"), "refused", "no such model.*name and its settings"),
        (Step.error(404, message="not here"), "refused", "not here"),
        (Step.error(402, message="pay first"), "quota", "credit"),
        (Step.error(429, "9999"), "busy", "asks to wait 9999 s"),
        (Step("wrong count"), "count", "2 results came for 1 texts"),
    ],
    ids=["401", "403", "400", "404", "402", "429 for hours", "wrong count"],
)
def test_what_does_not_pass_is_an_error_at_once(
    vendors: Vendors, name: str, step: Step, kind: str, says: str
):
    endpoint, env, _ = MODELS[name]
    vendors.script(endpoint, step)
    with (
        connected(vendors, name) as embedder,
        pytest.raises(ProviderError, match=says.format(env=env)) as raised,
    ):
        embedder.embed_query(TEXTS[0])
    assert (raised.value.kind, raised.value.where) == (kind, name)
    assert vendors.state.calls[endpoint] == 1
    assert_hidden(raised.value)


@every_vendor
@pytest.mark.parametrize("status", [429, 500, 503])
def test_the_last_attempt_is_an_error(vendors: Vendors, name: str, status: int):
    endpoint = MODELS[name][0]
    vendors.always(endpoint, Step.error(status))
    with (
        connected(vendors, name, limits=Limits(attempts=3)) as embedder,
        pytest.raises(ProviderError, match=f"after 3 attempts.*HTTP {status}") as raised,
    ):
        embedder.embed(TEXTS)
    assert raised.value.status == status
    assert vendors.state.calls[endpoint] == 3
    assert_hidden(raised.value)


def assert_hidden(error: BaseException) -> None:
    """The key is in nothing that a log, a report or a debugger shows of an error."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
    assert KEY not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


@every_vendor
def test_a_wrong_key(vendors: Vendors, name: str):
    with (
        connected(vendors, name, key="bad-KEYthatISwrong") as embedder,
        pytest.raises(ProviderError) as raised,
    ):
        embedder.embed_query("x")
    assert raised.value.kind == "auth"
    assert "bad-KEY" not in str(raised.value)
    assert "[hidden]" in str(raised.value)


@every_vendor
def test_the_key_goes_to_the_vendor_and_nowhere_else(vendors: Vendors, name: str, tmp_path: Path):
    path = tmp_path / "replies.sqlite"
    with connected(vendors, name, journal=Journal(path)) as embedder:
        embedder.embed(TEXTS)
        reply = embedder.embed_query("x")
        shown = f"{embedder!r} {embedder.params(Purpose.QUERY)} {reply!r} {vars(embedder)}"
        assert embedder.journal is not None
        embedder.journal.close()
    assert {each["key"] for each in vendors.state.requests} == {KEY}
    assert KEY not in shown
    files = list(tmp_path.iterdir())
    assert files
    for file in files:
        assert KEY.encode() not in file.read_bytes()


@every_vendor
def test_the_key_is_in_no_log(vendors: Vendors, name: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    vendors.script(MODELS[name][0], Step.error(429, "1"), Step.error(500))
    with connected(vendors, name) as embedder:
        embedder.embed_query("x")
    assert caplog.records
    assert KEY not in caplog.text
    assert KEY not in repr([vars(record) for record in caplog.records])


def test_a_key_is_not_sent_to_another_address(vendors: Vendors):
    """The usual key of a vendor belongs to the vendor's own address."""
    config = ModelConfig(provider="openai", model="local", dim=384, base_url=vendors.openai)
    environment = {"OPENAI_API_KEY": KEY, "VOYAGE_API_KEY": KEY}
    with make_embedder(config, keys=Keys(environment, ())) as embedder:
        embedder.embed(["x"])
    assert vendors.state.requests[0]["key"] == "none"
    own = config.model_copy(update={"key_env": "VOYAGE_API_KEY"})
    with pytest.raises(InputError, match="VOYAGE_API_KEY may not be sent to"):
        make_embedder(own, keys=Keys(environment, ()))
    assert len(vendors.state.requests) == 1
    with make_embedder(own, keys=keys_for(vendors.url, VOYAGE_API_KEY=KEY)) as embedder:
        embedder.embed(["x"])
    assert vendors.state.requests[1]["key"] == KEY


def test_what_the_environment_says_of_openais_account_goes_to_openai_only(
    vendors: Vendors, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {
        "OPENAI_API_KEY": "sk-leak", "OPENAI_ORG_ID": "org-leak", "OPENAI_PROJECT_ID": "proj-leak",
        "OPENAI_CUSTOM_HEADERS": "X-Gateway: leak", "OPENAI_ADMIN_KEY": "sk-leak",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    config = ModelConfig(provider="openai", model="local", dim=384, base_url=vendors.openai)
    with make_embedder(config) as embedder, make_chat(config) as chat:
        embedder.embed(["x"])
        chat.complete("Be brief.", "What is up?", max_tokens=5)
    assert len(vendors.state.requests) == 2
    assert "leak" not in repr([request["headers"] for request in vendors.state.requests])


@pytest.mark.parametrize("name", MODELS)
def test_a_missing_key_is_named_before_anything_is_sent(name: str):
    with pytest.raises(ProviderError, match=MODELS[name][1]):
        make_embedder(name, keys=Keys({}, ()))


@every_vendor
def test_one_failing_batch_keeps_the_others(vendors: Vendors, name: str, tmp_path: Path):
    endpoint = MODELS[name][0]
    texts = [f"text {n:02}" for n in range(20)]
    vendors.script(endpoint, Step(), Step(), Step(), Step.error(400))
    journal = Journal(tmp_path / "replies.sqlite")
    limits = Limits(concurrency=1)
    with connected(vendors, name, journal=journal, batch_items=2, limits=limits) as embedder:
        with pytest.raises(ProviderError):
            embedder.embed(texts)
        assert len(journal) == 6
        vectors = embedder.embed(texts)
    np.testing.assert_allclose(vectors, expected(texts, 256), atol=1e-6)
    assert set(vendors.state.texts[endpoint].values()) == {1}
    assert vendors.state.calls[endpoint] == 11


def test_a_failing_batch_side_by_side_pays_nothing_twice(vendors: Vendors, tmp_path: Path):
    texts = [f"text {n:02}" for n in range(40)]
    vendors.script("voyage/embeddings", *[Step()] * 5, Step.error(400))
    with connected(
        vendors, "voyage-3.5", journal=Journal(tmp_path / "replies.sqlite"), batch_items=2
    ) as embedder:
        with pytest.raises(ProviderError):
            embedder.embed(texts)
        embedder.embed(texts)
    assert set(vendors.state.texts["voyage/embeddings"].values()) == {1}


class Stop(Exception):  # noqa: N818 - what a progress bar raises to end the work
    pass


@pytest.mark.parametrize("concurrency", [1, 4])
def test_progress_can_end_the_work(vendors: Vendors, tmp_path: Path, concurrency: int):
    texts = [f"text {n:02}" for n in range(60)]
    journal = Journal(tmp_path / "replies.sqlite")

    def on_batch(done: int, total: int) -> None:
        if done >= 10:
            raise Stop

    with connected(vendors, "voyage-3.5", journal=journal, batch_items=2) as embedder:
        embedder.concurrency = concurrency
        with pytest.raises(Stop):
            embedder.embed(texts, on_batch=on_batch)
        answered = vendors.state.answered["voyage/embeddings"]
        assert answered <= 5 + 3 * concurrency
        assert len(journal) == 2 * answered
        embedder.embed(texts)
    assert set(vendors.state.texts["voyage/embeddings"].values()) == {1}


@pytest.mark.parametrize("name", ["voyage-3.5", "embed-v4.0"])
def test_a_partial_batch_without_places_is_an_error(vendors: Vendors, name: str):
    vendors.script(MODELS[name][0], Step("partial"))
    with connected(vendors, name) as embedder, pytest.raises(ProviderError, match="2 results came for 4"):
        embedder.embed(TEXTS)


def test_a_partial_batch_with_places_is_completed(vendors: Vendors):
    vendors.script("openai/embeddings", Step("partial"), Step("partial"))
    with connected(vendors, "text-embedding-3-small") as embedder:
        reply = embedder.embed_all(TEXTS)
    np.testing.assert_allclose(reply.value, expected(TEXTS, 256), atol=1e-6)
    sizes = [len(each["input"]) for each in vendors.state.requests]
    assert sizes == [4, 2, 1]
    assert reply.usage[0].amount == vendors.state.usage["openai/embeddings"]


@every_vendor
def test_a_batch_that_is_too_large_is_halved(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    vendors.script(endpoint, Step.error(400, message="too many tokens: the maximum is 3"))
    with connected(vendors, name) as embedder:
        np.testing.assert_allclose(embedder.embed(TEXTS), expected(TEXTS, 256), atol=1e-6)
        assert vendors.state.calls[endpoint] == 3
        vendors.script(endpoint, Step.error(413))
        with pytest.raises(ProviderError, match="shorter texts"):
            embedder.embed_query("a single text cannot be halved")


def test_voyages_client_cannot_read_an_answer_without_usage(vendors: Vendors):
    vendors.always("voyage/embeddings", Step("no usage"))
    with (
        connected(vendors, "voyage-3.5") as embedder,
        pytest.raises(ProviderError, match=r"unreadable.*usage"),
    ):
        embedder.embed_query(TEXTS[0])
    assert vendors.state.calls["voyage/embeddings"] == 3


def test_a_vendor_that_gives_another_dimension(vendors: Vendors):
    config = ModelConfig(provider="openai", model="mine", dim=300, base_url=vendors.openai)
    with make_embedder(config) as embedder, pytest.raises(ProviderError, match=r"shape \(1, 384\)") as raised:
        embedder.embed_query("x")
    assert raised.value.kind == "count"


def test_a_service_that_is_not_there():
    config = ModelConfig(provider="openai", model="mine", dim=8, base_url="http://127.0.0.1:9/v1")
    caller = Caller(Limits(attempts=2), name="mine", sleep=lambda _: None)
    with make_embedder(config, caller=caller) as embedder, pytest.raises(ProviderError) as raised:
        embedder.embed_query("x")
    assert raised.value.kind == "unreachable"


def test_interrupted_work_does_not_wait_out_a_pause(vendors: Vendors):
    """A pause of four minutes ends when another batch fails for good."""
    both = {"seconds": 15, "count": 2}  # both batches are under way before either is answered
    pause = Step("status", status=429, retry_after="240", **both)
    vendors.script("voyage/embeddings", pause, Step("status", status=400, message="no", **both))
    config = EMBEDDERS["voyage-3.5"].model_copy(
        update={"base_url": vendors.voyage, "key_env": "K", "batch_items": 1, "limits": Limits(concurrency=2)}
    )
    failed = threading.Event()

    def work() -> None:
        with make_embedder(
            config, 256, keys=keys_for(vendors.url, K=KEY), caller=Caller(config.limits)
        ) as embedder:
            try:
                embedder.embed(["one", "two"])
            except ProviderError:
                failed.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert failed.is_set()
