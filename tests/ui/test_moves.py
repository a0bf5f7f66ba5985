"""A move of a limit runs its part of the page alone, and everything else all of it."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.fragment import MemoryFragmentStorage

from core.store import Store
from core.ui.moves import PART, STRIP, run_alone
from tests.client import Session, visiting
from tests.server import serve

AROUND = ("multiselect", "html")  # of the settings and of the frame
RELEASED = json.dumps([{"event": "released", "value": {}}])


@pytest.mark.parametrize(
    ("part", "widget", "runs"),
    [
        ("page", f"$$ID-1-{STRIP}__events", "page"),
        ("page", "$$ID-1-finder__events", ""),
        ("page", None, ""),
        ("watch", None, "watch"),
        ("", f"$$ID-1-{STRIP}__events", ""),
    ],
)
def test_only_a_move_of_a_limit_runs_the_part_alone(
    monkeypatch: pytest.MonkeyPatch, part: str, widget: str | None, runs: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda _, state: asked.append(state.fragment_id))
    run_alone()
    run_alone()  # of a second server in the process
    parts = MemoryFragmentStorage()
    parts.register("page", lambda: None, target_key=PART)
    parts.register("watch", lambda: None)
    state = ClientState(fragment_id=part)
    state.widget_states.widgets.add(id=f"{STRIP}", json_value="{}")
    if widget:
        state.widget_states.widgets.add(id=widget, json_trigger_value=RELEASED)
    AppSession.request_rerun(SimpleNamespace(_fragment_storage=parts), state)  # type: ignore[arg-type]
    assert asked == [runs]


def test_a_page_that_ended_early_has_no_such_part(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda _, state: asked.append(state.fragment_id))
    run_alone()
    session = SimpleNamespace(_fragment_storage=MemoryFragmentStorage())
    AppSession.request_rerun(session, ClientState(fragment_id="watch"))  # type: ignore[arg-type]
    assert asked == ["watch"]


@pytest.mark.slow
def test_a_move_draws_what_a_visit_under_this_limit_shows_but_not_what_is_around(
    demo_store: Path, tmp_path: Path
) -> None:
    async def move(url: str) -> None:
        async with Session(f"{url}/?ws=clq-paper&sla_ms=600") as session:
            first = session.heading
            assert {*AROUND, "bidi_component"} <= session.shown
            session.shown.clear()
            await session.move("SLA", 300.0)
            assert not session.shown & {*AROUND, "exception"}
            assert {"bidi_component", "heading"} <= session.shown
            assert "sla_ms=300" in session.query
            assert session.heading != first
            async with Session(f"{url}/?ws=clq-paper&sla_ms=300") as other:
                assert other.heading == session.heading

    with serve(tmp_path / "log", CLQ_STORE=str(demo_store)) as server:
        visiting(move(server.url))
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_move_sees_what_another_process_has_written(demo_store: Path, tmp_path: Path) -> None:
    store = shutil.copytree(demo_store, tmp_path / "store")

    async def move(url: str) -> None:
        async with Session(f"{url}/?ws=clq-paper&sla_ms=600") as session:
            with Store.open(store).write("forget") as writer:
                writer.remove("collection", ["python-docs"])
            session.shown.clear()
            await session.move("SLA", 300.0)
            assert {*AROUND} <= session.shown, "all of the page is drawn again"
            assert "sla_ms=300" in session.query

    with serve(tmp_path / "log", CLQ_STORE=str(store)) as server:
        visiting(move(server.url))
