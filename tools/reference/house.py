"""The packages of the product and the order in which they may import, from the contracts."""

from __future__ import annotations

import ast
import tomllib

from core.paths import ROOT
from tools.reference.markdown import code, table

ABOVE = "app.py, pages/"


def layers() -> list[list[str]]:
    """Return the layers of `core` from the top down, each with its packages."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rows = next(each for each in contracts["contracts"] if each["name"] == "Imports run downward only")[
        "layers"
    ]
    return [[name.strip() for name in row.replace("|", ":").split(":")] for row in rows]


def mermaid() -> str:
    """Return the diagram of the layers: a box per layer, arrows to what it may import."""
    boxes = [[ABOVE], *layers()]
    lines = ["flowchart TD"]
    for number, names in enumerate(boxes):
        words = " · ".join(name.removeprefix("core.") for name in names)
        lines.append(f'    l{number}["{words}"]')
    lines += [f"    l{number} --> l{number + 1}" for number in range(len(boxes) - 1)]
    return "\n".join(["```mermaid", *lines, "```"])


def house() -> str:
    """Return the diagram, and every package with the first sentence of its docstring."""
    rows = [(code(name), about(name)) for names in layers() for name in names]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    others = "\n".join(f"- {each['name']}." for each in contracts["contracts"][1:])
    return "\n\n".join(
        [
            "A package imports from boxes below its own, never from above or beside it; `make check` "
            "enforces it.",
            mermaid(),
            table(("package", "what it is"), rows),
            "Further contracts:",
            others,
        ]
    )


def about(name: str) -> str:
    """Return the first sentence of a module's or a package's docstring."""
    path = ROOT.joinpath(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split())
