import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.filters import Kind, decade, decoded, fields_of, kinds, parse, share_of
from tests.filters.oracle import kinds_of, matches

PASSAGES = [
    {"tenant": "a", "lang": "en", "date": "2025-02-01", "acl": ["group:sales", "user:17"], "n": 3},
    {"tenant": "a", "lang": "fr", "date": "2024-12-31T23:59Z", "acl": ["group:sales"], "n": 4.5},
    {"tenant": "b", "lang": "en", "date": "2025-01-01", "acl": [], "draft": True},
    {"lang": "de", "date": "2025-01-01T01:00+02:00", "acl": "group:sales", "draft": False},
    {"tenant": 7, "lang": None, "acl": [17, "user:9"]},
    None,
]
FIELDS = fields_of(PASSAGES)


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"tenant": "a"}, [0, 1]),
        ({"tenant": ["b", "z"]}, [2]),
        ({"tenant": []}, []),
        ({"tenant": "A"}, []),
        ({"n": 3}, [0]),
        ({"n": 4.5}, [1]),
        ({"n": {"gt": 3, "lte": 4.5}}, [1]),
        ({"draft": False}, [3]),
        ({"date": "2025-01-01"}, [2]),
        ({"date": {"gte": "2025-01-01"}}, [0, 2]),
        ({"date": {"lt": "2025-01-01T00:00:00Z"}}, [1, 3]),
        ({"acl": {"any": ["user:17", "17"]}}, [0, 4]),
        ({"acl": {"any": [17]}}, [4]),
        ({"acl": {"any": []}}, []),
        ({"acl": {"all": ["user:17", "group:sales", "user:17"]}}, [0]),
        ({"tenant": "a", "lang": "en"}, [0]),
        ({"tenant": {"not": "a"}}, [2]),
        ({"not": {"tenant": "a"}}, [2]),
        ({"not": {"tenant": "a", "lang": "en"}}, [1, 2]),
        ({"acl": {"not": {"any": ["group:sales"]}}}, [2, 4]),
        ({"not": {"not": {"tenant": "a"}}}, [0, 1]),
        ({"lang": {"not": ["en", "de"]}}, [1]),
    ],
)
def test_a_filter_leaves(asked, rows):
    assert np.flatnonzero(parse(json.dumps(asked)).mask(FIELDS)).tolist() == rows


def test_types_are_those_of_most_values_and_can_be_declared():
    assert kinds(FIELDS) == {
        "acl": Kind.TEXTS, "date": Kind.DATE, "draft": Kind.BOOL, "lang": Kind.TEXT,
        "n": Kind.NUMBER, "tenant": Kind.TEXT,
    }  # fmt: skip
    assert kinds(fields_of(PASSAGES, {"date": Kind.TEXT}))["date"] is Kind.TEXT
    mixed = [{"date": "2025-01-01"}, {"date": "soon"}]
    assert kinds(fields_of(mixed))["date"] is Kind.TEXT
    assert fields_of(mixed, {"date": Kind.DATE})["date"].null_count() == 1
    assert fields_of(mixed, {"date": Kind.NUMBER})["date"].null_count() == 2
    assert fields_of(PASSAGES, names=["lang", "x"]).columns == ["lang"]


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"tenant": 7}, []),
        ({"tenant": {"not": 7}}, []),
        ({"lang": {"not": {"any": ["x"]}}}, []),
        ({"acl": "group:sales"}, []),
        ({"date": {"gte": 5}}, []),
        ({"not": {"tenant": "b", "n": "3"}}, []),
    ],
)
def test_another_type_never_matches_and_is_refused_by_name(asked, rows):
    read = parse(asked)
    assert np.flatnonzero(read.mask(FIELDS)).tolist() == rows
    with pytest.raises(InputError, match="holds"):
        read.check(FIELDS, "queries.jsonl:3")


def test_a_field_that_no_passage_has_is_refused_by_name():
    for refuse in (parse({"tenent": "a"}).check, parse({"not": {"tenent": "a"}}).mask):
        with pytest.raises(UnknownNameError, match=r"'tenent'.*Nearest: tenant"):
            refuse(FIELDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "JSON object"),
        ("{", "no JSON"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ('{"a": NaN}', "NaN is no value"),
        ('{"a": null}', "'a' holds null"),
        ('{"a": [1, "b"]}', "several types"),
        ('{"a": {"like": "x%"}}', "asks for 'like'.*gte, gt"),
        ('{"a": {}}', "asks for 'nothing'"),
        ('{"a": {"gte": "soon"}}', r"'a\.gte' holds \"soon\""),
        ('{"a": {"any": [{"b": 1}]}}', "list of texts"),
        ('{"not": "x"}', "not fields"),
        ('{"not": {}}', "not fields"),
        ('{"a": 9007199254740993}', "holds 9007199254740993"),
        ('{"a": "\\ud800"}', "'a' holds"),
        ('{"\\ud800": 1}', "no Unicode"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deeply|asks for 'a'"),
        ('{"not":' * 40 + '{"a": 1}' + "}" * 40, "nested too deeply"),
        ('{"a":' + '{"not":' * 40 + "1" + "}" * 41, "nested too deeply"),
        ('{"a": [' + "1," * 100_000 + "1]}", "more than 100,000 values"),
        ('{"a": "' + "x" * 17_000_000 + '"}', "characters long"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(text, said):
    with pytest.raises(InputError, match=said) as error:
        parse(text, "queries.jsonl:3")
    assert "queries.jsonl:3" in str(error.value)
    assert len(str(error.value)) < 1000


HOSTILE = [
    "' OR 1=1 --", '"); DROP TABLE passages; --', ".*", "^tenant$", "%", "\\", "</script>", "\x00",
    "שלום \u202e abc", "{{ filter }}", "$where", "é", "e\u0301", "x" * 200_000,
]  # fmt: skip


def test_hostile_text_is_data():
    fields = fields_of([{name: name for name in HOSTILE}, *({"^tenant$": each} for each in HOSTILE)])
    for each in HOSTILE:
        assert parse(json.dumps({each: each})).mask(fields)[0]
        alone = parse({"^tenant$": {"not": {"not": each}}}).mask(fields)
        assert [HOSTILE[row - 1] for row in np.flatnonzero(alone) if row] == [each]
    assert decoded(["{", "[1]", None, "[" * 100_000, "{}"]) == [None] * 4 + [{}]
    assert fields_of([{"a": "\ud800", "\ud800": 1, "b": ["\ud800"]}]).width == 0


def test_equal_filters_are_one():
    one, other = (
        parse('{"b": [2, 1, 2.0], "a": {"lt": 3, "gte": 1}}'),
        parse({"a": {"gte": 1.0, "lt": 3}, "b": (1, 2)}),
    )
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == '{"a":{"gte":1,"lt":3},"b":[1,2]}'
    assert one.names == ("a", "b")
    assert parse({"a": ["x"]}) == parse({"a": "x"}) != parse({"a": {"any": "x"}})


def test_selectivity_falls_in_decades():
    shares = (0, 0.00005, 0.0001, 0.0002, 0.01, 0.011, 0.1, 0.5, 1)
    assert [decade(share) for share in shares] == [
        "none", "below 0.01 %", "below 0.01 %", "0.01–0.1 %", "0.1–1 %", "1–10 %", "1–10 %",
        "10–100 %", "all",
    ]  # fmt: skip
    assert share_of(parse({"tenant": "a"}).mask(FIELDS)) == pytest.approx(2 / 6)


WORDS = st.sampled_from(["a", "b", "2025-01-01", "2025-01-01T02:00+02:00", "2024-12-31", "", "1"])
NUMBERS = st.sampled_from([0, 1, -2, 1.5, 2**40])
SCALARS = st.one_of(WORDS, NUMBERS, st.booleans())
HELD = st.one_of(
    SCALARS, st.none(), st.lists(st.one_of(WORDS, st.integers(0, 2)), max_size=3), st.just({"x": 1})
)
NAMES = st.sampled_from("stuv")
PASSAGE = st.one_of(
    st.dictionaries(NAMES, HELD),
    st.fixed_dictionaries(
        {
            "s": WORDS,
            "t": NUMBERS,
            "u": st.lists(WORDS, max_size=3),
            "v": st.sampled_from(["2025-01-01", "2024-12-31"]),
        }
    ),
)
LISTED = st.one_of(
    st.lists(WORDS, max_size=3), st.lists(NUMBERS, max_size=3), st.lists(st.booleans(), max_size=2)
)
BOUND = st.one_of(NUMBERS, st.sampled_from(["2025-01-01", "2025-01-01T02:00+02:00"]))
PLAIN = st.one_of(SCALARS, LISTED)
OPERATED = st.recursive(
    st.one_of(
        st.dictionaries(st.sampled_from(["gte", "gt", "lte", "lt"]), BOUND, min_size=1),
        st.dictionaries(st.sampled_from(["any", "all"]), st.lists(WORDS, max_size=2), min_size=1),
        st.fixed_dictionaries({"not": PLAIN}),
    ),
    lambda inner: st.fixed_dictionaries({"not": st.one_of(inner, PLAIN)}),
    max_leaves=2,
)
PARTS = st.dictionaries(NAMES, st.one_of(PLAIN, OPERATED), min_size=1, max_size=3)
ASKED = st.recursive(PARTS, lambda inner: st.fixed_dictionaries({"not": inner}), max_leaves=3)


@settings(max_examples=400)
@given(st.lists(PASSAGE, min_size=1, max_size=8), ASKED, st.one_of(st.none(), PARTS))
def test_the_mask_is_what_plain_python_says(passages, asked, also):
    both = asked if also is None else {**also, **asked}
    types = kinds_of(passages)
    fields = fields_of(passages)
    assert {name: kind.name.lower() for name, kind in kinds(fields).items()} == types
    read = parse(json.dumps(both))
    if set(read.names) <= set(types):
        assert read.mask(fields).tolist() == [matches(both, passage, types) for passage in passages]
    again = parse(read.text)
    assert (again, again.parts) == (read, read.parts)
    assert parse(both) == read
