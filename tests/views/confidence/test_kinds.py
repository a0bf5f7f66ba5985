"""Which kinds of question would want another stack, on values made by hand and on the demo."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from core.api.workspace import Workspace
from core.decide.held_out import best_row
from core.decide.rules import Constraints
from core.stats.means import mean_interval
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Answer, Chart, Table
from core.views.confidence import kinds
from tests.views.made import AT_10, BOOK, DEMO

RNG = np.random.default_rng(5)
NOISE = np.clip(RNG.normal(0.5, 0.2, size=(80, 20)), 0, 1)


@pytest.mark.parametrize(("ahead", "sign", "surely"), [
    (0.3, 1.0, True), (0.0, 1.0, False), (-0.3, 1.0, False), (-0.3, -1.0, True), (0.3, -1.0, False),
])  # fmt: skip
def test_a_gain_is_that_of_a_stack_picked_on_other_queries(ahead: float, sign: float, surely: bool):
    values = np.vstack([NOISE[0], NOISE[0] + ahead])
    gain, ends = kinds.gained(values, 0, sign)
    assert gain == pytest.approx(ahead if surely else 0.0)
    assert (min(sign * end for end in ends) > 0) is surely


def test_the_best_of_many_alike_does_not_flatter_itself():
    """Of 40 stacks that differ by chance alone the best seldom looks better than today's choice."""
    worlds = np.clip(RNG.normal(0.5, 0.2, size=(100, 40, 20)), 0, 1)
    held_out = [kinds.gained(values, 0, 1.0)[1][0] > 0 for values in worlds]
    own = [
        mean_interval(values[best_row(values, 0, 1.0)] - values[0], "differences")[0][0] > 0
        for values in worlds
    ]
    assert np.mean(held_out) < 0.15 < np.mean(own)


@pytest.mark.parametrize(
    ("is_", "ends", "word"),
    [
        (kinds.OPEN, (0.041, 0.005, 0.076), kinds.CORRECTED),
        (kinds.OPEN, (-0.041, -0.076, -0.005), kinds.CORRECTED),  # of Harm, say
        (kinds.OPEN, (0.018, -0.002, 0.039), kinds.OPEN),
        (kinds.OTHER, (0.1, 0.05, 0.15), kinds.OTHER),
        (kinds.STAYS, (-0.017, -0.032, -0.001), kinds.STAYS),
        (kinds.STAYS, (0.0, 0.0, 0.0), kinds.SAME),
    ],
)
def test_a_gain_that_is_sure_by_itself_is_said_to_be_corrected(
    is_: str, ends: tuple[float, float, float], word: str
):
    row = {"tag": "type=broad", "is": is_, **dict(zip(("difference", "low", "high"), ends, strict=True))}
    rows = kinds.TABLE.frame([row, row | {"tag": "other", "is": kinds.STAYS}])
    assert kinds.becomes(rows)[0] == word
    said = kinds.before_correction(rows)
    assert said.endswith("not significant after correction for 2 kinds.") == (word == kinds.CORRECTED)
    assert ("type=broad" in said) == (word == kinds.CORRECTED)


def test_unknown_values_pick_nothing():
    values = np.vstack([NOISE[0], np.full(20, np.nan)])
    assert best_row(values, 0, 1.0) == 0


def test_the_section_on_real_runs(demo_store: Path):
    view = View(Store.open(demo_store).read(), DEMO, quality=AT_10, latency=Latency(), book=BOOK)
    blocks = list(kinds.kinds_of_question.draw(view, Given({})))
    assert {type(block) for block in blocks} >= {Answer, Chart, Table}
    rows = next(block for block in blocks if isinstance(block, Table)).rows
    lengths = [tag for tag in rows["tag"] if tag.startswith("length: ")]
    assert len(lengths) == 2
    assert "package=numpy" in rows["tag"]
    assert (rows["n"] >= kinds.LEAST).all()
    stays = (rows["difference"] <= 0) | (rows["quality"] == rows["today"])
    assert (rows["is"] == kinds.STAYS).to_list() == stays.to_list(), "no gain by another, or none is better"
    cells = next(block for block in blocks if isinstance(block, Table)).cells
    nothing = (rows["difference"] == 0) & (rows["low"] == 0) & (rows["high"] == 0)
    assert [cell["is"] == kinds.SAME for cell in cells] == nothing.to_list()
    chosen = view.table["name"][view.decision.chosen]
    assert ["stack" in cell for cell in cells] == (rows["stack"] == chosen).to_list()
    fitting = kinds.kinds(view, Constraints(sla_ms=0.0001))
    assert fitting.is_empty()


@pytest.mark.slow
def test_a_kind_has_the_interval_that_queries_has_of_its_tag(shipped_store: Path):
    """One function of one quantity: the same stack on the same queries."""
    space = Workspace(Store.open(shipped_store), "docs-search")
    here = space.page("confidence", "kinds of query", {}).tables["kinds"]
    there = space.page("queries", choices={}).tables["slices"]
    chosen = space.decide().chosen.name
    asked = {
        row["tag"]: (row["quality_low"], row["quality_high"])
        for row in here.filter(pl.col("stack") == chosen).to_dicts()
    }
    shown = {row["tag"]: (row["low"], row["high"]) for row in there.to_dicts()}
    both = asked.keys() & shown.keys()
    assert both
    assert {tag: asked[tag] for tag in both} == {tag: pytest.approx(shown[tag]) for tag in both}
