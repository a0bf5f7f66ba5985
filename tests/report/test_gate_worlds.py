"""No gate passes falsely: random imports, renames, deletions and workspaces against their plain data."""

import os
import shutil

import pytest

from tests.report.gate_worlds import passes

CASES = int(os.environ.get("CLQ_GATE_CASES", "24"))


@pytest.mark.slow
@pytest.mark.timeout(300 + 5 * CASES)
def test_a_gate_never_passes_on_what_the_plain_data_forbid(tmp_path):
    held, false = 0, []
    for seed in range(CASES):
        folder = tmp_path / str(seed)
        holds, why, told = passes(seed, folder, tmp_path / "begun")
        held += holds
        if holds and why:
            false.append((seed, why, told))
        shutil.rmtree(folder)
        print(f"{seed + 1} cases, {held} passes, {len(false)} of them false", flush=True)
    assert not false
    assert held > CASES / 8, "a gate that never passes proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [281, 1723, 1879, 1974])
def test_worlds_in_which_a_gate_passed_falsely_once_are_played_again(tmp_path, seed):
    holds, why, told = passes(seed, tmp_path / "world", tmp_path / "begun")
    assert why
    assert not holds, told
