"""Texts that say in which direction to read: in themselves, and in every file and page that names one."""

import json
import re
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.bidi import escaped, isolated, strip_bidi_controls
from core.cli.app import app
from core.importers.read.text import shown
from core.report.render import escaped as in_markdown
from core.views.text import escape, plain, to_csv
from tests.pages.conftest import OpenPage, open_page
from tests.pages.reading import PAGES, figures
from tests.pages.test_hostile import strings, written
from tests.stores import Lab

__all__ = ["open_page"]  # the fixture

CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FIRST_STRONG, POP = "\u2068", "\u2069"
HEBREW = "\u05e9\u05dc\u05d5\u05dd"
NAMES = ("fast\u202e 999.0 tsaf", f"{HEBREW} 7", "\u2067\u200fturned", "".join(CONTROLS))


def test_the_characters_are_all_that_unicode_has():
    found = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in
             {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}]  # fmt: skip
    assert {*found, "\u061c", "\u200e", "\u200f"} == set(CONTROLS)
    assert strip_bidi_controls(CONTROLS) == ""


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain 0.5", "plain 0.5"),
        ("a\u202eb\u202cc", "abc"),
        ("é\u200f", "é"),
        (f"Ship {HEBREW}: 0.493 [0.396, 0.585]", f"Ship \u2068{HEBREW}\u2069: 0.493 [0.396, 0.585]"),
        (f"{HEBREW} {HEBREW} 7", f"\u2068{HEBREW} {HEBREW}\u2069 7"),
        (f"{HEBREW}: 0.4; {HEBREW}: 0.3", f"\u2068{HEBREW}\u2069: 0.4; \u2068{HEBREW}\u2069: 0.3"),
        ("", ""),
    ],
)
def test_islands(text: str, result: str):
    assert isolated(text) == result


@given(st.text(st.sampled_from(CONTROLS + HEBREW + "ab1 .,-[]\u0661é")))
def test_no_figure_stands_in_an_island_and_every_island_ends(text: str):
    found = isolated(text)
    assert re.sub(f"[{FIRST_STRONG}{POP}]", "", found) == strip_bidi_controls(text)
    assert isolated(found) == found
    inside = False
    for char in found:
        assert char not in CONTROLS or char == (POP if inside else FIRST_STRONG)
        inside ^= char in (FIRST_STRONG, POP)
        assert not (inside and char in "0123456789.,[]")
    assert not inside


@pytest.mark.parametrize("name", NAMES)
def test_what_writes_names(name: str):
    for write in (plain, escape, in_markdown, shown):
        assert set(write(name)) & set(CONTROLS) <= {FIRST_STRONG, POP}
    assert not set(to_csv(pl.DataFrame({"name": [name], "tags": [[name]]})).decode()) & set(CONTROLS)
    assert json.loads(escaped(json.dumps({name: name}, ensure_ascii=False))) == {name: name}
    assert not set(escaped(json.dumps(name, ensure_ascii=False))) & set(CONTROLS)


@pytest.fixture(scope="module")
def turning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("turning") / "store"
    queries = {f"q{number}": NAMES[number % len(NAMES)] for number in range(8)}
    lab = Lab().judge({query: {"p1": 5, "p2": 1} for query in queries})
    lab.ask(queries, tags=[f"type={NAMES[0]}"]).hold({"p1": NAMES[0], "p2": NAMES[1]})
    for place, name in enumerate(NAMES):
        order = ["p1", "p2"] if place % 2 else ["p2", "p1"]
        lab.run(
            f"r{place}",
            label=name,
            spec={"mode": "sparse", "embedder": name, "candidates": 10 + place},
            pool=name,
            final=dict.fromkeys(queries, order),
            ms={"sparse": [1.0 + place] * len(queries)},
            figures=[{"measure": "RA-nWG", "k": 10, "value": 0.5, "n": 8}],
        )
    lab.write(store)
    return store


def _turning(text: str) -> set[str]:
    """What of a text could turn what stands around it: islands end where they began."""
    return set(re.sub(f"{FIRST_STRONG}[^{FIRST_STRONG}{POP}]*{POP}", "", text)) & set(CONTROLS)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_turned_round(open_page: OpenPage, turning: Path, page: str):
    opened = open_page(turning, page)
    assert not opened.exception
    texts = [
        *written(opened),
        *(each.value for kind in ("text", "code", "metric") for each in opened.get(kind)),
    ]
    texts += [line for chart in figures(opened) for line in strings(chart)]
    texts += [cell for table in opened.dataframe for cell in strings(pl.from_pandas(table.value).to_dicts())]
    assert [text for text in texts if _turning(str(text))] == []


@pytest.mark.slow
def test_no_record_is_turned_round(turning: Path, tmp_path: Path):
    files = [tmp_path / f"record.{ending}" for ending in ("md", "html", "json")]
    result = CliRunner().invoke(app, ["--store", str(turning), "record", *map(str, files)])
    assert result.exit_code == 0, result.output
    for file in files:
        text = re.sub(r"<script.*?</script>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "999.0 tsaf" in text
        assert _turning(text) == set()


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("command", ["list runs", "score --measures RA-nWG@10", "decide"])
def test_no_command_is_turned_round(turning: Path, command: str, form: str):
    result = CliRunner().invoke(app, ["--store", str(turning), *command.split(), "--format", form])
    assert _turning(result.output) == set()
    assert "999.0 tsaf" in result.output
