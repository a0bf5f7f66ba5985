"""``python -m core …``: the command line."""

from __future__ import annotations

from core.cli.app import app

if __name__ == "__main__":
    app(prog_name="python -m core")
