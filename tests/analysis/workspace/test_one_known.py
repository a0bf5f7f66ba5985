"""Questions made from documents, where one place is known for each: what is offered, drawn and warned of."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.analysis.workspace.choices import choices, telling
from core.analysis.workspace.clusters import made_up, one_known
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.view import View
from core.cli.app import app
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import frame
from core.views.curves.page import BESIDE, curve_table
from core.views.words.advice import advice
from core.views.words.facts import MADE_UP, ONE_PLACE, warnings
from core.views.words.judging import ASK_REAL, KNOWN_PLACES, provenance
from core.views.words.verdict import SO_FAR, doubt, verdict
from core.work.questions.folder import QUERIES, QUOTES
from tests.stores import Lab, add
from tests.views.made import BOOK, DEMO
from tests.work.questions import texts


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Scope]:
    """A run on questions from headings."""
    at = tmp_path_factory.mktemp("asked")
    folder = texts.folder_of(at)

    def do(*words: object) -> None:
        told = CliRunner().invoke(app, ["--store", str(at / "store"), *map(str, words)])
        assert told.exit_code == 0, told.output

    do("golden", "questions", folder, "--out", at / "set")
    (at / "runs.toml").write_text(
        f'name = "runs"\ncollection.path = "{folder}"\nqueries = "{at / "set" / QUERIES}"\n'
        f'golden_set = "{at / "set" / QUOTES}"\nlatency.repeats = 0\n[[stack]]\nmode = "sparse"\n'
        '[[stack]]\nmode = "sparse"\nbm25 = {k1 = 0.9}\n'
    )
    do("run", at / "runs.toml", "--yes")
    snapshot = Store.open(at / "store").read()
    (golden,) = snapshot.golden_sets()["golden_set_id"]
    return snapshot, Scope(snapshot.runs()["collection_id"][0], golden)


def test_only_what_one_place_can_tell_is_offered_and_drawn(asked: tuple[Snapshot, Scope]):
    snapshot, scope = asked
    offered = choices(snapshot, scope)
    assert offered.measures[:2] == ("RR", "Success")
    assert {"RA-nWG", "N-Recall4+", "nDCG"} <= {*offered.unsaid}
    drawn = curve_table(snapshot, runs_in(snapshot, scope), scope.golden_set_id, offered.quality.measure)
    assert {*drawn["measure"]} & {*BESIDE} == {*telling(snapshot, scope.golden_set_id, BESIDE)}
    assert "N-Recall4+" not in drawn["measure"]


def test_the_decision_says_that_the_questions_are_made_up_and_ships_nothing(asked: tuple[Snapshot, Scope]):
    snapshot, scope = asked
    quality = choices(snapshot, scope).quality
    view = View(snapshot, scope, quality=quality, latency=Latency(), book=BOOK)
    assert {ONE_PLACE, MADE_UP} <= {*warnings(view.table, view.decision, view)}
    assert (verdict(view), doubt(view)) == (SO_FAR, ASK_REAL)
    assert advice(view).startswith("Made-up questions: check with real ones")
    said = provenance(snapshot, scope)
    assert said.endswith(f"5 queries; {KNOWN_PLACES}."), "nobody graded them"


@pytest.mark.parametrize(("tags", "made"), [((), False), (("words in quote=50%", "type=heading"), True)])
def test_real_questions_with_one_known_place_are_not_called_made_up(
    tmp_path: Path, tags: tuple[str, ...], made: bool
):
    path = tmp_path / "store"
    Lab().judge({}).ask({"q": "a question"}, tags).write(path)
    place = {"golden_set_id": "gold", "query_id": "q", "source": "a", "start_char": 0, "end_char": 3}
    spans = frame("spans", [{**place, "grade": 5}])
    add(path, Batch(frames={"spans": spans}), "test")
    snapshot = Store.open(path).read()
    assert one_known(snapshot, "gold")
    assert made_up(snapshot, Scope("lab", "gold")) is made


def test_where_passages_are_graded_all_is_offered(demo_store: Path):
    demo = Store.open(demo_store).read()
    assert not one_known(demo, DEMO.golden_set_id)
    assert choices(demo, DEMO).unsaid == ()
    assert telling(demo, DEMO.golden_set_id, BESIDE) == list(BESIDE)
