"""Counts columns declared or changed outside a table: ``python -m tools.columns`` lists them.

A table (``Rows``) declares its columns itself or names those of ``core/views/columns.py``; anything beside
these two duplicates the same words.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from core.paths import ROOT

SHARED = "core/views/columns.py"
MAKES = {"Column", "text", "score", "signed", "change", "share", "usd", "exact", "number", "points", "count"}


def beside(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of calls that make or change a column outside of a call of ``Rows``."""
    tree = ast.parse(source)
    module = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
              and node.module == "core.views" for alias in node.names if alias.name == "columns"}  # fmt: skip
    names = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
             and node.module == "core.views.columns" for alias in node.names}  # fmt: skip

    def made(node: ast.Call) -> str:
        """Return the kind of column that a call of the columns' module makes, or "" for any other call."""
        match node.func:
            case ast.Attribute(ast.Name(id=owner), name) if owner in module:
                return name
            case ast.Name(id=name) if name in names:
                return name
            case ast.Attribute(of, "replace" as name) if "COLUMNS[" in ast.unparse(of):
                return name
        return ""

    def calls(node: ast.AST) -> Iterator[tuple[int, str]]:
        name = made(node) if isinstance(node, ast.Call) else ""
        if name == "Rows":
            return
        if name in MAKES or name == "replace":
            yield getattr(node, "lineno", 0), ast.unparse(node)
        for child in ast.iter_child_nodes(node):
            yield from calls(child)

    return calls(tree)


def found(root: Path = ROOT) -> list[str]:
    """Return the calls of `beside` for every file of the product, with their locations."""
    files = (path for folder in ("core", "pages") for path in sorted((root / folder).rglob("*.py")))
    named = ((path.relative_to(root).as_posix(), path) for path in files)
    return [f"{name}:{line}: {call}" for name, path in named if name != SHARED
            for line, call in beside(path.read_text(encoding="utf-8"))]  # fmt: skip


def main() -> int:
    """Print each such call, and their number."""
    each = found()
    sys.stdout.write("".join(f"{line}\n" for line in each) + f"{len(each)} columns beside tables\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
