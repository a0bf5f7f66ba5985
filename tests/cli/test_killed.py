"""A sweep that is killed while it measures or stores goes on to the results of one that was left alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from tests import warm
from tests.cli.everything import SPEC, prepare
from tests.shared import EVERY_PAGE

KILLS = 20 if EVERY_PAGE else 3
DEPTHS, ROUNDS = range(1, 13), 400


def told(store: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--store", str(store), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def scores(store: Path) -> list[tuple[str, str, float]]:
    rows = json.loads(told(store, "score", "--measures", "P@1,P@2,RR@2", "--format", "json"))
    return sorted((row["run"], row["measure"], row["value"]) for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sweep_that_is_killed(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    prepare(whole / "store", whole)
    spec = SPEC.replace("candidates = [2]", f"candidates = {list(DEPTHS)}")
    (whole / "spec.toml").write_text(spec.replace("repeats = 1", f"repeats = {ROUNDS}"))
    begun = tmp_path / "begun"
    shutil.copytree(whole, begun)
    told(whole / "store", "run", str(whole / "spec.toml"), "--yes")
    wanted, luck, died = scores(whole / "store"), random.Random(13), 0  # noqa: S311
    assert len({run for run, _, _ in wanted}) > len(DEPTHS)
    for _ in range(KILLS):
        here = tmp_path / "killed"
        shutil.copytree(begun, here)
        words = ["--store", str(here / "store"), "run", str(here / "spec.toml"), "--yes"]
        sweep = warm.command(words, os.environ)
        while sweep.poll() is None and not [*here.glob("evaluations/*/measured.sqlite")]:
            time.sleep(0.01)
        time.sleep(2 * luck.random())
        sweep.kill()
        sweep.communicate()
        died += sweep.returncode == -9
        told(here / "store", "run", str(here / "spec.toml"), "--yes")
        told(here / "store", "doctor")
        assert scores(here / "store") == wanted
        shutil.rmtree(here)
    assert died, "not every sweep was over before"
