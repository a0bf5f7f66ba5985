"""Usage errors of the command line: short, and with the nearest name of what was misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from core.errors import cut, nearest

_UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it
_CHOICES = re.compile(r"(?P<given>'.*') is not one of (?P<known>'.+')\.", re.DOTALL)
_NUMBER = re.compile(r"Input should be a valid (?:number|integer), unable to parse .*")
_ELSEWHERE: Mapping[str, str] = {"workspace": "collection", "workspaces": "collections"}
"""Names in commands, by the different names in pages, Python and for agents."""
_COMMAND = re.compile(r"No such command '(?P<name>.*)'\.", re.DOTALL)


@contextmanager
def explained() -> Iterator[None]:
    """Shorten the argument that a usage error echoes, and name the nearest existing one."""
    try:
        yield
    except _UsageError as error:
        error.message = cut(_NUMBER.sub("It is not a number.", error.message.removeprefix("Value error, ")))
        if near := _nearest(error):
            error.message = f"{error.message} {near}"
        raise


def _nearest(error: Any) -> str:  # noqa: ANN401 - typer's own types are private
    """Say which option, command or choice was most likely meant, or "" if none is similar."""
    if hasattr(error, "possibilities"):
        error.possibilities, error.message = None, f"{error.message.removesuffix('.')}."
        return _option(error.option_name, error.ctx)
    if (command := _COMMAND.match(error.message)) and error.ctx is not None:
        error.message, known = command[0], error.ctx.command.list_commands(error.ctx)
        return _said(nearest(command["name"], known)) or f"Found: {', '.join(known)}."
    if choice := _CHOICES.search(error.message):
        known, given = re.findall("'([^']*)'", choice["known"]), choice["given"].strip("'")
        return _said(nearest(_ELSEWHERE.get(given, given), known))
    return ""


def _said(near: str) -> str:
    return f"Nearest: {near}." if near else ""


def _option(name: str, context: Any) -> str:  # noqa: ANN401
    from core.decide.axes import nearest_setting  # noqa: PLC0415 - a fifth of a second, for errors only

    known, asked = _options(context), name.lstrip("-")
    if context is not None and asked in _options(context.find_root()):
        return f"Write it before the command: {name} … {context.info_name}."
    return _said(known.get(nearest_setting(_ELSEWHERE.get(asked, asked), known), ""))


def _options(context: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the options of a command by their names without dashes."""
    given: Iterable[Any] = context.command.params if context is not None else ()
    options: list[str] = [option for each in given for option in each.opts if option.startswith("--")]
    return {option.removeprefix("--"): option for option in options}
