"""How values are written: numbers for people, TOML, and text of others without marks that turn it round.

A name may hold characters that turn everything behind them (U+202E and its kin), and a name in Hebrew or
Arabic draws the figures that follow it to its own side. So names are shown without such characters, and what
is written from right to left is shown as an island (Unicode Standard Annex 9: FSI and PDI).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date

CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The characters that say in which direction to read, as the inside of a regular expression's class."""
_CONTROLS = re.compile(f"[{CONTROLS}]")
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_ISLAND = re.compile(rf"[{_LETTERS}](?:[{_LETTERS}\s'’-]*[{_LETTERS}])?")


def upright(text: str) -> str:
    """Return a text of others without the characters that say in which direction to read."""
    return text if text.isascii() else _CONTROLS.sub("", text)


def isolated(text: str) -> str:
    """Return `upright`, and every stretch that reads from right to left an island in the line."""
    return text if text.isascii() else _ISLAND.sub("\u2068\\g<0>\u2069", upright(text))


def escaped(json: str) -> str:
    """Return JSON that says the same with such characters written as numbers."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


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


UNKNOWN = "unknown"
NOT_APPLICABLE = "–"
MINUS = "−"  # The sign of a number as people read it; a hyphen is for files


def known(value: float | None) -> bool:
    """Tell whether a number is there: neither None nor NaN."""
    return value is not None and not math.isnan(value)


def score(value: float | None) -> str:
    """Return a quality in 0..1 with three decimals, ``0.804``; "–" where it is not applicable."""
    return f"{value:.3f}".replace("-", MINUS) if value is not None and known(value) else NOT_APPLICABLE


def ms(value: float | None) -> str:
    """Return a latency: ``0.42 ms``, ``4.2 ms``, ``333 ms``, ``2.93 s``, ``1,240 s``.

    "unknown" where it was not measured.
    """
    if value is None or not known(value):
        return UNKNOWN
    if value >= 1000:
        return f"{value / 1000:.2f} s" if value < 1e5 else f"{value / 1000:,.0f} s"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms"


def tiny(value: float | None) -> bool:
    """Tell whether dollars per 1,000 are too few to read, so that they are said per million."""
    return value is not None and 0 < abs(value) < TINY


def tiny_among(values: Iterable[float | None]) -> bool:
    """Tell whether dollars per 1,000 that stand together are said per million: one is tiny, none large."""
    amounts = [abs(value) for value in values if value and known(value)]
    return bool(amounts) and tiny(min(amounts)) and max(amounts) < READABLE


TINY = 0.001
"""Dollars per 1,000 below which they are said per million."""
READABLE = 0.1
"""Dollars per 1,000 from which they are said so even beside tiny ones."""


def usd(value: float | None, per: str = "1k") -> str:
    """Return a cost: ``$1.25 / 1k``, ``$0.0066 / 1M`` where it is `tiny`; "unknown" where no price is known.

    Small ones keep two significant digits.
    """
    if value is None or not known(value):
        return UNKNOWN
    if per.startswith("1k") and tiny(value):
        value, per = 1000 * value, f"1M{per[2:]}"
    digits = 2
    if 0 < abs(value) < 0.1:
        digits = min(9, 1 - math.floor(math.log10(abs(value))))
    return f"${value:,.{digits}f}" + (f" / {per}" if per else "")
