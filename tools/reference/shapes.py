"""Shapes of inputs and outputs: specifications, JSON of pages and records, tables of exports."""

from __future__ import annotations

import ast
import inspect
import json
import re
import tempfile
import textwrap
import tokenize
import types
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import polars as pl
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.rules import Constraints
from core.importers.formats.published import published_batch
from core.paths import ROOT
from core.pipeline.sweep.model import SweepSpec
from core.prices import load_books
from core.report.data import record_data, verdict
from core.store import Store
from core.tables import TABLES
from core.work.golden.spec import GoldenSpec
from core.work.names.job import NamesSpec
from core.work.readers.run import ReaderSpec
from tools.reference.markdown import code, table

SPECS: Mapping[str, tuple[type[BaseModel], str, str]] = {
    "Evaluation": (SweepSpec, "`plan`, `run`", "../evaluate.md"),
    "Golden set": (GoldenSpec, "`golden plan`, `golden build`", "../golden-sets.md"),
    "Readers": (ReaderSpec, "`readers plan`, `readers run`", "../readers.md"),
    "Diagnosis of names": (NamesSpec, "`diagnose names --spec`", "../diagnostics.md"),
}


def specifications() -> str:
    """Return every key of every specification, table by table."""
    parts = [
        "TOML, YAML and JSON say the same. Where a list is expected one value may stand alone, and "
        "where a table with "
        "one necessary key is expected that key's value may. Unknown keys are refused with the "
        "nearest known one. "
        "`python -m core plan --schema` prints the JSON schema of an evaluation, for editors."
    ]
    shown: dict[type[BaseModel], str] = {}
    for title, (model, commands, guide) in SPECS.items():
        parts.append(f"## {title}\n\nRead by {commands}; [how to]({guide}).\n\n{_keys(model)}")
        for inner in _inner(model):
            shown.setdefault(inner, title)
    parts.append("## Tables within")
    parts += [f"### {inner.__name__}\n\n{_about(inner)}\n\n{_keys(inner)}" for inner in shown]
    return "\n\n".join(parts)


def _inner(
    model: type[BaseModel], seen: frozenset[type[BaseModel]] = frozenset()
) -> Iterator[type[BaseModel]]:
    """Yield the tables nested in a table, in order."""
    for field in model.model_fields.values():
        for kind in _models(field.annotation):
            if kind not in seen and kind is not model:
                yield kind
                yield from _inner(kind, seen | {model, kind})


def _models(kind: object) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for each in get_args(kind):
        yield from _models(each)


def _about(model: type[BaseModel]) -> str:
    return " ".join((inspect.getdoc(model) or "").partition("\n\n")[0].split())


def _keys(model: type[BaseModel]) -> str:
    said = meanings(model)
    rows = [
        (code(name), _type(field.annotation), _default(field), said.get(name, ""))
        for name, field in model.model_fields.items()
    ]
    return table(("key", "value", "default", "what it says"), rows)


def _default(field: Any) -> str:  # noqa: ANN401 - a field of pydantic
    if field.is_required():
        return "required"
    value = field.default
    if value is PydanticUndefined or value is None or value == () or isinstance(value, BaseModel):
        return ""
    return code(json.dumps(value, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    """Return a default table as people write it: its one key if one is enough."""
    said = (
        value.model_dump(mode="json", exclude_defaults=True) if isinstance(value, BaseModel) else str(value)
    )
    alone = isinstance(said, dict) and len(said) == 1
    return next(iter(said.values())) if isinstance(said, dict) and alone else said


_NAMES: Mapping[object, str] = {
    str: "text", int: "whole number", float: "number", bool: "true, false", Path: "path", type(None): "",
    Any: "any",
}  # fmt: skip


def _type(kind: Any) -> str:  # noqa: ANN401, PLR0911 - a case each
    """Return a type in words; limits are in the text beside it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(inner[0])
    if origin is Literal:
        return ", ".join(code(str(each)) for each in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(_type, inner))))
    if origin in (list, tuple):
        return f"{_type(inner[0])}, or a list"
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"table of {_type(inner[1]) or 'values'} by name"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return _NAMES.get(kind, str(getattr(kind, "__name__", kind)))


def meanings(model: type) -> dict[str, str]:
    """Return the source's text on each field: a comment above or behind it, or a line of Attributes."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.startswith("core."):
            source = textwrap.dedent(inspect.getsource(each))
            found |= _attributes(inspect.cleandoc(each.__doc__ or "")) | _comments(source)
    return found


def _attributes(doc: str) -> dict[str, str]:
    section = textwrap.dedent(doc.partition("Attributes:\n")[2])
    entries = re.findall(r"^([a-z_, 0-9]+): (.*(?:\n[ ]+.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def _comments(source: str) -> dict[str, str]:
    said = {
        token.start[0]: (token.string.lstrip("# "), token.line.strip().startswith("#"))
        for token in tokenize.generate_tokens(StringIO(source).readline)
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(fmt:|noqa|type:)", token.string)
    }
    (body,) = ast.parse(source).body
    found: dict[str, str] = {}
    for node in body.body if isinstance(body, ast.ClassDef) else ():
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        above, line = [], node.lineno - 1
        while line in said and said[line][1]:
            above.insert(0, said[line][0])
            line -= 1
        behind = [
            said[at][0] for at in range(node.lineno, (node.end_lineno or node.lineno) + 1) if at in said
        ]
        if above or behind:
            found[node.target.id] = " ".join([*above, *behind])
    return found


def shapes() -> str:
    """Return the JSON of pages and decision records, and the tables of exports."""
    schema = _schema("page")
    tables = "\n\n".join(
        f"### {name}\n\n{table(('column', 'type'), map(_column, rows.items()))}"
        for name, rows in TABLES.items()
    )
    return "\n\n".join(
        [
            "Numbers are unrounded. Null is unknown or not applicable, with the reason in a field "
            "beside it. A shape's "
            "`version` grows where a field changes its meaning or goes; new fields leave it as it is.",
            "## A section of a page",
            "`python -m core page NAME --format json`; the schema is `core/report/page.schema.json`.",
            _properties(schema),
            *(
                f"### {name}\n\n{_properties(each)}"
                for name, each in schema["$defs"].items()
                if "properties" in each
            ),
            "## A gate",
            "`python -m core gate decision.json --json FILE`; the schema is `core/report/gate.schema.json`. "
            "Its blocks are those of pages.",
            _properties(_schema("gate")),
            "## A decision record",
            "`python -m core record decision.json`; `decide --format json` has the fields of the answer. "
            "`gate` reads it back.",
            table(("field", "type"), _fields(_example())),
            "## Tables of an export",
            "`python -m core export FOLDER` writes a Parquet file per table; `import` reads them "
            "back, also as CSV.",
            tables,
        ]
    )


def _schema(name: str) -> Mapping[str, Any]:
    text = (ROOT / "core" / "report" / f"{name}.schema.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def _properties(schema: Mapping[str, Any]) -> str:
    rows = [
        (code(name), _words(each), each.get("description", "")) for name, each in schema["properties"].items()
    ]
    return table(("field", "type", "what it says"), rows)


def _words(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 - a case each
    """Return the type of a JSON schema in words."""
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(each) for each in schema["enum"])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "string or null" if name == "words" else name
    if "type" not in schema:
        return "any"
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    words = " or ".join(kinds)
    if "items" in schema:
        inner = schema["items"]
        keys = ", ".join(code(key) for key in inner.get("properties", inner.get("required", ())))
        return f"{words} of {_words(inner)}" + (f" with {keys}" if keys else "")
    if "properties" in schema:
        return f"{words} with " + ", ".join(code(key) for key in schema["properties"])
    return words


def _column(each: tuple[str, pl.DataType]) -> tuple[str, str]:
    return code(each[0]), _polars(each[1])


def _polars(kind: pl.DataType) -> str:
    names = {"String": "text", "List(String)": "list of texts", "Boolean": "true, false", "Date": "date",
             "Float64": "number"}  # fmt: skip
    return names.get(str(kind), f"whole number ({str(kind).lower()})")


def _example() -> Mapping[str, object]:
    """Return a record of the published figures, with the fields of any record."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store")
        with store.write("published") as writer:
            writer.add(published_batch())
        view = View(
            store.read(),
            Scope("clq-paper", None),
            quality=Quality("RA-nWG", 10),
            latency=Latency(),
            book=load_books()["list"],
            constraints=Constraints(sla_ms=600.0, budget=2.5),
        )
        record = record_data(view, verdict(view), link="", made_at=datetime.now(UTC))
        return json.loads(json.dumps(record, default=str))  # type: ignore[no-any-return]


def _fields(data: Mapping[str, object], at: str = "") -> Iterator[tuple[str, str]]:
    """Yield every field with its type, and below it those of tables and of the first row of lists."""
    for name, value in data.items():
        path = f"{at}.{name}" if at else name
        first = value[0] if isinstance(value, list) and value else None
        yield code(path), _json_type(value)
        if isinstance(value, Mapping) and at.count(".") < 1:
            yield from _fields(value, path)
        elif isinstance(first, Mapping):
            yield from _fields(first, f"{path}[]")


def _json_type(value: object) -> str:
    names: Mapping[type, str] = {bool: "true, false", str: "text", int: "number", float: "number"}
    if isinstance(value, list):
        return f"list of {_json_type(value[0])}" if value else "list"
    if isinstance(value, Mapping):
        return "object"
    return "null, or a value" if value is None else names[type(value)]
