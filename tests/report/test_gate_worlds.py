"""No gate passes falsely: random imports, renames, deletions and workspaces against their plain data."""

import os

import pytest

from tests.report.gate_worlds import passes

CASES = int(os.environ.get("CLQ_GATE_CASES", "24"))


@pytest.mark.slow
@pytest.mark.timeout(300 + 5 * CASES)
def test_a_gate_never_passes_on_what_the_plain_data_forbid(tmp_path):
    held = 0
    for seed in range(CASES):
        holds, why, told = passes(seed, tmp_path / str(seed), tmp_path / "begun")
        assert not (holds and why), (seed, why, told)
        held += holds
    print(f"{CASES} cases, {held} passes, none of them false")
    assert held > CASES / 8, "a gate that never passes proves nothing"
