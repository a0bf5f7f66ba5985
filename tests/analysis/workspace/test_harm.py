"""Which harm a workspace goes by, and what a cap on it leaves."""

import polars as pl
import pytest

from core.analysis.workspace.figures.beside import limit_words, with_harm
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.scope import Latency, Quality
from core.decide.joint import chances
from core.decide.rules import Constraints, decide
from core.report.data import verdict
from tests.stores import Lab
from tests.views.decision.test_facts import asked
from tests.views.made import LAB, table

NUMBERS = {"run_id": pl.String, "harm": pl.Float64, "harm_upper": pl.Float64}


@pytest.mark.parametrize(
    ("harm", "upper", "measure", "values"),
    [
        ([0.2, 0.4], [0.25, 0.4], "Harm@10", [0.2, 0.4]),  # holes of 5 % are few
        ([0.2, 0.4], [0.2, 0.46], "HarmUpper@10", [0.2, 0.46]),  # of one stack: for all of them
        ([0.2, None], [0.3, None], "HarmUpper@10", [0.3, None]),
        ([0.2, 0.4], [0.3, None], "HarmUpper@10", [0.3, None]),  # its holes are not known
        ([0.2, None], [None, None], "Harm@10", [0.2, None]),
        ([None, None], [None, None], None, [None, None]),
    ],
)
def test_the_upper_bound_is_taken_where_holes_exceed_five_percent(harm, upper, measure, values):
    rows = pl.DataFrame({"run_id": ["a", "b"], "harm": harm, "harm_upper": upper}, schema=NUMBERS)
    found = with_harm(rows, 10)
    assert found["harm_of"].to_list() == [measure] * 2
    assert found["harm"].to_list() == values
    assert found.columns == ["run_id", "harm", "harm_of"]
    assert bool(limit_words(found, Constraints(max_harm=0.1))) == (measure is not None)
    assert limit_words(found, Constraints()) == {}


GRADES = {f"q{n}": {"good": 5, "bad": 1, "poor": 2} for n in range(4)}
AT_2 = Quality("RA-nWG", 2)
FIGURES = ("measure", "k", "stage", "value", "n")


def lab(path, *, hole=False):
    """Stacks of two passages per query: sound ones, one harmful, now and then two; and two printed stacks."""
    queries = list(GRADES)
    made = Lab().judge(GRADES)
    made.run("sound", final={q: ["good"] for q in queries})
    made.run("mixed", final={q: ["good", "unjudged" if hole else "bad"] for q in queries})
    swap = {q: ["bad", "poor"] if place % 2 else ["good"] for place, q in enumerate(queries)}
    made.run("wild", final=swap)
    for name, harm in (("printed", 0.5), ("silent", None)):
        values = [("RA-nWG", 0.9), *([("Harm", harm)] if harm is not None else [])]
        rows = [dict(zip(FIGURES, (each, 2, None, value, 4), strict=True)) for each, value in values]
        made.run(name, figures=rows)
    return made.write(path / "s").read()


def test_harm_comes_from_rankings_or_is_as_reported(tmp_path):
    rows = table(lab(tmp_path), LAB, AT_2)
    found = dict(rows.select("run_id", "harm").iter_rows())
    assert found == {"sound": 0.0, "mixed": 0.5, "wild": 0.5, "printed": 0.5, "silent": None}
    assert rows["harm_of"].unique().to_list() == ["Harm@2"]


def test_with_holes_harm_is_its_upper_bound(tmp_path):
    rows = table(lab(tmp_path, hole=True), LAB, AT_2)
    found = dict(rows.select("run_id", "harm").iter_rows())
    assert found == {"sound": 0.0, "mixed": 0.5, "wild": 0.5, "printed": None, "silent": None}
    assert rows["harm_of"].unique().to_list() == ["HarmUpper@2"]


def test_a_cap_excludes_and_what_is_unknown_is_promising(tmp_path):
    rows = table(lab(tmp_path), LAB, AT_2)
    found = decide(rows, Constraints(max_harm=0.4))
    reasons = dict(found.excluded().select("run_id", "constraint").iter_rows())
    assert reasons == {
        "mixed": "max_harm",
        "wild": "max_harm",
        "printed": "max_harm",
        "silent": "unknown harm",
    }
    assert rows["run_id"][found.chosen] == "sound"
    assert rows["run_id"].filter(pl.Series(found.promising)).to_list() == ["silent"]


def test_the_chance_to_keep_a_cap_varies_with_the_queries(tmp_path):
    snapshot = lab(tmp_path)
    found = verdict(asked(quality=AT_2, snapshot=snapshot, scope=LAB, max_harm=0.5))
    shares = dict(found.chances.select("run_id", "p_feasible").iter_rows())
    assert (shares["sound"], shares["mixed"]) == (1.0, 1.0)
    # Of four draws of four queries at most two are harmful: 11/16.
    assert shares["wild"] == pytest.approx(11 / 16, abs=0.03)
    whole = joint_sample(snapshot, found.table, LAB, quality=AT_2, latency=Latency())
    part = whole.take([found.table["run_id"].to_list().index("wild")])
    alone = chances(part, Constraints(max_harm=0.5), resamples=2_000, seed=1)
    assert alone.feasible.tolist() == pytest.approx([11 / 16], abs=0.03)
