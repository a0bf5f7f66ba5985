"""Scores of answers: against code written another way, the tool's own files, and the cases at the edge."""

import json
import random
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.readers.scoring import SCORERS, citations, cited, normalised, score, scored
from core.tables import TABLES, frame
from tests.importers.helpers import SHARED, needs

TREE = SHARED / "peer_outputs" / "ragged" / "tree" / "reader_results"
NAMES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
NAMES += " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
UNITS, TENS = NAMES.split()[:19], NAMES.split()[19:]


def _number(words):
    """Well-formed English number words up to 999 as digits, by arithmetic of their own."""
    total = 0
    for word in words:
        if word == "hundred":
            total *= 100
        else:
            total += UNITS.index(word) + 1 if word in UNITS else 10 * (TENS.index(word) + 2)
    return str(total)


def _tokens(text):
    """RAGGED's normalisation by another way: one pass over the words, none over the text."""
    words, out = text.split(), []
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and words[end].lower() in {*UNITS, *TENS, "hundred"}:
            end += 1
        if end > at:
            out.append(_number([word.lower() for word in words[at:end]]))
            at = end
            continue
        out.append(words[at])
        at += 1
    bare = " ".join(out).lower()
    bare = "".join(c for c in bare if not (33 <= ord(c) <= 126 and not c.isalnum()))
    return [word for word in re.findall(r"\w+|\W", bare) if word not in {"a", "an", "the"}]


def _words(text):
    return "".join(word if word.strip() else " " for word in _tokens(text)).split()


def _f1(answer, gold):
    one, other = _words(answer), _words(gold)
    rest, same = list(other), 0
    for word in one:
        if word in rest:
            rest.remove(word)
            same += 1
    if not same:
        return 0.0
    precision, recall = same / len(one), same / len(other)
    return 2 * precision * recall / (precision + recall)


NUMBERS = ["twenty one", "Seven", "one hundred five", "NINETEEN", "forty", "three hundred twelve"]
PIECES = [
    *NUMBERS, "The", "a", "an", "Paris", "paris,", "U.S.", "21", "105", "the-end", "«été»", "Łódź", "--",
    "(7)", "twenty-one", "seven.", "can't", "a.m.", "x" * 30, "", "\t", "\u00a0", "12",
]  # fmt: skip
# Number words are apart: what two that meet make is the number library's own
phrases = st.lists(st.sampled_from(PIECES), max_size=6).map(" and ".join)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(phrases | st.text(max_size=30), st.lists(phrases, min_size=1, max_size=3))
def test_equal_to_another_implementation(answer, golds):
    assert score("f1", answer, golds) == pytest.approx(max(_f1(answer, gold) for gold in golds))
    same = any(" ".join(_words(answer)) == " ".join(_words(gold)) for gold in golds)
    assert score("exact_match", answer, golds) == same


def test_two_thousand_answers_equal_another_implementation():
    draw = random.Random(3)  # noqa: S311
    for _ in range(2000):
        answer, gold = (" and ".join(draw.choices(PIECES, k=draw.randint(0, 5))) for _ in range(2))
        assert score("f1", answer, [gold]) == pytest.approx(_f1(answer, gold)), (answer, gold)
        same = " ".join(_words(answer)) == " ".join(_words(gold))
        assert score("exact_match", answer, [gold]) == same, (answer, gold)


@needs(TREE)
def test_equal_to_what_the_tool_wrote():
    compared = 0
    for file in sorted(TREE.rglob("all_data_evaluated.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            said, golds, told = row["answer"], row["gold_answers"], row["answer_evaluation"]
            assert score("f1", said, golds) == pytest.approx(told["f1"]), (file, row["id"])
            assert score("exact_match", said, golds) == told["exact_match"], (file, row["id"])
            assert score("substring", said, golds) == told["substring_match"], (file, row["id"])
            compared += 1
    assert compared == 960


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Twenty-One  Pilots!", "twentyone pilots"),
        ("twenty one pilots", "21 pilots"),
        ("two hundred and five", "200 and 5"),
        ("a million", "1000000"),
        ("million two", "million two"),  # the tool stops here
        ("ten, eleven", "ten 11"),  # the comma keeps the word from being one, as in the tool
        ("  ", ""),
        ("an the a", ""),
    ],
)
def test_normalisation(text, expected):
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("scorer", "answer", "golds", "expected"),
    [
        ("f1", "the cat sat", ["cat sat down", "dog"], 0.8),
        ("f1", "", [""], 0.0),
        ("exact_match", "The cat.", ["cat", "dog"], 1.0),
        ("exact_match", "cats", ["cat"], 0.0),
        ("substring", "It is Paris, I think", ["paris"], 1.0),
        ("substring", "Paris", ["Paris in France"], 1.0),
        ("substring", "", ["Paris"], 0.0),
        ("substring", "Rome", ["Paris"], 0.0),
        # the, quick, brown, the … of 8 and 9 words, 5 in one order: 10/17
        (
            "rougeL",
            "The quick brown dog jumps on the log.",
            ["The quick brown fox jumps over the lazy dog"],
            0.5882,
        ),
        ("rougeL", "été à Łódź", ["Été à Łódź"], 1.0),
        ("rougeL", "", ["x"], 0.0),
    ],
)
def test_scorers(scorer, answer, golds, expected):
    assert score(scorer, answer, golds) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_rouge_is_the_librarys_own_on_plain_text():
    from rouge_score.rouge_scorer import RougeScorer

    own = RougeScorer(["rougeL"])
    draw = random.Random(5)  # noqa: S311
    words = ["the", "quick", "brown", "fox,", "jumps", "over_it", "a", "lazy-dog", "21", "Times."]
    for _ in range(50):
        one, other = (" ".join(draw.choices(words, k=draw.randint(1, 8))) for _ in range(2))
        assert score("rougeL", one, [other]) == pytest.approx(own.score(other, one)["rougeL"].fmeasure)


@pytest.mark.parametrize("scorer", [*SCORERS])
@given(st.text(max_size=40))
def test_an_answer_that_is_the_gold_one_is_right(scorer, text):
    value = score(scorer, text, ["something else entirely", text])
    assert value == pytest.approx(1.0) or not normalised(text) or not re.search(r"[^\W_]", text)
    assert 0 <= score(scorer, text, ["one two three"]) <= 1


@given(
    st.lists(
        st.sampled_from([*NAMES.split(), "hundred", "thousand", "million", "billion", "trillion"]), max_size=9
    )
)
def test_any_number_words_have_a_reading(words):
    assert normalised(" ".join(words)) == normalised(" ".join(words).upper())


@pytest.mark.parametrize(("scorer", "golds"), [("f2", ["x"]), ("f1", [])])
def test_what_cannot_be_scored_is_refused(scorer, golds):
    with pytest.raises(InputError):
        score(scorer, "x", golds)


@pytest.mark.parametrize(
    ("answer", "relevant", "numbers", "expected"),
    [
        ("Yes [1], and [2].", [True, False, True], {1, 2}, (0.5, 0.5)),
        ("Yes [1][3]", [True, False, True], {1, 3}, (1.0, 1.0)),
        ("Yes [1, 3] or [2-3]", [True, False, True], {1, 2, 3}, (2 / 3, 1.0)),
        ("Cites what was not sent [9]", [True], {9}, (0.0, 0.0)),
        ("Cites nothing", [True], set(), (None, 0.0)),
        ("[1]", [False], {1}, (0.0, None)),
        ("[0] [x] [] [1.5]", [], {0}, (0.0, None)),
        ("[5-3]", [True], set(), (None, 0.0)),
    ],
)
def test_citations(answer, relevant, numbers, expected):
    assert cited(answer) == numbers
    assert citations(answer, relevant) == pytest.approx(expected) if None not in expected else expected


def _answers(*rows):
    usual = {"run_id": "r", "mode": "top_k", "k": 5, "pass": 1}
    keys = {"run_id": pl.String, "query_id": pl.String, "reader": pl.String, "prompt": pl.String}
    keys |= {"temperature": pl.Float64, "mode": pl.String, "k": pl.Int32, "pass": pl.Int16, "text": pl.String}
    return pl.DataFrame([{**usual, **row} for row in rows], schema=keys)


def test_a_table_of_answers():
    answers = _answers(
        {"query_id": "q0", "text": "Paris [1]"},
        {"query_id": "q0", "text": "Paris [1]", "pass": 2},
        {"query_id": "q0", "text": "Rome", "k": 1},
        {"query_id": "q1", "text": None},
        {"query_id": "q2", "text": "no gold answer"},
    )
    golds = pl.DataFrame({"query_id": ["q0", "q0", "q1"], "answer": ["Paris", "city of light", "x"]})
    sent = pl.DataFrame(
        {"query_id": ["q0"], "mode": ["top_k"], "k": [5], "relevant": [[True, False]]},
        schema_overrides={"k": pl.Int32},
    )
    found = scored(answers, golds, ["f1", "citation_precision", "f1"], sent=sent)
    assert found.schema == TABLES["answer_scores"]
    by_scorer = dict(found.group_by("scorer").agg("value").rows())
    assert sorted(by_scorer["f1"]) == pytest.approx([0.0, 2 / 3, 2 / 3])
    assert by_scorer["citation_precision"] == [1.0, 1.0]
    assert scored(answers.clear(), golds, ["f1"]).schema == found.schema
    assert "citation_recall" not in scored(answers, golds, ["citation_recall"])["scorer"].to_list()
    with pytest.raises(InputError):
        scored(answers, golds, ["f2"])


ANSWERABLE = {"with": True, "without": False}


@pytest.mark.parametrize(
    ("scorer", "said", "values"),
    [
        ("right_refusal", "Paris", {"without": 0.0}),
        ("right_refusal", "I do not know.", {"without": 1.0}),
        ("no_wrong_refusal", "Paris", {"with": 1.0}),
        ("no_wrong_refusal", "", {"with": 0.0}),
        ("abstention", "Paris", {"with": 1.0, "without": 0.0}),
        ("abstention", "The passages do not contain it.", {"with": 0.0, "without": 1.0}),
    ],
)
def test_refusals_are_right_where_no_answer_exists(scorer: str, said: str, values: dict[str, float]):
    answers = frame(
        "answers",
        [
            {"run_id": "r", "query_id": name, "text": said, "mode": "top_k", "k": 1, "pass": 1}
            for name in (*ANSWERABLE, "unknown")
        ],
    )
    none = frame("gold_answers", [])
    made = scored(answers, none, [scorer], answerable=ANSWERABLE)
    assert dict(made.select("query_id", "value").iter_rows()) == values
    assert scored(answers, none, [scorer]).is_empty()
