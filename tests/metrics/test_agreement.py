"""Classical measures agree with ir-measures (pytrec_eval) and trec_eval's own expected output, per query.

Where nothing that is judged is relevant, recall, F1, AP and nDCG are shares of nothing: not applicable here,
0 there. Everything else is equal to 1e-6, ties, missing queries, negative and binary grades included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import ir_measures
import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, SetF, Success, nDCG

from core.importers import Options, load
from core.importers.judgements import decide
from core.importers.read.ordering import ordered
from core.metrics import Extra, Measure, score_all
from core.store.read.lists import gains_of
from tests.importers.helpers import TREC_EVAL

CUTOFFS = (1, 3, 5, 10, 30, 100, 1000)


@dataclass
class Case:
    """Judgements and one run: query → passage → raw grade or score, and query → passages in order."""

    judged: dict[str, dict[str, int]]
    scores: dict[str, dict[str, float]]
    ranking: dict[str, list[str]]
    grade: dict[int, int] = field(default_factory=dict)

    @property
    def query_ids(self) -> list[str]:
        return sorted(self.judged)

    def grades(self) -> np.ndarray:
        made = np.full((len(self.judged), max([1, *map(len, self.ranking.values())])), -1, dtype=np.int8)
        for row, query in enumerate(self.query_ids):
            found = [self.judged[query].get(passage) for passage in self.ranking.get(query, [])]
            made[row, : len(found)] = [0 if raw is None else self.grade[raw] for raw in found]
        return made

    def counts(self) -> np.ndarray:
        graded = [[self.grade[raw] for raw in self.judged[query].values()] for query in self.query_ids]
        return np.array([[row.count(grade) for grade in range(1, 6)] for row in graded])

    def gains(self) -> tuple[float, ...]:
        raw = [each for judged in self.judged.values() for each in judged.values()]
        return gains_of(
            np.array([self.grade[each] for each in raw], dtype=np.int8), np.array(raw, dtype=np.int16)
        )


def compared(rel: int, raw: int, k: int) -> Iterator[tuple[Measure, object]]:
    """Measures here and there: `rel` is the threshold after the mapping, `raw` the same before it."""
    params = (("rel", rel),)
    yield Measure("P", k, params), P(rel=raw) @ k
    yield Measure("Success", k, params), Success(rel=raw) @ k
    yield Measure("AP", k, params), AP(rel=raw) @ k
    yield Measure("R", k, params), R(rel=raw) @ k
    yield Measure("nDCG", k), nDCG @ k


def assert_agrees(case: Case, rel: int, raw: int, *, ndcg: bool = True) -> None:
    depth = case.grades().shape[1]
    pairs = [pair for k in CUTOFFS for pair in compared(rel, raw, k)]
    # Without a cutoff they take the whole ranking, and nDCG the ideal of all that is judged.
    deepest = max(depth, *map(len, case.judged.values()))
    pairs += [
        (Measure(name, depth, (("rel", rel),)), there(rel=raw)) for name, there in (("RR", RR), ("AP", AP))
    ]
    pairs.append((Measure("nDCG", deepest), nDCG))
    expected = by_query([theirs for _, theirs in pairs], case.judged, case.scores)
    # What gains 2^grade − 1 is graded so: a table of gains in ir-measures leaves out the gain of grade 1.
    exp = {
        query: {each: 2 ** max(grade, 0) - 1 for each, grade in of.items()}
        for query, of in case.judged.items()
    }
    of_exp = by_query([nDCG @ k for k in CUTOFFS], exp, case.scores)
    wanted = [(ours, expected[str(theirs)]) for ours, theirs in pairs]
    wanted += [(Measure("nDCG", k, (("gain", "exp"),)), of_exp[str(nDCG @ k)]) for k in CUTOFFS]
    wanted = [pair for pair in wanted if ndcg or pair[0].name != "nDCG"]
    made = score_all(
        [measure for measure, _ in wanted],
        case.grades(),
        case.counts(),
        depth=max(deepest, *CUTOFFS),
        extra=Extra(gains=case.gains()),
    )
    nothing = [not any(grade >= raw for grade in case.judged[query].values()) for query in case.query_ids]
    for measure, theirs in wanted:
        values = made[measure][:, measure.k - 1]
        expect = [theirs.get(query, 0.0) for query in case.query_ids]
        np.testing.assert_allclose(np.nan_to_num(values), expect, rtol=0, atol=1e-6, err_msg=str(measure))
        if measure.name != "nDCG":
            assert np.isnan(values).tolist() == (
                nothing if measure.name in ("R", "AP") else [False] * len(values)
            )


def by_query(measures: list, judged: dict, scores: dict) -> dict[str, dict[str, float]]:
    made: dict[str, dict[str, float]] = {}
    for result in ir_measures.iter_calc(measures, judged, {q: docs for q, docs in scores.items() if docs}):
        made.setdefault(str(result.measure), {})[result.query_id] = result.value
    return made


def by_pair(rows: pl.DataFrame, column: str) -> dict[str, dict[str, float]]:
    made: dict[str, dict[str, float]] = {}
    for query, passage, value in rows.select("query_id", "passage_id", column).iter_rows():
        made.setdefault(query, {})[passage] = value
    return made


def from_files(run: str, qrels: str, grades: str | None = None) -> Case:
    """A pair of trec_eval's files, as the importer reads them."""
    if not TREC_EVAL.is_dir():
        pytest.skip(f"trec_eval's test files are not at {TREC_EVAL}")
    made = load([TREC_EVAL / run, TREC_EVAL / qrels], Options(grades=grades))
    judged, ranked = (made.frames[name].lazy().collect() for name in ("judgements", "rankings"))
    order = ranked.sort("query_id", "rank").group_by("query_id").agg("passage_id")
    pairs = dict(judged.select("raw", "grade").unique().iter_rows())
    # A run's own rank column wins. In one file it orders passages whose scores are equal in the single
    # precision of trec_eval otherwise than trec_eval does, by descending id; there both are given the ranks.
    if run == "results.comment.test":
        ranked = ranked.with_columns(-pl.col("rank").cast(pl.Float64).alias("score"))
    return Case(by_pair(judged, "raw"), by_pair(ranked, "score"), dict(order.iter_rows()), pairs)


@pytest.mark.parametrize(
    ("run", "qrels", "grades", "rel", "raw"),
    [
        ("results.test", "qrels.test", None, 4, 1),
        ("results.test", "qrels.rel_level", None, 2, 1),
        ("results.test", "qrels.rel_level", None, 4, 3),
        ("results.trunc", "qrels.test", None, 4, 1),  # shorter rankings, a query that is not ranked
        ("results.trunc", "qrels.rel_level", None, 3, 2),
        ("results-302.test", "qrels-302.test", None, 4, 1),
        ("results.comment.test", "qrels.comment.test", None, 3, 1),
        ("results.comment.test", "qrels.comment.test", None, 4, 2),
        ("results.test", "qrels.rel_level", "0=1,1=4,2=4,3=5,4=5", 4, 1),
    ],
)
def test_trec_eval_files(run: str, qrels: str, grades: str | None, rel: int, raw: int) -> None:
    # Two grades that a mapping made one can gain but one number: that nDCG is another measure.
    assert_agrees(from_files(run, qrels, grades), rel, raw, ndcg=grades is None)


@pytest.mark.parametrize("where", ["outside", "pool"])
def test_inferred_ap_is_that_of_trec_eval(where: str) -> None:
    """A third of the passages is judged; trec_eval is told that the rest was sampled out (−1), or not."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        ranking = [f"p{place}" for place in rng.permutation(30)]
        raw = dict(zip(ranking, rng.integers(-1, 3, size=30).tolist(), strict=True))
        judged = {each: grade for each, grade in raw.items() if grade >= 0}
        told = {each: grade for each, grade in raw.items() if grade >= 0 or where == "pool"}
        evaluator = pytrec_eval.RelevanceEvaluator({"q": told}, {"infAP"})
        theirs = evaluator.evaluate({"q": {each: -place for place, each in enumerate(ranking)}})["q"]["infAP"]
        case = Case({"q": judged}, {}, {"q": ranking}, {0: 1, 1: 4, 2: 5})
        measure = Measure("infAP", 30, (("unjudged", where),))
        ours = score_all([measure], case.grades(), case.counts())[measure][0, -1]
        assert float(np.nan_to_num(ours)) == pytest.approx(theirs, abs=1e-6)


def test_a_rank_column_wins_over_scores_that_tie_in_trec_eval() -> None:
    made = load([TREC_EVAL / "results.comment.test"], Options()) if TREC_EVAL.is_dir() else None
    if made is None:
        pytest.skip(f"trec_eval's test files are not at {TREC_EVAL}")
    rows = made.frames["rankings"].lazy().collect().with_columns(pl.col("score").cast(pl.Float32))
    theirs = rows.sort("query_id", "score", "passage_id", descending=[False, True, True])
    ours = rows.sort("query_id", "rank")
    assert made.runs[0].manifest["order"] == "rank"
    moved = theirs["passage_id"] != ours["passage_id"]
    assert 0 < moved.sum() < 0.01 * rows.height
    assert (theirs["score"] == ours["score"]).all()


def test_trec_evals_own_expected_output() -> None:
    """out.test.aq: every measure for every query of results.test and qrels.test, to four decimals."""
    case = from_files("results.test", "qrels.test")
    expected: dict[str, dict[str, float]] = {}
    for line in (TREC_EVAL / "out.test.aq").read_text().splitlines():
        name, query, value = line.split("\t")
        if query in case.judged:
            expected.setdefault(name.strip(), {})[query] = (
                float(value.strip("'")) if name.strip() != "relstring" else 0.0
            )
    families = {"P_": "P", "recall_": "R", "success_": "Success", "map_cut_": "AP", "ndcg_cut_": "nDCG"}
    pairs = {
        name: Measure(ours, int(name.removeprefix(prefix)))
        for name in expected
        for prefix, ours in families.items()
        if name.removeprefix(prefix).isdigit()
    }
    depth = case.grades().shape[1]
    pairs |= {
        "map": Measure("AP", depth),
        "infAP": Measure("infAP", depth),
        "recip_rank": Measure("RR", depth),
        "ndcg": Measure("nDCG", 10_000),
    }
    pairs["set_F"] = Measure("F1", depth)  # every ranking has that length
    assert len(pairs) > 30
    made = score_all(
        pairs.values(), case.grades(), case.counts(), depth=10_000, extra=Extra(gains=case.gains())
    )
    for name, measure in pairs.items():
        values = made[measure][:, measure.k - 1]
        expect = [expected[name][query] for query in case.query_ids]
        np.testing.assert_allclose(values, expect, rtol=0, atol=5.1e-5, err_msg=name)


SCALES = {"binary": (0, 1), "1-5": (1, 5), "0-2": (0, 2), "0-3": (0, 3), "0-4": (0, 4), "negative": (-1, 3)}
"""trec_eval knows −1 as the only grade below 0, and ends the process where a query has no other."""


@st.composite
def cases(draw, scale: str) -> Case:
    """Random judgements of one scale and a run with ties, which the importer orders by score."""
    low, high = SCALES[scale]
    passages = [f"d{number}" for number in range(draw(st.integers(1, 12)))]
    some_query = st.sampled_from(["q1", "q2", "q3"])
    grades = st.dictionaries(st.sampled_from(passages), st.integers(low, high), min_size=1)
    judged = draw(st.dictionaries(some_query, grades.filter(lambda of: max(of.values()) >= 0), min_size=1))
    tied = st.sampled_from([0.5, 1.0, 1.5, 2.25])
    ranked = st.dictionaries(st.sampled_from([*passages, "u1", "u2", "u10"]), tied, min_size=1)
    scores = draw(st.dictionaries(some_query, ranked, min_size=1))
    values = {grade for of_query in judged.values() for grade in of_query.values()}
    mapping = decide({"negative": "0-3"}.get(scale, scale), values, "random")
    graded = pl.DataFrame({"raw": sorted(values)}).select("raw", mapping.apply(pl.col("raw")).alias("grade"))
    rows = [
        ("r", "final", query, passage, None, score, line)
        for query, found in scores.items()
        for line, (passage, score) in enumerate(found.items())
    ]
    columns = {
        "run": pl.String, "stage": pl.String, "query_id": pl.String, "passage_id": pl.String,
        "rank": pl.Int64, "score": pl.Float64, "line": pl.Int64,
    }  # fmt: skip
    order = ordered(pl.DataFrame(rows, schema=columns, orient="row"), "random").rows
    ranking = order.sort("query_id", "rank").group_by("query_id").agg("passage_id")
    return Case(judged, scores, dict(ranking.iter_rows()), dict(graded.iter_rows()))


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_random_data(scale: str) -> None:
    @settings(max_examples=25)
    @given(cases(scale), st.data())
    def agrees(case: Case, data) -> None:
        # Any threshold that a grade reaches; one grade of the scale has one threshold before the mapping.
        raw = data.draw(st.sampled_from(sorted(grade for grade in case.grade if grade > 0) or [1]))
        assert_agrees(case, case.grade.get(raw, 5), raw)

    agrees()


@pytest.mark.slow
@settings(max_examples=50)
@given(cases("0-3"), st.integers(1, 14))
def test_f1_is_set_f_over_the_first_k(case: Case, k: int) -> None:
    """set_F divides by the length of the ranking: only a ranking as long as K has the same precision."""
    cut = {query: ranking[:k] for query, ranking in case.ranking.items()}
    scores = {query: {each: -float(rank) for rank, each in enumerate(cut[query])} for query in cut}
    theirs = by_query([SetF], case.judged, scores)[str(SetF)]
    # Raw grade 1 is 3 after the mapping.
    ours = score_all([Measure("F1", k, (("rel", 3),))], case.grades(), case.counts(), depth=k)
    for query, value in zip(case.query_ids, next(iter(ours.values()))[:, k - 1], strict=True):
        if len(cut.get(query, [])) == k:
            assert np.nan_to_num(value) == pytest.approx(theirs[query], abs=1e-6)
        elif query not in cut:
            assert np.nan_to_num(value) == 0
