"""``python -m core …``: the command line."""

from __future__ import annotations

import sys

from core.cli.app import app
from core.cli.output import prepare


def main() -> None:
    """Run the command named by the program's arguments."""
    prepare()
    app(sys.argv[1:] or ["ui"], prog_name="python -m core")


if __name__ == "__main__":
    main()
