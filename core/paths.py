"""Where the product's own files and its users' files are."""

from __future__ import annotations

from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parent
"""The package itself: core/ of a checkout, or where the wheel is installed."""
INSTALLED = (PACKAGE / "data").is_dir()
PROGRAM = "python -m core"
"""What starts it; the wheel has the command's name here, as in every sentence that says so."""
ROOT = PACKAGE if INSTALLED else PACKAGE.parent
"""The folder with app.py, pages/ and data/."""
APP = ROOT / "app.py"
DATA = ROOT / "data"
PRICES = DATA / "prices"
PUBLISHED = DATA / "published"
DEMO = DATA / "demo"
PRESETS = DATA / "presets"
DOCS = ROOT / "docs"


def usual_store() -> Path:
    """Return the default store: data/store of a checkout, otherwise ./clq-store or the user's data folder."""
    here = Path("clq-store").absolute()
    if INSTALLED and not here.is_dir():
        return platformdirs.user_data_path("clq-explorer", appauthor=False) / "store"
    return here if INSTALLED else DATA / "store"


DEFAULT_STORE = usual_store()
