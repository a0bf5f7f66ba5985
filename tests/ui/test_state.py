from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.address.state import LATEST, SETTINGS, not_followed, problems, same, written
from core.views.link import pinned

KEYS = st.sampled_from([key for key in SETTINGS if key != "rev"])
NAMES = st.text(st.characters(codec="utf-8"), min_size=1)
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(0, 1e6).map(lambda number: float(f"{number:.6g}"))
VALUES = NAMES | NUMBERS | st.booleans() | st.none() | st.lists(NAMES, max_size=4) | st.just("")
HERE = "https://host:8501/base/pareto?old=1#frag"


def asked(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query, keep_blank_values=True)


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES), st.integers(0, 10**6))
def test_a_link_is_followed_where_the_values_are_the_same(values: dict[str, object], revision: int):
    found = asked(pinned(HERE, values, revision))
    assert found.pop("rev") == [str(revision)]
    assert not {"does not exist here"} & {*problems(found, values).values()}
    assert set(found) == {key for key, value in values.items() if written(value)}


@given(st.dictionaries(KEYS, NAMES), KEYS, NAMES)
def test_a_value_that_was_not_taken_is_a_problem(values: dict[str, str], key: str, other: str):
    found = asked(pinned(HERE, values, 1))
    taken = {**values, key: other}
    wrong = key in values and values[key] != other and not _same_number(values[key], other)
    assert (key in problems(found, taken)) or not wrong


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def test_a_link_keeps_the_page_and_drops_what_stood_there():
    link = pinned(HERE, {"m": "N-Recall4+", "k": 10, "rev": LATEST}, 7)
    assert link == "https://host:8501/base/pareto?m=N-Recall4%2B&k=10&rev=7"
    assert pinned("", {}, 0) == "?rev=0"


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (None, []), ("", []), ([], []), ((), []), ([None, ""], []), ("a b", ["a b"]), (0, ["0"]),
        (10, ["10"]), (0.0, ["0"]), (10.0, ["10"]), (0.1, ["0.1"]), (0.1 + 0.2, ["0.3"]), (1e-7, ["1e-07"]),
        (True, ["true"]), (False, ["false"]), (["a", "b"], ["a", "b"]), ([1.0, [2]], ["1", "2"]),
    ],
)  # fmt: skip
def test_how_a_value_stands_in_an_address(value: object, texts: list[str]):
    assert written(value) == texts


@pytest.mark.parametrize(
    ("texts", "value", "fine"),
    [
        (["0.5"], 0.5, True), (["0.50"], 0.5, True), (["5e-1"], 0.5, True), (["ten"], 10, False),
        (["nan"], 0.5, False), (["1", "2"], 1, False), ([""], None, False), (["a"], ["a"], True),
        (["a", "b"], ["b", "a"], False), (["a", "gone"], ["a"], False), (["TRUE"], True, False),
    ],
)  # fmt: skip
def test_what_counts_as_followed(texts: list[str], value: object, fine: bool):
    assert same(texts, written(value)) is fine


def test_why_a_setting_is_not_followed():
    deleted = problems(
        {"gs": ["old"], "ws": ["here"]}, {"gs": "", "ws": "here"}, {"gs": ["old"], "ws": ["here"]}
    )
    assert deleted == {"gs": "deleted, page Library can restore it"}
    assert problems({"curves": ["a"], "m": ["b"]}, {"k": 10}, later={"m"}) == {"curves": "not asked here"}
    assert problems({"x" * 99: ["a"]}, {}) == {"x" * 99: "unknown"}
    asked = {"acme_ms": ["5"]}  # A choice of a plug-in's section
    assert problems(asked, {"acme_ms": 5.0}) == {}
    assert problems(asked, {"acme_ms": 6.0}) == {"acme_ms": "does not exist here"}


def test_a_line_names_forty_settings_and_is_short():
    asked = {"x" * 9_999: ["1"], "k": ["y" * 9_999], "sla_ms": ["a"], "min_quality": ["b"]}
    line = not_followed(asked, problems(asked, {}))
    assert line == (
        f"“{'x' * 18}…{'x' * 11}” (unknown); cutoff “{'y' * 18}…{'y' * 11}” (no value); "
        "SLA “a”, quality floor “b” (no number)"
    )
    many = {f"z{at}": ["1"] for at in range(50)}
    assert not_followed(many, problems(many, {})).endswith("“z39” (unknown), and 10 more")


def test_every_setting_has_a_word_of_its_own():
    assert len({setting.word for setting in SETTINGS.values()}) == len(SETTINGS)
