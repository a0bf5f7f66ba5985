"""Values as TOML writes them."""

from __future__ import annotations

import json
from datetime import date


def toml(value: object) -> str:
    """Return a text, number, date, truth or list of them as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    # a JSON string is a TOML string, but for the one control character that JSON leaves as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
