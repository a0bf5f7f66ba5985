"""Command options derived from the choices of a dataclass; see `core.choices`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Annotated

import typer

from core.choices import Declared, Declaring, declared


def options(
    kind: type[Declaring], argument: str, usual: Declaring | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option per choice of a dataclass, after its own options.

    Args:
        argument: The command's parameter that receives them: an object of the dataclass.
        usual: The defaults of omitted options, for the help. The command then receives a mapping of the
            given ones, by name.
    """
    choices = declared(kind)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own[argument]
        shared = [_parameter(field, usual) for field in choices.values()]
        both = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*own.values(), *shared)]

        def run(**values: object) -> None:
            given = {name: values.pop(name) for name in choices}
            if usual is None:
                taken: object = kind(**given)
            else:
                taken = {name: value for name, value in given.items() if value is not None}
            command(**values, **{argument: taken})

        run.__doc__ = command.__doc__
        run.__signature__ = Signature(both)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
        return run

    return decorate


def _parameter(field: Declared, usual: Declaring | None) -> Parameter:
    """Return an option in the form that typer reads from a signature."""
    choice = field.choice
    flag = choice.flag or (f"--{field.name.replace('_', '-')}" if field.type is bool else "")
    about, kind, default = choice.about, field.type, field.usual
    if usual is not None:
        value = getattr(usual, field.name)
        words = "none" if value is None else f"{value:,.10g}" if field.number else str(value)
        about, kind, default = f"{about.removesuffix('.')}; else {words}.", field.type | None, None
    option = typer.Option(
        *([flag] if flag else []), min=choice.low, max=choice.high, help=about, metavar=choice.metavar or None
    )
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
