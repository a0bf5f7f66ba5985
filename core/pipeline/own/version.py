"""Versions of custom pipelines printed by a command, and the refusal of code in foreign specifications."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

from core.errors import InputError
from core.pipeline.own.config import OwnStack

_TIMEOUT_S = 30
_LONGEST = 200


def versioned(own: OwnStack) -> OwnStack:
    """Return the pipeline with the version that its command prints, unless one is given; it runs the command.

    Raises:
        InputError: If the command fails or prints nothing.
    """
    return own if own.version or not own.version_cmd else own.model_copy(update={"version": _printed(own)})


def require_version(own: Iterable[OwnStack]) -> None:
    """Refuse to continue if a command prints a different version than the one measured so far.

    Raises:
        InputError: If it does, as both versions would count as one.
    """
    for stack in own:
        if stack.version_cmd and (today := _printed(stack)) != stack.version:
            raise InputError(
                f"It was {stack.version} when it was begun and is {today} now.",
                where=f"stack {stack.name}, version_cmd",
                do="Bring the old version back to go on, or measure the new one as an evaluation of its own.",
            )


def _printed(own: OwnStack) -> str:
    where = f"stack {own.name}, version_cmd"
    try:
        done = subprocess.run(  # noqa: S603 - what the user wants to be run, without a shell
            shlex.split(own.version_cmd),
            cwd=own.path or Path.cwd(),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{own.version_cmd!r} cannot be run: {error}.", where=where) from error
    said = " ".join(done.stdout.split())[:_LONGEST]
    if done.returncode or not said:
        reason = " ".join(done.stderr.split())[:_LONGEST] or f"exit code {done.returncode}"
        raise InputError(
            f"{own.version_cmd!r} prints no version: {reason}.", where=where, do="Give version instead."
        )
    return said


def refuse_code(own: Iterable[OwnStack], of: str) -> None:
    """Refuse custom pipelines in a specification that came from elsewhere.

    Args:
        of: A description of the specification.

    Raises:
        InputError: If there is one, as it would run code, or send requests, on this machine.
    """
    for stack in own:
        what = f"would run {stack.call}" if stack.call else f"would send requests to {stack.place}"
        raise InputError(
            f"{of} never runs code: the stack {stack.name!r} {what}.",
            where="stack",
            do="Run it from the command line (core run, core measure), or fill in “Measure what you have”.",
        )
