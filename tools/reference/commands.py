"""Every command with its arguments and options, from what typer builds."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from typer.main import get_command

from core.cli.app import app
from core.cli.deciding import QuestionOptions
from tools.reference.markdown import code, table

HEADS = ("option", "value", "default", "what it does")
_WORDS: Mapping[type, str] = {str: "text", int: "whole number", float: "number", Path: "path", bool: ""}
_DECIDING = {each.name for each in fields(QuestionOptions)}


def commands() -> str:
    """Return the reference of the command line."""
    found = dict(walk(get_command(app), "python -m core"))
    lines = [(f"[`{path.removeprefix('python -m core ')}`](#{_anchor(path)})", _first(command))
             for path, command in found.items()]  # fmt: skip
    deciding = next(each for each in found.values() if _decides(each))
    return "\n\n".join(
        [
            "`python -m core [--store PATH] [--verify] [--version] COMMAND`. Results go to standard output, "
            "everything else to "
            "standard error. Exit code 0 done; 1 refused input or failed run; 2 wrong usage; of "
            "evaluations also 3 "
            "stopped by the budget and 130 interrupted; of `decide --gate` also 4, a recorded "
            "decision no longer holds; of `gate` 4, 5 and 6 by the cause.",
            table(("command", "what it does"), lines),
            "## Options of a decision",
            "Commands that rest on a decision take these, and those of their own.",
            table(HEADS, (row(each) for each in deciding.params if each.name in _DECIDING)),
            *(_command(path, each) for path, each in found.items()),
        ]
    )


def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own types are private
    """Yield every command that does something, with the words that invoke it."""
    inner = getattr(command, "commands", {})
    if command.callback is not None and path != "python -m core":
        yield path, command
    for name, each in inner.items():
        yield from walk(each, f"{path} {name}")


def _command(path: str, command: Any) -> str:  # noqa: ANN401
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    decides = _decides(command)
    left_out = {"help", *(_DECIDING if decides else ())}
    shown = (each for each in command.params if each not in arguments and not each.hidden)
    own = [each for each in shown if each.name not in left_out]
    more = ", and the [options of a decision](#options-of-a-decision)" if decides else ""
    usage = f"{code(' '.join([path, *map(_argument, arguments)]))}{more}."
    parts = [f"## {path.removeprefix('python -m core ')}", _whole(command), usage]
    if rows := [row(each) for each in (*arguments, *own)]:
        parts.append(table(HEADS, rows))
    return "\n\n".join(part for part in parts if part)


def row(param: Any) -> tuple[str, str, str, str]:  # noqa: ANN401
    """Return the row of an argument or an option: its notation, values, default and help."""
    argument = param.param_type_name == "argument"
    names = _argument(param) if argument else " ".join([*param.opts, *param.secondary_opts])
    return code(names), _value(param), _default(param), param.help or ""


def _value(param: Any) -> str:  # noqa: ANN401
    kind = _bare(param.type_descriptor.annotation)
    if param.metavar and param.param_type_name == "option":
        words = code(param.metavar)
    elif get_origin(kind) is Literal:
        words = ", ".join(code(str(each)) for each in get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        words = ", ".join(code(str(each.value)) for each in kind)
    else:
        words = _WORDS.get(kind, str(getattr(kind, "__name__", kind)))
    ends = (f"{word} {end:g}" for word, end in (("from", param.min), ("to", param.max)) if end is not None)
    again = (
        "may be repeated"
        if getattr(param, "multiple", False) and "repeated" not in (param.help or "")
        else ""
    )
    return ", ".join(part for part in (" ".join([words, *ends]), again) if part)


def _bare(kind: Any) -> Any:  # noqa: ANN401
    """Return the type inside an optional or a list."""
    if get_origin(kind) in (Union, types.UnionType):
        return _bare(next(each for each in get_args(kind) if each is not type(None)))
    return _bare(get_args(kind)[0]) if get_origin(kind) in (list, tuple) else kind


def _default(param: Any) -> str:  # noqa: ANN401
    default = param.default
    if param.required:
        return "required"
    if default is None or default is False or default in ((), []) or callable(default):
        return ""
    return code(str(default.value if isinstance(default, StrEnum) else default))


def _argument(param: Any) -> str:  # noqa: ANN401
    name = (param.metavar or param.name).upper().rstrip("_…") + ("…" if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _decides(command: Any) -> bool:  # noqa: ANN401
    return {"sla_ms", "judge_noise"} <= {each.name for each in command.params}


def _whole(command: Any) -> str:  # noqa: ANN401
    paragraphs: Sequence[str] = (command.help or "").strip().split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _first(command: Any) -> str:  # noqa: ANN401
    return _whole(command).split("\n\n")[0]


def _anchor(path: str) -> str:
    return path.removeprefix("python -m core ").replace(" ", "-")
