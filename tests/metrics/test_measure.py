"""Measures as text: parse, print, round trip, and what is refused."""

import pickle
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ClqError, InputError, UnknownNameError
from core.metrics import REGISTRY, Measure, parse_list, understood
from core.metrics.measure import MEASURES
from core.params import Param


def allowed(param):
    if param.choices:
        return st.sampled_from(param.choices)
    if param.free:
        return st.sampled_from((param.default, "gpt-4o mini:free", "a%28b%2C c%29"))
    if isinstance(param.default, int):
        return st.integers(param.low, param.high)
    return st.floats(param.low, param.high, allow_nan=False)


@st.composite
def measures(draw):
    info = REGISTRY[draw(st.sampled_from(sorted(REGISTRY)))]
    chosen = draw(st.lists(st.sampled_from(info.params), unique=True)) if info.params else []
    values = tuple((param.name, draw(allowed(param))) for param in chosen)
    return Measure(info.name, draw(st.none() | st.integers(1, 10_000)), values)


@pytest.mark.slow
@given(measures())
def test_text_round_trip(measure):
    again = Measure.parse(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert str(again) == str(measure)


@pytest.mark.slow
@given(st.lists(measures(), min_size=1, max_size=5, unique=True))
def test_list_round_trip(several):
    assert parse_list(", ".join(map(str, several))) == tuple(several)


@given(st.text(max_size=30))
def test_any_other_text_is_refused_with_a_known_error(text):
    with suppress(InputError, UnknownNameError):
        assert Measure.parse(text).name in REGISTRY


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("RA-nWG", "RA-nWG"),
        (" RA-nWG@10 ", "RA-nWG@10"),
        ("RA-nWG@10(alpha=0.5,cap3=0.2)", "RA-nWG@10(alpha=0.5,cap3=0.2)"),
        ("RA-nWG(alpha=0.5)@10", "RA-nWG@10(alpha=0.5)"),
        ("RA-nWG@10( cap3 = .2 , alpha = 5e-1 )", "RA-nWG@10(alpha=0.5,cap3=0.2)"),
        ("RA-nWG@10(alpha=1,cap3=0.25)", "RA-nWG@10"),
        ("RA-nWG@10(alpha=2.0)", "RA-nWG@10(alpha=2)"),
        ("RA-nWG@10()", "RA-nWG@10"),
        ("ra-nwg@010", "RA-nWG@10"),
        ("PROC[RA-nWG]@10", "PROC[RA-nWG]@10"),
        ("%proc[n-recall4+]@5", "%PROC[N-Recall4+]@5"),
        ("PROC[RA-nWG]@10(alpha=0)", "PROC[RA-nWG]@10(alpha=0)"),
        ("PROC[RA-nWG(alpha=0)]@10", "PROC[RA-nWG]@10(alpha=0)"),
        ("Robust[P(rel=3)]@5(typo=1)", "Robust[P]@5(rel=3,typo=1)"),
        ("%proc-per-query[hit]@5", "%PROC-per-query[Hit]@5"),
        ("nDCG@10(gain=exp)", "nDCG@10(gain=exp)"),
        ("ndcg@10(gain=linear)", "nDCG@10"),
        ("RBP(p=0.8)@30", "RBP@30"),
        ("RBP(p=0.95)@30", "RBP@30(p=0.95)"),
        ("T@10(alpha=0.3)", "T@10(alpha=0.3)"),
        ("P@5(rel=3.0)", "P@5(rel=3)"),
        ("acc|hit@5", "Acc|Hit@5"),
        ("Novelty-RA-nWG@10(beta=0,alpha=2)", "Novelty-RA-nWG@10(alpha=2,beta=0)"),
    ],
)
def test_spellings(text, canonical):
    assert str(Measure.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a measure"),
        ("RA-nWG@", "is not a measure"),
        ("RA-nWG@10(alpha=1", "is not a measure"),
        ("RA-nWG@10(alpha=1)@10", "is not a measure"),
        ("RA-nWG@5@10", "is not a measure"),
        ("RA-nWG@-1", "is not a measure"),
        ("RA-nWG@1.5", "is not a measure"),
        ("PROC[RA-nWG@10]", "is not a measure"),
        ("PROC[RA-nWG(alpha=1)]@10(alpha=1)", "given twice"),
        ("RA-nWG@0", "from 1 to 10000"),
        ("RA-nWG@10001", "from 1 to 10000"),
        ("RA-nWG@10(alpha)", "'alpha' is not a parameter"),
        ("RA-nWG@10(alpha=)", "is not a parameter"),
        ("RA-nWG@10(alpha=1,)", "'' is not a parameter"),
        ("RA-nWG@10(alpha=1,alpha=1)", "given twice"),
        ("RA-nWG@10(alpha=big)", "0 to 4"),
        ("RA-nWG@10(alpha=nan)", "0 to 4"),
        ("RA-nWG@10(alpha=-1)", "0 to 4"),
        ("RA-nWG@10(cap4=1.01)", "0 to 1"),
        ("nDCG@10(gain=log)", "linear | exp"),
        ("P@5(rel=2.5)", "1 to 5"),
        ("P@5(rel=0)", "1 to 5"),
        ("RBP@5(p=1)", "0 to 0.999"),
    ],
)
def test_refused_texts_say_why(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Measure.parse(text)


@pytest.mark.parametrize(
    ("name", "near"),
    [("RAnWG", "RA-nWG"), ("N-Recall4", "N-Recall4+"), ("Holes", "Hole"), ("PROC[Hits]", "PROC[Hit]")],
)
def test_unknown_names_list_the_nearest(name, near):
    with pytest.raises(UnknownNameError) as error:
        Measure.parse(f"{name}@10")
    assert near in error.value.known
    assert len(error.value.known) <= 5


def test_a_name_like_no_other_lists_all():
    with pytest.raises(UnknownNameError) as error:
        Measure.parse("zzzzzz")
    assert set(error.value.known) == {info.name for info in MEASURES}


def test_unknown_parameters_list_the_declared_ones():
    with pytest.raises(UnknownNameError) as error:
        Measure.parse("RA-nWG@10(beta=1)")
    assert "alpha" in error.value.known


def test_lists_split_outside_parentheses_only():
    several = parse_list("RA-nWG@10(alpha=0.5,cap3=0.2),N-Recall4+@30 , PROC[RA-nWG]@10,N-Recall4+@30")
    assert [str(one) for one in several] == [
        "RA-nWG@10(alpha=0.5,cap3=0.2)",
        "N-Recall4+@30",
        "PROC[RA-nWG]@10",
    ]


@pytest.mark.parametrize("text", ["", "RA-nWG@10,", "RA-nWG@10,,Hit@5", "RA-nWG@10(alpha=1,cap3=1"])
def test_incomplete_lists_are_refused(text):
    with pytest.raises(InputError):
        parse_list(text)


def test_parts_of_a_measure():
    measure = Measure.parse("%PROC[RA-nWG]@10(alpha=0.5)")
    assert (measure.name, measure.inner, measure.k, dict(measure.params)) == (
        "%PROC[RA-nWG]", "RA-nWG", 10, {"alpha": 0.5},
    )  # fmt: skip
    assert measure.values["cap3"] == 0.25
    assert str(measure.renamed(measure.inner).at(None)) == "RA-nWG(alpha=0.5)"
    assert Measure("Harm").inner is None


def test_measures_can_be_cached():
    measure = Measure.parse("RA-nWG@10(alpha=0.5)")
    assert pickle.loads(pickle.dumps(measure)) == measure  # noqa: S301


def test_parameters_that_are_words_or_whole_numbers():
    gain = Param(name="gain", default="linear", choices=("linear", "exp"), text="Gain")
    least = Param(name="rel", default=1, low=1, high=5, text="Least relevant grade")
    assert gain.read("exp") == "exp"
    assert gain.range == "linear | exp"
    assert least.read("3") == 3
    assert isinstance(least.read("3"), int)
    free = Param(name="reader", default="any", free=True, text="Who answers")
    assert free.read("gpt-4o") == "gpt-4o"
    wrongs = [
        (gain, "log"),
        (least, "2.5"),
        (least, "6"),
        *((free, text) for text in ("", " a", "a)", "b=c")),
    ]
    for param, wrong in wrongs:
        with pytest.raises(InputError, match="not allowed"):
            param.read(wrong)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("set_recall", "R"), ("set_P", "P"), ("set_F", "F1"), ("set_recall_10", "R@10"),
        ("Rprec", "Found: P, R."), ("bpref", "Found: AP, infAP."), ("gm_map", "Found: AP."),
        ("iprec_at_recall_0.10", "Found: AP, P."),
    ],
)  # fmt: skip
def test_measures_of_trec_eval_are_understood_or_the_nearest_is_named(name, said):
    if not said.startswith("Found"):
        assert str(understood(name)) == said
        return
    with pytest.raises(ClqError, match=re.escape(said)):
        understood(name)


def test_a_measure_of_sets_counts_the_longest_ranking():
    assert list(map(str, parse_list("set_recall,set_F,P_5,R@3", lambda: 30))) == [
        "R@30",
        "F1@30",
        "P@5",
        "R@3",
    ]
    assert [measure.k for measure in parse_list("set_recall,recall", lambda: 30)] == [30, None]
