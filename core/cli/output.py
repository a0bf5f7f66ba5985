"""Standard output and error as their readers want them: closed early by ``| head``, or without escapes."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO


class _Pipe(io.FileIO):
    """A pipe whose reader may leave: the rest is dropped, and the exit code stays that of the command."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever has a buffer
        """Write bytes; once nobody reads them any more, write them nowhere."""
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


def prepare() -> None:
    """Let a reader of a pipe leave early, and leave escapes out if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        os.environ["TERM"] = "dumb"  # which libraries that draw bars and tables know, too
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)


def _patient(stream: TextIO | None) -> TextIO:
    if stream is None:  # it is closed
        return Path(os.devnull).open("w", encoding="utf-8")
    if stream.isatty():
        return stream
    try:
        raw = _Pipe(stream.fileno(), "w", closefd=False)
    except (OSError, io.UnsupportedOperation):  # it is closed, or no file
        return stream
    stream.flush()
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=stream is sys.stderr)
