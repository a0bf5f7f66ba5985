"""``ui``: open the dashboard."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Annotated

import typer

from core.cli.context import Context
from core.paths import APP


def run(
    ctx: typer.Context,
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets colleagues in the same network in.")
    ] = "localhost",
    name: Annotated[str | None, typer.Option(help="Name that links have; by default the address.")] = None,
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
        "server.port": port,
        "browser.serverAddress": name or host,
        "server.headless": str(not shown).lower(),
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
    }
    sys.argv = ["streamlit", "run", str(APP)]
    sys.argv += [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
