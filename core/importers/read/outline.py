"""What the head of a JSON file shows of its shape, without reading it whole: for telling formats apart."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.importers.read.piece import Piece

_DEPTH = 6
_HELD = "outline"
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:,])|(-?\d[\d.eE+-]*|NaN|-?Infinity)|(true|false|null)|\S')


def outline(piece: Piece) -> Mapping[str, frozenset[str]]:
    """Paths of keys in the first 64 KiB of a JSON file or of JSON lines, each with the kinds of its values.

    Lists are part of a path as ``[]``: ``{"testCases": [{"input": "x"}]}`` gives ``testCases`` → list,
    ``testCases[]`` → object, ``testCases[].input`` → text; the path of the whole value is "". Kinds: object,
    list, text, number, flag, null. Empty if it does not look like JSON. A head that was cut off is no
    problem; what is malformed further on is not seen.
    """
    held = vars(piece)  # as `Piece.head` is held there: every format asks for it, of every file
    if _HELD not in held:
        held[_HELD] = _outline(piece.head)
    found: Mapping[str, frozenset[str]] = held[_HELD]
    return found


def _outline(head: bytes) -> Mapping[str, frozenset[str]]:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return {}
    reader = _Reader()
    for token in _TOKEN.finditer(text.decode("utf-8", "replace")):
        if not reader.take(*token.groups()):
            break
    return {path: frozenset(kinds) for path, kinds in reader.found.items()}


class _Reader:
    """Follows the brackets and keys of JSON token by token."""

    def __init__(self) -> None:
        self.found: dict[str, set[str]] = {}
        self._path: list[str] = []  # one entry per open bracket: "[]", or "" and then the key being read
        self._at_key, self._held = False, ""

    def take(self, text: str | None, mark: str | None, number: str | None, word: str | None) -> bool:
        """Follow one token; False where it cannot stand there."""
        if mark in (":", ",", "}", "]"):
            return self._between(mark)
        if text is not None and self._at_key:
            self._held, self._at_key = text, False
            return True
        kinds = {"{": "object", "[": "list", "null": "null", "true": "flag", "false": "flag"}
        kind = "text" if text is not None else "number" if number else kinds.get(mark or word or "")
        if kind is None:
            return False
        if len(self._path) <= _DEPTH:
            self.found.setdefault("".join(self._path).lstrip("."), set()).add(kind)
        if mark:
            self._path.append("[]" if mark == "[" else "")
            self._at_key = mark == "{"
        return True

    def _between(self, mark: str) -> bool:
        if not self._path:
            return False
        if mark == ":":
            self._path[-1] = f".{self._held}"
        elif mark == ",":
            self._at_key = self._path[-1] != "[]"
        else:
            self._path.pop()
            self._at_key = False
        return True
