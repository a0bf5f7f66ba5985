"""Texts of others without marks that turn a line round.

A name may hold characters that turn everything behind them (U+202E and its kin), and a name in Hebrew or
Arabic draws the figures that follow it to its own side. So names are shown without such characters, and what
is written from right to left is shown as an island (Unicode Standard Annex 9: FSI and PDI).
"""

from __future__ import annotations

import re

CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The characters that say in which direction to read, as the inside of a regular expression's class."""
_CONTROLS = re.compile(f"[{CONTROLS}]")
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_ISLAND = re.compile(rf"[{_LETTERS}](?:[{_LETTERS}\s'’-]*[{_LETTERS}])?")


def strip_bidi_controls(text: str) -> str:
    """Return a text of others without the characters that say in which direction to read."""
    return text if text.isascii() else _CONTROLS.sub("", text)


def isolated(text: str) -> str:
    """Return `upright`, and every stretch that reads from right to left an island in the line."""
    return text if text.isascii() else _ISLAND.sub("\u2068\\g<0>\u2069", strip_bidi_controls(text))


def escaped(json: str) -> str:
    """Return JSON that says the same with such characters written as numbers."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json)
