"""Usage errors of the command line: short, and with the nearest name of what was misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from core.errors import cut, nearest

_UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it
_CHOICES = re.compile(r"(?P<given>'.*') is not one of (?P<known>'.+')\.", re.DOTALL)
_COMMAND = re.compile(r"No such command '(?P<name>.*)'\.", re.DOTALL)


@contextmanager
def explained() -> Iterator[None]:
    """Shorten the argument that a usage error echoes, and name the nearest that there is."""
    try:
        yield
    except _UsageError as error:
        error.message = cut(error.message.removeprefix("Value error, "))
        if near := _nearest(error):
            error.message = f"{error.message} Nearest: {near}."
        raise


def _nearest(error: Any) -> str:  # noqa: ANN401 - typer's own types are private
    """Return the option, command or choice that was most likely meant, or "" if none is similar."""
    if hasattr(error, "possibilities"):
        error.possibilities, error.message = None, f"{error.message.removesuffix('.')}."
        return _option(error.option_name, error.ctx)
    if (command := _COMMAND.match(error.message)) and error.ctx is not None:
        error.message = command[0]
        return nearest(command["name"], error.ctx.command.list_commands(error.ctx))
    choice = _CHOICES.search(error.message)
    return nearest(choice["given"].strip("'"), re.findall("'([^']*)'", choice["known"])) if choice else ""


def _option(name: str, context: Any) -> str:  # noqa: ANN401
    from core.decide.axes import nearest_setting  # noqa: PLC0415 - a fifth of a second, for errors only

    given: Iterable[Any] = context.command.params if context is not None else ()
    options: list[str] = [option for each in given for option in each.opts if option.startswith("--")]
    known = {option.removeprefix("--"): option for option in options}
    return known.get(nearest_setting(name.lstrip("-"), known), "")
