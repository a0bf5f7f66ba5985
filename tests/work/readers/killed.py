"""Readers on stored runs of Cranfield by the command, behind a local server or here, and killed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from core.records import Batch
from core.store import Store
from core.tables import frame
from tests.pipeline import cranfield
from tests.work.golden import hidden
from tests.work.readers import asked

_NOWHERE = "http://localhost:1"
SWEEP = """
name = "stacks"
collection = {{ path = "{folder}", id = "cran" }}
golden_set = {{ path = "{folder}", split = "{split}" }}
queries.limit = {questions}
latency.repeats = 0
[[stack]]
mode = "sparse"
candidates = 20
[[stack]]
mode = "dense"
embedder = "wordllama"
candidates = 20
"""
READERS = """
name = "judged"
collection = "cran"
budget_usd = 50.0
[reader]
runs = "workspace"
models = ["{model}"]
k = [1, 3, 10]
modes = ["top_k", "gold_only", "no_gold", "gold", "none"]
"""


class Server:
    """What the models of the server say; as `hidden.Truth`, for readers."""

    def answer(self, body: Mapping[str, Any]) -> str:
        return asked.answer(body)


def stored(folder: Path, questions: int) -> Path:
    """A folder with a store of two runs and a gold answer a question: the title of its best passage."""
    place = hidden.Place(folder, "")
    spec = folder / "sweep.toml"
    spec.write_text(SWEEP.format(folder=cranfield.FOLDER, split=cranfield.SPLIT, questions=questions))
    place.do("run", spec, "--yes")
    snapshot = place.store.read()
    (name,) = snapshot.golden_sets("cran")["golden_set_id"]
    best = snapshot.judgements(name).sort("grade", "passage_id", descending=[True, False])
    titles = snapshot.passages("cran").select("passage_id", answer="title")
    golds = best.unique("query_id", keep="first", maintain_order=True).join(titles, on="passage_id")
    rows = golds.select("query_id", "answer", collection_id=pl.lit("cran")).drop_nulls("answer")
    with place.store.write("gold answers") as writer:
        writer.add(Batch(frames={"gold_answers": frame("gold_answers", rows.to_dict())}))
    return folder


@dataclass(frozen=True)
class Told:
    """What a killed job came to beside one that was not."""

    killing: hidden.Killing
    answers: int
    scores: int
    same: bool  # whether answers and scores are those of the job that was not killed
    whole_s: float
    plan: Mapping[str, Any]


def compare(
    folder: Path, base: Path, state: hidden.Moody | None, calm: hidden.Moody | None, kills: int
) -> tuple[hidden.Place, hidden.Place, Told]:
    """Ask once in peace and once with kills; each in a copy of a folder with a store."""
    whole = hidden.Place(shutil.copytree(base, folder / "whole"), _NOWHERE, "readers")
    killed = hidden.Place(shutil.copytree(base, folder / "killed"), _NOWHERE, "readers")
    text = READERS.format(model="fake" if state is None else "judge")
    if state is None or calm is None:
        spec = whole.spec(text)
        plan, begun = whole.table("readers", "plan", spec), time.monotonic()
        whole.do("readers", "run", spec, "--yes")
        whole_s = time.monotonic() - begun
        killing = hidden.kill_and_resume(
            killed, killed.spec(text), None, kills=kills, needed=0, whole_s=whole_s, seed=2026
        )
    else:
        with hidden.serving(Server(), calm) as url:
            whole = hidden.Place(whole.folder, url, "readers")
            plan, begun = whole.table("readers", "plan", whole.spec(text)), time.monotonic()
            whole.do("readers", "run", whole.spec(text), "--yes")
            whole_s = time.monotonic() - begun
        with hidden.serving(Server(), state) as url:
            killed = hidden.Place(killed.folder, url, "readers")
            killing = hidden.kill_and_resume(
                killed,
                killed.spec(text),
                state,
                kills=kills,
                needed=plan["asked"],
                whole_s=whole_s,
                seed=2026,
            )
    mine, theirs = (rows(place.store) for place in (killed, whole))
    same = all(one.equals(other) for one, other in zip(mine, theirs, strict=True))
    return whole, killed, Told(killing, mine[0].height, mine[1].height, same, whole_s, plan)


def rows(store: Store) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Answers, times apart, and their scores."""
    snapshot = store.read()
    runs = snapshot.runs("cran")["run_id"].to_list()
    return snapshot.answers(runs).drop("ms"), snapshot.answer_scores(runs)
