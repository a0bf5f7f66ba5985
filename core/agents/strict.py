"""Strict arguments of tools: anything undeclared is refused with one short line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from core.agents.small import as_json
from core.decide.axes import FORMER, nearest_setting
from core.errors import ClqError, InputError, cut, nearest, refusal

RENAMED = {**FORMER, "percentile": "on"}
"""Arguments as release 0.2 called them, which are understood until the next."""
_FURTHER = "floors"  # An argument of release 0.2: further limits by name
_ERRORS = "mcp.server.mcpserver.exceptions"


def server_of() -> Any:  # noqa: ANN401 - a class of an extra
    """Return the class of servers whose tools accept their schema and refuse anything else."""
    sdk, errors = import_module("mcp.server"), import_module(_ERRORS)

    class Strict(sdk.MCPServer):  # type: ignore[misc, name-defined]
        async def list_tools(self) -> list[Any]:
            tools: list[Any] = await super().list_tools()
            for tool in tools:
                tool.input_schema["additionalProperties"] = False
            return tools

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:  # noqa: ANN401
            schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
            try:
                known = schemas[_known("tool", name, schemas)]["properties"]
                given, notes = renamed(arguments, known)
                for each in given:
                    _known("argument", each, known)
                answer = await super().call_tool(name, given, context)
            except ClqError as error:
                raise errors.ToolError(error.brief()) from None
            except errors.ToolError as error:
                if isinstance(error, errors.UnexpectedToolError):
                    raise
                cause = error.__cause__
                raise errors.ToolError(
                    wrong(cause) if isinstance(cause, ValidationError) else str(cause or error)
                ) from None
            answer.content[0].text = as_json(answer.structured_content)  # the SDK indents it
            if notes:
                text = import_module("mcp.types").TextContent
                answer.content.append(text(type="text", text=" ".join(notes)))
            return answer

    return Strict


@contextmanager
def refused() -> Iterator[None]:
    """Turn a user-facing error into the short answer of a tool."""
    error_of = import_module(_ERRORS).ToolError
    try:
        yield
    except ClqError as error:
        raise error_of(error.brief()) from None
    except OSError as error:
        said = refusal(error)
        raise error_of(said.brief() if said else cut(str(error))) from None


def renamed(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return arguments under their current names, and a note for each renamed one."""
    given: dict[str, Any] = {}
    notes = []
    for name, value in arguments.items():
        if name == _FURTHER and name not in known and isinstance(value, Mapping):
            given |= value
            notes.append(f"{_FURTHER} is gone from the next release on: give each limit by its name.")
        elif name not in known and RENAMED.get(name) in known:
            given[RENAMED[name]] = value
            notes.append(f"{name} is called {RENAMED[name]} now, and not understood by the next release.")
        else:
            given[name] = value
    return given, notes


def wrong(error: ValidationError) -> str:
    """Describe in one line what is wrong with an argument."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "arguments"
    if first["type"] == "missing":
        return f"{name}: It is needed."
    given, expected = first["input"], first.get("ctx", {}).get("expected", "")
    near = (
        nearest(given, expected.replace("'", "").replace(" or ", ", ").split(", "))
        if isinstance(given, str)
        else ""
    )
    said = f"{name}: {first['msg']}, not {cut(repr(given), 40)}."
    return cut(f"{said} Nearest: {near}." if near else said)


def _said(error: Exception) -> str:
    """Return the SDK's message about a call, without the name of the tool, which the agent knows."""
    cause = error.__cause__
    return wrong(cause) if isinstance(cause, ValidationError) else cut(str(cause or error))


def _known(kind: str, name: str, known: Mapping[str, Any]) -> str:
    """Return a known name.

    Raises:
        InputError: If it is unknown; with the nearest one.
    """
    if name in known:
        return name
    near = nearest_setting(name, known)
    raise InputError(
        f"No {kind} {cut(name, 40)!r}.", do=f"Nearest: {near}." if near else f"Found: {', '.join(known)}."
    )
