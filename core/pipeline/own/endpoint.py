"""A pipeline behind an HTTP endpoint: templated requests, answers read by JMESPath, with limits and times."""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import ssl
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

import jmespath
from jmespath.exceptions import JMESPathError

from core.errors import InputError, UnknownNameError
from core.paths import DATA
from core.pipeline.own.config import OwnStack, Request, Response
from core.pipeline.own.process import Ended
from core.pipeline.own.worker.clq_worker import AT, Refused, placed, understood, where
from core.providers.calls import Keys
from core.providers.config import origin
from core.records import JsonMap

PRESETS = DATA / "endpoints" / "presets.toml"
_HOLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3
_PART = 1 << 16
_SHOWN = 200
_LONGEST_WAIT_S = 60.0
_AGAIN = ("busy", "server", "unreachable", "timeout")


@cache
def presets() -> Mapping[str, JsonMap]:
    """Return engines whose requests and responses are known, by name."""
    return tomllib.loads(PRESETS.read_text(encoding="utf-8"))


def filled(config: OwnStack) -> OwnStack:
    """Return the configuration, filled in from its preset where it has no value itself.

    Raises:
        UnknownNameError: If there is no such preset.
    """
    if config.preset is None:
        return config
    if config.preset not in presets():
        raise UnknownNameError("preset", config.preset, presets())
    known = presets()[config.preset]
    own = {
        "request": config.request and config.request.model_dump(by_alias=True, exclude_unset=True),
        "response": config.response and config.response.model_dump(exclude_unset=True),
    }
    request = Request.model_validate({**known.get("request", {}), **(own["request"] or {})})
    response = known.get("response")
    merged = (
        None if response is None and not own["response"] else {**(response or {}), **(own["response"] or {})}
    )
    return config.model_copy(
        update={"request": request, "response": None if merged is None else Response.model_validate(merged)}
    )


def check_endpoint(config: OwnStack) -> None:
    """Refuse an endpoint that could not be asked or read.

    Raises:
        InputError: If a JMESPath cannot be read, or a template has a placeholder that nothing fills.
        UnknownNameError: If there is no such preset.
    """
    config = filled(config)
    for key, path in (config.response or Response()).model_dump().items():
        try:
            jmespath.compile(path or "@")
        except JMESPathError as error:
            problem = " ".join(str(error).split())
            raise InputError(f"{path!r} is not JMESPath: {problem}", where=f"response.{key}") from error
    given = {"query", "k", "filter", *config.params}
    holes = _holes(config)
    if unknown := sorted(set(holes) - given):
        raise InputError(
            f"{{{{ {unknown[0]} }}}} is filled by nothing.",
            where="request",
            do=f"There are {', '.join(sorted(given))}; params adds others.",
        )
    if "query" not in holes and config.request is not None and config.request.json_ is not None:
        raise InputError("The request holds no {{ query }}.", where="request", do="Put it where it belongs.")


def _holes(config: OwnStack) -> list[str]:
    return _HOLE.findall(json.dumps((config.request or Request()).model_dump()) + (config.url or ""))


def takes_filter(config: OwnStack) -> bool:
    """Return whether the requests to an endpoint hold the filter of their query."""
    return "filter" in _holes(filled(config))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)


def fill_in(template: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a template with its placeholders filled; a template of one placeholder becomes its value."""
    if isinstance(template, str):
        whole = _HOLE.fullmatch(template.strip())
        if whole:
            return values.get(whole[1], template)
        return _HOLE.sub(lambda hole: _text(values.get(hole[1], hole[0])), template)
    if isinstance(template, Mapping):
        return {fill_in(key, values): fill_in(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_in(part, values) for part in template]
    return template


class Endpoint:
    """Asks an endpoint, one query at a time, over one persistent connection."""

    def __init__(self, config: OwnStack, keys: Keys) -> None:
        self._config = filled(config)
        self._request = self._config.request or Request(json={"query": "{{ query }}", "k": "{{ k }}"})
        response = self._config.response
        self._paths = None if response is None else {
            key: jmespath.compile(path) for key, path in response.model_dump().items() if path
        }  # fmt: skip
        self._keys, self._stop = keys, threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self.hello: JsonMap = {"filters": takes_filter(config)}

    def ready(self) -> None:
        """Look up the key; nothing is sent."""
        self._headers()

    def ask(self, query: str, k: int, params: JsonMap, only: JsonMap | None = None) -> dict[str, Any]:
        """Ask one query, with retries if configured.

        Args:
            only: What its asker may see, where the request has a place for it.

        Returns:
            The answer in the form of `clq_worker.Server`, with waited_ms and attempts.

        Raises:
            Ended: If no answer came; its kind says why.
        """
        values = {"query": query, "k": k, "filter": only or {}, **params}
        waited, attempt = 0.0, 0
        while True:
            attempt += 1
            begin = time.perf_counter()
            try:
                ms, body = self._sent(values)
                break
            except Ended as error:
                if error.kind not in _AGAIN or attempt > self._config.retries:
                    raise
                pause = min(_LONGEST_WAIT_S, getattr(error, "pause_s", None) or 2.0 ** (attempt - 1))
                self._stop.wait(pause)
                waited += (time.perf_counter() - begin) * 1000
        return {"ms": ms, "waited_ms": waited, "attempts": attempt, **self._read(body, k)}

    def _sent(self, values: Mapping[str, Any]) -> tuple[float, bytes]:
        request = self._request
        url = self._address(values)
        body = None
        headers = self._headers()
        if request.method == "POST":
            body = json.dumps(fill_in(request.json_, values)).encode("utf-8", "surrogatepass")
            headers["Content-Type"] = "application/json"
        for _ in range(_MOST_REDIRECTS + 1):
            begin = time.perf_counter()
            response, data = self._exchanged(url, body, headers)
            ms = (time.perf_counter() - begin) * 1000
            if response.status not in _REDIRECTS:
                self._refuse(response, data)
                return ms, data
            url = self._elsewhere(url, response.getheader("Location") or "")
        raise Ended("redirect", f"It redirects more than {_MOST_REDIRECTS} times.")

    def _address(self, values: Mapping[str, Any]) -> str:
        request = self._request
        quoted = {key: quote(_text(value), safe="") for key, value in values.items()}
        head, _, asked = (self._config.url or "").partition("?")
        head = str(fill_in(head, quoted))
        path = str(fill_in(request.path, quoted))
        if path and not head.rstrip("/").endswith(path.rstrip("/")):
            head = head.rstrip("/") + path
        more = urlencode({key: _text(fill_in(value, values)) for key, value in request.query.items()})
        return "?".join(filter(None, (head, "&".join(filter(None, (asked, more))))))

    def _elsewhere(self, url: str, location: str) -> str:
        to = urljoin(url, location)
        if origin(to) != origin(url):
            host = urlsplit(to).netloc or location
            raise Ended("redirect", f"It redirects to another address, {host[:_SHOWN]}, which is not asked.")
        return to

    def _headers(self) -> dict[str, str]:
        config = self._config
        headers = {"Accept": "application/json", **self._request.headers}
        if config.key_env:
            secret = self._keys.need(config.key_env, config.name, config.url or "").reveal()
            name = config.key_header or "Authorization"
            headers[name] = secret if config.key_header else f"Bearer {secret}"
        return headers

    def _exchanged(
        self, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
        until = time.monotonic() + self._config.timeout_s
        try:
            for fresh in (False, True):
                connection, kept = self._connected(parts.scheme, parts.netloc, fresh=fresh)
                try:
                    connection.request(self._request.method, target, body=body, headers=dict(headers))
                    response = connection.getresponse()
                    return response, self._body(response, until)
                except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    if fresh or not kept:  # a kept connection may have been closed meanwhile
                        raise
        except TimeoutError as error:
            raise self._over("timeout", f"No answer within {self._config.timeout_s:g} s.") from error
        except ssl.SSLError as error:
            raise self._over("tls", f"No safe connection: {error.reason or error}.") from error
        except (OSError, http.client.HTTPException) as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise self._over("unreachable", f"It cannot be reached: {said[:_SHOWN]}.") from error
        raise self._over("unreachable", "It closed the connection.")

    def _connected(self, scheme: str, host: str, *, fresh: bool) -> tuple[http.client.HTTPConnection, bool]:
        if self._connection is not None and not fresh:
            return self._connection, True
        self.close()
        timeout = self._config.timeout_s
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        self._connection = kind(host, timeout=timeout)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection, False

    def _body(self, response: http.client.HTTPResponse, until: float) -> bytes:
        most = int(self._config.answer_mb * 1e6)
        data = bytearray()
        while part := response.read(_PART):
            data += part
            if len(data) > most:
                raise self._over("too large", f"The answer takes more than {self._config.answer_mb:g} MB.")
            if time.monotonic() > until:
                raise self._over("timeout", f"The answer is not whole within {self._config.timeout_s:g} s.")
        return bytes(data)

    def _over(self, kind: str, text: str) -> Ended:
        self.close()
        return Ended(kind, text)

    def _refuse(self, response: http.client.HTTPResponse, data: bytes) -> None:
        status = response.status
        if status < 300:
            return
        said = " ".join(data[:_SHOWN].decode("utf-8", "replace").split())
        kind = "busy" if status == 429 else "server" if status >= 500 else "refused"
        error = Ended(kind, f"HTTP {status}: {said or response.reason}.")
        pause = response.getheader("Retry-After") or ""
        error.pause_s = float(pause) if pause.isdigit() else None  # type: ignore[attr-defined]
        raise error

    def _read(self, body: bytes, k: int) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            said = " ".join(body[:60].decode("utf-8", "replace").split())
            return _fault(f"the answer is not JSON; it begins: {said or 'nothing'}")
        try:
            fields = understood(answer) if self._paths is None else self._by_paths(answer)
        except Refused as error:
            return _fault(str(error))
        except (JMESPathError, RecursionError) as error:
            return _fault(f"the answer cannot be read by response: {' '.join(str(error).split())[:_SHOWN]}")
        return {**fields, "hits": fields["hits"][:k], "notes": _unknown_scores(fields)}

    def _by_paths(self, answer: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        paths = self._paths or {}
        fields: dict[str, Any] = {
            "hits": self._hits(paths["hits"].search(answer), "hits"),
            "shape": "JMESPath",
        }
        if "pool" in paths and (pool := paths["pool"].search(answer)) is not None:
            fields["pool"] = self._hits(pool, "pool")
        took = paths["took_ms"].search(answer) if "took_ms" in paths else None
        if isinstance(took, int | float) and not isinstance(took, bool) and 0 <= took < math.inf:
            fields["stages"] = {"server": float(took)}
        said = paths["answer"].search(answer) if "answer" in paths else None
        if isinstance(said, str):
            fields["answer"] = said
        usd = paths["usd"].search(answer) if "usd" in paths else None
        if isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < math.inf:
            fields["usage"] = [{"model": "", "usd": float(usd)}]
        return fields

    def _hits(self, found: Any, key: str) -> list[list[Any]]:  # noqa: ANN401 - JSON
        if not isinstance(found, list):
            kind = "nothing" if found is None else type(found).__name__
            raise Refused(f"response.{key} finds {kind}, not a list of passages")
        paths = self._paths or {}
        find: dict[str, Callable[[Any], Any]] = {
            name: paths[name].search if name in paths else lambda _: None
            for name in ("id", "score", "text", *AT)
        }
        hits = []
        for place, hit in enumerate(found, 1):
            name = find["id"](hit) if "id" in paths else hit
            text, score = find["text"](hit), find["score"](hit)
            ids = [str(name)] if isinstance(name, str | int) and not isinstance(name, bool) else []
            at = where([{key: find[key](hit) for key in AT}], text if isinstance(text, str) else None)
            if not ids and not isinstance(text, str) and "source" not in at:
                raise Refused(f"passage {place} of response.{key} has neither an id nor a text")
            number = isinstance(score, int | float) and not isinstance(score, bool)
            hits.append(
                placed(ids, float(score) if number else None, text if isinstance(text, str) else None, at)
            )
        return hits

    def interrupt(self) -> None:
        """Cancel waits."""
        self._stop.set()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _fault(text: str) -> dict[str, Any]:
    return {"fault": {"kind": "shape", "text": text, "where": ""}}


def _unknown_scores(found: Mapping[str, Any]) -> dict[str, int]:
    """Remove scores that aren't numbers, and return how many there were."""
    count = 0
    for hit in (*found["hits"], *found.get("pool", ())):
        if hit[1] is not None and not math.isfinite(hit[1]):
            hit[1], count = None, count + 1
    return {"not_a_number": count} if count else {}
