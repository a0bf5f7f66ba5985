"""Reads a specification: TOML, YAML or JSON, with defaults from its preset."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from core.errors import InputError
from core.paths import PRESETS
from core.pipeline.sweep.model import GoldenSource, SweepSpec
from core.pipeline.sweep.problems import KeyPath, Problem, SpecError, problems, suggestion
from core.records import JsonMap

Spec = TypeVar("Spec", bound=BaseModel)
Lines = Mapping[KeyPath, int]  # Line (from 1) of a key, by its path

_HEADER = re.compile(r"\s*(\[{1,2})\s*([^\[\]=]+?)\s*\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")
MAX_BYTES = 1_000_000  # A specification is a page of text; more is something else
MAX_DEPTH = 16  # Maximum nesting of tables and lists; a specification needs half as much
_FORMS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_IN_PATHS = {"/", "\\", "."}
_SOURCES = ("collection", "queries", "golden_set")


def _toml_lines(text: str) -> Lines:
    """Return lines of the keys of a TOML text; keys inside inline tables have the line of their table."""
    lines: dict[KeyPath, int] = {}
    seen: Counter[KeyPath] = Counter()
    table: KeyPath = ()
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


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _yaml_lines(root: yaml.Node | None) -> Lines:
    """Return lines of the keys and items of a composed YAML document.

    YAML lets the last of two equal keys win silently; TOML refuses, and so does this.
    """
    lines: dict[KeyPath, int] = {}

    def walk(node: yaml.Node | None, path: KeyPath) -> None:
        parts: list[tuple[str | int, yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            parts = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            parts = [(position, value, value) for position, value in enumerate(node.value)]
        for name, written, value in parts:
            line = written.start_mark.line + 1
            if (*path, name) in lines:
                raise yaml.YAMLError(f"the key {name!r} stands twice, line {line}")
            lines[*path, name] = line
            walk(value, (*path, name))

    walk(root, ())
    return lines


def _line_of(path: KeyPath, lines: Lines) -> int:
    """Return the line of a key or of its nearest enclosing table, or 0 if neither is in the text."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def load(source: str | Path, *, split: str | None = None) -> SweepSpec:
    """Read a specification."""
    spec = load_as(SweepSpec, source)
    if split is None:
        return spec
    golden = (spec.golden_set or GoldenSource()).model_copy(update={"split": split})
    return spec.model_copy(update={"golden_set": golden})


def load_as(model: type[Spec], source: str | Path) -> Spec:
    """Read a specification of any kind from a file, or from a text of several lines.

    Args:
        source: A path, or the text.

    Raises:
        SpecError: With everything that is wrong with it.
        InputError: If the file cannot be read.
    """
    if isinstance(source, str) and "\n" in source:
        return parse_as(model, source)
    path = Path(source).expanduser()
    if path.suffix.lower() not in _FORMS:
        raise InputError(
            "A specification is a .toml, .yaml or .json file.", where=path.name, do="Rename it to what it is."
        )
    if not path.is_file():
        raise InputError("There is no such file.", where=str(path))
    if path.stat().st_size > MAX_BYTES:
        raise InputError("The file is too large for a specification.", where=path.name)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"It cannot be read as UTF-8 text: {error}.", where=path.name) from error
    return parse_as(model, text, _FORMS[path.suffix.lower()], folder=path.parent, name=path.name)


def parse(text: str, form: str | None = None, *, folder: Path | None = None, name: str = "text") -> SweepSpec:
    """Read a specification from a text; see `parse_as`."""
    return parse_as(SweepSpec, text, form, folder=folder, name=name)


def parse_as(
    model: type[Spec], text: str, form: str | None = None, *, folder: Path | None = None, name: str = "text"
) -> Spec:
    """Read a specification of any kind from a text.

    Args:
        form: "toml", "yaml" or "json"; None = YAML or JSON if TOML does not take it.
        folder: What paths are relative to; None = the current folder.
        name: What messages call the text.
    """
    data, lines = _read(text, form or _form(text), name)
    data = _without_shorthand(data)
    preset, known = data.get("preset"), presets()
    if preset:
        if not isinstance(preset, str) or preset not in known:
            where = _place(name, lines.get(("preset",), 0), "preset")
            raise SpecError([Problem(where, f"There is no preset {preset!r}.", suggestion(preset, known))])
        below = tomllib.loads(known[preset].read_text(encoding="utf-8"))
        data = _merged(_without_shorthand(below), data)
    data = _resolved(data, (folder or Path()).absolute())
    try:
        return model.model_validate(data)
    except ValidationError as error:
        located = [(_line_of(path, lines), problem) for path, problem in problems(error, model, data)]
        raise SpecError(
            replace(problem, where=_place(name, line, problem.where))
            for line, problem in sorted(located, key=itemgetter(0))
        ) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a specification, for editors."""
    schema = SweepSpec.model_json_schema()
    model = schema["$defs"]["ModelConfig"]
    model["required"] = [key for key in model["required"] if key != "model"]  # the table's name stands for it
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def presets() -> dict[str, Path]:
    """Return the presets that come with the product, by name."""
    return {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}


def _form(text: str) -> str:
    """Return "yaml" if only YAML finds keys in the text, otherwise "toml"."""
    try:
        tomllib.loads(text)
    except RecursionError:
        return "toml"
    except tomllib.TOMLDecodeError:
        try:
            return "yaml" if isinstance(_yaml(text)[0], dict) else "toml"
        except (RecursionError, yaml.YAMLError) as error:
            return "yaml" if isinstance(error, RecursionError) or "=" not in text else "toml"
    return "toml"


def _read(text: str, form: str, name: str) -> tuple[dict[str, Any], Lines]:
    try:
        data, lines = _READERS[form](text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise SpecError([Problem(name, f"Not readable as {form.upper()}: {reason}.")]) from error
    except RecursionError:
        raise _too_deep(name) from None
    if not isinstance(data, dict):
        raise SpecError([Problem(name, "It holds no keys.", 'Start with collection = "…".')])
    if _is_deeper(data, MAX_DEPTH):
        raise _too_deep(name)
    return data, lines


def _is_deeper(data: object, most: int) -> bool:
    """Return whether tables and lists are nested more than `most` levels deep."""
    if not isinstance(data, dict | list):
        return False
    inner = data.values() if isinstance(data, dict) else data
    return most == 0 or any(_is_deeper(value, most - 1) for value in inner)


def _too_deep(name: str) -> SpecError:
    reason = f"Tables and lists stand in one another more than {MAX_DEPTH} levels deep."
    return SpecError(
        [Problem(name, reason, "Write them as the examples of docs/evaluate.md do; plan --schema has all.")]
    )


def _yaml(text: str) -> tuple[object, Lines]:
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):  # a few of them nested unfold to gigabytes
            raise yaml.YAMLError(f"an alias (*{event.anchor}) is not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:  # reading on takes minutes
            raise RecursionError
    lines = _yaml_lines(yaml.compose(text, yaml.SafeLoader))
    return yaml.safe_load(text), lines


_READERS: Mapping[str, Callable[[str], tuple[object, Lines]]] = {
    "toml": lambda text: (tomllib.loads(text), _toml_lines(text)),
    "yaml": _yaml,
    "json": lambda text: (json.loads(text), {}),
}


def _without_shorthand(data: JsonMap) -> dict[str, Any]:
    """Return sources as tables, so that a preset's other keys of the same table stay."""
    return {
        key: {"path": value} if key in _SOURCES and isinstance(value, str) else value
        for key, value in data.items()
    }


def _merged(below: JsonMap, above: JsonMap) -> dict[str, Any]:
    """Merge tables key by key; any other value is taken from `above`."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = _merged(below[key], above[key])
    return merged


def _resolved(data: JsonMap, folder: Path) -> dict[str, Any]:
    """Return absolute paths; a single word that isn't a file names something in the store."""
    resolved = dict(data)
    for key in _SOURCES:
        resolved |= (
            {key: _located(resolved[key], folder, may_be_stored=key != "queries")} if key in resolved else {}
        )
    if isinstance(stacks := resolved.get("stack"), list):
        resolved["stack"] = [_own_located(stack, folder) for stack in stacks]
    reader, models = resolved.get("reader"), resolved.get("models")
    if isinstance(reader, Mapping) and (prompts := reader.get("prompts")):
        listed = prompts if isinstance(prompts, list) else [prompts]
        resolved["reader"] = {**reader, "prompts": [_prompt(prompt, folder) for prompt in listed]}
    if isinstance(models, Mapping):
        resolved["models"] = {name: _located(table, folder) for name, table in models.items()}
    return resolved


def _own_located(stack: object, folder: Path) -> object:
    """Return a stack with absolute paths; code lies in the specification's folder unless another is named."""
    if not isinstance(stack, Mapping) or not isinstance(stack.get("call"), str):
        return stack
    path, python = stack.get("path") or ".", stack.get("python")
    located = {**stack, "path": str(folder / Path(path).expanduser()) if isinstance(path, str) else path}
    if isinstance(python, str) and "/" in python:
        located["python"] = str(folder / Path(python).expanduser())
    return located


def _prompt(written: object, folder: Path) -> object:
    """Return a file of instructions as an absolute path; a single word names a built-in file."""
    is_path = isinstance(written, str) and _IN_PATHS & set(written)
    return str(folder / Path(str(written)).expanduser()) if is_path else written


def _located(table: object, folder: Path, *, may_be_stored: bool = False) -> object:
    written = table.get("path") if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping) or not isinstance(written, str):
        return table
    path = folder / Path(written).expanduser()
    if written and may_be_stored and not path.exists() and not (_IN_PATHS & set(written)):
        return {**{key: value for key, value in table.items() if key != "path"}, "stored": written}
    return {**table, "path": str(path) if written else written}


def _place(file: str, line: int, key: str) -> str:
    place = f"{file}:{line}" if line else file
    return f"{place}, {key}" if key else place
