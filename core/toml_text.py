"""Values and tables as TOML, in as few lines as it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date


def toml(value: object) -> str:
    """Return a text, number, date, truth, list or table of them as TOML writes it, in one line."""
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
    # a JSON string is a TOML string, but for the one control character that JSON leaves as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(*tables: tuple[str, Mapping[str, object]]) -> str:
    """Return tables as TOML, each under its name in brackets, the first without one.

    What is empty is not said.
    """
    blocks = []
    for table, keys in tables:
        lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value not in (None, "")]
        if lines:
            blocks.append("\n".join([*([f"[{table}]"] if table else []), *lines, ""]))
    return "\n".join(blocks)
