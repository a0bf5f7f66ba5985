"""``ui``: open the dashboard."""

from __future__ import annotations

import os
import runpy
import socket
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from core.cli.base import Context
from core.errors import AccessError
from core.paths import APP
from core.prefork import helping, serve


def run(
    ctx: typer.Context,
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets colleagues in the same network in.")
    ] = "localhost",
    name: Annotated[str | None, typer.Option(help="Name that links have; by default the address.")] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Processes that draw; by default one, or as many as help where others get in."
        ),
    ] = None,
    browser: Annotated[
        bool | None, typer.Option("--browser/--no-browser", help="Open it; by default from a terminal.")
    ] = None,
) -> None:
    """Open the dashboard on the store; so does the program without any words. Ctrl+C ends it."""
    context: Context = ctx.obj
    if context.path is not None:
        os.environ["CLQ_STORE"] = str(context.path.absolute())
    shown = sys.stdout.isatty() if browser is None else browser
    settings = {
        "server.address": host,
        "server.port": str(port),
        "browser.serverAddress": name or host,
        "server.headless": str(not shown).lower(),
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
    }
    processes = helping(host) if processes is None else processes
    if processes > 1:
        raise typer.Exit(_crowd(host, port, processes, settings))
    sys.argv = ["streamlit", "run", str(APP)]
    sys.argv += [word for key, value in settings.items() for word in (f"--{key}", value)]
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


def _crowd(host: str, port: int, processes: int, settings: Mapping[str, str]) -> int:
    """Serve with several processes, and report the URL.

    Raises:
        AccessError: If this system cannot hand connections over, or nothing may listen there.
    """
    if not hasattr(socket, "send_fds"):
        raise AccessError("This system hands no connections to other processes: leave out --processes")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise AccessError(f"Port {port} of {host} cannot be listened to: {error.strerror}") from error
    with listening:
        typer.echo(f"http://{settings['browser.serverAddress']}:{port}, drawn by {processes} processes")
        return serve(str(APP), listening, processes, settings)
