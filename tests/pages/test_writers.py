"""The dashboard as one of four writers: what each was told is stored is there, once and whole."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.store import Store
from core.store.doctor import examine
from tests import warm
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound
from tests.pages.test_add import upload
from tests.shared import EVERY_PAGE

COMMANDS = 3
EACH = 20 if EVERY_PAGE else 4
_REVISION = re.compile(r"revision (\d+)")


def ranking(name: str) -> bytes:
    return "".join(f"q1 Q0 {name}-p{rank} {rank} {10 - rank}.0 {name}\n" for rank in (1, 2)).encode()


def imported(store: Path, folder: Path, writer: int) -> list[str]:
    """Import files one after the other by commands; what each command said."""
    said = []
    for number in range(EACH):
        file = folder / f"command{writer}-{number}.trec"
        file.write_bytes(ranking(file.stem))
        command = warm.command(["--store", str(store), "import", str(file), "--collection", "c"], os.environ)
        printed, told = command.communicate()
        assert command.returncode == 0, told
        assert "Traceback" not in told
        said.append(printed)
    return said


@pytest.mark.slow
def test_four_writers_at_once(open_page: OpenPage, tmp_path: Path):
    store, said = tmp_path / "store", []
    Store.open(store)
    with ThreadPoolExecutor(COMMANDS) as others:
        commands = [others.submit(imported, store, tmp_path, writer) for writer in range(COMMANDS)]
        for number in range(EACH):
            app = upload(
                open_page(store, "add"), **{f"dashboard-{number}_trec": ranking(f"dashboard-{number}")}
            )
            app.button(key="add_now").click().run()
            assert_sound(app)
            said.append(app.success[0].value)
        said += [each for command in commands for each in command.result()]

    held = Store.open(store)
    revisions = [int(_REVISION.search(each)[1]) for each in said]
    assert sorted(revisions) == list(range(1, len(said) + 1)) == list(range(1, held.revision() + 1))
    names = [f"dashboard-{number}" for number in range(EACH)]
    names += [f"command{writer}-{number}" for writer in range(COMMANDS) for number in range(EACH)]
    runs = held.read().runs()
    assert sorted(runs["label"]) == sorted(names)
    for run_id, name in runs.select("run_id", "label").iter_rows():
        assert held.read().rankings([run_id])["passage_id"].to_list() == [f"{name}-p1", f"{name}-p2"]
    assert examine(held).sound
