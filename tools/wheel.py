"""Builds the wheel: the repository's package ``core`` becomes ``clq``, with pages, settings and data inside.

The repository has ``core``, ``pages`` and ``app.py`` at its top; installed, names so common would clash with
those of the project that imports this one. Relative imports would not work: pages and app are scripts, which
have no package. So the words that name the package are rewritten as the wheel is built, and nothing else is.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "clq"
SOURCES = ("core", "pages", "app.py")
PARTS = ("demo", "diagnostics", "endpoints", "exported", "models.toml", "presets", "prices", "published")
DATA = (*(f"data/{name}" for name in PARTS), ".streamlit/config.toml", "docs")
_COMMAND = re.compile(r"\bpython -m core\b")  # wherever a sentence contains it
RULES = (
    (re.compile(r"^(\s*(?:from|import)\s+)core(?=[.\s])", re.MULTILINE), rf"\1{PACKAGE}"),
    (re.compile(r"""(["'])core\.(?=[a-z_]+["'.])"""), rf"\1{PACKAGE}."),  # modules imported by name
    (_COMMAND, PACKAGE),
)


def rewritten(source: str) -> str:
    """Return a module's source in its form for the wheel."""
    for pattern, instead in RULES:
        source = pattern.sub(instead, source)
    return source


def commanded(text: str) -> str:
    """Return a document with the installed command."""
    return _COMMAND.sub(PACKAGE, text)


def lay_out(root: Path, target: Path) -> None:
    """Write the package from a checkout, or an unpacked source distribution, into an empty folder."""
    for name in (*SOURCES, *DATA):
        origin = root / name
        files = sorted(origin.rglob("*")) if origin.is_dir() else [origin]
        for file in files:
            if not file.is_file() or file.suffix in (".pyc", ".ipynb"):
                continue
            inside = file.relative_to(root / "core" if name == "core" else root)
            place = target / inside
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".py":
                place.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")
            elif name == "docs":  # for agents
                place.write_text(commanded(file.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                shutil.copy2(file, place)
    (target / "py.typed").touch()


class CustomBuildHook(BuildHookInterface[Any]):
    """Makes the wheel contain the rewritten package, which lies elsewhere until the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the package before the files of the wheel are collected."""
        del version
        self._laid = Path(tempfile.mkdtemp(prefix="clq-wheel-"))
        lay_out(Path(self.root), self._laid)
        build_data["force_include"][str(self._laid)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary package."""
        del version, build_data, artifact_path
        shutil.rmtree(self._laid, ignore_errors=True)
