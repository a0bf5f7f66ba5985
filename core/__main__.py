"""``python -m core …``: the command line."""

from __future__ import annotations

import sys

from core.cli.app import app


def main() -> None:
    """Run the command named by the program's arguments."""
    app(sys.argv[1:] or ["ui"], prog_name="python -m core")


if __name__ == "__main__":
    main()
