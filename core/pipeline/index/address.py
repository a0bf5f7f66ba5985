"""What there is to know of a database that keeps vectors: its options, and where it is.

An address, with user and password, stands in an environment variable; only the variable's name is written
down, and no part of the address is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import InputError
from core.params import Method, Options, Param, read_options
from core.records import JsonMap

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[^\s:/@?&=;,]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(Method):
    """A database that keeps vectors."""

    title: str  # what people call it
    package: str  # what it is reached by
    requirements: str  # the file that installs that
    example: str  # of an address
    vector_bytes: Callable[[int, Options], float]  # bytes per vector of a dimension, rows and index
    folder: bool = False  # whether it works on a folder where no address is given
    searching: tuple[str, ...] = ("exact",)  # options that change a search and not what is built


def shared(url_env: str, *, id: str, vector: str) -> tuple[Param, ...]:  # noqa: A002 - as it is written
    """Return the options that every engine has."""
    named = "Environment variable that holds the address."
    return (
        Param(name="url_env", default=url_env, free=True, text=named),
        Param(name="table", default="", free=True, text="Table that is there; empty: one is built."),
        Param(name="id", default=id, free=True, text="Where that table keeps the passage's identifier."),
        Param(name="vector", default=vector, free=True, text="Where it keeps the vector."),
        Param(name="exact", default="no", choices=("no", "yes"), text="Compare every vector."),
    )


KEY = Param(name="key_env", default="", free=True, text="Environment variable that holds an API key, if any.")


def engine_options(engine: Engine, given: JsonMap | None) -> Options:
    """Check the options of an engine and fill in the defaults; an empty word counts as not given."""
    where = f"index {engine.name}"
    stated = {name: value for name, value in (given or {}).items() if value != ""}
    read = read_options(engine.options, stated, where=where)
    if not (read["url_env"] or engine.folder):
        raise InputError("No address is given.", where=where, do='Name its variable: url_env = "…".')
    for key in ("url_env", "key_env"):
        if read.get(key) and not _VARIABLE.fullmatch(str(read[key])):
            found = f"{key} is no name of an environment variable."
            raise InputError(found, where=where, do="Put the value into a variable, and give its name.")
    return read


def secret(engine: Engine, options: Options) -> str | None:
    """The API key that an environment variable holds; None where none is named."""
    variable = str(options.get("key_env", ""))
    return _variable(engine, variable, "Set it to the API key.") if variable else None


def address(engine: Engine, options: Options) -> str:
    """The address that an environment variable holds; empty where none is named."""
    variable = str(options["url_env"])
    return _variable(engine, variable, f"Set it to the address, as {engine.example}.") if variable else ""


def _variable(engine: Engine, variable: str, do: str) -> str:
    found = os.environ.get(variable, "").strip()
    if not found:
        raise InputError(
            f"The environment variable {variable} is not set.", where=f"index {engine.name}", do=do
        )
    return found


def without_secrets(words: str, url: str) -> str:
    """Take every part of an address out of a text."""
    for part in sorted(set(_SECRET.findall(url)), key=len, reverse=True):
        words = words.replace(part, "…")
    return words


def told(options: Options) -> Options:
    """The options that are not empty, as they can be read again."""
    return {name: value for name, value in options.items() if value != ""}
