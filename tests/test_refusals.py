"""Every way in refuses what it does not know, and names the nearest: keys, types and words, by chance."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import core as clq
from core.api import decision, pages, typed
from core.cli.app import app
from core.errors import ClqError, InputError, UnknownNameError
from core.pipeline.sweep import SpecError, parse
from core.pipeline.sweep.model import Axes, Budget, Latency, SweepSpec
from core.ui.address.state import SETTINGS, problems
from core.views.ask import Given
from tests.stores import Lab

ROUNDS = 6  # Misspellings of each name
WRONG: tuple[object, ...] = (
    3.5,
    -1,
    "x",
    b"x",
    ["x"],
    {"x": 1},
    object(),
    True,
    float("nan"),
    10**400,
    ("a", 3),
)
"""Values of every type; what an argument accepts of them may be any."""


def misspelt(name: str, draw: random.Random) -> str:
    """Return a name with a letter left out, doubled, or moved."""
    at = draw.randrange(len(name) - 1)
    return draw.choice([
        name[:at] + name[at + 1 :], name[: at + 1] + name[at:],
        name[:at] + name[at + 1] + name[at] + name[at + 2 :],
    ])  # fmt: skip


def misspellings(names: Sequence[str], seed: int) -> Iterator[tuple[str, str]]:
    """Yield names of four letters or more, each with misspellings that are no other name."""
    draw, known = random.Random(seed), set(names)  # noqa: S311 - no secret
    for name in sorted(each for each in known if len(each) > 3):
        for _ in range(ROUNDS):
            wrong = misspelt(name, draw)
            if wrong not in known and not wrong.startswith("-"):
                yield name, wrong


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> clq.Workspace:
    queries = [f"q{at}" for at in range(12)]
    lab = Lab("lab").judge({query: {"a": 5, "b": 1} for query in queries})
    for name, order in {"first stack": ["a", "b"], "second stack": ["b", "a"]}.items():
        lab.run(name, final=dict.fromkeys(queries, order), ms={"embed": [9.0] * len(queries)})
    store = lab.write(tmp_path_factory.mktemp("refusals") / "store")
    return clq.open(store.path).workspace()


def typed_functions() -> dict[str, Callable[..., Any]]:
    """The functions of the library whose arguments are checked."""
    kinds = (clq.Results, clq.Workspace, decision.Decision, pages.Page)
    found = {f"{kind.__name__}.{name}": each for kind in kinds for name, each in vars(kind).items()}
    found |= {name: getattr(clq, name) for name in ("open", "run", "measure")}
    return {name: each for name, each in found.items() if hasattr(each, "__wrapped__")}


FUNCTIONS = typed_functions()


def refusal(function: Callable[..., object], *asked: object) -> str | None:
    """Return what a function says where it refuses, or None where it does not; nothing else is raised."""
    try:
        function(*asked)
    except ClqError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_argument_of_python_is_answered_with_the_nearest(name: str):
    function = FUNCTIONS[name]
    known = list(typed._arguments(inspect.unwrap(function)))
    for meant, wrong in misspellings(known, seed=len(name)):
        with pytest.raises((UnknownNameError, InputError)) as refused:
            function(**{wrong: 1})
        assert wrong in str(refused.value)
        assert meant in str(refused.value) or typed.nearest(wrong, known) != meant


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_another_type_are_refused_before_anything_is_done(name: str):
    known = typed._arguments(inspect.unwrap(FUNCTIONS[name]))
    for argument, hint in known.items():
        for value in WRONG:
            said = refusal(typed._check, argument, value, hint)
            assert said is None or said.startswith((argument, f"No {argument}")), said
        kinds = get_args(hint) if type(None) in get_args(hint) else [hint]
        for literal in [each for each in kinds if get_origin(each) is Literal]:
            for meant, wrong in misspellings(get_args(literal), seed=7):
                with pytest.raises(UnknownNameError) as refused:
                    typed._check(argument, wrong, hint)
                assert meant in str(refused.value)


DECIDING = sorted(
    clq.Workspace.decide.__kwdefaults__ | dict.fromkeys(clq.api.options.AskedOptions.__optional_keys__)
)


@pytest.mark.slow
def test_a_misspelt_choice_of_a_decision_is_answered_with_the_nearest(space: clq.Workspace):
    for meant, wrong in misspellings(DECIDING, seed=1):
        with pytest.raises((UnknownNameError, InputError)) as refused:
            space.decide(**{wrong: 1})
        assert meant in str(refused.value) or typed.nearest(wrong, DECIDING) != meant


@pytest.mark.slow
@pytest.mark.parametrize("name", DECIDING)
def test_a_choice_of_a_decision_of_any_type_is_taken_or_refused_in_words(name: str, space: clq.Workspace):
    for value in WRONG:
        assert refusal(space._view, {name: value}) != ""


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*words, name))
        else:
            yield (*words, name), each


@pytest.mark.slow
def test_a_misspelt_option_of_a_command_is_answered_with_the_nearest(tmp_path: Path):
    asked, run = 0, CliRunner()
    for words, command in commands(get_command(app)):
        options = [each for param in command.params for each in param.opts if each.startswith("--")]
        for meant, wrong in list(misspellings([each[2:] for each in options], seed=len(words)))[::5]:
            refused = run.invoke(app, ["--store", str(tmp_path / "s"), *words, f"--{wrong}"])
            assert refused.exit_code == 2, (words, wrong, refused.output)
            assert f"No such option: --{wrong}. Nearest: --" in refused.stderr, (words, meant, refused.stderr)
            asked += 1
    assert asked > 300
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["stack", "test", "each"])
def test_a_misspelt_choice_of_a_section_is_answered_with_the_nearest(key: str, space: clq.Workspace):
    known = space.page("compare").choices
    for _, wrong in [pair for pair in misspellings(list(known), seed=2) if pair[0] == key]:
        with pytest.raises(UnknownNameError) as refused:
            space.page("compare", choices={wrong: 1})
        assert key in str(refused.value)
    for option in known[key]["options"]:
        with pytest.raises(UnknownNameError) as refused:
            space.page("compare", choices={key: f"{option}x"})
        assert option in str(refused.value)


def test_a_number_of_a_section_is_one():
    for wrong in ("x", "", "nan", "1e999", "-1"):
        with pytest.raises(InputError, match=r"not a number|out of range"):
            Given({"tol": [wrong]}).number("Tie up to", "tol", 0.0, 0.0, 1.0)


SPEC = {"collection": {"stored": "lab"}, "axes": {"mode": ["sparse"]}}
TABLES = {"": SweepSpec, "axes": Axes, "latency": Latency, "budget": Budget}


@pytest.mark.parametrize("table", TABLES)
def test_a_misspelt_key_of_a_specification_is_answered_with_the_nearest(table: str):
    for meant, wrong in misspellings(list(TABLES[table].model_fields), seed=3):
        inside = {**SPEC.get(table, {}), wrong: 1} if table else {}
        text = {**SPEC, table: inside} if table else {**SPEC, wrong: 1}
        with pytest.raises(SpecError) as refused:
            parse(json.dumps(text), "json", name="spec")
        assert f"There is no key '{wrong}' here. Did you mean \"" in str(refused.value), meant


@pytest.mark.slow
def test_a_misspelt_key_of_an_address_is_named_with_the_nearest():
    for _, wrong in misspellings(list(SETTINGS), seed=4):
        assert problems({wrong: ["1"]}, {})[wrong].startswith("unknown, nearest is ")


@pytest.mark.parametrize(
    ("key", "near"),
    [("max_cost", "budget"), ("max_latency", "sla_ms"), ("cost", "budget"), ("min_qualty", "min_quality")],
)
def test_a_limit_of_an_address_by_another_name_is_named(key: str, near: str):
    assert problems({key: ["1"]}, {}) == {key: f"unknown, nearest is {near}"}
