"""Causes of failed calls, read from the exceptions of any vendor's client.

The clients have no common base class, but all of them carry the HTTP status and the headers, and name their
classes after the cause; so do the HTTP libraries below them, whose exceptions are in the chain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from core.providers.calls.keys import redact

_LONGEST_TEXT = 300
_BEGINNING = 60
_NEVER_SENT = ("ConnectError", "ConnectTimeout", "NewConnectionError", "NameResolution", "ConnectionRefused")
_LOST = ("ConnectionError", "TransportError", "ProtocolError", "RemoteDisconnected", "ConnectionReset")
_TOO_LARGE = ("too large", "too long", "too many", "maximum", "max ", "exceed", "limit")
_QUOTA = ("insufficient_quota", "exceeded your current quota", "billing")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt produced no result."""

    kind: str  # see `core.errors.ProviderError`
    text: str  # the message for people, without keys
    status: int | None = None  # HTTP status, or None
    retry_after: float | None = None  # seconds that the vendor asks to wait, or None
    sent: bool = False  # whether the vendor may have done the work, so that it may be billed

    @property
    def again(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind in {"busy", "server", "timeout", "unreachable", "unreadable"}


def failure(error: Exception, now: float) -> Failure:
    """Return the meaning of an exception of a client."""
    status = _status(error)
    text = redact(_text(error))[:_LONGEST_TEXT]
    if status is not None:
        kind = _kind(status, f"{text} {getattr(error, 'code', '')}".lower())
        if kind == "unreadable":  # the text is the answer itself
            text = f"{type(error).__name__}: {text[:_BEGINNING]}"
        return Failure(kind, text, status, retry_after(_headers(error), now), sent=kind == "unreadable")
    names = [kind.__name__ for cause in _chain(error) for kind in type(cause).__mro__]
    never_sent = _named(names, _NEVER_SENT)
    if _named(names, ("Timeout",)):
        return Failure("timeout", text, sent=not never_sent)
    if never_sent or _named(names, _LOST):
        return Failure("unreachable", text, sent=not never_sent)
    # A client raises everything else while it reads an answer.
    return Failure("unreadable", f"{type(error).__name__}: {text}", sent=True)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return how many seconds a response asks to wait, 0 or more.

    None if it asks for nothing sensible.

    Source: RFC 9110, section 10.2.3 (seconds, or a date); some vendors send milliseconds besides.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        seconds = _seconds(value, scale, now)
        if seconds is not None and math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _seconds(value: str, scale: float, now: float) -> float | None:
    with suppress(ValueError):
        return float(value) / scale
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp() - now


def _kind(status: int, text: str) -> str:
    if status in {401, 403}:
        return "auth"
    if status == 402 or (status == 429 and any(word in text for word in _QUOTA)):
        return "quota"
    if status in {408, 425, 429}:
        return "busy"
    if status >= 500:
        return "server"
    if 200 <= status < 300:
        return "unreadable"
    counted = any(what in text for what in ("token", "batch")) and any(word in text for word in _TOO_LARGE)
    large = status == 413 or (status in {400, 422} and counted)
    return "too large" if large else "refused"


def _status(error: Exception) -> int | None:
    values = (getattr(error, name, None) for name in ("status_code", "http_status"))
    return next((value for value in values if isinstance(value, int)), None)


def _headers(error: Exception) -> Mapping[str, str]:
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    return {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}


def _text(error: Exception) -> str:
    """Return the vendor's message, or else the client's, which may be full of headers."""
    for name in ("json_body", "body", "http_body"):
        said = _message(getattr(error, name, None))
        if said:
            return said
    return " ".join(str(error).split()) if _status(error) is None else type(error).__name__


def _message(body: Any) -> str:  # noqa: ANN401 - whatever a vendor sent
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return " ".join(body.split())
    if isinstance(body, Mapping):
        said = body.get("detail") or body.get("message") or body.get("error")
        return _message(said) if isinstance(said, Mapping) else " ".join(str(said or "").split())
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        for argument in error.args:  # urllib3 wraps the cause in its arguments
            inner = getattr(argument, "reason", argument)
            if isinstance(inner, BaseException):
                yield inner
        error = error.__cause__ or error.__context__


def _named(names: list[str], parts: tuple[str, ...]) -> bool:
    return any(part in name for name in names for part in parts)
