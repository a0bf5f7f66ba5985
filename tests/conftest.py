"""Settings for every test, and stores that are built once."""

import atexit
import contextlib
import functools
import gc
import importlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing
from _pytest.mark.expression import Expression
from hypothesis import settings

from core.paths import ROOT
from core.store import engine
from tests import stores
from tests.shared import once

# A time limit per example would fail on a busy machine for reasons that have nothing to do with the example.
# In CI the examples are the same each time, so that a failure belongs to the change that shows it; elsewhere
# they differ from run to run and find new cases.
settings.register_profile("clq", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("clq")
gc.disable()  # until all is collected: what is imported stays, and looking through it takes a second


@pytest.fixture(scope="session", autouse=True)
def no_power_cut() -> Iterator[None]:
    """Leave it to the kernel when bytes reach the disk: no test cuts the power, and waiting takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_queries() -> Iterator[None]:
    """A second thread makes a query on a few rows no faster and a store's write a fifth dearer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engine._CONFIG, "threads", 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Keep the tree of commands, which the runner would build anew from every signature at each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.testing._get_command))
        yield


_LONG = (
    "test_a_sample_without_each_field_opens_every_page[own]",
    "test_a_crafted_file_ends_no_process[shared-count.xlsx]",
    "test_five_people_at_once",
    "test_a_crafted_file_ends_no_process[lists.json.gz]",
    "test_a_sample_without_each_field_opens_every_page[autorag]",
    "test_the_record_opens_from_disk_without_a_network",
    "test_a_page_fits_its_window[readers]",
    "test_a_killed_search_ends_the_same",
    "test_a_slower_limit_changes_the_choice_and_a_link_restores_the_view",
    "test_a_pinned_link_says_that_newer_data_exist",
    "test_killed_evaluations",
    "test_markup_in_names_and_passages_stays_text",
    "test_a_quality_floor_moves_the_choice_cell_by_cell",
    "test_few_files_are_enough_for_many_visitors",
    "test_an_empty_store_says_what_to_do",
    "test_a_killed_build_is_the_same_golden_set_and_nothing_is_paid_twice",
    "test_the_interval_covers_the_true_mean_in_95_of_100_worlds",
    "test_killed_imports",
    "test_kills_lose_nothing",
    "test_a_machine_and_then_the_process_that_writes_are_lost",
)


def pytest_collection(session: pytest.Session) -> None:
    """Have each worker begin with other modules: in the same order, each would compile all of them."""
    if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is None:
        return
    folders = [Path(argument) for argument in session.config.args if Path(argument).is_dir()]
    files = sorted(file.resolve() for folder in folders for file in folder.rglob("test_*.py"))
    files = [file for file in files if not pytest_ignore_collect(file, session.config)]
    for file in files[int(worker.removeprefix("gw")) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # told when collected
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out unread what has none of the marks that are asked for: importing takes longer than looking."""
    asked = config.option.markexpr
    if not collection_path.name.startswith("test_") or not asked:
        return None
    if Expression.compile(asked).evaluate(lambda _, **__: False):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return not any(f"mark.{name}" in text for name in re.findall(r"\w+", asked)) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: at the end of a run it would leave all processes but one idle."""
    places = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: places.get(item.name, len(_LONG)))


def pytest_collection_finish() -> None:
    """Move modules and tests, which live as long as the process, out of the garbage collector's sight."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make and drop much that has no cycles
    atexit.register(gc.unfreeze)  # else libraries that count their objects at exit report them as leaked


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten measured stacks on the demo collection, and the published figures; to be read only."""
    return once(tmp_path_factory, "demo", stores.demo)


@pytest.fixture(scope="session")
def shipped_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as it ships; to be read only."""
    return once(tmp_path_factory, "shipped", stores.shipped)


@pytest.fixture(scope="session")
def published_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published figures only; to be read only."""
    return once(tmp_path_factory, "published", stores.published)


@pytest.fixture(scope="session")
def many_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand stacks, known by their aggregates only; to be read only."""
    return once(tmp_path_factory, "many", stores.many)


@pytest.fixture(scope="session")
def answered_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stacks with the answers of two readers; to be read only."""
    return once(tmp_path_factory, "answered", stores.answered)


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names, queries and passages that try to be markup, formulas or SQL; to be read only."""
    return once(tmp_path_factory, "hostile", stores.hostile)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the files of this checkout."""

    def build(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(folder),
            str(ROOT),
        ]
        subprocess.run(command, check=True, capture_output=True)

    (built,) = once(tmp_path_factory, "wheel", build).glob("*.whl")
    return built


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as the wheel has it, to be put on the path; compiled by whoever imports it first."""

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)

    return once(tmp_path_factory, "site", unpack)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that nothing was written to."""
    return tmp_path_factory.mktemp("empty") / "store"
