"""Lists of texts in one cell of a table: as JSON writes them, as Python prints them, or as NumPy does."""

from __future__ import annotations

import ast
import json
import re

from core.errors import InputError
from core.importers.read.text import quoted

_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_INTEGERS = re.compile(r"\[[\d\s,]*\d[\d\s,]*\]", re.ASCII)
_BETWEEN = re.compile(r"[\s,]*")


def id_list(cell: str | None, where: str) -> list[str] | None:
    """The ids of a cell, which may be integers (``[1, 2]`` or ``[1 2]``); else as `text_list`."""
    text = (cell or "").strip()
    if _INTEGERS.fullmatch(text):
        return re.findall(r"\d+", text)
    return text_list(cell, where)


def text_list(cell: str | None, where: str) -> list[str] | None:
    """The texts of a cell; None if it is empty.

    NumPy prints lists without commas, which Python would read as one long text: every quoted text is one of
    the list, with a comma before it or without.
    """
    text = (cell or "").strip()
    if not text or text.lower() in ("nan", "none", "null"):
        return None
    if not (text.startswith("[") and text.endswith("]")):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _printed(text[1:-1], where)
    if not isinstance(value, list) or not all(isinstance(each, str) and _whole(each) for each in value):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    return value


def _printed(text: str, where: str) -> list[str]:
    found, last = [], 0
    for token in _TOKEN.finditer(text):
        if not _BETWEEN.fullmatch(text, last, token.start()):
            break
        last = token.end()
        found.append(_literal(token[0], where))
    if not _BETWEEN.fullmatch(text, last):
        raise InputError(f"{quoted(text)} is not a list of texts.", where=where)
    return found


def _literal(token: str, where: str) -> str:
    try:
        # A line break within quotes is NumPy's; Python would not take it.
        value = ast.literal_eval(token.replace("\r", "\\r").replace("\n", "\\n"))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InputError(f"{quoted(token)} is not a text.", where=where) from error
    if not isinstance(value, str):
        raise InputError(f"{quoted(token)} is not a text.", where=where)
    return value


def _whole(text: str) -> bool:
    """Whether a text is of whole characters: an escape can make half of one, which no file can hold."""
    return text.isascii() or not any("\ud800" <= mark <= "\udfff" for mark in text)
