"""Specifications to start from: the workspace that is open, and the presets."""

from __future__ import annotations

import json
from pathlib import Path

from core.paths import PRESETS
from core.views.workspace.scope import Scope

WORKSPACE = "this workspace"
_FIRST = ("quick-local", "clq-paper")


def drafts(scope: Scope | None) -> dict[str, str]:
    """Texts to start from by name.

    Args:
        scope: The workspace that is open; its collection and golden set in the store make the first draft.

    Returns:
        TOML texts; those of presets name the corpus and the judgements as paths to fill in.
    """
    made = {}
    if scope is not None and scope.golden_set_id is not None:
        made[WORKSPACE] = _stored(scope)
    files = {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}
    for name in sorted(files, key=lambda name: (name not in _FIRST, name)):
        made[name] = _preset(name, files[name])
    return made


def _stored(scope: Scope) -> str:
    return f"""name = {_quoted(f"{scope.collection_id} again")}
collection.stored = {_quoted(scope.collection_id)}
golden_set.stored = {_quoted(str(scope.golden_set_id))}

[axes]
mode = ["sparse", "dense", "hybrid"]
embedder = ["wordllama"]
dim = [128, 256]
index = ["flat"]
candidates = [20, 50]
"""


def _preset(name: str, file: Path) -> str:
    said = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return f"""{chr(10).join(said)}
preset = {_quoted(name)}
collection = "path/to/corpus"  # a BEIR folder, .jsonl, .csv, .parquet, or a folder of documents
golden_set = "path/to/qrels.tsv"
"""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
