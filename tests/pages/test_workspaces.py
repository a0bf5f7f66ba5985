"""Every page on every kind of workspace: it opens, without an error."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from core.importers import Offered, Options, load
from core.store import Store
from core.work.imports.imports import store_import
from tests import stores
from tests.importers.helpers import TREC_EVAL, needs, up
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES, TITLES, assert_sound
from tests.shared import once
from tests.stores import Lab

QUERIES = [f"q{number}" for number in range(1, 13)]
PASSAGES = [f"p{number}" for number in range(1, 9)]
HITS = dict.fromkeys(QUERIES, PASSAGES)
GRADES = {query: {"p1": 5, "p4": 4, "p6": 1} for query in QUERIES}


def _judged() -> Lab:
    return Lab().judge(GRADES).ask(dict.fromkeys(QUERIES, "words")).hold(dict.fromkeys(PASSAGES, "words"))


def _one_stack(path: Path) -> None:
    spec = {"mode": "sparse", "embedder": "e", "candidates": 10}
    _judged().run("only", spec=spec, final=HITS, ms={"sparse": [1.0] * len(QUERIES)}).write(path)


def _no_latency(path: Path) -> None:
    lab = _judged()
    for place, depth in enumerate((10, 20, 50, 100)):
        order = PASSAGES[place:] + PASSAGES[:place]
        lab.run(f"r{depth}", spec={"mode": "dense", "candidates": depth}, final=dict.fromkeys(QUERIES, order))
    lab.write(path)


def _no_judgements(path: Path) -> None:
    lab = Lab().ask({"q1": "one", "q2": "two"}).hold({"p1": "one", "p2": "two"})
    lab.run("a", final={"q1": ["p1", "p2"], "q2": ["p2"]}, ms={"sparse": [1.0, 2.0]})
    lab.run("b", final={"q1": ["p2"]}).write(path)


def _judgements_only(path: Path) -> None:
    Lab().judge({"q1": {"p1": 5}}).ask({"q1": "one"}).hold({"p1": "one"}).write(path)


def _empty_golden_set(path: Path) -> None:
    Lab().judge({}).ask({"q1": "one"}).run("a", final={"q1": ["p1"]}).write(path)


def _imported(path: Path, *files: Offered) -> None:
    """As the Import page and the command bring files in: nothing states an axis of a stack."""
    store_import(Store.open(path), load(files, Options(collection_id="trec")), "files")


def _many_runs(path: Path) -> None:
    """Thirty-seven rankings whose files say nothing but their names."""
    rng = np.random.default_rng(37)
    judged = [f"{query} 0 {passage} {rng.integers(4)}" for query in QUERIES for passage in PASSAGES]
    runs = [
        up(f"run{number:02d}.trec", "\n".join(_ranking(rng, query, f"run{number:02d}") for query in QUERIES))
        for number in range(37)
    ]
    _imported(path, up("qrels.txt", "\n".join(judged)), *runs)


def _ranking(rng: np.random.Generator, query: str, name: str) -> str:
    order = enumerate(rng.permutation(PASSAGES), 1)
    return "\n".join(f"{query} Q0 {passage} {rank} {1 / rank:.4f} {name}" for rank, passage in order)


def _trec_eval(path: Path) -> None:
    files = ((name, (TREC_EVAL / name).read_bytes()) for name in ("qrels.test", "results.test"))
    _imported(path, *(up(name, content) for name, content in files))


# Averages only, then rankings of every kind, then ten thousand stacks; for names that are attacks see
# test_hostile.py, which opens every page.
WORKSPACES: Mapping[str, Callable[[Path], object]] = {
    "published": stores.published,
    "one stack": _one_stack,
    "no latency": _no_latency,
    "no judgements": _no_judgements,
    "judgements only": _judgements_only,
    "empty golden set": _empty_golden_set,
    "37 runs, no axes": _many_runs,
    "trec_eval": _trec_eval,
    "many": stores.many,
}
_MARKS: Mapping[str, pytest.MarkDecorator] = {
    "trec_eval": needs(TREC_EVAL),
    "many": pytest.mark.slow,
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=_MARKS.get(kind, ())) for kind in WORKSPACES])
def test_a_page_opens(open_page: OpenPage, tmp_path_factory: pytest.TempPathFactory, kind: str, page: str):
    store = once(tmp_path_factory, kind.replace(" ", "-"), WORKSPACES[kind])
    assert_sound(open_page(store, page), TITLES[page])
