"""Values and tables as TOML, in as few lines as possible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date


def toml(value: object) -> str:
    """Write a text, number, date, boolean, list or table of them as TOML, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml(str(key))} = {toml(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    # a JSON string is a TOML string, except for the one control character that JSON does not escape
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(*tables: tuple[str, Mapping[str, object]]) -> str:
    """Write tables as TOML, each under its name in brackets, the first without one.

    Empty values are omitted.
    """
    blocks = []
    for table, keys in tables:
        lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value not in (None, "")]
        if lines:
            blocks.append("\n".join([*([f"[{table}]"] if table else []), *lines, ""]))
    return "\n".join(blocks)
