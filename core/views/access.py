"""Who may write to the store and start work on a dashboard that nobody signs in to."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

SETTING = "CLQ_WRITE"
"""The variable of the environment that says it: ``local`` (where it is not set), ``all`` or ``none``."""
_BY_PROXIES = frozenset({
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
    "cf-connecting-ip", "fly-client-ip", "fastly-client-ip", "x-original-host", "x-envoy-external-address",
})  # fmt: skip


def from_here(bound: str | None, peer: str | None, headers: Mapping[str, str]) -> bool:
    """Whether a visitor sits at the machine that the server runs on, as far as a server can tell.

    Args:
        bound: The address that the server listens at; None = all.
        peer: The address that the connection came from; None = unknown.
        headers: Of the request, names in lower case.

    Returns:
        True only where the server listens to this machine alone, the connection came from it, the page was
        opened under a name of it, and no proxy has left a mark. A proxy on this machine that leaves none and
        passes a foreign page off as a local one cannot be told from a local visitor.
    """
    marks = any(name in _BY_PROXIES or name.startswith("x-forwarded-") for name in headers)
    host, origin = (headers.get(name, "") for name in ("host", "origin"))
    names = (bound, peer, hostname(f"//{host}"), hostname(origin))
    return not marks and all(_loopback(name) for name in names)


def hostname(url: str) -> str | None:
    """The host of an address in lower case; None where there is none that can be read."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _loopback(name: str | None) -> bool:
    if name == "localhost":
        return True
    try:
        address = ip_address(name or "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def why_not(setting: str | None, *, here: bool) -> str:
    """Why a visitor may neither write nor start work; empty where both are allowed.

    Args:
        setting: Value of `SETTING`; None where it is not set.
        here: Whether the visitor sits at this machine; see `from_here`.
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
