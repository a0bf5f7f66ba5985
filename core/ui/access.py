"""Access to the server: who may connect, write and start work, and the limits on browsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import AccessError, ClqError
from core.prefork import COOKIE, NUMBER, loopback
from core.ui import assets
from core.views.text import plain

SETTING = "CLQ_WRITE"
"""The environment variable that sets who may write: ``local`` (the default), ``all`` or ``none``."""
HOSTS = "CLQ_HOSTS"
"""The variable with further names that the dashboard is served under, separated by blanks."""
_BY_PROXIES = frozenset({
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
    "cf-connecting-ip", "fly-client-ip", "fastly-client-ip", "x-original-host", "x-envoy-external-address",
})  # fmt: skip


def from_here(bound: str | None, peer: str | None, headers: Mapping[str, str]) -> bool:
    """Return whether a visitor is at the machine that the server runs on, as far as a server can know.

    Args:
        bound: The address that the server listens on; None = all.
        peer: The address that the connection came from; None = unknown.
        headers: Headers of the request, names in lower case.

    Returns:
        True only if the server listens on this machine alone, the connection came from it, the page was
        opened under one of its names and served by this very server, and no proxy has left a mark. A proxy on
        this machine that leaves none and passes a remote page off as a local one is indistinguishable from a
        local visitor.
    """
    marks = any(name in _BY_PROXIES or name.startswith("x-forwarded-") for name in headers)
    host, origin = (headers.get(name, "") for name in ("host", "origin"))
    local = all(loopback(name) for name in (bound, peer, hostname(f"//{host}"), hostname(origin)))
    return local and not marks and _same_server(origin, host)


def _same_server(origin: str, host: str) -> bool:
    """Return whether a page of an origin was served under a host.

    Another port of this machine is another server.
    """
    if host and origin.partition("://")[2] == host:
        return True
    one, other = f"//{host}", origin
    return loopback(hostname(one)) and loopback(hostname(other)) and _port(one) == _port(other)


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def hostname(url: str) -> str | None:
    """Return the host of a URL in lower case, or None if it has none or is malformed."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def why_not(setting: str | None, *, here: bool) -> str:
    """Say why a visitor may neither write nor start work, or return "" if both are allowed.

    Args:
        setting: Value of `SETTING`; None if it is not set.
        here: Whether the visitor is at this machine; see `from_here`.
    """
    setting = "local" if setting is None else setting.strip().lower()
    if setting == "all" or (setting == "local" and here):
        return ""
    asked = {
        "none": "This dashboard only shows results",
        "local": "This dashboard takes changes only from the machine that it runs on",
    }
    reason = asked.get(setting, f"{SETTING} is neither local nor all nor none, so nothing is changed here")
    return (
        f"{reason}: importing, merging, deleting, restoring and evaluating are for the command line of that "
        f"machine, or for everybody once the dashboard is started with {SETTING}=all."
    )


VISITOR = "clq-visitor"  # The header that tells the pages where a visitor is; only this server can set it
HERE = "here"
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "frame-ancestors 'self'; object-src 'none'; "
    "base-uri 'self'; form-action 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers sent with every response."""
_REFUSED = 1008


class AccessMiddleware:
    """Middleware in front of everything that Streamlit serves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject unknown Host headers and WebSocket connections from other origins; pass the rest on."""
        if scope["type"] not in ("http", "websocket"):  # the server's startup and shutdown
            await self._app(scope, receive, send)
            return
        headers, names = Headers(scope=scope), _own_names()
        if scope["type"] == "websocket":
            if not welcome(headers.get("origin"), headers.get("host"), names):
                await send({"type": "websocket.close", "code": _REFUSED})
                return
            scope = _marked(scope, headers)
        elif not served_as(headers.get("host"), names):
            await _not_served(hostname(f"//{headers.get('host')}"))(scope, receive, send)
            return
        app = await _asset(scope, headers) or self._app
        await app(scope, receive, _with_headers(send, seat=_seat(headers)))


async def _asset(scope: Scope, headers: Headers) -> Response | None:
    """Return what pages load, packed unless the browser is at this machine; None for all else."""
    if scope["type"] != "http" or scope.get("method", "GET") != "GET":
        return None
    near = all(map(loopback, (_peer(scope), hostname(f"//{headers.get('host')}"))))
    packs = not near and "gzip" in headers.get("accept-encoding", "")
    return await assets.find(scope.get("path", ""), packs=packs)


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def served_as(host: str | None, names: Collection[str | None]) -> bool:
    """Return whether the server answers under a host: a numeric address, one of its names, or none given.

    A page whose owner points its domain at this machine could otherwise read as if it were ours.
    """
    if host is None:
        return True
    name = hostname(f"//{host}")
    try:
        ip_address(name or "")
    except ValueError:
        return name in names
    return True


def _not_served(name: str | None) -> Response:
    words = f"This dashboard is not served as {name}. Whoever runs it can name that host: {HOSTS}={name}\n"
    return Response(words, status_code=421, media_type="text/plain", headers=HEADERS)


def welcome(origin: str | None, host: str | None, names: Collection[str | None]) -> bool:
    """Return whether a page may connect: it came from this server, or from a host that the operator named.

    Streamlit would ask the internet for this machine's address before refusing one.
    """
    if not served_as(host, names):
        return False
    named = hostname(origin or "") in names and not loopback(hostname(origin or ""))
    return origin is None or named or _same_server(origin, host or "")


def _own_names() -> set[str | None]:
    """Return hosts named by the operator, and this machine's own names for itself."""
    named = [f"//{st.get_option('browser.serverAddress')}", *st.get_option("server.corsAllowedOrigins")]
    named += [f"//{name}" for name in os.environ.get(HOSTS, "").split()]
    return {"localhost", *(hostname(address) for address in named)} - {None}


def _marked(scope: Scope, headers: Headers) -> Scope:
    """Return a connection's scope that says where its visitor is.

    The origin was already checked, so it is left out if Streamlit would check again, even on the internet.
    """
    here = from_here(st.get_option("server.address"), _peer(scope), dict(headers))
    same = headers.get("origin", "").partition("://")[2] == headers.get("host")
    dropped = {VISITOR.encode(), *(() if same else (b"origin",))}
    kept = [pair for pair in scope["headers"] if pair[0].lower() not in dropped]
    return {**scope, "headers": [*kept, (VISITOR.encode(), HERE.encode() if here else b"elsewhere")]}


def _seat(headers: Headers) -> str | None:
    """Return the cookie that routes a visitor back to this one of several processes; None if already set."""
    number = os.environ.get(NUMBER)
    pair = f"{COOKIE}={number}"
    if number is None or pair in headers.get("cookie", "").split("; "):
        return None
    return f"{pair}; Path=/; HttpOnly; SameSite=Lax"


def _with_headers(send: Send, *, seat: str | None) -> Send:
    """Add the headers of every answer."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if seat:
                headers.append("Set-Cookie", seat)
        await send(message)

    return sent


_SAID, _FAILED = "_act_said", "_act_failed"


def forbidden() -> str:
    """Say why this visitor may neither write nor start work, or return "" if both are allowed."""
    return why_not(os.environ.get(SETTING), here=st.context.headers.get(VISITOR) == HERE)


def require() -> None:
    """Refuse any action that this visitor may not take, whatever the browser sent."""
    if reason := forbidden():
        raise AccessError(reason)


def act(change: Callable[..., str], *args: object) -> bool:
    """Make a change if this visitor may; the outcome is kept for `outcome`.

    Call it in a callback, so that the next script run shows the new revision everywhere.

    Args:
        change: Makes the change and returns a sentence about it, or "" if the page shows it anyway.

    Returns:
        Whether the change was made.
    """
    try:
        require()
        st.session_state[_SAID] = change(*args)
    except ClqError as error:
        st.session_state[_FAILED] = str(error)
        return False
    return True


def outcome() -> None:
    """Show the outcome of the last change, once."""
    if said := st.session_state.pop(_SAID, ""):
        st.success(plain(said), icon=":material/check:")
    if _FAILED in st.session_state:
        st.error(plain(st.session_state.pop(_FAILED)), icon=":material/error:")
