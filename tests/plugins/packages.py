"""Packages of one's own, as an installer leaves them: a module, and entry points in its metadata."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from core.paths import ROOT


def installed(folder: Path, name: str, code: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Put a package where Python looks for packages."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, entries in entry_points.items()
        for line in (f"[{group}]", *(f"{key} = {place}" for key, place in entries.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def clq(folder: Path, *arguments: str, **env: str) -> str:
    """Return what a command prints with these packages installed."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "core", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": path, **env},
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout
