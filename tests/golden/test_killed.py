"""`kill -9` in the middle of a build: the same golden set, and nothing paid twice but what was under way."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from core.golden.plan import candidates, plan
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.folder import folders
from core.store import Store
from core.store.upkeep.doctor import examine
from tests.golden import built, cranfield
from tests.pipeline.cranfield import FOLDER
from tests.vendors import Step, Vendors, serve

CHAT, KILLS, AT_ONCE = "openai/chat", 20, 4
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="Cranfield is not beside the repository"),
]


@pytest.mark.timeout(1500)
def test_killed_builds_make_the_same_golden_set(tmp_path: Path):
    with serve(chat=cranfield.judge, delay_s=0.004) as vendors:
        whole = cranfield.work(tmp_path / "whole", vendors.url, "whole")
        needed = dict(vendors.state.texts[CHAT])
        foreseen = plan(found := cranfield.job(tmp_path / "plan", vendors.url), candidates(found))
        vendors.state.reset()
        for at in range(60):  # faults are spread over the calls
            vendors.script(
                CHAT, *[Step()] * 25, [Step.error(429, "0"), Step.error(500), Step("drop")][at % 3]
            )
        attempts = kill_until_done(tmp_path / "killed", vendors)
        bought = vendors.state.texts[CHAT]
    one, other = (Store.open(tmp_path / name / "store") for name in ("whole", "killed"))
    assert examine(other).sound
    assert built.same(one, other, "cranfield-judged")
    assert set(bought) == set(needed)
    again = sum(bought.values()) - len(needed)
    assert again <= AT_ONCE * sum(attempts), "only what was under way is paid again"
    (folder,) = folders(tmp_path / "killed" / "golden")
    receipts = Receipts(folder.receipts)
    assert again <= receipts.again <= AT_ONCE * sum(attempts)
    receipts.close()
    assert set(needed.values()) == {1}
    assert foreseen.usd == pytest.approx(whole.status.usd, rel=0.01)
    told = f"{sum(attempts)} kills; {len(needed)} calls needed, {again} paid again, {receipts.again} told"
    print(f"{told}; plan ${foreseen.usd:.6f}, spent ${whole.status.usd:.6f}")


def kill_until_done(folder: Path, vendors: Vendors) -> list[bool]:
    """Start, kill at a random call, start again until it finishes; whether each process was killed."""
    draw = np.random.default_rng(2026)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([cranfield.__name__])
    attempts: list[bool] = []
    while True:
        key = f"attempt-{len(attempts)}"
        process = context.Process(target=cranfield.work, args=(folder, vendors.url, key))
        process.start()
        if sum(attempts) < KILLS:
            before, calls = vendors.state.calls[CHAT], int(draw.integers(1, 60))
            while process.is_alive() and vendors.state.calls[CHAT] < before + calls:
                time.sleep(0.003)
            process.kill()
        process.join()
        attempts.append(process.exitcode == -9)
        assert process.exitcode in (-9, 0)
        if process.exitcode == 0:
            return attempts
