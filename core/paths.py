"""Locations of the product's own files and of its users' files."""

from __future__ import annotations

from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parent
"""The package itself: core/ of a checkout, or the installed wheel's."""
INSTALLED = (PACKAGE / "data").is_dir()
PROGRAM = "python -m core"
"""The command that starts it; in a wheel, the command's name, for every sentence that mentions it."""
ROOT = PACKAGE if INSTALLED else PACKAGE.parent
"""The folder with app.py, pages/ and data/."""
APP = ROOT / "app.py"
DATA = ROOT / "data"
PRICES = DATA / "prices"
PUBLISHED = DATA / "published"
DEMO = DATA / "demo"
PRESETS = DATA / "presets"
DOCS = ROOT / "docs"
USUAL_STORE = "./clq-store if it is there, else the user's data folder" if INSTALLED else "data/store"
"""The default location of the store, in words."""


def usual_store() -> Path:
    """Return the default store: data/store of a checkout, otherwise ./clq-store or the user's data folder."""
    here = Path("clq-store").absolute()
    if INSTALLED and not here.is_dir():
        return platformdirs.user_data_path("clq-explorer", appauthor=False) / "store"
    return here if INSTALLED else DATA / "store"


DEFAULT_STORE = usual_store()
