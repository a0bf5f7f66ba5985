"""Writes the requirements files from pyproject.toml, the only declaration of the product's dependencies.

``python -m tools.requirements`` (``make requirements``); a test holds them equal.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "# Written from pyproject.toml: make requirements.\n"
RUN = "run"
"""The extra that a checkout has from the start: it runs evaluations."""


def files(root: Path = ROOT) -> dict[str, str]:
    """Return the content of every requirements file by name."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lines = {"requirements.txt": [*project["dependencies"], *extras.pop(RUN)]}
    for name, packages in extras.items():
        lines[f"requirements-{name}.txt"] = ["-r requirements.txt", *packages]
    return {name: HEAD + "\n".join(own) + "\n" for name, own in lines.items()}


if __name__ == "__main__":
    for name, content in files().items():
        (ROOT / name).write_text(content, encoding="utf-8")
