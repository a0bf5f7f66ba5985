"""Keys for the local server, which is no vendor's own address."""

from __future__ import annotations

from core.providers.calls import Keys
from core.providers.calls.keys import ALLOW


def keys_for(url: str, **values: str) -> Keys:
    """Keys that their operator lets be sent to an address."""
    return Keys({**values, ALLOW: " ".join(f"{name}={url}" for name in values)}, ())
