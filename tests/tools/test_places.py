"""Every place of a store as a file, so that two checkouts can be compared."""

import json
from pathlib import Path

import pytest

from core.views.pages import PAGES
from tools import places


@pytest.mark.slow
def test_each_section_of_each_workspace_is_a_file(
    monkeypatch: pytest.MonkeyPatch, published_store: Path, tmp_path: Path
):
    monkeypatch.setenv("CLQ_STORE", str(published_store))
    assert {page for page, _ in places.sections()} == {name for name, page in PAGES.items() if page.home}
    asked = [("headroom", ""), ("readers", "refusals")]
    monkeypatch.setattr(places, "sections", lambda: asked)
    monkeypatch.setattr(places, "workspaces", lambda known=places.workspaces: known()[:1])
    assert places.main([str(tmp_path)]) == 0
    found = {
        file.relative_to(tmp_path).as_posix(): file.read_text("utf-8") for file in tmp_path.rglob("*.json")
    }
    assert set(found) == {"clq-paper/headroom/page.json", "clq-paper/readers/refusals.json"}
    assert "no section 'refusals'" in found["clq-paper/readers/refusals.json"].lower()
    said = json.loads(found["clq-paper/headroom/page.json"])
    assert (said["page"], said["workspace"]["collection"]) == ("headroom", "clq-paper")


def test_a_folder_is_needed():
    assert places.main([]) == 2
