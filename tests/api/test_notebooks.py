"""The example notebooks run from an installed wheel, and say what their texts promise."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from core.paths import ROOT

pytestmark = pytest.mark.extras

FOLDER = ROOT / "docs" / "notebooks"
PROMISED = {
    "from_a_dataframe_to_a_decision": (r"(Ship |Best so far: )hybrid \+ small reranker", "Holds: ", "set_to"),
    "measure_my_retriever": ("finished: 2 of 2 stacks", "finished: 1 of 1 stack", "N-Recall4\\+@3"),
}
"""What stands in the outputs of each, as patterns."""


def outputs(notebook: Any) -> list[str]:
    """What every cell put out, each form of it."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [text for output in shown for text in (output.get("text", ""), *output.get("data", {}).values())]


@pytest.mark.filterwarnings("default")
def test_notebooks_run_in_one_folder_and_keep_their_promises(site: Path, tmp_path: Path):
    assert set(PROMISED) == {path.stem for path in FOLDER.glob("*.ipynb")}
    for name in PROMISED:
        keeps(name, site, tmp_path)


def keeps(name: str, site: Path, tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the repository"
    home = {"HOME": str(tmp_path / "home"), "IPYTHONDIR": str(tmp_path / "ipython")}
    environ = {**os.environ, "PYTHONPATH": str(site), "PYTHONWARNINGS": "", **home}
    environ.pop("CLQ_STORE", None)
    client = nbclient.NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}, kernel_name="python3"
    )
    client.execute(env=environ)
    if kept := os.environ.get("CLQ_NOTEBOOKS"):  # to be looked at
        nbformat.write(notebook, Path(kept) / f"{name}.ipynb")
    said = outputs(notebook)
    for pattern in PROMISED[name]:
        assert any(re.search(pattern, text) for text in said), pattern
    assert any('<div class="clq">' in text for text in said)
    assert not any("<pre" in text for text in said), "everything is shown once"
    complaints = [output["text"] for cell in notebook.cells for output in cell.get("outputs", [])
                  if output.get("name") == "stderr"]  # fmt: skip
    assert complaints == []
