import json

import pytest
from typer.testing import CliRunner

from core.cli.app import app


def simulated(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["golden", "simulate", *words])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_simulation_as_json():
    words = ("--noise", "0.5", "--items", "12", "--confirmations", "2", "--stable", "4", "--runs", "6")
    (found,) = json.loads(simulated(*words, "--seed", "7", "--format", "json"))
    assert found["low"] <= found["tau"] <= found["high"]
    assert found["gain"] == pytest.approx(found["tau"] - found["grades"])
    assert (found["method"], found["items"], found["runs"], found["seed"]) == ("locks", 12, 6, 7)
    assert found["turns"] > 4
    (least,) = json.loads(
        simulated(*words, "--method", "map", "--turns", "10", "--seed", "7", "--format", "json")
    )
    assert least["grades"] == found["grades"]
    assert least["turns"] <= 10


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--items", "1"), 1),
        (("--runs", "0"), 1),
        (("--turns", "0"), 1),
        (("--method", "x"), 2),
        (("--sure", "3"), 1),
    ],
)
def test_what_cannot_be_simulated(words: tuple[str, ...], code: int):
    simulated("--noise", "1", *words, code=code)
