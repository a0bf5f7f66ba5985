"""Untrusted text without characters that reverse the direction of a line.

A name may hold characters that turn everything behind them (U+202E and its kin), and a name in Hebrew or
Arabic draws the figures that follow it to its own side. So names are shown without such characters, and what
is written from right to left is shown as an island (Unicode Standard Annex 9: FSI and PDI).
"""

from __future__ import annotations

import re

CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The characters that set the reading direction, as the inside of a regular expression's class."""
_CONTROLS = re.compile(f"[{CONTROLS}]")
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_ISLAND = re.compile(rf"[{_LETTERS}](?:[{_LETTERS}\s'’-]*[{_LETTERS}])?")


def strip_bidi_controls(text: str) -> str:
    """Return an untrusted text without the characters that set the reading direction."""
    return text if text.isascii() else _CONTROLS.sub("", text)


def isolated(text: str) -> str:
    """Return the text without direction controls, each right-to-left stretch isolated in the line."""
    return text if text.isascii() else _ISLAND.sub("\u2068\\g<0>\u2069", strip_bidi_controls(text))


def escaped(json: str) -> str:
    """Return equivalent JSON with direction controls written as escapes."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json)
