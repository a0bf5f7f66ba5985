import re
from pathlib import Path

import pytest

UI = Path(__file__).parents[2] / "core" / "ui"


@pytest.mark.parametrize("sheet", sorted(UI.rglob("*.css")), ids=lambda file: file.name)
def test_no_rule_asks_every_element_what_it_holds(sheet: Path) -> None:
    """A :has() without a name before it makes each element that a chart adds restyle the whole page."""
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.findall(r"(?:^|[\s,>+~}*])(?::has\([^)]*\))", rules)
