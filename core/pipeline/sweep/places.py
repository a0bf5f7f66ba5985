"""Where keys stand in the text of a specification, for messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import yaml

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]
"""Line (from 1) of a key, by its path: ("axes", "mode"), ("stack", 0, "dim")."""

_HEADER = re.compile(r"\s*(\[{1,2})\s*([^\[\]=]+?)\s*\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")


def toml_lines(text: str) -> Lines:
    """Lines of the keys of a TOML text; keys inside inline tables have the line of their table."""
    lines: dict[Path, int] = {}
    seen: Counter[Path] = Counter()
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                seen[table] += 1
                table = (*table, seen[table] - 1)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def yaml_lines(root: yaml.Node | None) -> Lines:
    """Lines of the keys and items of a composed YAML document."""
    lines: dict[Path, int] = {}

    def walk(node: yaml.Node, path: Path) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                lines[*path, key.value] = key.start_mark.line + 1
                walk(value, (*path, key.value))
        elif isinstance(node, yaml.SequenceNode):
            for position, value in enumerate(node.value):
                lines[*path, position] = value.start_mark.line + 1
                walk(value, (*path, position))

    if root is not None:
        walk(root, ())
    return lines


def line_of(path: Path, lines: Lines) -> int | None:
    """The line of a key, or of the nearest table around it; None if neither stands in the text."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None
