"""Reports on files part by part: every column, key and file is taken, or left out with the reason.

A format declares the parts that it knows (`Format.parts`); whatever else a file has is found here and
left out as not recognised, so that nothing is lost silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from core.importers.read.member import Member
from core.importers.read.tabular import PARQUET, header, kind_of
from core.importers.read.text import blocks, shown

ReportParts = Mapping[str, str]
"""Name of a part → why it is left out; `TAKEN` if it is not. A name may hold ``*`` for any text."""
TAKEN = ""
UNKNOWN = "unknown meaning"
AS_YOU_WISH = "as you wish"  # The reason for what the user leaves out
MOST_BYTES = 64 << 20  # Largest JSON file whose keys are examined
_MOST_NAMES = 2_000
_MOST_SHOWN, _MOST_LISTED = 12, 200  # Most names in one line for a reason, and in all


@dataclass(frozen=True, slots=True)
class FileReport:
    """The parts that a file has."""

    file: str  # its name
    # The kind of part: "column", "key" (of JSON, with its parents: ``results.metrics``), "file", or "field"
    # of a line whose fields the format fixes
    kind: str
    taken: tuple[str, ...] = ()  # names of the parts that are taken
    left_out: Mapping[str, str] = field(default_factory=dict)  # names of the others, each with the reason


@dataclass(slots=True)
class _Node:
    """A key that a format knows, and the known keys below it."""

    verdict: str | None = None
    below: dict[str, _Node] = field(default_factory=dict)

    def child(self, key: str) -> tuple[str, _Node] | None:
        """Return the known key that matches this one, and its node."""
        node = self.below.get(key)
        if node is None and "." in key:  # a key that contains the dotted path below it
            node = self
            for step in key.split("."):
                node = node and node.below.get(step)
        if node is not None:
            return key, node
        likes = ((name, other) for name, other in self.below.items() if "*" in name and _like(name, key))
        return next(likes, None)


def file_report(member: Member, parts: ReportParts | str) -> FileReport:
    """Compare the parts of a file with those that its format knows."""
    if isinstance(parts, str):
        return FileReport(member.name, "file", (), {member.relative: parts})
    if member.head.startswith(PARQUET):
        return settled(member.name, "column", header(member, "parquet"), parts)
    if member.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return keyed(member.name, _values(member), parts)
    kind = kind_of(member)
    return settled(member.name, "column", header(member, kind) if kind else (), parts)


def settled(file: str, kind: str, names: Iterable[str], parts: ReportParts) -> FileReport:
    """Report on a file whose parts have single-level names."""
    stars = [(known, why) for known, why in parts.items() if "*" in known]
    verdicts = {}
    for name in names:
        like = (why for known, why in stars if _like(known, name))
        verdicts[name] = parts[name] if name in parts else next(like, UNKNOWN)
    return _sorted_out(file, kind, verdicts)


def keyed(file: str, values: Iterable[object], parts: ReportParts) -> FileReport:
    """Report on JSON values by every key path that occurs in them."""
    root = _Node()
    for path, verdict in parts.items():
        node = root
        for step in path.replace("[]", "").split("."):
            node = node.below.setdefault(step, _Node())
        node.verdict = verdict
    verdicts: dict[str, str] = {}
    for value in values:
        _walk(value, root, "", verdicts)
        if len(verdicts) > _MOST_NAMES:
            break
    return _sorted_out(file, "key", verdicts)


def sentences(file_reports: Iterable[FileReport]) -> Iterator[tuple[int, str, str, str]]:
    """Yield omissions from all files: number of parts, which ones and why, the first file, their kind.

    Fields of lines are the same in every file of a format and are not repeated.
    """
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for file_report in file_reports:
        for name, reason in file_report.left_out.items() if file_report.kind != "field" else ():
            groups.setdefault((file_report.kind, reason), {}).setdefault(name, file_report.file)
    for (kind, reason), names in groups.items():
        if len(names) <= _MOST_SHOWN:
            yield from ((1, f"{kind} `{shown(name)}`: {reason}", file, kind) for name, file in names.items())
            continue
        listed = ", ".join(f"`{shown(name)}`" for name in list(names)[:_MOST_LISTED])
        listed += f" (+{len(names) - _MOST_LISTED} more)" if len(names) > _MOST_LISTED else ""
        yield len(names), f"{kind}s {listed}: {reason}", next(iter(names.values())), kind


def _sorted_out(file: str, kind: str, verdicts: Mapping[str, str]) -> FileReport:
    taken = tuple(name for name, verdict in verdicts.items() if verdict == TAKEN)
    return FileReport(file, kind, taken, {name: why for name, why in verdicts.items() if why != TAKEN})


def _like(pattern: str, name: str) -> bool:
    known = re.escape(pattern).replace(r"\*", ".*")
    return pattern == "*" or re.fullmatch(known, name, re.DOTALL) is not None


def _walk(value: object, node: _Node, path: str, verdicts: dict[str, str]) -> None:
    """Record every known or unknown key path of a value; a list counts as its items."""
    if isinstance(value, list):
        for item in value or (None,):
            _walk(item, node, path, verdicts)
    elif not isinstance(value, dict) or not value or not node.below:
        if path:
            verdicts[path] = node.verdict or TAKEN
    else:
        for key, below in value.items():
            known = node.child(key)
            if known is None:
                verdicts[_join(path, key)] = UNKNOWN if node.verdict is None else node.verdict
            elif known[1].below and isinstance(below, dict | list) and below:
                _walk(below, known[1], _join(path, known[0]), verdicts)
            else:
                verdict = known[1].verdict or TAKEN
                verdicts[_join(path, key if verdict else known[0])] = verdict


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _values(member: Member) -> Iterator[object]:
    """Yield the JSON values of a file: a single one, or one per line."""
    data = b""
    for block in blocks(member):
        data += block.data
        if len(data) > MOST_BYTES:
            break
    try:
        yield json.loads(data)
    except (ValueError, RecursionError):
        for line in data.split(b"\n"):
            with suppress(ValueError, RecursionError):
                yield json.loads(line)
