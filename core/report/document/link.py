"""Addresses in documents: only those that open a page, and nothing in them that breaks out of its place."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

_KEPT = "%/:?#[]@!$&'()*+,;=~-._"


def safe_address(address: str) -> str | None:
    """The address with everything but its own characters quoted; None unless it is http or https."""
    try:
        parts = urlsplit(address.strip())
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return quote(address.strip(), safe=_KEPT)
