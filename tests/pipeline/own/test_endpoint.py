"""Endpoints: what each engine is sent and how its answer is read, and every way in which one fails."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import InputError
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import Endpoint, presets
from core.pipeline.own.process import Ended
from core.providers.calls import Keys

PLAIN = [{"id": "a", "score": 2.0, "text": "cats"}, {"id": "b", "score": 1.0}]
ANSWERS: dict[str, Any] = {
    "elasticsearch": {
        "took": 3,
        "hits": {"hits": [{"_id": "a", "_score": 2.0, "_source": {"text": "cats"}}]},
    },
    "vespa": {
        "root": {"children": [{"id": "id:x", "relevance": 2.0, "fields": {"id": "a", "text": "cats"}}]}
    },
    "solr": {
        "responseHeader": {"QTime": 3},
        "response": {"docs": [{"id": "a", "score": 2.0, "text": "cats"}]},
    },
    "qdrant": {"result": {"points": [{"id": 7, "score": 2.0, "payload": {"id": "a", "text": "cats"}}]}},
    "weaviate": {"data": {"Get": {"Doc": [{"text": "cats", "_additional": {"id": "a", "score": "2.0"}}]}}},
    "typesense": {"search_time_ms": 3, "hits": [{"document": {"id": "a", "text": "cats"}, "text_match": 2}]},
    "plain": [{"id": "a", "score": 2.0, "text": "cats"}],
}
ANSWERS["opensearch"] = ANSWERS["elasticsearch"]
SENT = {
    "elasticsearch": ("/x/_search", {"size": 5, "query": {"multi_match": {"query": "purring cats"}}}),
    "opensearch": ("/x/_search", {"size": 5, "query": {"multi_match": {"query": "purring cats"}}}),
    "solr": ("/x/select", {"query": "purring cats", "limit": 5, "fields": "*,score"}),
    "typesense": ("/x/documents/search?q=purring+cats&query_by=text&per_page=5", None),
    "plain": ("/x", {"query": "purring cats", "k": 5}),
}
PARAMS = {"qdrant": {"model": "m"}, "weaviate": {"class": "Doc"}}


class Engine:
    """A server that answers by path, and remembers what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, dict[str, str]]] = []
        self.connections: set[tuple[str, int]] = set()
        self.answer: Any = PLAIN
        self.replies: list[tuple[int, dict[str, str], bytes]] = []
        self.pause = 0.0

    def reply(self) -> tuple[int, dict[str, str], bytes]:
        time.sleep(self.pause)
        return self.replies.pop(0) if self.replies else (200, {}, json.dumps(self.answer).encode())


@pytest.fixture
def engine() -> Iterator[tuple[Engine, str]]:
    one = Engine()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            one.seen.append((self.path, json.loads(body) if body else None, dict(self.headers)))
            one.connections.add(self.client_address)
            status, headers, data = one.reply()
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args: object) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None: ...

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield one, f"http://127.0.0.1:{server.server_address[1]}/x"
    server.shutdown()
    server.server_close()
    thread.join()


def asked(
    url: str, query: str = "purring cats", params: Any = None, keys: Keys | None = None, **told: Any
) -> Any:
    one = Endpoint(OwnStack.model_validate({"name": "shop", "url": url, **told}), keys or Keys({}, ()))
    try:
        return one.ask(query, 5, params or {})
    finally:
        one.close()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_engines_are_asked_and_read_by_their_preset(name: str, engine: tuple[Engine, str]):
    one, url = engine
    one.answer = ANSWERS[name]
    answer = asked(url, preset=name, params=PARAMS.get(name))
    (hit,) = answer["hits"]
    assert ("a" in hit[0], hit[1], hit[2]) == (True, 2.0, "cats")
    if name in SENT:
        assert one.seen[0][:2] == SENT[name]
    assert "purring" in json.dumps(one.seen[0][:2])


def test_every_preset_is_tried():
    assert set(presets()) == set(ANSWERS)


def test_a_template_and_paths_of_ones_own(engine: tuple[Engine, str]):
    one, url = engine
    one.answer = {"took": 1, "out": [{"n": 1, "t": "cats"}], "all": [{"n": 2, "t": "x"}], "cost": 0.25}
    answer = asked(
        url,
        params={"alpha": 0.3},
        request={"json": {"q": "say {{ query }}", "alpha": "{{ alpha }}"}},
        response={"hits": "out", "id": "n", "text": "t", "pool": "all", "usd": "cost"},
    )
    assert one.seen[0][1] == {"q": "say purring cats", "alpha": 0.3}
    assert (answer["hits"], answer["pool"]) == ([[["1"], None, "cats"]], [[["2"], None, "x"]])
    assert answer["usage"] == [{"model": "", "usd": 0.25}]


def test_one_connection_is_kept(engine: tuple[Engine, str]):
    one, url = engine
    endpoint = Endpoint(OwnStack(name="shop", url=url), Keys({}, ()))
    for _ in range(5):
        endpoint.ask("cats", 5, {})
    endpoint.close()
    assert (len(one.seen), len(one.connections)) == (5, 1)


HTML = (200, {"Content-Type": "text/html"}, b"<html>Sign in</html>")
FAULTS: dict[str, tuple[tuple[int, dict[str, str], bytes], str, str]] = {
    "busy": ((429, {"Retry-After": "7"}, b"slow down"), "busy", "HTTP 429: slow down"),
    "server": ((503, {}, b""), "server", "HTTP 503"),
    "refused": ((404, {}, b"no index"), "refused", "HTTP 404: no index"),
    "redirect": ((302, {"Location": "http://elsewhere.example/x"}, b""), "redirect", "elsewhere.example"),
    "large": ((200, {}, b'"' + b"x" * 2_000_000 + b'"'), "too large", "more than 1 MB"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_refusal_is_a_fault_of_its_kind(name: str, engine: tuple[Engine, str]):
    one, url = engine
    reply, kind, words = FAULTS[name]
    one.replies = [reply]
    with pytest.raises(Ended, match=words) as told:
        asked(url, answer_mb=1.0)
    assert told.value.kind == kind
    assert len(one.seen) == 1


UNREADABLE = {
    "html": (b"<html>Sign in</html>", "not JSON; it begins: <html>Sign in"),
    "deep": (b"[" * 100_000, "not JSON"),
    "nothing": (b"", "begins: nothing"),
    "shape": (b'{"error": "x"}', "a mapping without passages; its keys: error"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_answer_that_cannot_be_read_is_a_fault(name: str, engine: tuple[Engine, str]):
    one, url = engine
    body, words = UNREADABLE[name]
    one.replies = [(200, {}, body)]
    fault = asked(url)["fault"]
    assert fault["kind"] == "shape"
    assert words in fault["text"]


def test_a_redirect_within_the_address_is_followed(engine: tuple[Engine, str]):
    one, url = engine
    one.replies = [(307, {"Location": "/y"}, b"")]
    assert asked(url)["hits"]
    assert [path for path, _, _ in one.seen] == ["/x", "/y"]


def test_it_is_asked_again_only_where_that_is_wanted(engine: tuple[Engine, str]):
    one, url = engine
    one.replies = [(429, {"Retry-After": "0"}, b""), (503, {"Retry-After": "0"}, b"")]
    answer = asked(url, retries=2)
    assert (answer["attempts"], len(one.seen)) == (3, 3)
    assert answer["waited_ms"] > 0


def test_what_is_down_slow_or_not_safe_is_told():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(Ended, match="cannot be reached") as told:
        asked(f"http://127.0.0.1:{port}/x")
    assert told.value.kind == "unreachable"


def test_a_slow_one_is_given_up(engine: tuple[Engine, str]):
    one, url = engine
    one.pause = 1.0
    with pytest.raises(Ended, match=r"within 0\.2 s") as told:
        asked(url, timeout_s=0.2)
    assert told.value.kind == "timeout"


def test_no_tls_where_there_is_none(engine: tuple[Engine, str]):
    _, url = engine
    with pytest.raises(Ended, match="No safe connection") as told:
        asked(url.replace("http://", "https://"))
    assert told.value.kind == "tls"


def test_a_key_goes_only_where_the_operator_allows(engine: tuple[Engine, str]):
    one, url = engine
    allowed = Keys({"SHOP_KEY": "s3cret-s3cret", "CLQ_ALLOW_KEYS": f"SHOP_KEY={url}"}, ())
    assert asked(url, key_env="SHOP_KEY", keys=allowed)["hits"]
    assert one.seen[0][2]["Authorization"] == "Bearer s3cret-s3cret"
    with pytest.raises(InputError, match="may not be sent"):
        asked(url, key_env="SHOP_KEY", keys=Keys({"SHOP_KEY": "s3cret-s3cret"}, ()))
    assert len(one.seen) == 1


HOSTILE = {"tenant": "'; DROP TABLE x; -- \"}} \u202e {{ k }}", "acl": {"any": ["a&b=c", "%2f#?"]}}


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        ({"json": {"q": "{{ query }}", "filter": "{{ filter }}"}}, {"q": "purring cats", "filter": HOSTILE}),
        (
            {"json": {"q": "{{ query }}", "filter": "as text: {{ filter }}"}},
            {"q": "purring cats", "filter": f"as text: {json.dumps(HOSTILE, ensure_ascii=False)}"},
        ),
    ],
)
def test_the_filter_of_a_query_is_sent_where_the_request_has_a_place_for_it(
    engine: tuple[Engine, str], request_: Any, body: Any
):
    one, url = engine
    told = {"name": "shop", "url": url, "request": request_}
    endpoint = Endpoint(OwnStack.model_validate(told), Keys({}, ()))
    endpoint.ask("purring cats", 5, {}, HOSTILE)
    assert one.seen[0][1] == body
    assert endpoint.hello == {"filters": True}
    endpoint.ask("purring cats", 5, {})
    assert "{}" in json.dumps(one.seen[1][1])
    endpoint.close()
    assert not Endpoint(OwnStack(name="shop", url=url), Keys({}, ())).hello["filters"]


def test_a_filter_in_an_address_stays_one_value(engine: tuple[Engine, str]):
    one, url = engine
    where = {"method": "GET", "query": {"q": "{{ query }}", "only": "{{ filter }}"}}
    endpoint = Endpoint(OwnStack.model_validate({"name": "s", "url": url, "request": where}), Keys({}, ()))
    endpoint.ask("cats", 5, {}, HOSTILE)
    endpoint.close()
    given = parse_qs(urlsplit(one.seen[0][0]).query)
    assert given["q"] == ["cats"]
    assert json.loads(given["only"][0]) == HOSTILE
