"""The section on the dose of distractors: stored answers of a run whose contexts are rebuilt."""

from __future__ import annotations

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.readers.dose import WHOLE
from core.records import Batch
from core.store import Store
from core.tables import frame
from core.views.ask import Given
from core.views.blocks import Answer, Chart, Table
from core.views.readers import dose
from core.views.readers.scores import made_up
from tests.views.made import BOOK
from tests.views.what_if.routed import ROUTED, write

KS = (1, 2, 3, 5, 8)


def view_of(store: Store) -> View:
    return View(store.read(), ROUTED, quality=Quality("nDCG", 5), latency=Latency(), book=BOOK)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write(tmp_path_factory.mktemp("dose") / "store", (10,))


def answer(store: Store, loss: float) -> View:
    """Answers from the first k of every question, each harmful passage taking some of the score."""
    read = store.read()
    run_id = str(read.runs()["run_id"].item())
    keys = ["query_id", "passage_id"]
    judged = read.judgements("gold").select(*keys, "grade")
    ranked = read.rankings([run_id], stage="final").join(judged, on=keys, how="left")
    harm = (pl.col("grade") <= 2).fill_null(value=False)
    held = {k: ranked.filter(pl.col("rank") <= k).group_by("query_id").agg(harm=harm.sum()) for k in KS}
    rows = pl.concat(part.with_columns(k=pl.lit(k, pl.Int32)) for k, part in held.items())
    base = {"run_id": run_id, "reader": "m", "prompt": "p", "temperature": 0.0, "mode": "top_k", "pass": 1}
    named = rows.with_columns(**{name: pl.lit(value) for name, value in base.items()})
    scores = named.with_columns(scorer=pl.lit("f1"), scale=pl.lit("0-1"), value=1 - loss * pl.col("harm"))
    frames = {"answers": named, "answer_scores": scores}
    made = {table: frame(table, rows.drop("harm").to_dict()) for table, rows in frames.items()}
    with store.write("answers") as writer:
        writer.add(Batch(frames=made))
    return view_of(store)


@pytest.mark.parametrize(
    ("right", "ends", "said"),
    [
        # a share of .5 at $1.20 per 1,000 correct: 1.2 · (.5 / (.5 − .1) − 1)
        (-10.0, (-20.0, 5.0), ("$0.30", "−$0.11 to $0.80 per 1,000 correct answers")),
        (0.0, (-1.0, 1.0), ("$0.00", "−$0.0235 to $0.0245 per 1,000 correct answers")),
        (-10.0, (-60.0, 5.0), ("$0.30", "per 1,000 correct answers")),  # none would be left at the worse end
        (-60.0, (-70.0, -50.0), ("unknown", "what answers cost is not known")),
    ],
)
def test_the_price_of_one_has_its_ends(
    right: float, ends: tuple[float, float], said: tuple[str, str], monkeypatch: pytest.MonkeyPatch
):
    own = pl.DataFrame({"k": [3], "correct": [0.5], "usd_per_1k_correct": [1.2]})
    monkeypatch.setattr(dose, "_with_answers", lambda *_: own)
    asked = pl.DataFrame({"mode": ["top_k"], "reader": ["m"]})
    row = {"value": -1.0, "low": -2.0, "high": 0.0, "queries": 9, "right": right,
           "right_low": ends[0], "right_high": ends[1]}  # fmt: skip
    priced = dose.prices(None, row, asked)  # type: ignore[arg-type]
    label, amount, about = dose.cards(row, 2.0, priced)[2]
    assert (label, amount) == ("Cost of one more", said[0])
    assert about.startswith(said[1])


@pytest.mark.parametrize(("readers", "chip"), [(["fake", "m"], True), (["m"], False)])
def test_where_some_answers_are_made_up_a_chip_says_so(readers: list[str], chip: bool):
    assert bool(made_up(readers)) == chip


def test_without_answers_it_says_how_to_have_some(store: Store):
    blocks = list(dose.dose_of_distractors.draw(view_of(store), Given()))
    assert isinstance(blocks[0], Answer)
    assert blocks[0].sentence == dose.NOTHING


@pytest.mark.slow
def test_a_loss_is_read_off_stored_answers(store: Store):
    view = answer(store, 0.04)
    blocks = list(dose.dose_of_distractors.draw(view, Given({"bear": ["9"]})))
    assert [type(block) for block in blocks if isinstance(block, Answer | Chart)] == [Answer, Chart]
    table = next(block for block in blocks if isinstance(block, Table)).rows
    whole = table.row(by_predicate=pl.col("of") == WHOLE, named=True)
    assert whole["value"] == pytest.approx(-4.0)
    assert whole["low"] == pytest.approx(-4.0)
    assert dose.cards(whole, 9.0, None)[1][1] == "2 passages"
    assert dose.cards(whole, 9.0, None)[2][1] == "unknown"
    assert "takes 4.0 points of f1" in dose.harm_answer(whole, "f1")
