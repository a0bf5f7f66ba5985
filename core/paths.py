"""Where the files that ship with the product lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
PRICES = DATA / "prices"
PUBLISHED = DATA / "published"
DEMO = DATA / "demo"
PRESETS = DATA / "presets"
DEFAULT_STORE = DATA / "store"
